"""A run that another one replaces: it is kept aside until the other has ended well."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from ._code import SOURCE
from ._program import Error
from ._run import read_run

_FILES = {  # as in src/training/settings/run_folder.h
    "config.toml", "record.json", "metrics.jsonl", "mllog.txt", ".data_root", ".lock",
    "checkpoints", "analysis", SOURCE,
}
_PREFIXES = ("events.out.tfevents.", *(f".{name}.tmp." for name in sorted(_FILES)))


@contextlib.contextmanager
def replaced(folder: Path) -> Iterator[None]:
    """Moves the run in `folder` aside, and removes it after another run has ended in its place.

    If an error ends the other run, the earlier one is restored, and what the other trained stays
    beside it. A stopped run has not ended: the earlier one stays aside. Raises Error, and touches
    nothing, if the folder is not a run, holds other files, or is in use.
    """
    if not os.path.lexists(folder):
        yield
        return
    aside = _unused(folder, "replaced")
    with _locked(folder):
        _refuse_other_files(folder)
        folder.rename(aside)
    try:
        yield
    except BaseException as error:
        if _status(folder) == "stopped":
            _tell(aside)
            raise
        failed = _restore(aside, folder)
        if failed and isinstance(error, Error):
            raise Error(f"{error} (the run that failed is now in {failed}; the earlier run is back "
                        f"in {folder})", error.exit_code) from None
        raise
    if _status(folder) == "stopped":
        _tell(aside)
    else:
        shutil.rmtree(aside)


def _refuse_other_files(folder: Path) -> None:
    if folder.is_symlink():
        raise Error(f"{folder}: is a link, which overwrite=True does not replace; give its target")
    read_run(folder)
    others = sorted(path.name for path in folder.iterdir()
                    if path.name not in _FILES and not path.name.startswith(_PREFIXES))
    others += sorted(str(path.relative_to(folder)) for path in folder.glob("*/**/record.json"))
    if others:
        raise Error(f"{folder}: holds {others[0]!r}, which is not a file of the run, and overwrite=True "
                    "removes the folder; move it away, or choose another out=")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the lock of a run, which the program takes by flock. Raises Error if it is held."""
    with contextlib.ExitStack() as stack:
        lock = folder / ".lock"
        if lock.is_file() and os.environ.get("LRA_LOCKS") != "none":
            file = stack.enter_context(lock.open("rb"))
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Error(f"{folder}: another process is training this run; stop it first, or choose "
                            "another out=") from None
        yield


def _status(folder: Path) -> str:
    try:
        return read_run(folder).status
    except (Error, OSError, KeyError):
        return ""


def _restore(aside: Path, folder: Path) -> Path | None:
    """Returns where the run that failed is now, if it has a record."""
    failed = None
    if (folder / "record.json").exists():
        failed = _unused(folder, "failed")
        folder.rename(failed)
    elif folder.exists():
        shutil.rmtree(folder)
    aside.rename(folder)
    return failed


def _tell(aside: Path) -> None:
    sys.stderr.write(f"the earlier run is kept in {aside}\n")


def _unused(folder: Path, ending: str) -> Path:
    """A new name in the same parent: "FOLDER-ending", "FOLDER-ending2", and so on."""
    place, number = folder.with_name(f"{folder.name}-{ending}"), 1
    while os.path.lexists(place):
        number += 1
        place = folder.with_name(f"{folder.name}-{ending}{number}")
    return place
