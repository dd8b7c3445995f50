"""NumPy's .npz and .npy, and the idx files of MNIST, as record batches of Arrow.

Arrays are read a few megabytes at a time, also from compressed archives.
"""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from . import names
from .errors import ReadError, quoted
from .pickles import load_pickle
from .source import Source
from .tables import BLOCK, message_of, open_stream

_CURE = (
    "pad sequences of different lengths and add an array 'lengths', or write JSON Lines; "
    "labels of a data frame: y.astype(str)"
)


class Array:
    """An array that is read from front to back, some rows at a time."""

    def __init__(self, name: str, opened: Callable[[], Any], is_idx: bool = False) -> None:
        self.name, self._opened, self._is_idx = name, opened, is_idx
        self._file: Any = None
        self._rest: Any = None
        with opened() as file:
            self.shape, self.dtype, self.is_fortran = (_idx_header if is_idx else _npy_header)(
                file, name
            )

    @property
    def size(self) -> int:
        return self.shape[0] if self.shape else 0

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape[1:])

    def read(self, count: int) -> Any:
        """The next rows [count, ...]."""
        if self._file is None:
            self._file = self._opened()
            (_idx_header if self._is_idx else _npy_header)(self._file, self.name)
            if self.dtype.hasobject:
                self._rest = self._objects()
            elif self.is_fortran:
                content = np.frombuffer(self._bytes(self.row_bytes * self.size), self.dtype)
                self._rest = content.reshape(self.shape[::-1]).T
        if self._rest is not None:
            rows, self._rest = self._rest[:count], self._rest[count:]
            return np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else rows
        content = np.frombuffer(self._bytes(self.row_bytes * count), self.dtype)
        return content.reshape(count, *self.shape[1:])

    def _bytes(self, size: int) -> bytes:
        try:
            content = self._file.read(size)
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise ReadError(self.name, f"is damaged: {message_of(error)}") from None
        if len(content) < size:
            raise ReadError(self.name, "is cut off", "a complete file")
        return content

    def _objects(self) -> list[Any]:
        try:
            found = load_pickle(self._file)
        except Exception as error:  # a pickle may raise anything
            found = message_of(error)
        if not isinstance(found, np.ndarray) or found.shape != self.shape:
            why = f" ({found})" if isinstance(found, str) else ""
            raise ReadError(
                self.name, f"holds objects that are not read{why}", "numbers or texts", _CURE
            )
        return found.tolist()


def _npy_header(file: BinaryIO, name: str) -> tuple[tuple[int, ...], np.dtype, bool]:
    try:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, is_fortran, dtype = read(file)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ReadError(name, f"is not an array of NumPy: {message_of(error)}") from None
    if dtype.kind not in "biufUSO" or dtype.names:
        raise ReadError(name, f"has elements of type {dtype}", "numbers or texts")
    return shape, dtype, is_fortran


def _idx_header(file: BinaryIO, name: str) -> tuple[tuple[int, ...], np.dtype, bool]:
    kinds = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in kinds:
        raise ReadError(name, "is not an idx file")
    shape = struct.unpack(f">{head[3]}I", file.read(4 * head[3]))
    return shape, np.dtype(kinds[head[2]]), False


def arrow_of(rows: Any, name: str) -> tuple[pa.Array, int]:
    """Rows [N, ...] as an array of Arrow, and the channels of a position.

    [N, L] has one channel, [N, L, C] has C, pictures [N, H, W, C] are H * W positions. Pictures in
    gray [N, H, W] are told from series by the name of the array, or by bytes in 8 rows and more.
    """
    if isinstance(rows, list):  # objects
        plain = [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]
        try:
            return pa.array(plain), 1
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            if not any(isinstance(row, (list, dict)) for row in plain):
                return pa.array([None if row is None else str(row) for row in plain]), 1
            raise ReadError(
                name, "holds objects of unlike types", "lists of numbers, or texts", _CURE
            ) from None
    if rows.dtype.kind == "S":
        try:
            rows = np.char.decode(rows, "utf-8")
        except UnicodeDecodeError:
            raise ReadError(name, "is not UTF-8", "UTF-8") from None
    if rows.dtype.kind == "U":
        return pa.array(rows.ravel().tolist(), pa.string()), 1
    rows = rows.astype(rows.dtype.newbyteorder("="), copy=False)
    if rows.dtype.kind == "f" and rows.dtype.itemsize not in (4, 8):
        rows = rows.astype(np.float32 if rows.dtype.itemsize == 2 else np.float64)
    if rows.ndim == 1:
        return pa.array(rows), 1
    if 0 in rows.shape[1:]:
        raise ReadError(name, f"has the shape {list(rows.shape)}", "examples that are not empty")
    is_named = names.plain(name) in names.PICTURES and rows.dtype.kind in "ub"
    is_bytes = rows.dtype == np.uint8 and min(rows.shape[1:]) >= 8
    is_gray = rows.ndim == 3 and (is_named or is_bytes)
    if rows.ndim == 4 and rows.shape[1] in (1, 3) and rows.shape[3] not in (1, 3, 4):
        raise ReadError(
            name,
            f"has the shape {list(rows.shape)}, with the colors first",
            "pictures [N, H, W, C]",
            f"save {name}.transpose(0, 2, 3, 1)",
        )
    channels = 1 if rows.ndim == 2 or is_gray else rows.shape[-1]
    if rows.ndim > 4:
        raise ReadError(
            name, f"has {rows.ndim} dimensions", "[N, L], [N, L, C], or pictures [N, H, W, C]"
        )
    flat = pa.array(rows.ravel().view(np.uint8) if rows.dtype.kind == "b" else rows.ravel())
    return pa.FixedSizeListArray.from_arrays(flat, math.prod(rows.shape[1:])), channels


