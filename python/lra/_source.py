"""Where another process finds a user's class: its name and the folder of its module."""

from __future__ import annotations

import contextlib
import inspect
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from . import _cells, _program
from ._code import CELL, SOURCE
from ._program import Error

Layer = str | Callable[..., Any]
_Layer = TypeVar("_Layer", bound=Callable[..., Any])
_named: dict[str, Callable[..., Any]] = {}


def mixer(name: str) -> Callable[[_Layer], _Layer]:
    """Gives a class a name that train() accepts in this process: @lra.mixer("decay").

    Raises Error if the name belongs to a model of the program or to another class.
    """

    def decorate(layer: _Layer) -> _Layer:
        if layer.__module__.startswith(CELL):
            return layer  # a copy from the source of a run; the notebook's own keeps the name
        configs = Path(_program.environment()["LRA_CONFIGS"])
        other = _named.get(name, layer)
        same = (other.__module__, other.__qualname__) == (layer.__module__, layer.__qualname__)
        if not same or (configs / "models" / f"{name}.toml").is_file():
            owner = "a model of the program" if same else f"{other.__module__}:{other.__qualname__}"
            raise Error(f"lra.mixer: {name!r} is the name of {owner}; choose another")
        _named[name] = layer
        return layer

    return decorate


class Source:
    """A class by its `name`, "package.module:Class", for other processes.

    A class in a script is named after the script's file; one in a cell after its source, which is
    kept with the run. Raises Error for a class inside a function.
    """

    def __init__(self, layer: Layer) -> None:
        self.folder: str | None = None
        self.cell: tuple[str, str] | None = None  # module and text
        if isinstance(layer, str):
            layer = _named.get(layer, layer)
        if isinstance(layer, str):
            self.name = layer
            return
        if not hasattr(layer, "__qualname__"):
            kind = type(layer).__name__
            raise Error(f"an object of {kind} was given; give the class, and its arguments in arguments=")
        module, name = layer.__module__, layer.__qualname__
        if "<locals>" in name:
            raise Error(f"{name} is defined inside a function; move it to the top of a module")
        main = getattr(sys.modules["__main__"], "__file__", None)
        if module == "__main__" and main is None:
            self.cell = _cells.module_of(layer)
            module = self.cell[0]
        else:
            path = inspect.getsourcefile(layer)
            depth = 0 if module == "__main__" else module.count(".")
            self.folder = str(Path(path).resolve().parents[depth]) if path else None
            module = Path(str(main)).stem if module == "__main__" else module
        self.name = f"{module}:{name}"

    @contextlib.contextmanager
    def kept_in(self, folder: Path) -> Iterator[str | None]:
        """The folder to import from; source of a cell is written to `folder` first.

        A folder that was made for it and holds no record in the end is removed.
        """
        if self.cell is None:
            yield self.folder
            return
        module, text = self.cell
        is_new = not folder.exists()
        (folder / SOURCE).mkdir(parents=True, exist_ok=True)
        (folder / SOURCE / f"{module}.py").write_text(text)
        try:
            yield str((folder / SOURCE).absolute())
        finally:
            if is_new and not any(folder.rglob("record.json")):
                shutil.rmtree(folder)
