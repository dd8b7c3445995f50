"""Your own sequence layer under the benchmark's rules, trained by the program's trainer."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from . import _process, _program
from ._code import SOURCE
from ._program import Error
from ._replaced import replaced
from ._run import Run as Run, Runs as Runs, folder_of, is_several, read_run
from ._source import Layer, Source, mixer as mixer
from ._sweep import (
    Draw as Draw, Sweep as Sweep, log_uniform as log_uniform, sweep as sweep, uniform as uniform,
)
from ._words import accept_words, option_words, plain, settings_words

if TYPE_CHECKING:
    from ._model import Model as Model, Predictions as Predictions

__all__ = [
    "Draw", "Model", "Predictions", "Run", "Runs", "Sweep", "evaluate", "export", "load", "log_uniform",
    "mixer", "open_run", "resume", "sweep", "train", "uniform",
]

_Path = str | os.PathLike[str]


def evaluate(
    run: Run | _Path, split: str = "test", *, data: _Path | None = None, other_data: bool = False,
    device: Any = None,
) -> dict[str, Any]:
    """Returns what `lra eval RUN --json` prints: accuracy, loss, confusion matrix. Raises Error.

    `run` is a run, its folder, or a folder that `lra export` wrote. `data` names its data folder;
    with `other_data` that may be other data than the run's.
    """
    words = ["eval", str(folder_of(run)), "--json", "--quiet", *option_words(
        split=split, data=data, other_data=other_data, device=device)]
    result: dict[str, Any] = json.loads(_program.run(words))
    return result


def load(run: Run | _Path, checkpoint: str | None = None, *, device: Any = "cpu") -> Model:
    """The trained model of a run as a torch.nn.Module with predict(). Raises Error.

    `checkpoint` is "best", "last", "step_N" or a model.safetensors; by default the weights that the
    run tested. Computes on `device` ("cpu", "cuda", "cuda:1" or a torch.device).
    """
    from ._model import Model

    return Model(folder_of(run), checkpoint or "", str(plain(device)))


def open_run(run: _Path) -> Run:
    """The run in a folder, as train() returned it. Raises Error if there is none."""
    return read_run(run)


@overload
def train(
    task: str, mixer: Layer | None = ..., *,
    model: Layer | None = ..., preset: str = ..., seed: int = ...,
    out: _Path | None = ..., data: _Path | None = ..., device: Any = ..., threads: int | None = ...,
    arguments: Mapping[str, Any] | None = ..., settings: Mapping[str, Any] | None = ...,
    init_from: Run | _Path | None = ..., init_partial: bool = ..., accept: Sequence[str] = ...,
    resume: bool = ..., overwrite: bool = ..., quiet: bool = ...,
) -> Run: ...
@overload
def train(
    task: str, mixer: Layer | None = ..., *,
    model: Layer | None = ..., preset: str = ..., seed: Sequence[int],
    out: _Path | None = ..., data: _Path | None = ..., device: Any = ..., threads: int | None = ...,
    arguments: Mapping[str, Any] | None = ..., settings: Mapping[str, Any] | None = ...,
    init_from: Run | _Path | None = ..., init_partial: bool = ..., accept: Sequence[str] = ...,
    resume: bool = ..., overwrite: bool = ..., quiet: bool = ...,
) -> Runs: ...
def train(
    task: str, mixer: Layer | None = None, *,
    model: Layer | None = None, preset: str = "small",
    seed: int | Sequence[int] = 0, out: _Path | None = None, data: _Path | None = None,
    device: Any = "cpu", threads: int | None = None, arguments: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None, init_from: Run | _Path | None = None,
    init_partial: bool = False, accept: Sequence[str] = (), resume: bool = False,
    overwrite: bool = False, quiet: bool = False,
) -> Run | Runs:
    """Trains, validates and tests a layer on a task, as `lra train TASK package.module:Class` does.

    `mixer` is the name of one of the program's own models or of lra.mixer, a class derived from
    torch.nn.Module, or "package.module:Class". It maps [B, L, D] to [B, L, D] and is called
    with x and, if its forward takes one, a mask [B, L], True = token. `model`, given instead, is a
    whole model that maps tokens int64 [B, L] (values float32 [B, L, C], pairs [B, 2, L]), and mask
    or lengths, to logits [B, classes]. `arguments` go to its constructor in addition to the sizes
    that it asks for; `settings` are those of --set, in one table or nested: {"train.steps": 100} or
    {"train": {"steps": 100}}; NumPy's numbers are numbers, and None leaves the default. A list of
    seeds gives a run for each, in the folders `out`-s0, `out`-s1, and so on. `init_from` is a run,
    its folder or a model.safetensors whose weights the run begins with; with `init_partial`,
    tensors that have no counterpart there are drawn. `accept` names checks of the data whose
    warnings are accepted (docs/checks.md). `resume` continues the run in `out` if there is one, with
    the same settings; `overwrite` replaces it, and removes it once the new run has ended. A separate process trains, so a script needs the
    guard `if __name__ == "__main__":` around this call. If the run fails, raises Error with the
    program's message and exit code; after Ctrl-C the run is saved and KeyboardInterrupt raised.
    """
    if os.environ.get(_process.CHILD_VARIABLE):
        raise Error('lra.arena.train was called while its class was imported; put the call under '
                    '`if __name__ == "__main__":`')
    layer = model if mixer is None else mixer
    if layer is None or (mixer is not None and model is not None):
        raise TypeError("expected one of mixer and model: a class, or its name")
    if resume and overwrite:
        raise TypeError("expected one of resume and overwrite")
    source = Source(layer)
    words = ["train", task, source.name, *option_words(
        preset=preset, data=data, device=device, threads=threads, quiet=quiet,
        init_from=None if init_from is None else folder_of(init_from), init_partial=init_partial,
        go_on=resume), *accept_words(accept)]
    words += ["--set", "mixer.whole=true"] if model is not None else []
    words += [*settings_words(arguments, "mixer."), *settings_words(settings)]

    def trained(seed: Any, folder: Path) -> Run:
        earlier = replaced(folder) if overwrite else contextlib.nullcontext()
        with earlier, source.kept_in(folder) as import_from:
            return _trained([*words, *option_words(seed=seed, out=folder)], import_from, folder)

    name = f"runs/{task.replace(':', '.')}-{source.name.replace(':', '.')}-{preset}"
    if not is_several(seed):
        return trained(seed, Path(out or f"{name}-s{seed}"))
    return Runs([trained(one, Path(f"{out or name}-s{one}")) for one in plain(seed)])


def resume(
    run: Run | _Path, *, settings: Mapping[str, Any] | None = None, data: _Path | None = None,
    device: Any = None, threads: int | None = None, quiet: bool = False,
) -> Run:
    """Continues a run that was stopped, as `lra train --resume RUN` does.

    With `settings` of length, schedule, validations or checkpoints ({"train.steps": 20000}) a
    finished run trains further, too; its record keeps both parts. A class of yours must be
    importable as when the run began. Raises Error as train() does.
    """
    folder = folder_of(run)
    words = ["train", *option_words(
        resume=folder, data=data, device=device, threads=threads, quiet=quiet)]
    return _trained([*words, *settings_words(settings)], None, folder)


def export(run: Run | _Path, out: _Path) -> Path:
    """Writes weights, settings, record, card and checksums of a run to the new folder `out`.

    As `lra export RUN --out FOLDER` does; evaluate() and load() take such a folder. Raises Error.
    """
    _program.run(["export", str(folder_of(run)), "--out", str(out)])
    if (source := folder_of(run) / SOURCE).is_dir():
        shutil.copytree(source, Path(out) / SOURCE)
    return Path(out)


def _trained(words: Sequence[str], import_from: str | None, folder: Path) -> Run:
    try:
        run = Run(folder, _process.run_json(words, import_from, good=(0, 3, 4)))
    except KeyboardInterrupt:
        if not (folder / "record.json").is_file() or read_run(folder).status != "stopped":
            raise
        told = f'{folder}: saved and stopped; continue it with lra.arena.resume("{folder}")'
        raise KeyboardInterrupt(told) from None
    if run.status == "diverged":
        warnings.warn(f"{folder}: diverged, its loss became NaN or infinite after step {run.record['steps']}; "
                      "a lower learning rate or train.clip_norm=1 may help", stacklevel=4)
    return run


def __getattr__(name: str) -> Any:
    if name in ("Model", "Predictions"):
        from . import _model

        return getattr(_model, name)
    raise AttributeError(f"module 'lra.arena' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