def _batches(arrays: dict[str, Array], source: Source) -> Iterator[pa.RecordBatch]:
    count = next(iter(arrays.values())).size
    step = max(1, BLOCK // max(1, sum(array.row_bytes for array in arrays.values())))
    for row in range(0, count, step):
        columns = []
        for name, array in arrays.items():
            column, source.channels[name] = arrow_of(array.read(min(step, count - row)), name)
            columns.append(column)
        yield pa.RecordBatch.from_arrays(columns, list(arrays))


def _with_one_count(
    arrays: dict[str, Array], path: str, ignored: list[tuple[str, str]]
) -> dict[str, Array]:
    """The arrays with a row for each example; the largest one says how many there are."""
    usual = max(
        arrays.values(), key=lambda array: (len(array.shape) > 1, array.row_bytes * array.size)
    )
    kept = {}
    for name, array in arrays.items():
        if array.size == usual.size and array.shape:
            kept[name] = array
        elif len(array.shape) > 1 and array.shape[1:] == usual.shape[1:]:
            raise ReadError(
                array.name,
                f"has {array.size} examples, and {usual.name} has {usual.size}",
                "names that tell splits",
                "rename the arrays, such as x_train, y_train, x_test and y_test",
            )
        elif names.plain(name) in (*names.LABELS, *names.SEQUENCES, *names.LENGTHS, "split"):
            raise ReadError(
                array.name, f"has {array.size} elements", f"{usual.size}, as {usual.name} has"
            )
        else:
            ignored.append((array.name, f"has {array.size} elements for {usual.size} examples"))
    return kept


def _leave_out(
    rest: dict[str, Array], by_split: dict[str, dict[str, Array]], ignored: list[tuple[str, str]]
) -> None:
    """Arrays whose names say no split. Refuses those that may be examples of one."""
    sizes = [array.size for part in by_split.values() for array in part.values()]
    if not {"train", "test"} <= by_split.keys():  # they may be those of the split that lacks
        sizes += [array.size for array in rest.values() if len(array.shape) > 1]
    for array in rest.values():
        if array.shape and array.size in sizes:
            raise ReadError(
                array.name,
                "may belong to the examples, but names no split as others do",
                "a name such as x_train or x_test",
                "rename it, or remove it from the file",
            )
        ignored.append((array.name, "names no split, as others do"))


def _sources(path: str, found: dict[str, Array], ignored: list[tuple[str, str]]) -> list[Source]:
    """A source for each split that names of arrays say."""
    by_split: dict[str, dict[str, Array]] = {}
    for name, array in found.items():
        split, rest = names.parted(name)
        if rest in by_split.setdefault(split, {}):
            raise ReadError(array.name, f"is '{rest}' of {split}, as another array is", "one")
        by_split[split][rest] = array
    if len(by_split) > 1:
        _leave_out(by_split.pop("", {}), by_split, ignored)
    sources = []
    for split, arrays in by_split.items():
        source = Source(path, split=split, split_why="name of the array")
        kept = _with_one_count(arrays, path, ignored)
        source.batches = partial(_batches, kept, source)
        sources.append(source)
    return sources


def npz_sources(path: str, ignored: list[tuple[str, str]]) -> list[Source]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise ReadError(
            path, f"is not an .npz file: {message_of(error)}", "a file of numpy.savez"
        ) from None
    found: dict[str, Array] = {}
    for entry in archive.namelist():
        name = entry.removesuffix(".npy")
        if not entry.endswith(".npy"):
            ignored.append((f"{path} '{entry}'", "is not an array"))
            continue
        found[name] = Array(f"{path} array '{name}'", partial(archive.open, entry))
    if not found:
        raise ReadError(path, "holds no array", "a file of numpy.savez")
    sources = _sources(path, found, ignored)
    if len(sources) == 1 and not sources[0].split:
        sources[0].split = names.split_of_file(path)
        sources[0].split_why = "name of the file"
    return sources


def array_file_sources(paths: list[str], ignored: list[tuple[str, str]]) -> list[Source]:
    """The sources that .npy and idx files are together, such as X_train.npy and y_train.npy."""
    found: dict[str, Array] = {}
    for path in paths:
        stem = re.sub(r"(\.npy|[-.]idx\d-ubyte)(\.gz)?$", "", os.path.basename(path))
        if stem in found:
            raise ReadError(path, f"is '{stem}', as {found[stem].name} is", "one")
        is_idx = not path.endswith(".npy")
        opened = partial(open_stream, path) if is_idx else partial(open, path, "rb")
        found[stem] = Array(path, opened, is_idx)
    return _sources(" and ".join(paths[:2]) if len(paths) < 3 else quoted(paths, 2), found, ignored)
