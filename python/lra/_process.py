"""`python -m lra` in a process of its own: its progress is passed on, its error is raised."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import tty
from collections.abc import Iterator, Sequence
from typing import Any

from ._program import Error, python_path
from ._words import in_python

CHILD_VARIABLE = "LRA_ARENA"
_ERROR = "lra: "


def run(words: Sequence[str], import_from: str | None, good: Sequence[int]) -> str:
    """What `python -m lra WORDS` prints. Raises Error for another exit code than `good`.

    Its classes may be imported from the folders `import_from`, as in PYTHONPATH. After Ctrl-C, the
    program saves and ends, and KeyboardInterrupt is raised then: what follows in a script or a
    notebook does not run.
    """
    variables = {**os.environ, "PYTHONPATH": python_path(import_from), CHILD_VARIABLE: "1"}
    with tempfile.TemporaryFile() as output, _standard_error() as (reading, writing):
        with subprocess.Popen(
            [sys.executable, "-m", "lra", *words], env=variables, stdout=output, stderr=writing,
            start_new_session=True,  # Ctrl-C reaches it once, from here, whoever sent it
        ) as child:
            os.close(writing)
            errors, is_interrupted = _passed_on(reading, child)
            code = child.wait()
        output.seek(0)
        result = output.read().decode()
    if is_interrupted:
        sys.stderr.writelines(f"{in_python(line)}\n" for line in errors)
        raise KeyboardInterrupt
    if code not in good:
        raise Error(in_python(errors[-1]) if errors else f"lra ended with exit code {code}", code)
    for line in errors:  # of parts of the work, which went on
        sys.stderr.write(f"{line}\n")
    return result


def run_json(words: Sequence[str], import_from: str | None, good: Sequence[int]) -> dict[str, Any]:
    """The same with --json; raises Error also if there is no result."""
    result: dict[str, Any] = json.loads(run([*words, "--json"], import_from, good))
    return result


@contextlib.contextmanager
def _standard_error() -> Iterator[tuple[int, int]]:
    """Ends of a pipe, or of a pseudo-terminal if a person is looking: one line, updated in place."""
    stream: Any = sys.stderr
    is_notebook = type(stream).__module__.startswith("ipykernel")
    reading, writing = os.openpty() if is_notebook or stream.isatty() else os.pipe()
    if os.isatty(writing):
        tty.setraw(writing)  # no carriage returns before line feeds
    try:
        yield reading, writing
    finally:
        os.close(reading)


def _passed_on(reading: int, child: subprocess.Popen[bytes]) -> tuple[list[str], bool]:
    """Forwards text as it arrives, but for lines that tell errors, which it returns.

    Ctrl-C is handed on to the program, which saves and stops: the second value is True after it.
    """
    passing = _Passing()
    is_interrupted = False
    while True:
        try:  # around the writing, too: the program must be able to write until it has saved
            if not passing.goes_on(reading):
                return passing.errors, is_interrupted
        except KeyboardInterrupt:
            is_interrupted = True
            child.send_signal(signal.SIGINT)


class _Passing:
    """Text on its way from the program to sys.stderr."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def goes_on(self, reading: int) -> bool:
        """Forwards what has arrived, but for lines that tell errors; False at the end."""
        try:
            chunk = os.read(reading, 1 << 16)
        except OSError:  # how a pseudo-terminal ends
            chunk = b""
        *lines, self._held = (self._held + self._decoder.decode(chunk, final=not chunk)).split("\n")
        for line in lines:
            if line.startswith(_ERROR):
                self.errors.append(line.removeprefix(_ERROR))
            else:
                sys.stderr.write(f"{line}\n")
        if self._held and not self._held.startswith(_ERROR) and not _ERROR.startswith(self._held):
            sys.stderr.write(self._held)
            self._held = ""
        sys.stderr.flush()
        return bool(chunk)
