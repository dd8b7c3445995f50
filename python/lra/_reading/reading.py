"""Reads the files of an import and hands their examples to the program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from . import cells, names
from .columns import Roles, find_roles, has_labels, place_of
from .errors import ReadError, quoted
from .files import find_sources
from .frames import Rows, write_frame
from .labels import Labels
from .media import MediaReader
from .source import Source
from .tables import BLOCK, message_of

_MAX_ID = (1 << 24) - 1
_MAX_CHANNELS = 4096
_SPLITS = {"": 0, "train": 1, "val": 2, "test": 3}
_AS_VALUES = "to read real numbers add --set task.input=values"


class _Facts:
    """Facts of all sequences: lengths, channels, and whether their numbers may be token ids."""

    def __init__(self, wanted: str) -> None:
        self.wanted, self.channels, self.is_text = wanted, 0, False
        self.shortest, self.longest, self.largest, self.examples = 1 << 62, 0, 0, 0
        self.odd: tuple[str, float] | None = None  # the first number that is no token id
        self.num_odd = 0
        self.is_padding = True

    def see(self, rows: Rows, where: cells.Where) -> None:
        if not len(rows.lengths):
            return
        if self.channels == 0:
            self.is_text, self.channels = rows.is_text, rows.channels
        if (rows.is_text, rows.channels) != (self.is_text, self.channels):
            raise ReadError(
                where(0),
                f"a sequence is {_form(rows.is_text, rows.channels)}",
                f"{_form(self.is_text, self.channels)}, as the first one",
            )
        if rows.channels > _MAX_CHANNELS:
            raise ReadError(
                where(0), f"positions have {rows.channels:,} channels", f"at most {_MAX_CHANNELS:,}"
            )
        if (rows.lengths == 0).any():
            raise ReadError(
                where(int(np.argmin(rows.lengths))),
                "a sequence is empty",
                "at least one position",
                "leave the example out of the file",
            )
        self.shortest = min(self.shortest, int(rows.lengths.min()))
        self.longest = max(self.longest, int(rows.lengths.max()))
        if not rows.is_text:
            self._see_numbers(rows, where)

    def _see_numbers(self, rows: Rows, where: cells.Where) -> None:
        if rows.values.dtype.kind == "f":
            odd = np.ones(1, bool)
            self.is_padding = False
        else:
            if int(rows.values.min()) >= 0 and int(rows.values.max()) <= _MAX_ID:
                self.largest = max(self.largest, int(rows.values.max()))
                return
            odd = (rows.values < 0) | (rows.values > _MAX_ID)
            ends = np.zeros(len(odd), bool)
            ends[np.cumsum(rows.lengths * rows.channels) - 1] = True
            returns = odd[:-1] & ~odd[1:] & ~ends[:-1]
            value = rows.values[odd][0]
            self.is_padding &= bool(
                value < 0 and (rows.values[odd] == value).all() and not returns.any()
            )
        self.num_odd += int(odd.sum())
        if self.odd is None:
            place = int(np.argmax(odd))
            row = int(np.searchsorted(np.cumsum(rows.lengths * rows.channels), place, "right"))
            self.odd = (where(row), rows.values[place])
        if self.wanted == "tokens":
            self.refuse_odd(_AS_VALUES)

    def refuse_odd(self, advice: str) -> None:
        assert self.odd is not None
        where, value = self.odd
        raise ReadError(
            where, f"a token is {value!s}", f"whole numbers from 0 to {_MAX_ID}", advice
        )

    def decide(self, roles: Roles) -> tuple[str, str]:
        """text, tokens or values, and why."""
        if self.is_text:
            return "text", "text"
        if self.wanted == "tokens" and self.channels > 1:
            raise ReadError(
                "task.input=tokens",
                f"the sequences have {self.channels} channels",
                "one token id for each position",
                "reshape the array to [N, L]",
            )
        if self.wanted != "auto":
            return self.wanted, "task.input"
        if self.channels > 1:
            return "values", f"{self.channels} channels"
        if self.odd is None:
            return "tokens", "whole numbers from 0 on; --set task.input=values reads them as values"
        value = self.odd[1]
        if self.is_padding:
            self.refuse_odd(
                f"cut {value} from the ends of the sequences if it is padding; {_AS_VALUES}"
            )
        if any(names.plain(name) in names.TOKENS for name in roles.sequences):
            self.refuse_odd(f"replace or remove it; {_AS_VALUES}")
        return "values", f"real or negative numbers, the first in {self.odd[0]}"


def _form(is_text: bool, channels: int) -> str:
    return (
        "text"
        if is_text
        else "a list of numbers" if channels == 1 else f"a list of {channels} channels"
    )


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch, in parts of a few megabytes."""
    step = max(1, batch.num_rows * BLOCK // max(1, batch.get_total_buffer_size()))
    for row in range(0, batch.num_rows, step):
        yield batch.slice(row, step)


def _batches_of(source: Source) -> Iterator[pa.RecordBatch]:
    try:
        yield from source.batches()
    except UnicodeError as error:  # half of a surrogate pair in JSON, too
        raise ReadError(source.path, f"has text that is not UTF-8: {message_of(error)}") from None
    except RecursionError:
        raise ReadError(source.path, "has lists that are nested too deeply") from None
    except pa.ArrowException as error:
        raise ReadError(source.path, f"cannot be read: {message_of(error)}") from None


class Reading:
    """One import: the first source says which columns there are, the others must have them."""

    def __init__(
        self, settings: dict[str, str], out: BinaryIO, progress: Callable[[int], None]
    ) -> None:
        self._settings, self._out, self._progress = settings, out, progress
        self._roles: Roles | None = None
        self._first = ""
        self._facts = _Facts(settings["input"])
        self._labels, self._media = Labels(), MediaReader()
        self._as_lists: dict[str, bool] = {}
        self._named_by: set[str] = set()
        self._read: list[str] = []
        self._unread_splits: dict[str, bool] = {}
        self.ignored: list[tuple[str, str]] = []

    def run(self, paths: list[str]) -> dict[str, Any]:
        """Writes all frames; returns what was read. Raises ReadError."""
        sources, self.ignored, files = find_sources(paths, self._settings)
        sources.sort(key=lambda source: source.split != "train")
        if len(sources) == 1 and sources[0].split_why == "name of the file":
            sources[0].split = ""  # a file alone is split, whatever its name
        for source in sources:
            self._read_source(source, len(sources) > 1)
        if not self._facts.examples or self._roles is None:
            raise ReadError(quoted(paths), "holds no example", "examples with labels")
        return self._result(files)

    def _read_source(self, source: Source, has_others: bool) -> None:
        row, is_first = 1, True
        for batch in _batches_of(source):
            if not batch.num_rows:
                continue
            if is_first:
                if not self._begin(source, batch, has_others):
                    return
                is_first = False
            else:
                self._refuse_late(source, batch, row)
            for part in _parts(batch):
                self._read_batch(source, part, row)
                row += part.num_rows
                self._progress(part.num_rows)
        if is_first:
            raise ReadError(
                source.path,
                "holds no example",
                "a row for each example",
                "lines end with LF or CR LF",
            )
        self._read.append(source.path)

    def _begin(self, source: Source, batch: pa.RecordBatch, has_others: bool) -> bool:
        """False if the source is left out."""
        self._numbers = cells.CellNumbers(source.decimal_comma)
        if (
            has_others
            and source.split != "train"
            and not has_labels(batch, source, self._settings)
            and (self._roles or source.split)
        ):
            self.ignored.append((source.path, "has no labels: it is left out"))
            return False
        if self._roles is None:
            self._roles, self._first = find_roles(batch, source, self._settings), source.path
            self._note_unread(batch)
        missing = [
            name for name in self._roles.sequences if place_of(batch.schema.names, name) is None
        ]
        if missing:
            if not source.split and not any(
                place_of(batch.schema.names, n) is not None for n in self._roles.sequences
            ):
                self.ignored.append((source.path, f"has no column '{missing[0]}'"))
                return False
            raise ReadError(
                source.path, f"has no column '{missing[0]}'", f"the columns of {self._first}"
            )
        self._refuse_late(source, batch, 1)
        if has_others and not source.split and not self._roles.split:
            raise ReadError(
                source.path,
                "does not say which split it is",
                "train, val or test in its name",
                "rename it, add a column split, or import one file alone",
            )
        return True

    def _note_unread(self, batch: pa.RecordBatch) -> None:
        assert self._roles is not None
        unread = [row.name for row in self._roles.table if row.role in ("ignored", "group", "id")]
        self._unread_splits = {
            name: True
            for name in unread
            if batch.schema.names.count(name) == 1 and cells.kind_of(batch.column(name)) == "text"
        }

    def _refuse_late(self, source: Source, batch: pa.RecordBatch, row: int) -> None:
        """Columns that the first rows do not have, and that would be read."""
        assert self._roles is not None
        if (
            self._roles.is_wide
            and source.cells
            and len(batch.schema.names) == len(self._roles.sequences) + len(self._roles.table) - 1
        ):
            return
        known = {names.plain(column.name) for column in self._roles.table} | {
            names.plain(name) for name in self._roles.sequences
        }
        for name in batch.schema.names:
            if names.plain(name) in known:
                continue
            is_usual = names.plain(name) in (
                *names.LABELS,
                *names.SEQUENCES,
                *names.LENGTHS,
                *names.MAYBE_SPLITS,
                "split",
            )
            if self._roles.is_wide or is_usual:
                raise ReadError(
                    source.place_of(row),
                    f"has the column '{name}', which {self._first} does not have at first",
                    "the same columns in all rows and files",
                    f"add it everywhere, or leave it out with --set task.ignore={name}",
                )
            self.ignored.append((f"column '{name}'", f"is not in the first rows of {self._first}"))
            self._roles.table.append(
                dataclasses.replace(
                    self._roles.table[-1],
                    name=name,
                    kind=str(batch.schema.field(name).type),
                    shape="",
                    role="ignored",
                    why="not in the first rows",
                )
            )

    def _column(self, batch: pa.RecordBatch, name: str, where: cells.Where) -> pa.Array:
        place = place_of(batch.schema.names, name)
        if place is None:
            raise ReadError(where(0), f"has no field '{name}'", "one", f"as in {self._first}")
        return batch.column(place)

    def _read_batch(self, source: Source, batch: pa.RecordBatch, row0: int) -> None:
        assert self._roles is not None
        roles = self._roles

        def where(row: int) -> str:
            return source.place_of(row0 + row)

        sequences = self._sequences(source, batch, where)
        if roles.lengths and not roles.is_wide:
            lengths, before = cells.lengths_of(self._column(batch, roles.lengths, where), where)
            sequences = [cells.apply_lengths(rows, lengths, before, where) for rows in sequences]
        classes = source.classes.get(roles.label, [])
        labels = self._labels.codes_of(self._column(batch, roles.label, where), classes, where)
        splits = self._splits(source, batch, where)
        for rows in sequences:
            self._facts.see(rows, where)
        for name, all_splits in self._unread_splits.items():
            if all_splits and name in batch.schema.names:
                values = pc.unique(batch.column(name)).to_pylist()
                self._unread_splits[name] = all(
                    names.split_of_word(value or "") for value in values
                )
        self._facts.examples += batch.num_rows
        groups = [cells.group_keys(self._column(batch, name, where)) for name in roles.groups]
        write_frame(self._out, sequences, labels, splits, groups)

    def _sequences(self, source: Source, batch: pa.RecordBatch, where: cells.Where) -> list[Rows]:
        assert self._roles is not None
        columns = [self._column(batch, name, where) for name in self._roles.sequences]
        if self._roles.is_wide:
            return [cells.wide_rows(columns, self._roles.sequences, self._numbers, where)]
        return [
            self._sequence(source, name, column, where)
            for name, column in zip(self._roles.sequences, columns, strict=True)
        ]

    def _sequence(self, source: Source, name: str, column: pa.Array, where: cells.Where) -> Rows:
        kind = cells.kind_of(column)
        if kind == "media":
            return cells.media_rows(column, self._media, where)
        if kind == "list":
            if self._settings["input"] == "text":
                raise ReadError(
                    where(0), "the sequence is a list of numbers", "text, as task.input says"
                )
            return cells.list_rows(column, source.channels.get(name, 1), where)
        if kind != "text":
            raise ReadError(
                f"{where(0)} column '{name}'",
                f"a sequence is of the type {column.type}",
                "a text or a list of finite numbers",
            )
        if name not in self._as_lists:
            is_open = self._settings["input"] == "auto"
            self._as_lists[name] = self._settings["input"] in ("tokens", "values") or (
                is_open
                and (
                    cells.look_like_lists(column)
                    or (names.plain(name) in names.TOKENS and cells.look_like_numbers(column))
                )
            )
        if not self._as_lists[name]:
            return cells.text_rows(column, where)
        try:
            return cells.cells_as_lists(column, self._numbers, where)
        except ReadError as error:
            if self._settings["input"] == "auto":
                error.parts["advice"] = (
                    "the first rows hold lists of numbers; to read all rows as text add --set task.input=text"
                )
            raise

    def _splits(
        self, source: Source, batch: pa.RecordBatch, where: cells.Where
    ) -> NDArray[np.uint8]:
        assert self._roles is not None
        if not self._roles.split:
            if source.split:
                self._named_by.add(source.split_why)
            return np.full(batch.num_rows, _SPLITS[source.split], np.uint8)
        column = self._column(batch, self._roles.split, where)
        self._named_by.add(f"column '{self._roles.split}'")
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode(null_encoding="encode")
        places = column.indices.to_numpy(zero_copy_only=False)
        codes = []
        for i, value in enumerate(column.dictionary.to_pylist()):
            split = names.split_of_word(str(value))
            if not split and (places == i).any():
                raise ReadError(
                    where(int(np.argmax(places == i))),
                    f"the split is '{value}'",
                    "train, val or test",
                )
            codes.append(_SPLITS[split])
        return np.array(codes, np.uint8)[places]

    def _result(self, files: list[str]) -> dict[str, Any]:
        assert self._roles is not None
        for name, all_splits in self._unread_splits.items():
            if all_splits:
                raise ReadError(
                    self._first,
                    f"column '{name}' is not read, and names splits",
                    "a column that can be ignored",
                    f"name it with --set task.split={name}, or leave it out with --set task.ignore={name}",
                )
        facts, roles = self._facts, self._roles
        kind, why = facts.decide(roles)
        lengths = (
            f"{facts.longest:,}"
            if facts.shortest == facts.longest
            else f"{facts.shortest:,} to {facts.longest:,}"
        )
        for column in roles.table:
            if column.role == "sequence":
                unit = "bytes" if kind == "text" else "positions"
                column.shape = f"{lengths} {unit}" + (
                    f" of {facts.channels} channels" if facts.channels > 1 else ""
                )
            elif column.role == "label":
                column.shape = f"{len(self._labels.names):,} classes"
        return {
            "input": kind,
            "why": why,
            "examples": facts.examples,
            "sequences": 1 if roles.is_wide else len(roles.sequences),
            "channels": facts.channels if kind == "values" else 1,
            "shortest": facts.shortest,
            "longest": facts.longest,
            "largest": facts.largest,
            "labels": self._labels.names,
            "first": self._labels.first,
            "groups": roles.groups,
            "named_by": ", ".join(sorted(self._named_by)),
            "files": files,
            "ignored": [list(pair) for pair in self.ignored],
            "columns": [dataclasses.astuple(column) for column in roles.table],
        }
