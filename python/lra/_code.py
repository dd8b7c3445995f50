"""The files that a user's class is made of: an edited one is another model."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

_INSTALLED = {"site-packages", "dist-packages"}  # their versions are in the record
SOURCE = "source"  # in the folder of a run or a sweep
CELL = "cell_"  # begins the names of modules that are made of a notebook's cells
_OWN = __name__.partition(".")[0]


def code_hash(made_by: Callable[..., Any]) -> str:
    """sha256 of the file that defines the class, or of all files of it, if it imports others.

    Those are files in its folder or below it. Of no file if it has none.
    """
    source = inspect.getsourcefile(made_by)
    if not source:
        return hashlib.sha256(b"").hexdigest()
    path = Path(source).absolute()
    others = _files_beside(path, sys.modules[made_by.__module__])
    if not others - {path}:  # as in records of earlier versions
        return hashlib.sha256(path.read_bytes()).hexdigest()
    total = hashlib.sha256()
    for file in sorted(others | {path}):
        content = file.read_bytes()
        name = file.relative_to(path.parent).as_posix()
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def source_folders(folder: Path) -> list[str]:
    """Of a run, or of the sweep around it: the modules of layers that a notebook defined."""
    places = (folder.absolute(), *folder.absolute().parents[:2])
    return [str(place / SOURCE) for place in places if any(place.glob(f"{SOURCE}/{CELL}*.py"))]


@contextlib.contextmanager
def importing(folder: Path) -> Iterator[None]:
    """Classes can be imported from the source that is kept with a run."""
    before = sys.path.copy()
    sys.path += source_folders(folder)
    try:
        yield
    finally:
        sys.path[:] = before


def origins(module: ModuleType) -> Iterator[str]:
    """Names of the modules that the globals of a module are, or come from."""
    for value in list(vars(module).values()):
        named = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
        if isinstance(named, str):
            yield named


def _files_beside(path: Path, first: ModuleType) -> set[Path]:
    """Of the modules reachable from `first` through modules in the folder of `path`."""
    found: set[Path] = set()
    seen, ahead = {first.__name__, "__main__"}, [first]
    while ahead:
        for name in origins(ahead.pop()):
            module = sys.modules.get(name)
            if module is None or name in seen:
                continue
            seen.add(name)
            if place := _place_below(path.parent, module):
                ahead.append(module)
                found.update([place] if place.is_file() else [])
    return found


def _place_below(folder: Path, module: ModuleType) -> Path | None:
    """The file of a user's module in the folder or below it; the folder of one without a file."""
    top = module.__name__.partition(".")[0]
    source = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if not source or top == _OWN or top in sys.stdlib_module_names:
        return None
    place = Path(source).absolute()
    return place if place.is_relative_to(folder) and not _INSTALLED & {*place.parts} else None
