"""Scripts that need other people's packages run again in a virtual environment that has them."""
import os
import pathlib
import sys


def enter(venv, wanted):
    """Goes on in `venv`, made of the requirements file `wanted`; exits with 77 if it is not there."""
    if os.path.realpath(sys.prefix) == os.path.realpath(venv):
        return
    made = pathlib.Path(venv, "installed.txt")
    if not made.exists() or made.read_text() != pathlib.Path(wanted).read_text():
        print(f"skipped: needs other people's packages; run: tools/make_venv {venv} {wanted}")
        sys.exit(77)
    python = str(pathlib.Path(venv, "bin", "python"))
    os.execv(python, [python, *sys.argv])
