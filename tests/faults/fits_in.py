"""Other programs read, start and load the output of lra: each tested with the real program.

    LRA_PROGRAM=build/lra python3 tests/faults/fits_in.py [--quick]

Runs the tests that use TensorBoard, the official safetensors package, a reader of Chrome's traces, Python's own
JSON and CSV, torch.ops.load_library, torchrun, and a SLURM cluster of one node, and counts those that pass
and those that are skipped because their other half is not installed. --quick reads JSON and CSV alone, as
./check runs the others anyway, and records nothing; the full form writes docs/results/scorecard/25-fits-in.json.
"""
import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tempfile

from shared import result
from shared.tiny_run import PROGRAM, Run, make_data, report

SKIPPED = 77
CHECKS = {"TensorBoard": "parity/tensorboard_check.py", "safetensors": "parity/safetensors_check.py",
          "Chrome trace": "parity/trace_check.py", "torch.ops.load_library": "parity/ops_from_python.py",
          "torchrun": "e2e/ranks.sh", "SLURM": "e2e/slurm.sh"}


def run_script(script):
    """passed, skipped or failed."""
    runner = [sys.executable] if script.endswith(".py") else ["bash"]
    done = subprocess.run([*runner, result.ROOT / "tests" / script], cwd=result.ROOT, check=False,
                          capture_output=True, text=True,
                          env={**os.environ, "LRA_PROGRAM": PROGRAM, "LRA_PYTHON": sys.executable})
    if done.returncode not in (0, SKIPPED):
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return {0: "passed", SKIPPED: "skipped"}.get(done.returncode, "failed")


def tables():
    """Checks that Python's readers find a run's accuracy in the report's JSON and CSV."""
    with tempfile.TemporaryDirectory() as root:
        run = Run(root, "run", make_data(root), train__steps=6)
        if run.to_the_end() != 0:
            return "failed"
        accuracy = run.record()["test"]["accuracy"]
        texts = {name: subprocess.run([PROGRAM, "report", run.folder, "--format", name], check=True,
                                      capture_output=True, text=True).stdout for name in ("json", "csv")}
    of_json = json.loads(texts["json"])["records"][0]["test"]["accuracy"]
    of_csv = [float(row["percent"]) for row in csv.DictReader(io.StringIO(texts["csv"]))
              if row["kind"] == "accuracy"]
    good = of_json == accuracy and len(of_csv) == 1 and abs(of_csv[0] - 100 * accuracy) < 1e-9
    return "passed" if good else "failed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    checks = {} if arguments.quick else CHECKS
    ends = {name: run_script(script) for name, script in checks.items()} | {"JSON and CSV": tables()}
    print("; ".join(f"{name}: {end}" for name, end in ends.items()))
    failed = [name for name, end in ends.items() if end == "failed"]
    if not arguments.quick:
        verdict = "red" if failed else "partial" if "skipped" in ends.values() else "green"
        result.record(25, "fits-in", ends, verdict, "LRA_PROGRAM=build/lra python3 tests/faults/fits_in.py")
    return report(failed)


if __name__ == "__main__":
    sys.exit(main())
