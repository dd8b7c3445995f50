"""Your own sequence layer under the benchmark's rules, trained by the program's trainer."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from . import _program
from ._program import Error

_CHILD_VARIABLE = "LRA_ARENA"
_Layer = TypeVar("_Layer", bound=Callable[..., Any])
_named: dict[str, Callable[..., Any]] = {}


@dataclasses.dataclass(frozen=True)
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
    def division(self) -> str:
        """ "apples-to-apples", "self-pretrained", "free-for-all", or "pretraining" for a run that
        predicts masked inputs; record["division_reason"] gives the reason."""
        return str(self.record["division"])


def evaluate(
    run: Run | str | os.PathLike[str], split: str = "test", *,
    data: str | os.PathLike[str] | None = None, other_data: bool = False,
) -> dict[str, Any]:
    """Returns what `lra eval RUN --json` prints: accuracy, loss, confusion matrix. Raises Error.

    `run` is a run, its folder, or a folder that `lra export` wrote. `data` names its data folder;
    with `other_data` that may be other data than the run's.
    """
    folder = run.folder if isinstance(run, Run) else run
    words = ["eval", str(folder), "--split", split, "--json", "--quiet"]
    words += ["--data", str(data)] if data else []
    words += ["--other-data"] if other_data else []
    result: dict[str, Any] = json.loads(_program.run(words))
    return result


def mixer(name: str) -> Callable[[_Layer], _Layer]:
    """Gives a class a name that train() accepts in this process: @lra.mixer("decay").

    Raises Error if the name belongs to a model of the program or to another class.
    """

    def decorate(layer: _Layer) -> _Layer:
        configs = Path(_program.environment()["LRA_CONFIGS"])
        other = _named.get(name, layer)
        same = (other.__module__, other.__qualname__) == (layer.__module__, layer.__qualname__)
        if not same or (configs / "models" / f"{name}.toml").is_file():
            owner = "a model of the program" if same else f"{other.__module__}:{other.__qualname__}"
            raise Error(f"lra.mixer: {name!r} is the name of {owner}; choose another")
        _named[name] = layer
        return layer

    return decorate


def class_name(layer: str | Callable[..., Any]) -> str:
    """Returns "package.module:Class" for a class, or for a function that makes a module.

    A class in a script is named after the script's file. Raises Error for a class that no other
    process can import: one in a notebook cell or inside a function.
    """
    if isinstance(layer, str):
        return layer
    if not hasattr(layer, "__qualname__"):
        kind = type(layer).__name__
        raise Error(f"an object of {kind} was given; give the class, and its arguments in arguments=")
    module, name = layer.__module__, layer.__qualname__
    if "<locals>" in name:
        raise Error(f"{name} is defined inside a function; move it to the top of a module")
    if module == "__main__":
        path = getattr(sys.modules["__main__"], "__file__", None)
        if path is None:
            raise Error(f"{name} is defined in a notebook or prompt; write it to a file, import it")
        module = Path(path).stem
    return f"{module}:{name}"


def _import_folder(layer: str | Callable[..., Any]) -> str | None:
    """The folder from which another process can import the class's module."""
    path = None if isinstance(layer, str) else inspect.getsourcefile(layer)
    if path is None or isinstance(layer, str):
        return None
    depth = 0 if layer.__module__ == "__main__" else layer.__module__.count(".")
    return str(Path(path).resolve().parents[depth])


