"""Pictures and recordings as arrays: of files in folders, and of columns of encoded bytes."""

from __future__ import annotations

import io
import os

import numpy as np

from .errors import ReadError, need
from .tables import message_of

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
RECORDINGS = (".wav", ".flac", ".ogg", ".mp3")
_RECORDING_MARKS = (
    *(b"RIFF", b"RIFX", b"RF64", b"fLaC", b"OggS"),
    *(b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
)


def _is_recording(content: bytes) -> bool:
    is_webp = content.startswith(b"RIFF") and content[8:12] == b"WEBP"
    return content.startswith(_RECORDING_MARKS) and not is_webp


class MediaReader:
    """Decodes examples one by one, and compares each with the first.

    Pictures [H, W] of gray values become H * W tokens, others H * W positions of 3 channels;
    recordings are values of as many channels as they have.
    """

    def __init__(self) -> None:
        self._shape: tuple[int, ...] = ()
        self._rate = 0
        self._mode = ""

    def decode(self, content: bytes, where: str) -> tuple[np.ndarray, int]:
        """The elements, position after position, and the channels."""
        if _is_recording(content):
            return self._recording(content, where)
        return self._picture(content, where)

    def _picture(self, content: bytes, where: str) -> tuple[np.ndarray, int]:
        image = need("PIL.Image", "pillow", where, "pictures")
        try:
            picture = image.open(io.BytesIO(content))
            if not self._mode:
                self._mode = "L" if picture.mode in ("1", "L") else "RGB"
            if picture.mode.startswith(("I", "F")):
                raise ReadError(
                    where, f"is a picture of the mode {picture.mode}", "8 bits for each color"
                )
            if self._mode == "L" and picture.mode not in ("1", "L"):
                raise ReadError(
                    where,
                    f"is a picture of the mode {picture.mode}",
                    "gray values, as the first one",
                )
            pixels = np.asarray(picture.convert(self._mode))
        except (OSError, ValueError, SyntaxError) as error:
            raise ReadError(
                where,
                f"cannot be decoded as a picture: {message_of(error)}",
                "PNG, JPEG and the like",
            ) from None
        self._shape = self._shape or pixels.shape
        if pixels.shape != self._shape:
            size = " x ".join(map(str, pixels.shape[:2]))
            raise ReadError(
                where,
                f"is a picture of {size} pixels",
                " x ".join(map(str, self._shape[:2])) + ", as the first one",
                "resize the pictures before the import",
            )
        return pixels.ravel(), 1 if pixels.ndim == 2 else pixels.shape[2]

    def _recording(self, content: bytes, where: str) -> tuple[np.ndarray, int]:
        soundfile = need("soundfile", "soundfile", where, "recordings")
        try:
            samples, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
        except Exception as error:  # of the library
            raise ReadError(
                where,
                f"cannot be decoded as a recording: {message_of(error)}",
                "WAV, FLAC and the like",
            ) from None
        self._rate = self._rate or rate
        if rate != self._rate:
            raise ReadError(
                where,
                f"has {rate} samples a second",
                f"{self._rate}, as the first one",
                "resample the recordings before the import",
            )
        return samples.ravel(), samples.shape[1]


def read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ReadError(path, f"cannot be read: {os.strerror(error.errno or 0)}") from None
