"""Prepared data of the benchmark: memory-mapped arrays, batches, the trainer's order.

    train = lra.data.load("listops", "train")
    for batch in train.loader(32, steps=100): ...

No torch is needed; `tensors=True` gives torch tensors instead of arrays.
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from . import _program, _random, _words
from ._order import Order
from ._program import Error

_MAGIC = b"LRASHARD"
_HEADER_BYTES = 64
_TRIM_MULTIPLE = 32
_BYTE_TASKS = ("text", "retrieval")
_LISTOPS = ["?", "[MIN", "[MAX", "[MED", "[SM", "]", *"0123456789", "?", "[FIRST", "[LAST"]


@dataclasses.dataclass(frozen=True)
class Task:
    """Shape of a task's examples.

    `length` is the program's preset length; longer sequences are cut. `padded` is False for
    images, where every position is a pixel. `classes` counts labels, `vocabulary` token ids.
    `channels` counts the float32 values at each position; 0: positions are tokens.
    """

    name: str
    length: int
    vocabulary: int
    classes: int
    towers: int = 1
    padded: bool = True
    channels: int = 0


TASKS = {
    task.name: task
    for task in (
        Task("listops", 2000, 17, 10),
        Task("text", 1000, 257, 2),
        Task("retrieval", 4000, 257, 2, towers=2),
        Task("image", 1024, 256, 10, padded=False),
        Task("pathfinder", 32**2, 256, 2, padded=False),
        Task("pathfinder64", 64**2, 256, 2, padded=False),
        Task("pathx", 128**2, 256, 2, padded=False),
        Task("pathfinder256", 256**2, 256, 2, padded=False),
        Task("recall", 64, 8193, 4096),
        Task("state", 64, 7, 6),
    )
}


def _task_of(manifest: dict[str, Any]) -> Task:
    """The task of prepared data; of a user's own data and diagnostic tasks, as the manifest states it."""
    name, stated = manifest["task"], manifest["settings"]
    if "token_ids" in stated:
        return Task(name, int(stated["length"]), int(stated["token_ids"]), int(stated["classes"]))
    # Data of diagnostic tasks that earlier versions made.
    if name == "recall":
        values = int(stated["vocabulary"]) // 2
        return Task(name, int(stated["length"]), 2 * values + 1, values)
    if name == "state":
        elements = {"parity": 2, "s3": 6, "z60": 60, "s5": 120}[stated["group"]]
        return Task(name, int(stated["length"]), elements + 1, elements)
    if name in TASKS:
        return TASKS[name]
    length, shortest = int(stated["longest"]), int(stated["shortest"])
    return Task(
        name, length, int(stated["vocabulary"]), int(stated["classes"]),
        towers=int(manifest["num_towers"]), padded=shortest < length,
        channels=int(stated["channels"]) if stated["input"] == "values" else 0,
    )


class Arrays(NamedTuple):
    """One shard as it is stored in the file, without a copy.

    Sequence i is tokens[offsets[i]:offsets[i + 1]] + token_offset; an example has as many
    consecutive sequences as its task has towers.
    """

    tokens: NDArray[Any]  # uint8, uint16 or uint32 [num_tokens], or float32 [num_tokens, channels]
    offsets: NDArray[np.uint64]  # [num_sequences + 1]
    labels: NDArray[np.int32]  # [num_examples]
    token_offset: int


class Example(NamedTuple):
    """Token ids, int64 [L], or values, float32 [L, C], or one such array per tower; and a label."""

    tokens: NDArray[Any] | tuple[NDArray[Any], ...]
    label: int


class Batch(NamedTuple):
    """NumPy arrays or torch tensors, padded on the right with 0; with two towers [B, 2, L]."""

    tokens: Any  # int64 [B, L], or values, float32 [B, L, C]
    labels: Any  # int64 [B]
    lengths: Any  # int64 [B]
    mask: Any  # bool [B, L], True = token


