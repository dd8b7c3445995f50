"""Launches, copies, passes and memory of training steps on a GPU stay within their bounds, counted without
one: bench/gpu_ledger.py --check."""
import os
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
program = pathlib.Path(os.environ["LRA_PROGRAM"]).parent / "gpu_ledger"
if not program.exists():
    print(f"skipped: there is no {program.name} beside the program (a sanitized build has none)")
    sys.exit(0)
sys.exit(subprocess.run([sys.executable, root / "bench/gpu_ledger.py", "--program", program, "--check"]).returncode)
