"""One part of the data: a file, or the arrays of one split."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import pyarrow as pa


@dataclasses.dataclass
class Source:
    """`batches` yields the rows; the other fields say what the format knows about columns.

    `channels` of columns whose lists hold that many elements for each position; `classes`: names of
    the labels that a schema declares; `cells`: numbers are written as texts; `label`: the column
    that the format itself says holds the labels; `row_files`: of the rows so far, if each is a file.
    """

    path: str
    batches: Callable[[], Iterator[pa.RecordBatch]] = lambda: iter(())
    split: str = ""
    split_why: str = "name of the file"
    channels: dict[str, int] = dataclasses.field(default_factory=dict)
    classes: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    cells: bool = False
    decimal_comma: bool = False
    label: str = ""
    label_why: str = ""
    has_header: bool = True
    row_files: list[str] = dataclasses.field(default_factory=list)

    def place_of(self, row: int) -> str:
        """The name of a row, counted from 1, for messages."""
        return self.row_files[row - 1] if self.row_files else f"{self.path} row {row}"
