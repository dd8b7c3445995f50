"""What each column is: label, split, id, sequences, searched in this order."""

from __future__ import annotations

import dataclasses
import re

import pyarrow as pa

from . import cells, names
from .errors import ReadError, quoted
from .source import Source


@dataclasses.dataclass
class Column:
    """A row of the table that an import prints."""

    name: str
    kind: str
    shape: str
    role: str
    why: str


@dataclasses.dataclass
class Roles:
    """The columns of the first source by what they are; later sources have the same names."""

    label: str = ""
    split: str = ""
    lengths: str = ""
    groups: list[str] = dataclasses.field(default_factory=list)
    sequences: list[str] = dataclasses.field(default_factory=list)
    is_wide: bool = False
    table: list[Column] = dataclasses.field(default_factory=list)


def place_of(found: list[str], name: str) -> int | None:
    """The place of a name, or of the only one that differs in case and spaces around it."""
    if found.count(name) == 1:
        return found.index(name)
    alike = [i for i, other in enumerate(found) if names.plain(other) == names.plain(name)]
    return alike[0] if len(alike) == 1 else None


class _Search:
    def __init__(self, batch: pa.RecordBatch, source: Source, settings: dict[str, str]) -> None:
        self.found = batch.schema.names
        self.batch, self.source, self.settings = batch, source, settings
        self.taken: dict[int, tuple[str, str]] = {}  # role and why
        self.where = source.path

    def kind(self, place: int) -> str:
        column = self.batch.column(place)
        kind = cells.kind_of(column)
        if (
            self.source.cells
            and kind == "text"
            and cells.are_cells_numbers(column, self.source.decimal_comma)
        ):
            return "number"
        return kind

    def take(self, place: int, role: str, why: str) -> str:
        if place in self.taken:
            raise ReadError(
                self.where,
                f"column '{self.found[place]}' is named twice",
                "different columns for sequences, label and split",
                "change task.sequences or task.label",
            )
        self.taken[place] = (role, why)
        return self.found[place]

    def rest(self) -> list[int]:
        return [i for i in range(len(self.found)) if i not in self.taken]

    def named(self, setting: str, name: str) -> int:
        place = place_of(self.found, name)
        if place is None and setting != "task.ignore":
            _, bare = names.parted(name)  # x_train names x of every split
            place = place_of(self.found, bare)
        if place is None:
            raise self.error(f"has no column '{name}'", f"the name that {setting} gives")
        return place

    def usual(self, known: tuple[str, ...], setting: str) -> int | None:
        found = [i for i in self.rest() if names.plain(self.found[i]) in known]
        if len(found) > 1:
            raise self.error(
                f"has columns {quoted([self.found[i] for i in found])}", "one", setting
            )
        return found[0] if found else None

    def error(self, what: str, expected: str, setting: str = "") -> ReadError:
        advice = f"name it with --set {setting}=NAME" if setting else ""
        if self.source.cells and self.source.has_header and len(self.found) > 1:
            advice += ("; i" if advice else "I") + (
                "f the file has no header, name the columns by number: --set task.sequences=c0 --set task.label=c1"
            )
        return ReadError(self.where, what, f"{expected}; there are {quoted(self.found)}", advice)


def has_labels(batch: pa.RecordBatch, source: Source, settings: dict[str, str]) -> bool:
    """True if the source has a column of labels, and labels in it."""
    found = batch.schema.names
    wanted = settings["label"] or source.label
    if wanted:
        place = place_of(found, wanted)
        if place is None:
            place = place_of(found, names.parted(wanted)[1])
        return place is not None and not cells_are_missing(batch, place)
    places = [
        i
        for i, name in enumerate(found)
        if names.plain(name) in names.LABELS or name in source.classes
    ]
    return any(not cells_are_missing(batch, place) for place in places)


def cells_are_missing(batch: pa.RecordBatch, place: int) -> bool:
    from .labels import are_missing

    return are_missing(batch.column(place))


def find_roles(batch: pa.RecordBatch, source: Source, settings: dict[str, str]) -> Roles:
    """The roles of the columns of the first source. Raises ReadError, which asks by name."""
    search, roles = _Search(batch, source, settings), Roles()
    for name in filter(None, settings["ignore"].split(",")):
        search.take(search.named("task.ignore", name), "left out", "task.ignore")
    if settings["label"]:
        roles.label = search.take(
            search.named("task.label", settings["label"]), "label", "task.label"
        )
    elif source.label or len(source.classes) == 1:
        name = source.label or next(iter(source.classes))
        place = place_of(search.found, name)
        why = source.label_why or "a class label in the schema"
        roles.label = search.take(place, "label", why) if place is not None else ""
    if not roles.label:
        place = search.usual(names.LABELS, "task.label")
        if place is None:
            raise search.error("has no column of labels", "one named label", "task.label")
        roles.label = search.take(place, "label", "name")
    if settings["split"]:
        roles.split = search.take(
            search.named("task.split", settings["split"]), "split", "task.split"
        )
    elif (place := place_of(search.found, "split")) is not None and place not in search.taken:
        roles.split = search.take(place, "split", "name")
    wanted = [
        search.named("task.sequences", name)
        for name in filter(None, settings["sequences"].split(","))
    ]
    if len(wanted) > 2:
        raise ReadError("task.sequences", f"{len(wanted)} columns", "one, or two for pairs")
    for place in wanted:
        if place in search.taken:
            search.take(place, "", "")
    _find_lengths(search, roles, wanted)
    _find_ids(search, roles, wanted)
    _find_sequences(search, roles, wanted)
    _refuse_maybe_splits(search)
    _describe(search, roles)
    return roles


