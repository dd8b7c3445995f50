"""A run goes on as fast at the end of an epoch as at its beginning, and remembers little to do so.

    LRA_PROGRAM=build/lra python3 tests/faults/resume_time.py [--quick]

One epoch of ListOps; the run is stopped after its first step and after 95 % of the epoch. From either
place it is resumed in turn, from a fresh copy: the time until the first step is logged, median of 9, and
the bytes of a checkpoint that are no tensors. --quick: a shorter epoch, nothing recorded, no verdict on
time; else docs/results/scorecard/06-resume-time.json.
"""
import argparse
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from shared import result, runs

MOST_RATIO, MOST_BYTES, STOPPED = 1.2, 4096, 3
SETTINGS = ["model.layers=1", "model.embed_dim=16", "model.qkv_dim=16", "model.mlp_dim=16",
            "task.length=32", "train.batch_size=10"]


def make_stopped(root, name, steps, stop):
    """A run of one epoch, stopped after about `stop` steps; its folder and last step."""
    words = runs.command(root, name, "listops", "transformer", steps, settings=SETTINGS)
    folder = runs.pathlib.Path(root) / name
    with subprocess.Popen(words, env=runs.ENVIRONMENT, stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL) as process:
        while runs.logged_steps(folder) < stop and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        if process.wait() != STOPPED:
            raise RuntimeError(f"{name}: ended with {process.returncode}: {process.stderr.read()}")
    return folder


def seconds_to_first_step(root, stopped):
    """Resumes a copy; the time until its first new line of metrics."""
    copy = runs.pathlib.Path(root) / "copy"
    shutil.copytree(stopped, copy, symlinks=True)
    before, begin = runs.logged_steps(copy), time.monotonic()
    with subprocess.Popen([runs.PROGRAM, "train", "--resume", str(copy), "--data", f"{root}/data",
                           "--threads", "1", "--quiet"], env=runs.ENVIRONMENT,
                          stdout=subprocess.DEVNULL) as process:
        while runs.logged_steps(copy) <= before and process.poll() is None:
            time.sleep(0.0005)
        took = time.monotonic() - begin
        process.send_signal(signal.SIGTERM)
        process.wait()
    shutil.rmtree(copy)
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    epoch, rounds = (100, 3) if arguments.quick else (2000, 9)
    runs.SIZES["listops"] = (10 * epoch, 20, 20)
    with tempfile.TemporaryDirectory() as root:
        runs.make_data(root, ["listops"])
        # More than an epoch, so that no validation falls between.
        early, late = (make_stopped(root, name, 3 * epoch, stop)
                       for name, stop in (("early", 1), ("late", int(0.95 * epoch))))
        times = [(seconds_to_first_step(root, late), seconds_to_first_step(root, early))
                 for _ in range(rounds)]
        size = max(runs.metadata_bytes(early), runs.metadata_bytes(late))
    of_late, of_early = (statistics.median(column) for column in zip(*times))
    print(f"first step after {of_late:.3f} s at 95 % of an epoch, {of_early:.3f} s at its beginning;"
          f" {size} bytes beside the tensors")
    good = size <= MOST_BYTES and (arguments.quick or of_late <= MOST_RATIO * of_early)
    if not arguments.quick:
        figures = {"steps of the epoch": epoch, "first step at 95 %": f"{of_late:.3f} s",
                   "at 0 %": f"{of_early:.3f} s", "ratio": f"{of_late / of_early:.2f}",
                   "bytes beside tensors": size}
        result.record(6, "resume-time", figures, "green" if good else "red",
                      "LRA_PROGRAM=build/lra python3 tests/faults/resume_time.py")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
