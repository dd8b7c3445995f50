"""A run, as Python sees it: its record, its log, its predictions, and how a notebook shows it."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _program, _show
from ._program import Error
from ._words import option_words

if TYPE_CHECKING:
    from ._model import Model

_Z95 = 1.95996


def pandas() -> Any:
    """The module. Raises Error if it is not installed."""
    try:
        import pandas as module
    except ImportError:
        raise Error("pandas is not installed; tables need it: pip install pandas") from None
    return module


def half_width95(accuracy: float, num_examples: int) -> float:
    """Of the 95 % interval of an accuracy 0..1, as in the report: the farther end of Wilson's."""
    p, n = accuracy, num_examples
    whole = 1 + _Z95**2 / n
    center = (p + _Z95**2 / (2 * n)) / whole
    return abs(center - p) + _Z95 * math.sqrt(p * (1 - p) / n + _Z95**2 / (4 * n**2)) / whole


@dataclasses.dataclass(frozen=True, repr=False)
class Run:
    """A finished or stopped run. `record` is its record.json."""

    folder: Path
    record: dict[str, Any]

    @property
    def status(self) -> str:
        """ "done", "stopped", "diverged" or "failed"."""
        return str(self.record["status"])

    @property
    def test_accuracy(self) -> float | None:
        """On the test split, 0..1; None before the run is done."""
        test = self.record.get("test")
        return None if test is None else float(test["accuracy"])

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the test accuracy, from the number of test examples alone."""
        if self.test_accuracy is None:
            return None
        half = half_width95(self.test_accuracy, self.record["test"]["num_examples"])
        return max(0.0, self.test_accuracy - half), min(1.0, self.test_accuracy + half)

    @property
    def division(self) -> str:
        """ "apples-to-apples", "self-pretrained", "free-for-all", or "pretraining" for a run that
        predicts masked inputs; record["division_reason"] gives the reason."""
        return str(self.record["division"])

    def load(self, checkpoint: str | None = None, device: Any = "cpu") -> Model:
        """The trained model: lra.arena.load(run)."""
        from .arena import load

        return load(self, checkpoint, device=device)

    def metrics(self) -> Any:
        """A DataFrame of all that was logged: a row for each step, with its kind (train, val, test)."""
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return pandas().DataFrame([json.loads(line) for line in lines if line.endswith("}")])

    def curve(self) -> Any:
        """A DataFrame of the validations: step, loss, accuracy, and the ends of its 95 % interval."""
        rows = []
        for e in self.record["val_curve"]:
            half = half_width95(e["accuracy"], e["num_examples"])
            rows.append({**e, "low": e["accuracy"] - half, "high": e["accuracy"] + half})
        columns = ["step", "loss", "accuracy", "low", "high", "num_examples"]
        return pandas().DataFrame(rows, columns=columns).set_index("step")

    def plot(self, ax: Any = None) -> Any:
        """Draws the validation accuracy with its interval; returns matplotlib's Axes."""
        try:
            from matplotlib import pyplot
        except ImportError:
            raise Error("matplotlib is not installed; plot() needs it: pip install matplotlib") from None
        curve, axes = self.curve(), ax or pyplot.subplots()[1]
        (line,) = axes.plot(curve.index, 100 * curve.accuracy, label=_show.name_of(self.record))
        axes.fill_between(curve.index, 100 * curve.low, 100 * curve.high, color=line.get_color(), alpha=0.2)
        axes.set(xlabel="step", ylabel="validation accuracy (%)", title=self.record["task_title"])
        axes.legend()
        return axes

    def predictions(
        self, split: str = "test", *, data: str | os.PathLike[str] | None = None, device: Any = None,
    ) -> Any:
        """A DataFrame with a row for each example of a split, in its order.

        Its columns are those that `lra eval --predictions` writes (docs/analyses.md): the label, the
        prediction, probabilities, and what the task knows of an example. Raises Error.
        """
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "predictions.csv"
            _program.run(["eval", str(self.folder), "--quiet", *option_words(
                split=split, data=data, device=device, predictions=file)])
            return pandas().read_csv(
                file, keep_default_na=False, na_values=[""], dtype={"label": str, "prediction": str})

    def __repr__(self) -> str:
        return f"<lra.arena.Run {_show.line_of(self)}>"

    def _repr_html_(self) -> str:
        return _show.html_of(self)


class Runs(list[Run]):
    """Several runs, such as those of some seeds."""

    def frame(self) -> Any:
        """A DataFrame with a row for each run, as of lra.results."""
        from ._records import row_of

        return pandas().DataFrame([row_of(run.folder, run.record) for run in self])

    @property
    def test_accuracies(self) -> list[float | None]:
        return [run.test_accuracy for run in self]

    def __repr__(self) -> str:
        return "\n".join(["[", *(f"  {_show.line_of(run)}" for run in self), "]"]) if self else "[]"

    def _repr_html_(self) -> str:
        return "".join(map(_show.html_of, self))


def folder_of(run: Run | str | os.PathLike[str]) -> Path:
    return run.folder if isinstance(run, Run) else Path(run)


def read_run(folder: str | os.PathLike[str]) -> Run:
    """Raises Error for a folder that holds no training run."""
    file = Path(folder, "record.json")
    try:
        record = json.loads(file.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise Error(f"{folder}: is not a run; expected a folder with record.json") from None
    except ValueError as error:
        raise Error(f"{file}: is not a record of a run: {error}") from None
    if not isinstance(record, dict) or record.get("kind") != "train":
        raise Error(f'{folder}: is not a run; expected a record.json of kind "train"')
    return Run(Path(folder), record)


def is_several(value: Any) -> bool:
    """A list, tuple, range or array, and no single seed, name or class."""
    return isinstance(value, (Sequence, Iterable)) and not isinstance(value, (str, type)) and (
        getattr(value, "ndim", 1) > 0)
