"""Columns of Arrow as arrays: sequences, labels, lengths and groups."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .errors import ReadError
from .frames import Rows
from .media import MediaReader, read_bytes
from .tables import is_number, message_of

Where = Callable[[int], str]  # "FILE row N" of a place in the batch


def kind_of(column: pa.Array) -> str:
    """'number', 'text', 'list', 'media', or the type in other words."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.FixedShapeTensorType) or is_list(kind):
        return "list"
    if (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
    ):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "media"
    if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        return "media"
    return str(kind)


def is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def are_cells_numbers(column: pa.Array, decimal_comma: bool) -> bool:
    """True if nearly all of the first rows of a CSV column are numbers: the others are mistakes."""
    cells = [cell for cell in column.slice(0, 100).to_pylist() if cell is not None]
    found = sum(is_number(cell.replace(",", ".") if decimal_comma else cell) for cell in cells)
    return found >= max(1, 0.9 * len(cells)) or (found > 0 and found + 1 >= len(cells))


class CellNumbers:
    """Numbers that are written as text. `whole` ends when one is not."""

    def __init__(self, decimal_comma: bool) -> None:
        self.whole, self._decimal_comma = True, decimal_comma

    def of(self, cells: pa.Array, where_of_cell: Callable[[int], str]) -> NDArray:
        for clean in (False, True):
            if clean:
                cells = pc.utf8_trim_whitespace(cells)
                if self._decimal_comma:
                    cells = pc.replace_substring(cells, ",", ".")
            for kind in (pa.int64(), pa.float64()):
                if kind == pa.int64() and not self.whole:
                    continue
                try:
                    found = pc.cast(cells, kind).to_numpy(zero_copy_only=False)
                except pa.ArrowInvalid:
                    continue
                self.whole = self.whole and kind == pa.int64()
                return found
        for i, cell in enumerate(cells.to_pylist()):
            if not is_number(cell):
                raise ReadError(
                    where_of_cell(i),
                    f"'{cell[:60]}' is not a number",
                    "numbers",
                    "name a column of texts with --set task.sequences=NAME",
                )
        raise ReadError(
            where_of_cell(0), "holds numbers that are not read", "numbers such as 0.5 and 1e-3"
        )


def _flat(column: pa.Array) -> tuple[pa.Array, NDArray]:
    values = column.flatten()
    if pa.types.is_fixed_size_list(column.type):
        return values, np.full(len(column), column.type.list_size, np.int64)
    return values, pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)


def _numbers(values: pa.Array, where: Callable[[], str]) -> NDArray:
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), np.nan)
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    elif pa.types.is_float16(kind):
        values = values.cast(pa.float32())
    elif pa.types.is_decimal(kind) or (values.null_count and pa.types.is_integer(kind)):
        values = values.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ReadError(
            where(),
            f"a list holds elements of type {kind}",
            "numbers",
            "number the words, or join them to a text",
        )
    return values.to_numpy(zero_copy_only=False)


def _without_trailing_nan(rows: Rows, where: Where) -> Rows:
    """Series of unequal lengths are padded with NaN at their ends; elsewhere NaN is refused."""
    if rows.values.dtype.kind != "f":
        return rows
    if rows.values.dtype == np.float64 and rows.values.size:
        with np.errstate(invalid="ignore"):
            if np.nanmax(np.abs(rows.values), initial=0) > np.finfo(np.float32).max:
                place = int(np.nanargmax(np.abs(rows.values)))
                row = int(np.searchsorted(np.cumsum(rows.lengths * rows.channels), place, "right"))
                raise ReadError(
                    where(row), "a value is infinite or too large for float32", "finite numbers"
                )
    odd = ~np.isfinite(rows.values)
    if not odd.any():
        return rows
    ends = np.cumsum(rows.lengths * rows.channels)
    lengths = rows.lengths.copy()
    for row in np.unique(np.searchsorted(ends, np.flatnonzero(odd), "right")):
        end = ends[row]
        block = odd[end - rows.lengths[row] * rows.channels : end].reshape(-1, rows.channels)
        kept = np.flatnonzero(~block.all(1))
        lengths[row] = kept[-1] + 1 if kept.size else 0
        if block[: lengths[row]].any() or np.isinf(rows.values[end - block.size : end]).any():
            raise ReadError(
                where(int(row)),
                "a value is NaN or infinite",
                "finite numbers; NaN only as padding at the end",
                "replace missing values before the import",
            )
    return cut(rows, lengths)


