"""The form in which examples reach the program: frames of a few megabytes, one after another.

A frame is little-endian and has no gaps: the header (_HEADER), int32 labels [N], uint8 splits [N],
uint64 groups [G, N], uint32 lengths [S, N] in positions, and for each of the S sequences of an
example the elements of all N examples. src/data/frame_file.h reads it.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

_HEADER = struct.Struct("<8s6I")
_MAGIC = b"LRAROWS1"
TEXT = 0
TYPES = {TEXT: "u1", 1: "u1", 2: "<u2", 3: "<u4", 4: "<f4", 5: "<f8"}


@dataclasses.dataclass
class Rows:
    """One sequence of each of N examples.

    `values` holds `channels` elements for each position, example after example; bytes of UTF-8
    if `is_text`. `lengths` are positions [N].
    """

    values: NDArray
    lengths: NDArray[np.int64]
    channels: int = 1
    is_text: bool = False


def type_of(rows: Rows) -> int:
    """The smallest element type that holds all values; other integers become float64."""
    if rows.is_text:
        return TEXT
    kind, values = rows.values.dtype.kind, rows.values
    if kind == "f":
        return 4 if values.dtype.itemsize <= 4 else 5
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    fits = [code for code, most in ((1, 0xFF), (2, 0xFFFF), (3, 0xFFFFFFFF)) if high <= most]
    return fits[0] if low >= 0 and fits else 5


def write_frame(
    file: BinaryIO, sequences: list[Rows], labels: NDArray, splits: NDArray, groups: list[NDArray]
) -> None:
    """Appends a frame of N examples."""
    code = max(type_of(rows) for rows in sequences)
    head = _HEADER.pack(
        _MAGIC, len(labels), len(sequences), code, sequences[0].channels, len(groups), 0
    )
    file.write(head)
    file.write(np.ascontiguousarray(labels, "<i4").data)
    file.write(np.ascontiguousarray(splits, "u1").data)
    for group in groups:
        file.write(np.ascontiguousarray(group, "<u8").data)
    for rows in sequences:
        file.write(np.ascontiguousarray(rows.lengths, "<u4").data)
    for rows in sequences:
        file.write(np.ascontiguousarray(rows.values, TYPES[code]).data)
