#!/usr/bin/env python3
"""Makes a folder that tools/carry --gpu packed ready on this machine.

    PYTHON tools/use_torch.py

PYTHON is one that has the torch that build/made_for names. The link build/torch, where the program and
test_gpu look for LibTorch, is set to that torch, and `lra info` shows that the program starts. Where this
is not possible one line says why, and the exit code is 2.
"""
import importlib.util
import pathlib
import runpy
import subprocess
import sys
from typing import NoReturn

BUILD = pathlib.Path(__file__).resolve().parents[1] / "build"


def stop(text: str) -> NoReturn:
    print(f"use_torch: {text}", file=sys.stderr)
    sys.exit(2)


def build_of(torch: pathlib.Path) -> str:
    """Describes a folder of torch in the words of build/made_for. Importing it would take seconds."""
    facts = runpy.run_path(str(torch / "version.py"))
    cuda = facts.get("cuda")
    return f"torch {facts['__version__'].split('+')[0]} for " + (f"CUDA {cuda.split('.')[0]}" if cuda else "CPUs")


def main() -> None:
    if not (BUILD / "made_for").is_file():
        stop(f"there is no {BUILD}/made_for: this works in a folder that tools/carry --gpu packed")
    wanted = (BUILD / "made_for").read_text().strip()
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        stop(f"{sys.executable} has no torch; run this with a Python that has {wanted}")
    torch = pathlib.Path(spec.origin).parent
    try:
        if build_of(torch) != wanted:
            stop(f"{sys.executable} has {build_of(torch)}; this program was made for {wanted}")
        (BUILD / "torch").unlink(missing_ok=True)
        (BUILD / "torch").symlink_to(torch)
    except OSError as error:
        stop(f"{BUILD}/torch cannot be linked to {torch}: {error.strerror} ({error.filename})")
    try:
        done = subprocess.run([BUILD / "lra", "info"], capture_output=True, text=True)
    except OSError as error:  # another kind of processor
        stop(f"{BUILD}/lra does not start: {error.strerror}")
    if done.returncode != 0:
        stop(f"lra info ended with exit code {done.returncode}: {' '.join(done.stderr.split())}")
    print(done.stdout, end="")


if __name__ == "__main__":
    main()