def _open_shard(
    path: Path, num_bytes: int, channels: int
) -> tuple[NDArray[Any], NDArray[np.uint64], NDArray[np.int32]]:
    def damaged(what: str) -> Error:
        return Error(f"{path}: {what}; the file is damaged: prepare the dataset again")

    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size != num_bytes:
            raise damaged(f"size in bytes is {size}; expected {num_bytes}")
        # A private mapping: arrays are writable, as torch requires, and the file never changes.
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    version, token_bytes = np.frombuffer(memory, np.uint32, 2, 8).tolist()
    examples, sequences, tokens = np.frombuffer(memory, np.uint64, 3, 16).tolist()
    if memory[:8] != _MAGIC or version not in (1, 2):
        raise damaged("does not start as a shard of version 1 or 2")
    if token_bytes not in ((4 * channels,) if channels else (1, 2, 4)):
        raise damaged(f"tokens have {token_bytes} bytes")
    unit = 8 if version == 1 else 64  # sections begin at multiples of it
    offsets_at = -(-(_HEADER_BYTES + examples * 4) // unit) * unit
    tokens_at = -(-(offsets_at + (sequences + 1) * 8) // unit) * unit
    if size != tokens_at + tokens * token_bytes:
        raise damaged("counts do not add up to its size")
    offsets = np.frombuffer(memory, np.uint64, sequences + 1, offsets_at)
    if offsets[0] != 0 or offsets[-1] != tokens or np.any(offsets[1:] < offsets[:-1]):
        raise damaged("offsets are not in rising order")
    words = max(1, channels)
    dtype = np.float32 if channels else {1: np.uint8, 2: np.uint16, 4: np.uint32}[token_bytes]
    stored = np.frombuffer(memory, dtype, tokens * words, tokens_at)
    return (
        stored.reshape(tokens, channels) if channels else stored,
        offsets,
        np.frombuffer(memory, np.int32, examples, _HEADER_BYTES),
    )


class Split:
    """One split of a task: a map-style dataset over mapped files.

    It is pickled as a path, so that workers of a DataLoader map the same files.
    """

    def __init__(
        self, folder: str | os.PathLike[str], name: str, *, length: int | None = None,
        stored: str | None = None, indices: NDArray[np.int64] | None = None,
    ) -> None:
        self.folder, self.name = Path(folder), name
        self._stored, self._indices = stored or name, indices
        try:
            manifest = json.loads((self.folder / "manifest.json").read_text())
        except FileNotFoundError:
            raise Error(f"{folder}: is not a prepared dataset; expected manifest.json") from None
        self.task = _task_of(manifest)
        self.max_length = length or self.task.length
        self.manifest: dict[str, Any] = manifest
        if self._stored not in manifest["splits"]:
            raise Error(f"{folder}: there is no split {name!r}")
        self._offset = int(manifest["token_offset"])
        self._shards = [
            Arrays(
                *_open_shard(self.folder / shard["file"], shard["num_bytes"], self.task.channels),
                self._offset,
            )
            for shard in manifest["splits"][self._stored]
        ]
        self._starts = np.cumsum([0, *(shard.labels.size for shard in self._shards)])

    def __reduce__(self) -> Any:
        return _reopen, (self.folder, self.name, self.max_length, self._stored, self._indices)

    def __repr__(self) -> str:
        return f"<lra.data.Split {self.task.name} {self.name}, {len(self)} examples>"

    @property
    def num_classes(self) -> int:
        return self.task.classes

    @property
    def vocabulary(self) -> int:
        """Token ids are below this; 0 is padding if the task has padding."""
        return self.task.vocabulary

    def __len__(self) -> int:
        return int(self._starts[-1]) if self._indices is None else self._indices.size

    def arrays(self) -> list[Arrays]:
        """Returns the shards of the stored split in order, as views of the files."""
        return list(self._shards)

    def _sequences(
        self, examples: NDArray[np.int64]
    ) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
        """Stored values of each tower of each example, and the labels."""
        if self._indices is not None:
            examples = self._indices[examples]
        shards = np.searchsorted(self._starts, examples, side="right") - 1
        views: list[Any] = [None] * (examples.size * self.task.towers)
        labels = np.empty(examples.size, dtype=np.int64)
        for shard in set(shards.tolist()):
            tokens, offsets, stored, _ = self._shards[shard]
            here = np.flatnonzero(shards == shard)
            places = examples[here] - self._starts[shard]
            labels[here] = stored[places]
            for tower in range(self.task.towers):
                sequences = places * self.task.towers + tower
                ends = offsets[sequences + 1].tolist()
                rows = (here * self.task.towers + tower).tolist()
                for row, begin, end in zip(rows, offsets[sequences].tolist(), ends):
                    views[row] = tokens[begin:end]
        return views, labels

    def _one(self, example: int) -> tuple[list[NDArray[Any]], int]:
        """The same for one example, which may be counted from the end."""
        if not -len(self) <= example < len(self):
            raise IndexError(f"example {example} of {len(self)}")
        views, labels = self._sequences(np.array([example % len(self)]))
        return views, int(labels[0])

    @overload
    def __getitem__(self, example: int) -> Example: ...
    @overload
    def __getitem__(self, example: slice | Sequence[int] | NDArray[Any]) -> Split: ...
    def __getitem__(self, example: Any) -> Any:
        """An example, or a split of some: split[10:20], split[[3, 1, 4]], split[labels == 2]."""
        if not isinstance(example, (int, np.integer)):
            return self._selected(example)
        views, label = self._one(int(example))
        dtype: Any = np.float32 if self.task.channels else np.int64
        towers = tuple(
            view[: self.max_length].astype(dtype) + dtype(self._offset) for view in views
        )
        return Example(towers[0] if len(towers) == 1 else towers, label)

    def _selected(self, places: Any) -> Split:
        own = np.arange(len(self)) if self._indices is None else self._indices
        chosen = own[places if isinstance(places, slice) else np.asarray(places)]
        return _reopen(self.folder, self.name, self.max_length, self._stored, chosen)

    def cut_to(self, length: int) -> Split:
        """The same examples, cut to another `max_length`."""
        return _reopen(self.folder, self.name, length, self._stored, self._indices)

    @property
    def labels(self) -> NDArray[np.int64]:
        """The label of each example, int64 [N]."""
        stored = np.concatenate([shard.labels for shard in self._shards]).astype(np.int64)
        return stored if self._indices is None else stored[self._indices]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each example as stored, of its first tower: int64 [N]; longer ones are cut."""
        ends = [shard.offsets.astype(np.int64) for shard in self._shards]
        stored = np.concatenate([end[1:] - end[:-1] for end in ends])[:: self.task.towers]
        return stored if self._indices is None else stored[self._indices]

    def __iter__(self) -> Iterator[Example]:
        return (self[i] for i in range(len(self)))

    def batch(self, examples: Sequence[int] | NDArray[np.int64], *, trim: bool = True) -> Batch:
        """Returns the examples as a batch, as the trainer makes it.

        With `trim` it is as long as its longest example, rounded up to a multiple of 32, otherwise
        `max_length`.
        """
        views, labels = self._sequences(np.asarray(examples, dtype=np.int64))
        return padded(views, labels, self.task, self.max_length, self._offset, trim=trim)

    def collate(self, examples: Sequence[Example]) -> Batch:
        """collate_fn of a torch.utils.data.DataLoader: tensors, padded to the longest example."""
        views: list[NDArray[Any]] = []
        for tokens, _ in examples:
            views.extend(tokens if isinstance(tokens, tuple) else (tokens,))
        labels = np.array([example.label for example in examples], dtype=np.int64)
        return as_tensors(padded(views, labels, self.task, self.max_length, trim=True))

    def order(self, batch_size: int, **settings: Any) -> Order:
        """Returns the trainer's order of this split: see Order."""
        return Order(len(self), batch_size, **settings)

    def loader(
        self, batch_size: int, *, steps: int | None = None, first_step: int = 0, seed: int = 0,
        rank: int = 0, ranks: int = 1, trim: bool = True, tensors: bool = False,
    ) -> Iterator[Batch]:
        """Yields the batches of `lra train` with this seed, from the step `first_step` on.

        Endless without `steps`. A resumed run needs only the number of its next step.
        """
        order = self.order(
            batch_size, steps=steps, first_step=first_step, seed=seed, rank=rank, ranks=ranks
        )
        for indices in order:
            batch = self.batch(indices, trim=trim)
            yield as_tensors(batch) if tensors else batch

    def decode(self, example: int) -> Any:
        """Returns the example in readable form.

        listops: the expression; text: str; retrieval: two str; images: uint8 [height, width].
        Own data: str, or the token ids or values as they were imported, or two of them. Diagnostic
        tasks: the token ids. Bytes that are not UTF-8 become U+FFFD.
        """
        views, _ = self._one(example)
        if self.task.name == "listops":
            return " ".join(_LISTOPS[value + self._offset] for value in views[0].tolist())
        own_input = self.manifest["settings"].get("input")
        if own_input is None and not self.task.padded:
            side = int(views[0].size ** 0.5)
            return views[0].reshape(side, side).copy()
        if own_input != "text" and self.task.name not in _BYTE_TASKS:
            arrays = tuple(view.copy() for view in views)
            return arrays[0] if len(arrays) == 1 else arrays
        texts = tuple(view.tobytes().decode("utf-8", errors="replace") for view in views)
        return texts[0] if len(texts) == 1 else texts


def padded(
    views: Sequence[NDArray[Any]], labels: NDArray[np.int64], task: Task, length: int,
    offset: int = 0, *, trim: bool,
) -> Batch:
    """Stored sequences, those of an example in a row, as a batch of the trainer.

    They are cut to `length`; `offset` is added to tokens. `trim` as of Split.batch.
    """
    counts = [min(len(view), length) for view in views]
    lengths = np.array(counts, dtype=np.int64)
    if trim and task.padded:
        longest = max([1, *counts])
        length = min(length, -(-longest // _TRIM_MULTIPLE) * _TRIM_MULTIPLE)
    shape: tuple[int, ...] = (len(views), length)
    mask = np.ones(shape, dtype=bool)
    if min(counts, default=length) < length:
        np.less(np.arange(length, dtype=np.int32), lengths[:, None].astype(np.int32), out=mask)
    if task.channels:
        shape += (task.channels,)
    tokens = np.empty(shape, dtype=np.float32 if task.channels else np.int64)
    for row, view, count in zip(tokens, views, counts):
        row[:count] = view[:count]
        if offset:
            row[:count] += offset
        row[count:] = 0
    if task.towers > 1:
        pairs = (labels.size, task.towers)
        return Batch(
            tokens.reshape(*pairs, *shape[1:]), labels, lengths.reshape(pairs),
            mask.reshape(*pairs, length),
        )
    return Batch(tokens, labels, lengths, mask)


def listops_ids(expression: str) -> NDArray[np.int64]:
    """Token ids of an expression as decode() writes it: "[MAX 2 [MIN 3 4 ] ]". Raises Error."""
    words = expression.replace("]", " ] ").split()
    if unknown := [word for word in words if word == "?" or word not in _LISTOPS]:
        raise Error(f"{unknown[0]!r} is not a word of ListOps; expected [MAX 2 [MIN 3 4 ] ]")
    return np.array([_LISTOPS.index(word) for word in words], dtype=np.int64)


def _reopen(folder: Path, name: str, length: int, stored: str, indices: Any) -> Split:
    return Split(folder, name, length=length, stored=stored, indices=indices)


def as_tensors(batch: Batch) -> Batch:
    """Returns the same memory as torch tensors."""
    import torch

    return Batch(*(torch.from_numpy(array) for array in batch))


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Returns `root`, else $LRA_DATA, else ./data, as the program does."""
    return Path(root or os.environ.get("LRA_DATA") or "data")


def _prepared_folder(task: str, root: Path) -> Path | None:
    for folder in (root, root / task, root / f"{task}.prepared"):
        if (folder / "manifest.json").is_file():
            return folder
    return None


def prepare(
    task: str, root: str | os.PathLike[str] | None = None, *, settings: Sequence[str] = ()
) -> dict[str, Any]:
    """Opens the task's data; if there is none, imports official files under `root` or generates it.

    `settings` are those of --set, such as "task.num_train=1000". Verifies every file and returns
    folder, hash and sizes. Raises Error.
    """
    words = ["data", "prepare", task, "--data", str(data_root(root)), "--json", "--quiet"]
    for setting in settings:
        words += ["--set", setting]
    result: dict[str, Any] = json.loads(_program.run(words))
    return result


def make(
    task: str, out: str | os.PathLike[str], *, seed: int = 0, train: int | None = None,
    val: int | None = None, test: int | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
) -> Path:
    """Generates a dataset (listops, pathfinder*) into the new folder `out`. Raises Error.

    `settings`: {"task.max_args": 3}, nested or not, or the words of --set: ["task.max_args=3"].
    """
    words = ["data", "make", task, "--out", str(out), "--seed", str(seed), "--quiet"]
    for name, count in (("--train", train), ("--val", val), ("--test", test)):
        words += [] if count is None else [name, str(count)]
    _program.run([*words, *_words.settings_words(settings)])
    return Path(out)


def import_files(
    task: str, sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str], *, settings: Mapping[str, Any] | Sequence[str] = (),
    accept: Sequence[str] = (),
) -> Path:
    """Imports files, or one, into the new folder `out`. Warns of what its checks find. Raises Error.

    `settings`: {"task.label": "grade"} or ["task.label=grade"]. `accept` names checks whose warnings are
    accepted (docs/checks.md): ["padding"].
    """
    several = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    words = ["data", "import", task, *(str(source) for source in several), "--out", str(out)]
    words += [*_words.settings_words(settings), *_words.accept_words(accept)]
    _warn_of(json.loads(_program.run([*words, "--quiet", "--json"])), out)
    return Path(out)


def export(task: str, folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Writes prepared data in its official layout into the new folder `out`. Raises Error."""
    _program.run(["data", "export", task, str(folder), "--out", str(out)])
    return Path(out)


def fetch(task: str, out: str | os.PathLike[str]) -> Path:
    """Downloads the official files, compares their digests and imports them. Raises Error."""
    _program.run(["data", "fetch", task, "--out", str(out), "--quiet"])
    return Path(out)


def check(task: str, folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Returns verified facts about prepared data, and warns of what its checks find (docs/checks.md).

    Raises Error if a fact is wrong.
    """
    report = json.loads(_program.run(["data", "check", task, str(folder), "--json"]))
    _warn_of(report, folder)
    facts: list[dict[str, Any]] = report["facts"]
    return facts


def load(
    task: str, split: str = "train", root: str | os.PathLike[str] | None = None, *,
    validation: str = "test", validation_seed: int = 0, length: int | None = None,
    verify: bool = False,
) -> Split:
    """Opens a split: "train", "val" or "test".

    `task` is one of TASKS; own data is "custom:NAME", in the folder NAME of the data root, or
    "custom", directly in `root`. Data that is not prepared yet is first imported or generated
    (prepare), which takes seconds (ListOps) to minutes (Path-X). With `verify` the program compares
    every hash. Warns of what the checks of the import found (docs/checks.md). Text has no validation
    split: by default it is the test set, as in the paper; "heldout" takes a tenth of train. Raises
    Error.
    """
    name, _, data = task.partition(":")
    if task not in TASKS and name != "custom":
        raise Error(f"unknown task {task!r}; known: {', '.join(TASKS)}, custom:NAME")
    folder = None if verify else _prepared_folder(data or task, data_root(root))
    folder = folder or Path(prepare(task, root)["folder"])
    found = Split(folder, split, length=length, stored=_stored_split(task, split, validation))
    if found.task.name != name:
        raise Error(f"{folder}: holds data of task {found.task.name!r}; expected {name!r}")
    _warn_of(found.manifest, folder)
    if task == "text" and validation == "heldout" and split in ("train", "val"):
        found._indices = _heldout(len(found), split, validation_seed)
    return found


def _warn_of(told: dict[str, Any], folder: str | os.PathLike[str]) -> None:
    """Of warnings that nobody accepted."""
    for finding in told.get("data_checks") or ():
        if finding["level"] == "warning" and not finding["accepted"]:
            warnings.warn(f"{folder}: {finding['check']}: {finding['text']}", stacklevel=3)


def _stored_split(task: str, split: str, validation: str) -> str:
    if validation not in ("test", "heldout"):
        raise ValueError(f"validation is {validation!r}; expected 'test' or 'heldout'")
    if task != "text" or split != "val":
        return split
    return "test" if validation == "test" else "train"


def _heldout(num_train: int, split: str, seed: int) -> NDArray[np.int64]:
    key = _random.derive_key(seed, _random.SPLIT)
    order = _random.permute(num_train, key, np.arange(num_train))
    held = num_train // 10
    return np.sort(order[:held] if split == "val" else order[held:])


__all__ = [
    "TASKS", "Arrays", "Batch", "Error", "Example", "Order", "Split", "Task", "as_tensors", "check",
    "data_root", "export", "fetch", "import_files", "listops_ids", "load", "make", "prepare",
]


def __dir__() -> list[str]:
    return __all__