def cut(rows: Rows, lengths: NDArray, from_left: NDArray | None = None) -> Rows:
    """The first `lengths` positions of each example, after leaving out `from_left`."""
    starts = np.concatenate(([0], np.cumsum(rows.lengths)[:-1]))
    begin = starts + (0 if from_left is None else from_left)
    marks = np.zeros(int(rows.lengths.sum()) + 1, np.int32)
    np.add.at(marks, begin, 1)
    np.add.at(marks, begin + lengths, -1)
    keep = np.repeat(np.cumsum(marks[:-1]) > 0, rows.channels)
    return Rows(rows.values[keep], lengths, rows.channels)


def text_rows(column: pa.Array, where: Where) -> Rows:
    """UTF-8, with each CR LF as LF."""
    column = _filled(column, where).cast(pa.large_string())
    rows = _bytes_of(column)
    if (rows.values == 13).any():
        rows = _bytes_of(pc.replace_substring(column, "\r\n", "\n"))
    if (rows.values == 0).any():
        row = int(
            np.searchsorted(np.cumsum(rows.lengths), np.flatnonzero(rows.values == 0)[0], "right")
        )
        raise ReadError(where(row), "holds a zero byte", "UTF-8 text")
    return rows


def _bytes_of(column: pa.Array) -> Rows:
    offsets = np.frombuffer(column.buffers()[1], np.int64)[
        column.offset : column.offset + len(column) + 1
    ]
    content = column.buffers()[2]
    values = (
        np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
        if content
        else np.empty(0, np.uint8)
    )
    return Rows(values, np.diff(offsets), is_text=True)


def _filled(column: pa.Array, where: Where) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise ReadError(
            where(row), "a sequence is missing", "one in each row", "leave the row out of the file"
        )
    return column


