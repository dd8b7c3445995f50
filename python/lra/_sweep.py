"""A sweep of settings: a suite with a section [sweep], which the program runs (docs/sweeps.md)."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _process
from ._code import TRIES
from ._program import Error
from ._run import Run, Runs, pandas, read_run
from ._source import Layer, Source
from ._words import flat, option_words, plain, toml

_WRITTEN = "# Written by lra.arena.sweep.\n"  # begins its suites


class Draw(str):
    """A range that a sweep draws from, in the notation of a suite: "0.0001:0.01:log"."""


def uniform(low: float, high: float) -> Draw:
    """Draws between two numbers, whole ones between whole ones."""
    return Draw(f"{plain(low)!r}:{plain(high)!r}")


def log_uniform(low: float, high: float) -> Draw:
    """Draws whose logarithm is uniform: a learning rate between 1e-4 and 1e-2."""
    return Draw(f"{plain(low)!r}:{plain(high)!r}:log")


@dataclasses.dataclass(frozen=True, repr=False)
class Sweep:
    """A finished or stopped sweep. `chosen` has the runs of the chosen settings, which were tested."""

    folder: Path
    chosen: Runs

    def frame(self) -> Any:
        """A DataFrame with a row for each run, chosen or not: settings and validation accuracy."""
        from ._records import row_of

        rows = []
        for path in sorted(self.folder.rglob("record.json")):
            run = read_run(path.parent)
            row = row_of(run.folder, run.record, settings=True)
            rows.append({**row, "chosen": TRIES not in path.relative_to(self.folder).parts})
        return pandas().DataFrame(rows)

    def __repr__(self) -> str:
        return f"<lra.arena.Sweep {self.folder}, chosen: {self.chosen!r}>"

    def _repr_html_(self) -> str:
        return self.chosen._repr_html_()


def sweep(
    task: str | Sequence[str], mixer: Layer | Sequence[Layer], settings: Mapping[str, Any], *,
    seed: int | Sequence[int] = 0, tries: int | None = None, halving: int | None = None,
    draw_seed: int = 0, preset: str = "small", out: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None, device: Any = "cpu", threads: int | None = None,
    jobs: int | None = None, accept: Sequence[str] = (), quiet: bool = False,
) -> Sweep:
    """Tries settings with every layer, the same ones, and tests those with the best validation.

    A list among the `settings` is what the sweep varies, and so is uniform(low, high) or
    log_uniform(low, high), of which `tries` are drawn with `draw_seed`; without ranges every
    combination is tried by default. Other settings hold for all runs; those of a layer are "mixer.NAME".
    `task` and `mixer` are as in train(), or lists of them. Settings are compared by their mean
    validation accuracy over the seeds; the test split is read for the chosen ones alone, whose
    records say how many were tried (`record["tuning"]`). `halving` stops hopeless ones early;
    `jobs` trains several runs at once, a list as `device` each of them on one of several devices.
    The same call resumes a sweep that was stopped; with other values to compare it goes on with
    them and keeps the runs that are done. Raises Error, also for a folder that has another suite;
    after Ctrl-C, KeyboardInterrupt.
    """
    sources = [Source(layer) for layer in _listed(mixer)]
    tasks = _listed(task)
    names = [*tasks, *(source.name for source in sources)]
    seeds = _listed(plain(seed))
    folder = Path(out or "runs/sweep-" + "-".join(names).replace(":", "."))
    several = isinstance(device, (list, tuple))
    where = {"devices": ",".join(map(str, device))} if several else {"device": device}
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(source.kept_in(folder)) for source in sources]
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "suite.toml"
        _write(file, _suite(
            {"tasks": tasks, "models": [source.name for source in sources], "preset": preset,
             "seeds": seeds, "accept": list(accept) or None},
            {"tries": tries, "halving": halving, "seed": draw_seed}, settings))
        try:
            _process.run(
                ["suite", "run", str(file), *option_words(
                    out=folder, data=data, threads=threads, jobs=jobs, quiet=quiet, **where)],
                os.pathsep.join(dict.fromkeys(path for path in folders if path)), good=(0, 3, 4))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{folder}: saved and stopped; the same call resumes it") from None
    cells = {(one, source.name, s) for one in tasks for source in sources for s in seeds}
    return Sweep(folder, Runs(_chosen(folder, cells)))


def _chosen(folder: Path, cells: set[tuple[str, str, int]]) -> Iterator[Run]:
    """The runs of these tasks, models and seeds that a sweep chose; others may lie beside them."""
    for path in sorted(folder.glob("*/record.json")):
        with contextlib.suppress(Error):
            run = read_run(path.parent)
            cell = tuple(run.record.get(field) for field in ("task", "model", "seed"))
            if cell in cells and run.record.get("tuning"):
                yield run


def _write(file: Path, suite: str) -> None:
    """Raises Error rather than replace a suite that somebody wrote, or that has runs."""
    if not file.exists():
        file.write_text(_WRITTEN + suite)
        return
    earlier = file.read_text()
    if not earlier.startswith(_WRITTEN):
        raise Error(f"{file}: is another suite, which lra.arena.sweep did not write; choose another out=")
    if _lasting(earlier) != _lasting(suite) and any(file.parent.rglob("record.json")):
        raise Error(f"{file}: is of a sweep with other layers, or other settings for all runs, whose runs are in "
                    "this folder; choose another out=, or call it with the same or other values to compare")
    file.write_text(_WRITTEN + suite)


def _lasting(suite: str) -> list[str]:
    """The lines that must stay when a sweep goes on with other values, seeds or rules."""
    lines = suite.removeprefix(_WRITTEN).partition("\n[sweep]\n")[0].splitlines()
    return [line for line in lines if not line.startswith(("accept = ", "seeds = "))]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, range)) else [value]


def _suite(facts: Mapping[str, Any], rules: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The text of the suite: what lists and ranges vary, and what holds for every run."""
    varied = {name: value for name, value in flat(settings) if isinstance(value, (list, Draw))}
    fixed = {name: value for name, value in flat(settings) if name not in varied}
    sections = (("", facts), ("[set]", fixed), ("[sweep]", {**rules, **varied}))
    return "\n".join(
        "\n".join([title, *(f"{name} = {toml(value)}" for name, value in flat(table))]) + "\n"
        for title, table in sections)
