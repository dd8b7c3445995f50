"""Which files hold the examples: those that the user names, and those in folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from . import names, series, tables
from .arrays import array_file_sources, npz_sources
from .errors import ReadError, quoted
from .media import PICTURES, RECORDINGS, read_bytes
from .source import Source

_TABLES = (
    ".csv",
    ".tsv",
    ".tab",
    ".json",
    ".jsonl",
    ".ndjson",
    ".parquet",
    ".pq",
    ".feather",
    ".arrow",
    ".ipc",
)
_OTHERS = (".npz", ".npy", ".ts", ".arff")
ENDINGS = "csv, tsv, json, jsonl, parquet, feather, arrow, npz, npy, ts or arff; csv and json also with .gz or .zst"
_DESCRIPTIONS = (
    "readme",
    "license",
    "dataset_info",
    "dataset_dict",
    "state.json",
    "datapackage",
    "metadata.json",
)
_MARKS = (
    *(
        (b"PAR1", "Parquet", "rename it to end in .parquet"),
        (b"ARROW1", "Arrow IPC", "rename it to end in .arrow"),
    ),
    *(
        (b"\x93NUMPY", "an array of NumPy", "rename it to end in .npy"),
        (b"\x1f\x8b", "gzip", "unpack it with gunzip"),
    ),
    *(
        (b"\x28\xb5\x2f\xfd", "Zstandard", "unpack it with unzstd"),
        (b"BZh", "bzip2", "unpack it with bunzip2"),
    ),
    *(
        (b"\xfd7zXZ", "xz", "unpack it with unxz"),
        (b"\x89HDF", "HDF5", "save the arrays with numpy.savez"),
    ),
    *(
        (b"SQLite", "SQLite", "export the table as CSV"),
        (b"\x80", "a pickle", "save the arrays with numpy.savez"),
    ),
    *(
        (b"MATLAB", "a .mat file", "save the arrays with numpy.savez"),
        (b"%PDF", "PDF", "export the table as CSV"),
    ),
    *(
        (b"\x89PNG", "a picture", "name the folder of classes"),
        (b"\xff\xd8\xff", "a picture", "name the folder of classes"),
    ),
    *(
        (b"RIFF", "a recording", "name the folder of classes"),
        (b"\xd0\xcf\x11\xe0", "a spreadsheet", "export it as CSV"),
    ),
)


def _bare(path: str) -> str:
    """The name in small letters, without the ending of a compression."""
    return re.sub(r"\.(gz|zst)$", "", os.path.basename(path).lower())


def _is_table(path: str) -> bool:
    if not path.lower().endswith((".gz", ".zst")):
        return _bare(path).endswith((*_TABLES, *_OTHERS)) or _is_idx(path)
    return _bare(path).endswith(
        (".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson", ".ts")
    ) or _is_idx(path)


def _is_idx(path: str) -> bool:
    return bool(re.search(r"[-.]idx\d-ubyte$", _bare(path)))


def _what_it_is(path: str) -> tuple[str, str]:
    """The format that the first bytes of a file are of, and what to do."""
    head = (
        read_bytes(path)[:4096] if os.path.getsize(path) < 1 << 20 else open(path, "rb").read(4096)
    )
    for mark, kind, advice in _MARKS:
        if head.startswith(mark):
            return kind, advice
    if head.startswith(b"PK"):
        if b".npy" in head:
            return "an archive of arrays (.npz)", "rename it to end in .npz"
        return (
            ("a spreadsheet", "export it as CSV")
            if b"xl/" in head or b"[Content" in head
            else ("a zip archive", "unpack it")
        )
    if b"\0" in head:
        return (
            "no format that is known here",
            "save the arrays with numpy.savez, or the table as CSV",
        )
    start = head.lstrip()
    if start.startswith((b"{", b"[")):
        return "JSON", "rename it to end in .jsonl"
    return "text", "rename it to end in .csv if it is a table"


def _refuse_unknown(path: str) -> None:
    if not os.path.exists(path):
        raise ReadError(path, "does not exist", "a file or a folder")
    kind, advice = _what_it_is(path)
    raise ReadError(path, f"has an unknown ending, and its bytes are {kind}", ENDINGS, advice)


def _table_source(path: str, settings: dict[str, str], split: str = "") -> Source:
    name = _bare(path)
    source = Source(path, split=split or names.split_of_file(path))
    if split:
        source.split_why = "name of the folder"
    if name.endswith((".csv", ".tsv", ".tab")):
        layout = tables.CsvFormat(path, settings)
        source.cells, source.decimal_comma = True, layout.decimal_comma
        source.has_header = layout.has_header
        if (
            not layout.has_header
            and name.endswith(".tsv")
            and source.split
            and not settings["label"]
        ):
            source.label, source.label_why = "c0", "first column, as in the UCR archive"
        source.batches = lambda: tables.csv_batches(path, layout)
    elif name.endswith((".json", ".jsonl", ".ndjson")):
        source.batches = lambda: tables.json_batches(path)
    elif name.endswith((".parquet", ".pq")):
        source.classes = tables.class_names_of(tables.parquet_schema(path))
        source.batches = lambda: tables.parquet_batches(path)
    elif name.endswith((".feather", ".arrow", ".ipc")):
        source.classes = tables.class_names_of(tables.open_arrow(path).schema)
        source.batches = lambda: tables.arrow_batches(path)
    elif name.endswith(".ts"):
        source.batches = lambda: series.ts_batches(path, source)
    elif name.endswith(".arff"):
        source.batches = lambda: series.arff_batches(path, source)
    elif name.endswith(".txt") and tables.head_of(path).startswith(b"__label__"):
        source.batches = lambda: series.fasttext_batches(path)
    elif name.endswith(".txt") and source.split and series.columns_of_numbers(path):
        source.batches = lambda: series.ucr_text_batches(path, source)
    else:
        _refuse_unknown(path)
    return source


def _entries(folder: str) -> list[str]:
    hidden = ("desktop.ini", "thumbs.db", "__macosx")
    try:
        found = sorted(os.listdir(folder))
    except OSError as error:
        raise ReadError(folder, f"cannot be listed: {os.strerror(error.errno or 0)}") from None
    return [
        f"{folder}/{name}"
        for name in found
        if not name.startswith(".") and name.lower() not in hidden
    ]


def _is_description(path: str) -> bool:
    name = os.path.basename(path).lower()
    return name.endswith((".md", ".py", ".lock")) or name.startswith(_DESCRIPTIONS)


def _refuse_other_formats(paths: list[str]) -> None:
    """Refuses one table that a folder holds in several formats: its rows would count twice."""
    of_stem: dict[str, str] = {}
    for path in paths:
        stem = os.path.splitext(_bare(path))[0]
        if (other := of_stem.setdefault(stem, path)) != path:
            raise ReadError(
                path,
                f"holds the same as {os.path.basename(other)!r}, by its name",
                "a table in one format",
                "name the files of one format",
            )


class _Finder:
    """The files below the paths of an import, with the splits that their folders name."""

    def __init__(self) -> None:
        self.files: list[tuple[str, str]] = []  # path and split
        self.classes: list[tuple[str, str]] = []  # folders of classes and split
        self.ignored: list[tuple[str, str]] = []

    def add(self, path: str) -> None:
        path = path.rstrip("/") or path
        if os.path.isdir(path):
            self._add_folder(path, "")
        elif _is_table(path) or (os.path.isfile(path) and path.lower().endswith(".txt")):
            if not os.path.exists(path):
                raise ReadError(path, "does not exist", "a file or a folder")
            self.files.append((path, ""))
        else:
            _refuse_unknown(path)

    def _add_folder(self, folder: str, split: str) -> None:
        entries = _entries(folder)
        files = [path for path in entries if not os.path.isdir(path)]
        folders = [path for path in entries if os.path.isdir(path)]
        found = [path for path in files if _is_table(path) and not _is_description(path)]
        if found:
            _refuse_other_formats(found)
            self.files.extend((path, split) for path in found)
            self._ignore(entries, found)
            return
        splits = {path: names.split_of_word(os.path.basename(path)) for path in folders}
        if any(splits.values()):
            for path in folders:
                if splits[path]:
                    self._add_folder(path, splits[path])
                    continue
                if not {"train", "test"} <= set(splits.values()) and _entries(path):
                    raise ReadError(
                        path,
                        "may hold a split, but its name says none",
                        "folders named train, val and test",
                        "rename it, or move it elsewhere",
                    )
                self.ignored.append((path, "is a folder of another name than those of the splits"))
            self._ignore(files, [])
            return
        with_tables = [path for path in folders if self._holds_tables(path)]
        if len(with_tables) == 1:
            self._add_folder(with_tables[0], split)
            self._ignore([*files, *folders], with_tables)
            return
        if with_tables:
            raise ReadError(
                folder,
                f"holds several data sets: {quoted([os.path.basename(p) for p in with_tables])}",
                "one",
                "name the folder of one, or its files",
            )
        if len(folders) > 1 and any(self._holds_examples(path) for path in folders):
            self.classes.append((folder, split))
            self._ignore(files, [])
            return
        raise ReadError(
            folder,
            "holds no file that can be read" + (f", as {self._first_kind(files)}" if files else ""),
            f"files ending in {ENDINGS}; or a folder for each class, with texts, pictures or recordings",
            "convert other files with pandas (to_parquet, to_json(lines=True)) or numpy.savez",
        )

    @staticmethod
    def _first_kind(files: list[str]) -> str:
        return f"the bytes of '{os.path.basename(files[0])}' are {_what_it_is(files[0])[0]}"

    def _ignore(self, paths: list[str], kept: list[str]) -> None:
        for path in paths:
            if path not in kept:
                why = "describes the data" if _is_description(path) else "is not a table"
                self.ignored.append((path, why))

    @staticmethod
    def _holds_tables(folder: str) -> bool:
        for path in _entries(folder):
            if os.path.isdir(path) and names.split_of_word(os.path.basename(path)):
                if any(_is_table(inner) for inner in _entries(path)):
                    return True
            if not os.path.isdir(path) and _is_table(path) and not _is_description(path):
                return True
        return False

    @staticmethod
    def _holds_examples(folder: str) -> bool:
        return any(
            path.lower().endswith((".txt", *PICTURES, *RECORDINGS)) for path in _entries(folder)
        )


def _class_batches(
    source: Source, ignored: list[tuple[str, str]], read: list[str]
) -> Iterator[pa.RecordBatch]:
    """The files in a folder for each class: texts, or encoded pictures and recordings."""
    contents: list[bytes] = []
    labels: list[str] = []
    size, is_text = 0, False

    def batch() -> pa.RecordBatch:
        kind = pa.string() if is_text else pa.binary()
        return pa.RecordBatch.from_arrays(
            [pa.array(contents, kind), pa.array(labels)], ["content", "label"]
        )

    for label in sorted(path for path in _entries(source.path) if os.path.isdir(path)):
        for path in _entries(label):
            lower = path.lower()
            if not lower.endswith((".txt", *PICTURES, *RECORDINGS)):
                ignored.append((path, "is no text, picture or recording"))
                continue
            content = read_bytes(path)
            if not contents:
                is_text = lower.endswith(".txt")
            if is_text != lower.endswith(".txt"):
                raise ReadError(
                    path,
                    "stands among files of another kind",
                    "texts alone, or pictures, or recordings",
                )
            if is_text:
                try:
                    content.decode("utf-8-sig")
                except UnicodeDecodeError:
                    raise ReadError(path, "is not UTF-8", "UTF-8") from None
                content = content.removeprefix(b"\xef\xbb\xbf")
            contents.append(content)
            labels.append(os.path.basename(label))
            source.row_files.append(path)
            read.append(path)
            size += len(content)
            if size >= tables.BLOCK:
                yield batch()
                contents, labels, size = [], [], 0
    if contents:
        yield batch()


def _refuse_missing_shards(paths: list[str]) -> None:
    shards: dict[tuple[str, int], set[int]] = {}
    for path in paths:
        if found := re.search(r"^(.*?)(\d+)-of-(\d+)", path):
            shards.setdefault((found[1], int(found[3])), set()).add(int(found[2]))
    for (before, count), numbers in shards.items():
        if len(numbers) < count:
            raise ReadError(
                f"{before}...-of-{count}",
                f"only {len(numbers)} of the {count} files are there",
                "all of them",
                "fetch the others, or rename the files if they are complete",
            )


def find_sources(
    paths: list[str], settings: dict[str, str]
) -> tuple[list[Source], list[tuple[str, str]], list[str]]:
    """The sources, what is left out and why, and all files that are read."""
    finder = _Finder()
    for path in paths:
        finder.add(path)
    files = [path for path, _ in finder.files]
    _refuse_missing_shards(files)
    sources: list[Source] = []
    arrays = [path for path in files if path.lower().endswith(".npy") or _is_idx(path)]
    if arrays:
        sources += array_file_sources(arrays, finder.ignored)
    for path, split in finder.files:
        if path.lower().endswith(".npz"):
            sources += npz_sources(path, finder.ignored)
        elif path not in arrays:
            sources.append(_table_source(path, settings, split))
    for folder, split in finder.classes:
        source = Source(
            folder,
            split=split,
            split_why="name of the folder",
            label="label",
            label_why="names of the folders",
        )
        source.batches = partial(_class_batches, source, finder.ignored, files)
        sources.append(source)
    return sources, finder.ignored, files