def list_rows(column: pa.Array, channels: int, where: Where) -> Rows:
    """Lists of numbers, lists of lists with the channels of each position, and tensors."""
    column = _filled(column, where)
    if isinstance(column.type, pa.FixedShapeTensorType):
        shape = column.type.shape
        channels = shape[-1] if len(shape) > 1 else 1
        column = column.storage
    values, counts = _flat(column)
    if is_list(values.type):
        inner, widths = _flat(_filled(values, lambda _: where(0)))
        channels = int(widths[0]) if len(widths) else 1
        odd = np.flatnonzero(widths != channels)
        if odd.size:
            row = int(np.searchsorted(np.cumsum(counts), odd[0], "right"))
            raise ReadError(
                where(row),
                f"positions have different numbers of channels: {widths[odd[0]]}",
                str(channels) + " in each",
            )
        if is_list(inner.type):
            raise ReadError(
                where(0),
                "lists are nested three deep",
                "[L] or [L, C]",
                "reshape pictures to lists of pixels",
            )
        values, counts = inner, counts * channels
    rows = Rows(_numbers(values, lambda: where(0)), counts // max(1, channels), channels)
    return _without_trailing_nan(rows, where)


def cells_as_lists(column: pa.Array, numbers: CellNumbers, where: Where) -> Rows:
    """Texts such as "[3, 17, 5]", "3 17 5" and "[[1, 2], [3, 4]]"."""
    column = _filled(column, where)
    if len(column) and column[0].as_py().lstrip().startswith("[["):
        parsed = []
        for row, text in enumerate(column.to_pylist()):
            try:
                parsed.append(json.loads(text))
            except ValueError as error:
                raise ReadError(
                    where(row), f"'{text[:60]}' is not a list: {message_of(error)}", "[[...], ...]"
                ) from None
        try:
            return list_rows(pa.array(parsed), 1, where)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ReadError(
                where(0), f"lists hold unlike types: {message_of(error)}", "numbers"
            ) from None
    marks = r"[\[\](),;\s]+" if not numbers._decimal_comma else r"[\[\]();\s]+"
    plain = pc.utf8_trim_whitespace(pc.replace_substring_regex(column, marks, " "))
    lists = pc.split_pattern(plain, " ")
    counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(counts)
    values = numbers.of(lists.flatten(), lambda i: where(int(np.searchsorted(ends, i, "right"))))
    return _without_trailing_nan(Rows(values, counts), where)


def look_like_lists(column: pa.Array) -> bool:
    cells = [cell for cell in column.slice(0, 200).to_pylist() if cell]
    return bool(cells) and all(re.fullmatch(r"\s*\[.*\]\s*", cell, re.DOTALL) for cell in cells)


def look_like_numbers(column: pa.Array) -> bool:
    cells = [cell for cell in column.slice(0, 200).to_pylist() if cell]
    return bool(cells) and all(re.fullmatch(r"[\s\d.,;eE+-]+", cell) for cell in cells)


def media_rows(column: pa.Array, reader: MediaReader, where: Where) -> Rows:
    """Encoded pictures and recordings: bytes, or structs of bytes and path."""
    parts, lengths, channels = [], [], 0
    for row, value in enumerate(_filled(column, where).to_pylist()):
        content = value.get("bytes") if isinstance(value, dict) else value
        if content is None and isinstance(value, dict) and value.get("path"):
            content = read_bytes(value["path"])
        values, found = reader.decode(content or b"", where(row))
        channels = channels or found
        if found != channels:
            raise ReadError(where(row), f"has {found} channels", f"{channels}, as the first one")
        parts.append(values)
        lengths.append(len(values) // found)
    return Rows(np.concatenate(parts), np.array(lengths, np.int64), channels)


def wide_rows(
    columns: list[pa.Array], names: list[str], numbers: CellNumbers, where: Where
) -> Rows:
    """One number of each column is a position."""
    count = len(columns[0])
    if all(pa.types.is_string(column.type) for column in columns):

        def where_of_cell(i: int) -> str:
            return f"{where(i % count)} column '{names[i // count]}'"

        values = numbers.of(pa.concat_arrays(columns), where_of_cell)
        values = np.ascontiguousarray(values.reshape(len(columns), count).T)
    else:
        arrays = []
        for name, column in zip(names, columns, strict=True):
            if kind_of(column) != "number":
                raise ReadError(
                    f"{where(0)} column '{name}'",
                    f"holds values of type {column.type}",
                    "numbers, as in all columns but label and split",
                )
            arrays.append(_numbers(column, lambda: where(0)))
        values = np.stack(arrays, 1)
    rows = Rows(values.ravel(), np.full(count, len(columns), np.int64))
    return _without_trailing_nan(rows, where)


def lengths_of(column: pa.Array, where: Where) -> tuple[NDArray, NDArray]:
    """Lengths, or masks of ones and zeros, as lengths and the positions before them."""
    if kind_of(column) == "number":
        lengths = _numbers(column, lambda: where(0))
        if not (lengths == np.floor(lengths)).all():
            raise ReadError(where(0), "lengths are not whole numbers", "whole numbers")
        return lengths.astype(np.int64), np.zeros(len(lengths), np.int64)
    rows = list_rows(column, 1, where)
    ends = np.cumsum(rows.lengths)
    lengths, before = np.zeros(len(ends), np.int64), np.zeros(len(ends), np.int64)
    for row, end in enumerate(ends):
        ones = np.flatnonzero(rows.values[end - rows.lengths[row] : end])
        lengths[row] = ones.size
        if ones.size:
            before[row] = ones[0]
            if ones[-1] - ones[0] + 1 != ones.size:
                raise ReadError(
                    where(row), "the mask has holes", "ones, with zeros before or after them"
                )
    return lengths, before


def apply_lengths(rows: Rows, lengths: NDArray, before: NDArray, where: Where) -> Rows:
    odd = np.flatnonzero((lengths + before > rows.lengths) | (lengths < 0))
    if odd.size:
        raise ReadError(
            where(int(odd[0])), f"the length is {lengths[odd[0]]}", f"0 to {rows.lengths[odd[0]]}"
        )
    return cut(rows, lengths, before)


def group_keys(column: pa.Array) -> NDArray[np.uint64]:
    """A number for each value, equal for equal values."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)
    keys: list[Any] = [hash(str(value)) for value in column.to_pylist()]
    return np.array(keys, np.int64).view(np.uint64)
