"""Records of runs as a table, and the report of the program."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import _program, _words
from ._code import TRIES

_COLUMNS = (
    "task", "model", "model_title", "preset", "seed", "status", "division", "division_reason",
    "num_parameters", "steps", "planned_steps", "train_seconds", "train_tokens_per_s",
    "peak_resident_bytes", "failure", "data_hash", "fingerprint",
)
_PAPER_TASKS = {"listops": "ListOps", "text": "Text", "retrieval": "Retrieval", "image": "Image",
                "pathfinder": "Pathfinder", "pathx": "Path-X"}


def _records(root: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    # Runs of a sweep that were not chosen are those of a folder that has to be named.
    paths, tries = [], set()
    for path in sorted(root.rglob("record.json")):
        if TRIES in (parts := path.relative_to(root).parts):
            tries.add(str(Path(root, *parts[:parts.index(TRIES) + 1])))
        else:
            paths.append(path)
    if tries:
        warnings.warn(f"{', '.join(sorted(tries))}: left out; runs of a sweep that were not chosen: "
                      "name such a folder to see them", stacklevel=3)
    if not paths:
        return
    told = json.loads(_program.run(["report", str(root), "--check", "--json"], good=(0, 2)))
    for finding in told["findings"]:
        warnings.warn(f"left out: {finding}", stacklevel=3)
    for path in paths:
        if str(path.resolve()) in told["refused"]:
            continue
        record = json.loads(path.read_text())
        if record.get("kind") == "train":
            yield path.parent, record


def results(root: str | os.PathLike[str] = "runs", *, settings: bool = False) -> list[dict[str, Any]]:
    """Returns one row for each training run below `root`, in the order of their folders.

    Accuracies are 0..1, or None before they are known and for runs of the division "pretraining",
    which predict masked inputs; `python` is True for a Python class; `suspect` is what the checks of
    the data found and nobody accepted, which marks a figure with † in the report, `accepted` names
    the checks whose warnings were. With `settings` each is a column too: "train.learning_rate". For
    a pandas table, use pandas.DataFrame(lra.results("runs")). A record that fails `lra report
    --check` is left out, with a warning; others warn of runs that are there twice (equal fingerprint
    and seed) and of data of one name with several hashes.
    """
    if not Path(root).exists():
        raise _program.Error(f"{root}: there is no such folder; expected one that holds runs")
    rows = [row_of(folder, record, settings=settings) for folder, record in _records(Path(root))]
    _warn_of_unlike(rows)
    return rows


def row_of(folder: Path, record: dict[str, Any], *, settings: bool = False) -> dict[str, Any]:
    """The row of one run in results()."""
    row: dict[str, Any] = {"folder": str(folder)}
    row.update((column, record[column]) for column in _COLUMNS)
    has_labels = record["division"] != "pretraining"
    for split in ("train", "val", "test"):
        evaluation = (record.get(split) if has_labels else None) or {}
        row[f"{split}_accuracy"] = evaluation.get("accuracy")
    row["python"] = "python" in record
    row["warnings"] = record.get("warnings", [])
    row["suspect"] = [f"{check['check']}: {check['text']}" for check in record.get("data_checks", ())
                      if check["level"] == "warning" and not check["accepted"]]
    row["accepted"] = [check["check"] for check in record.get("data_checks", ()) if check["accepted"]]
    if settings:
        tables = {name: table for name, table in record["config"].items() if name != "run"}
        row.update(_words.flat(tables))
    return row


def _warn_of_unlike(rows: list[dict[str, Any]]) -> None:
    seen: dict[Any, str] = {}
    for row in rows:
        if row["fingerprint"]:
            run = (row["fingerprint"], row["model"], row["seed"])
            if (first := seen.setdefault(run, row["folder"])) != row["folder"]:
                warnings.warn(f"{row['folder']}: the same run as {first}", stacklevel=3)
    for task in dict.fromkeys(row["task"] for row in rows):
        data = {row["data_hash"] for row in rows if row["task"] == task} - {"", None}
        if len(data) > 1:
            warnings.warn(f"{task}: {len(data)} different sets of data (data_hash)", stacklevel=3)


def literature() -> list[dict[str, Any]]:
    """Returns published results, one row for each model and source, the best average first.

    Each has model, family, source, note, kind ("own": by the model's authors, "re-run",
    "collected", "unverified") and the accuracy on each task in percent: None if the source has
    no figure, "FAIL" if the model did not learn the task. The eleven models of the arena's paper are
    among them.
    """
    file = Path(_program.environment()["LRA_CONFIGS"]) / "literature.json"
    notes = {(row["model"], row["source"]): row.get("note", "") for row in json.loads(file.read_text())["results"]}
    rows = []
    for row in json.loads(_program.run(["list", "results", "--json"]))["results"]:
        note = notes.get((row["model"], row["source"]), "")
        facts = {"model": row["model"], "family": row["family"], "source": row["source"], "note": note,
                 "kind": row["figures"]}
        rows.append({**facts, **{task: row.get(title) for task, title in _PAPER_TASKS.items()}})
    return rows


class Report:
    """A leaderboard page in the file `path`; a notebook displays it inline, print() as a table."""

    def __init__(self, path: Path, folders: Sequence[str]) -> None:
        self.path, self.folders = path, list(folders)

    def __str__(self) -> str:
        return _program.run(["report", *self.folders, "--format", "summary"])

    def __repr__(self) -> str:
        return f"<lra.Report {self.path}>"

    def _repr_html_(self) -> str:
        page = self.path.read_text().replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{page}" width="100%" height="800" frameborder="0"></iframe>'


def report(
    *folders: str | os.PathLike[str], out: str | os.PathLike[str] = "report.html"
) -> Report:
    """Writes the leaderboard of all records below the folders as one HTML page. Raises Error."""
    names = [str(folder) for folder in folders or ("runs",)]
    _program.run(["report", *names, "--format", "html", "--out", str(out), "--quiet"])
    return Report(Path(out), names)
