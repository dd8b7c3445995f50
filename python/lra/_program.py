"""The program that comes with this package, and the library that Python loads."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ._words import in_python

T = TypeVar("T")

_PACKAGE = Path(__file__).parent
# A folder with a program that was built separately, such as build/ of a checkout.
_FOLDER_VARIABLE = "LRA_BUILD"


class Error(RuntimeError):
    """An error that the program reports in one line, with its `exit_code` (2, 4, 70, 74)."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def _torch_minor() -> str:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise Error("torch is not installed; lra needs it: pip install torch") from None
    return ".".join(version.split("+")[0].split(".")[:2])


@functools.cache
def folder() -> Path:
    """The folder of the program for the installed torch. Raises Error if there is none."""
    if named := os.environ.get(_FOLDER_VARIABLE):
        if not (Path(named) / "lra").is_file():
            raise Error(f"{_FOLDER_VARIABLE}={named}: holds no program 'lra'")
        return Path(named).resolve()
    minor = _torch_minor()
    found = _PACKAGE / f"_torch{minor}"
    if (found / "lra").is_file():
        return found
    built = sorted(path.name.removeprefix("_torch") for path in _PACKAGE.glob("_torch*"))
    raise Error(
        f"torch {minor} is installed, and this package was built for "
        f"{' and '.join(built) or 'none'}; install that torch, or build lra for "
        "yours with tools/wheel"
    )


def environment() -> dict[str, str]:
    """Variables with which the program finds presets, this interpreter and torch's libraries, and its
    threads wait as they should."""
    variables = dict(os.environ)
    variables["LRA_INTERPRETER"] = sys.executable
    if "OMP_WAIT_POLICY" not in variables:
        variables.setdefault("GOMP_SPINCOUNT", "10000")  # as src/cli/without_tensors.cpp does
    for root in (_PACKAGE, _PACKAGE.parents[1]):  # installed, in a checkout
        if (root / "configs" / "tasks").is_dir():
            variables.setdefault("LRA_CONFIGS", str(root / "configs"))
    spec = importlib.util.find_spec("torch")
    if spec and spec.origin:
        libraries = Path(spec.origin).parent / "lib"
        # Beside this package the program finds them by itself.
        if libraries != _PACKAGE.parent / "torch" / "lib":
            others = variables.get("LD_LIBRARY_PATH")
            variables["LD_LIBRARY_PATH"] = f"{libraries}:{others}" if others else str(libraries)
    return variables


def raised(call: Callable[..., T], *arguments: Any) -> T:
    """What the call of the library returns. Raises its errors as Error."""
    try:
        return call(*arguments)
    except Error:
        raise
    except RuntimeError as error:
        raise Error(in_python(str(error).splitlines()[0])) from None


def python_path(first: str | None = None) -> str:
    """PYTHONPATH of a process that imports this package and classes beside the script that runs."""
    folders = [first, sys.path[0], str(_PACKAGE.parent), os.environ.get("PYTHONPATH")]
    return os.pathsep.join(folder for folder in folders if folder)


def run(
    words: Sequence[str], variables: Mapping[str, str] | None = None, good: Sequence[int] = (0,)
) -> str:
    """Runs `lra WORDS...` and returns its standard output.

    Raises Error if its exit code is not one of `good`.
    """
    ended = subprocess.run(
        [str(folder() / "lra"), *words],
        env={**environment(), "PYTHONPATH": python_path(), **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ended.returncode not in good:
        said = ended.stderr.strip() or ended.stdout.strip()  # checks say there what they found
        lines = said.splitlines() or [f"lra {' '.join(words)}"]
        raise Error(in_python(lines[-1]), ended.returncode)
    return ended.stdout


def version() -> str:
    """Of the package, or of the program that a checkout built."""
    try:
        return importlib.metadata.version("lra")
    except importlib.metadata.PackageNotFoundError:
        return run(["--version"]).strip()


@functools.cache
def load_library() -> None:
    """Registers torch.ops.lra and torch.classes.lra, and lowers torch's threads to a CPU quota.

    Raises Error if they do not fit torch.
    """
    import torch

    library = folder() / "liblra_python.so"
    if not library.is_file():
        raise Error(f"{library}: there is no such file; build the target lra_python")
    try:
        torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise Error(f"{library} does not fit torch {torch.__version__}: {error}") from None
    # Under a CPU quota, which torch does not know, more threads wait for each other.
    if (threads := torch.ops.lra.default_threads()) < torch.get_num_threads():
        torch.set_num_threads(threads)


def with_installed_layers(words: Sequence[str]) -> list[str]:
    """Replaces the name of an entry point `lra.mixers` by its "package.module:Class".

    A word after an option may be its value and is left alone.
    """
    if words[:1] not in (["train"], ["model"]):
        return list(words)
    layers = {e.name: e.value for e in importlib.metadata.entry_points(group="lra.mixers")}
    return [
        word if before.startswith("-") else layers.get(word, word)
        for before, word in zip(["-", *words], words, strict=False)
    ]


def main() -> None:
    """The console script `lra`: becomes the program of the installed torch."""
    try:
        program = folder() / "lra"
    except Error as error:
        print(f"lra: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    os.execve(program, ["lra", *with_installed_layers(sys.argv[1:])], environment())