def train(
    task: str, mixer: str | Callable[..., Any] | None = None, *,
    model: str | Callable[..., Any] | None = None, preset: str = "small",
    seed: int = 0, out: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None, device: str = "cpu", threads: int | None = None,
    arguments: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None,
    init_from: Run | str | os.PathLike[str] | None = None, init_partial: bool = False,
    accept: Sequence[str] = (), resume: bool = False, quiet: bool = False,
) -> Run:
    """Trains, validates and tests a layer on a task, as `lra train TASK package.module:Class` does.

    `mixer` is the name of one of the program's own models or of lra.mixer, a class derived from
    torch.nn.Module, or "package.module:Class". It maps [B, L, D] to [B, L, D] and is called
    with x and, if its forward takes one, a mask [B, L], True = token. `model`, given instead, is a
    whole model that maps tokens int64 [B, L] (values float32 [B, L, C], pairs [B, 2, L]), and mask
    or lengths, to logits [B, classes]. `arguments` go to its constructor in addition to the sizes
    that it asks for;
    `settings` are those of --set ({"train.steps": 100}). `init_from` is a run, its folder or a
    model.safetensors whose weights the run begins with; with `init_partial`, tensors that have no
    counterpart there are drawn. `accept` names checks of the data whose warnings are accepted
    (docs/checks.md). `resume` continues the run in `out` if there is one, with the same
    settings (as --go-on does). A separate process trains, so a script needs the guard `if __name__ ==
    "__main__":` around this call. If the run fails, raises Error with the program's message and
    exit code.
    """
    if os.environ.get(_CHILD_VARIABLE):
        raise Error('lra.arena.train was called while its class was imported; put the call under '
                    '`if __name__ == "__main__":`')
    layer = model if mixer is None else mixer
    if layer is None or (mixer is not None and model is not None):
        raise TypeError("expected one of mixer and model: a class, or its name")
    if isinstance(layer, str):
        layer = _named.get(layer, layer)
    name = class_name(layer)
    folder = Path(out or f"runs/{task}-{name.replace(':', '.')}-{preset}-s{seed}")
    words = ["train", task, name, "--preset", preset, "--seed", str(seed), "--out", str(folder),
             "--device", device, "--json"]
    words += ["--quiet"] if quiet else []
    words += ["--data", str(data)] if data else []
    words += ["--threads", str(threads)] if threads else []
    start = init_from.folder if isinstance(init_from, Run) else init_from
    words += ["--init-from", str(start)] if start else []
    words += ["--init-partial"] if init_partial else []
    words += _program.accept_words(accept)
    words += ["--go-on"] if resume else []
    words += ["--set", "mixer.whole=true"] if model is not None else []
    for prefix, table in (("mixer.", arguments), ("", settings)):
        for key, value in (table or {}).items():
            words += ["--set", f"{prefix}{key}={_toml(value)}"]
    return _trained(words, _import_folder(layer), folder)


def resume(
    run: Run | str | os.PathLike[str], *, settings: Mapping[str, Any] | None = None,
    data: str | os.PathLike[str] | None = None, threads: int | None = None, quiet: bool = False,
) -> Run:
    """Continues a run that was stopped, as `lra train --resume RUN` does.

    With `settings` of length, schedule, validations or checkpoints ({"train.steps": 20000}) a
    finished run trains further, too; its record keeps both parts. A class of yours must be
    importable as when the run began. Raises Error as train() does.
    """
    folder = Path(run.folder if isinstance(run, Run) else run)
    words = ["train", "--resume", str(folder), "--json"]
    words += ["--quiet"] if quiet else []
    words += ["--data", str(data)] if data else []
    words += ["--threads", str(threads)] if threads else []
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={_toml(value)}"]
    return _trained(words, None, folder)


def export(run: Run | str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Writes weights, settings, record, card and checksums of a run to the new folder `out`.

    As `lra export RUN --out FOLDER` does; evaluate() takes such a folder. Raises Error.
    """
    folder = run.folder if isinstance(run, Run) else run
    _program.run(["export", str(folder), "--out", str(out)])
    return Path(out)


def _trained(words: Sequence[str], import_from: str | None, folder: Path) -> Run:
    code, record, error = _run_and_read(words, import_from)
    if record is None or code not in (0, 3, 4):
        raise Error(error or f"lra ended with exit code {code}", code)
    return Run(folder, record)


def _run_and_read(
    words: Sequence[str], import_from: str | None
) -> tuple[int, dict[str, Any] | None, str]:
    """Exit code, result as JSON if there is one, last error of `python -m lra WORDS`."""
    variables = dict(os.environ)
    folders = [import_from, str(Path(__file__).parents[1]), variables.get("PYTHONPATH")]
    variables["PYTHONPATH"] = os.pathsep.join(folder for folder in folders if folder)
    variables[_CHILD_VARIABLE] = "1"
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(
            [sys.executable, "-m", "lra", *words], env=variables, stdout=output,
            stderr=subprocess.PIPE,
        ) as child:
            said = _echoed(child)
            code = child.wait()
        output.seek(0)
        result = output.read()
    lines = said.decode(errors="replace").splitlines()
    complaints = [line.removeprefix("lra: ") for line in lines if line.startswith("lra: ")]
    return code, json.loads(result) if result else None, "".join(complaints[-1:])


def _echoed(child: subprocess.Popen[bytes]) -> bytes:
    """Forwards standard error as it arrives, progress bars too, and returns its last 64 KiB.

    Ctrl-C reaches the program as well, which saves and stops.
    """
    assert child.stderr
    said = b""
    while True:
        try:
            while text := os.read(child.stderr.fileno(), 1 << 16):
                sys.stderr.write(text.decode(errors="replace"))
                said = (said + text)[-(1 << 16) :]
            return said
        except KeyboardInterrupt:
            continue


def _toml(value: Any) -> str:
    """A value in the notation of --set."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)