def _find_lengths(search: _Search, roles: Roles, wanted: list[int]) -> None:
    has_lists = any(search.kind(i) == "list" for i in (wanted or search.rest()))
    for place in search.rest() if has_lists else []:
        if (
            place not in wanted
            and names.plain(search.found[place]) in names.LENGTHS
            and not roles.lengths
        ):
            roles.lengths = search.take(place, "lengths", "name")


def _find_ids(search: _Search, roles: Roles, wanted: list[int]) -> None:
    for place in search.rest():
        name = search.found[place]
        if place in wanted or search.kind(place) in ("list", "media"):
            continue
        if names.is_group(name):
            search.take(place, "group", "name")
            roles.groups = [*roles.groups, name][:4]
        elif names.is_id(name):
            search.take(place, "id", "name")


def _find_sequences(search: _Search, roles: Roles, wanted: list[int]) -> None:
    if wanted:
        roles.sequences = [search.take(place, "sequence", "task.sequences") for place in wanted]
        return
    rest = search.rest()
    numbers = [i for i in rest if search.kind(i) == "number"]
    if len(rest) > 1 and len(numbers) == len(rest):
        _refuse_unlike_names([search.found[i] for i in rest], search.where)
        roles.sequences = [
            search.take(i, "sequence", "a position, as every column is a number") for i in rest
        ]
        roles.is_wide = True
        return
    for pair in names.PAIRS:
        places = [place_of(search.found, name) for name in pair]
        if None not in places and not any(place in search.taken for place in places):
            roles.sequences = [
                search.take(place, "sequence", "names of a pair")
                for place in places
                if place is not None
            ]
            return
    place = search.usual(names.SEQUENCES, "task.sequences")
    if place is not None and search.kind(place) == "number":
        others = quoted([search.found[i] for i in rest if i != place])
        raise ReadError(
            search.where,
            f"column '{search.found[place]}' holds a single number"
            + (f", and {others} would not be read" if others else ""),
            "a column of sequences, or numbers in all columns but label and split",
            "leave columns out with --set task.ignore=NAME, or name the sequences with --set task.sequences=NAME",
        )
    if place is not None:
        roles.sequences = [search.take(place, "sequence", "name")]
        return
    lists = [i for i in rest if search.kind(i) in ("list", "media")]
    if len(lists) == 1 or (len(rest) == 1 and search.kind(rest[0]) == "text"):
        only = lists[0] if lists else rest[0]
        why = "the only column of lists" if lists else "the only other column"
        roles.sequences = [search.take(only, "sequence", why)]
        return
    texts = [search.found[i] for i in rest if i not in numbers]
    if numbers and texts and not lists:
        raise ReadError(
            search.where,
            f"{quoted(texts)} hold{'s' if len(texts) == 1 else ''} no numbers, and no column has the name of sequences",
            "numbers in all columns but label and split, or a column named text, tokens or values",
            f"leave columns out with --set task.ignore={texts[0]}, or name the sequences with --set task.sequences=NAME",
        )
    raise search.error(
        "has no column of sequences", "one named text, tokens or values", "task.sequences"
    )


def _refuse_maybe_splits(search: _Search) -> None:
    for place in range(len(search.found)):
        name = search.found[place]
        if (
            search.taken.get(place, ("",))[0] in ("", "sequence")
            and names.plain(name) in names.MAYBE_SPLITS
        ):
            raise ReadError(
                search.where,
                f"column '{name}' may name the split",
                "train, val or test in a column split",
                f"name it with --set task.split={name}, or leave it out with --set task.ignore={name}",
            )


def _refuse_unlike_names(found: list[str], where: str) -> None:
    """A few columns with names of their own among numbered ones, such as a prediction."""
    stems: dict[str, list[str]] = {}
    for name in found:
        stem = re.sub(r"[-_. ]*\d*$", "", names.plain(name))
        stems.setdefault("" if re.fullmatch(r"[-+.\de]+", names.plain(name)) else stem, []).append(
            name
        )
    usual = max(stems.values(), key=len)
    others = [name for name in found if name not in usual]
    if len(usual) < 8 or not others or len(others) * 10 > len(found):
        return
    raise ReadError(
        where,
        f"{quoted(others)} would be positions of the sequence, among {len(usual)} columns such as '{usual[0]}'",
        "columns of the sequence, label and split",
        f"leave out what is not part of the sequence: --set task.ignore={','.join(others)}",
    )


def _describe(search: _Search, roles: Roles) -> None:
    for place, name in enumerate(search.found):
        role, why = search.taken.get(place, ("ignored", "no name of a sequence"))
        kind = search.batch.schema.field(place).type
        text = (
            "number" if search.kind(place) == "number" and pa.types.is_string(kind) else str(kind)
        )
        roles.table.append(
            Column(name, re.sub(r"extension<arrow\.(\w+).*", r"\1", text), "", role, why)
        )
    if roles.is_wide:
        wide = [row for row in roles.table if row.role == "sequence"]
        kinds = {row.kind for row in wide}
        kept = [row for row in roles.table if row.role != "sequence"]
        name = f"{wide[0].name} ... {wide[-1].name}"
        roles.table = [
            Column(
                name,
                kinds.pop() if len(kinds) == 1 else "number",
                f"{len(wide)} columns",
                "sequence",
                wide[0].why,
            ),
            *kept,
        ]
