"""`python -m lra WORDS...`: the program; inside this interpreter where models are classes."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

from . import _process, _program

_FOUND_OUT_VARIABLE = "LRA_NEEDS_INTERPRETER"  # src/cli/program.h


def _end_with_parent() -> None:
    """Where the kernel of a notebook is killed, as by a restart, its run is saved and ends, too."""
    if os.environ.get(_process.CHILD_VARIABLE) and sys.platform == "linux":
        pr_set_pdeathsig = 1  # of <sys/prctl.h>
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _needs_interpreter() -> bool:
    """True for a "package.module:Class", where the program found out that it meets one, and where it
    writes scripts that start this interpreter."""
    found_out = os.environ.pop(_FOUND_OUT_VARIABLE, None) is not None
    submits = sys.argv[1:3] == ["suite", "submit"]
    return found_out or submits or any(":" in word for word in sys.argv[1:])


def main() -> None:
    _end_with_parent()
    if not _needs_interpreter():
        _program.main()  # without torch's import of seconds
    try:
        os.environ.update(_program.environment())
        _program.load_library()
    except _program.Error as error:
        print(f"lra: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    import torch

    from . import _bridge, _code

    try:  # words may be runs, whose folders keep the source of their layers
        files = [_code.source_files(Path(word)) for word in sys.argv[1:]]
    except _program.Error as error:
        print(f"lra: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    sys.meta_path.append(_code.SourceFinder({k: v for found in files for k, v in found.items()}))
    _bridge.register()
    if "--json" in sys.argv:  # what a model prints is not part of the program's result
        sys.stdout = sys.stderr
    code: int = torch.ops.lra.run(_program.with_installed_layers(sys.argv[1:]))
    sys.stdout.flush()
    sys.stderr.flush()
    # The program ends here as it does without Python: no user code runs afterwards.
    os._exit(code)


if __name__ == "__main__":
    main()
