"""The files that a user's class is made of: an edited one is another model."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from ._program import Error

_INSTALLED = {"site-packages", "dist-packages"}  # their versions are in the record
SOURCE = "source"  # in the folder of a run or a sweep
CELL = "cell_"  # begins the names of modules that are made of a notebook's cells
TRIES = "tries"  # in the folder of a sweep: its runs that were not chosen
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


def source_files(folder: Path) -> dict[str, Path]:
    """Modules of layers that a notebook defined, which are kept with a run or a sweep, by name.

    For a run that is the one that its record names. Raises Error if it is not the recorded code.
    """
    try:
        record = json.loads((folder / "record.json").read_text())
        module, code = record["model"].partition(":")[0], record["python"]["source_sha256"]
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return {file.stem: file for file in folder.absolute().glob(f"{SOURCE}/{CELL}*.py")}
    for place in _places(folder.absolute(), record) if module.startswith(CELL) else ():
        file = place / SOURCE / f"{module}.py"
        if not file.is_file():
            continue
        if hashlib.sha256(file.read_bytes()).hexdigest() != code:
            raise Error(f"{file}: is not the code that the run was trained with (source_sha256 in "
                        "record.json); restore it")
        return {module: file}
    return {}


def _places(folder: Path, record: Any) -> Iterator[Path]:
    """Folders that may keep the source of a run: its own, and that of its sweep."""
    yield folder
    if folder.parent.name == TRIES:
        yield folder.parents[1]
    elif record.get("tuning"):
        yield folder.parent


class SourceFinder(MetaPathFinder):
    """Imports these modules alone, and nothing else that lies beside them."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self.files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self.files.get(fullname)
        return spec_from_file_location(fullname, file) if file else None


@contextlib.contextmanager
def importing(folder: Path) -> Iterator[None]:
    """The class of a run can be imported from the source that is kept with it. Raises Error."""
    finder = SourceFinder(source_files(folder))
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


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
