"""A run that is stopped by signals and resumed ends with the very bytes of one left alone.

    LRA_PROGRAM=build/lra python3 tests/faults/resume.py [--quick]

Every model is stopped at 5 random steps, in the middle of epochs and of the time between checkpoints, by
SIGTERM and SIGINT in turn, and resumed each time. --quick: 2 stops, nothing recorded; else
docs/results/scorecard/02-resume.json.
"""
import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from shared import result, runs

STEPS = 60  # an epoch has 50
STOPPED, TIMEOUT_S = 3, 300


def stop_at(words, folder, step, which):
    """Starts a run, sends the signal once it has gone on to `step` at least; its exit code."""
    step = max(step, runs.logged_steps(folder) + 1)
    with subprocess.Popen(words, env=runs.ENVIRONMENT, stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + TIMEOUT_S
        while runs.logged_steps(folder) < step and process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
            time.sleep(0.002)
        if process.poll() is None:
            process.send_signal(which)
        return process.wait(TIMEOUT_S)


def problems_of(root, model, steps, stops, chance):
    """Stops one model at these steps and compares its end with the run left alone."""
    settings = ["train.checkpoint_every=7"]
    whole = runs.train(root, "whole", "listops", model, steps, settings=settings)
    expected, folder, wrong, stopped = runs.state(whole), whole.parent / "stopped", [], 0
    words = runs.command(root, "stopped", "listops", model, steps, settings=settings)
    for i, step in enumerate(sorted(chance.sample(range(1, steps - 5), stops))):
        which = signal.SIGINT if i % 2 else signal.SIGTERM
        code = stop_at(words, folder, step, which)
        stopped += code == STOPPED
        if code not in (0, STOPPED):
            wrong.append(f"{model}, {which.name} after step {step}: exit code {code}")
        words = [runs.PROGRAM, "train", "--resume", str(folder), "--data", f"{root}/data",
                 "--threads", "1", "--quiet"]
    runs.run(words)
    wrong += [f"{model}: {name}" for name in runs.differences(expected, runs.state(folder))]
    print(f"{model}: stopped {stopped} times, {len(wrong)} problems", flush=True)
    shutil.rmtree(whole)
    shutil.rmtree(folder)
    return wrong, stopped


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    stops = 2 if arguments.quick else 5
    chance, models, wrong, stopped = random.Random(2), runs.models(), [], 0
    with tempfile.TemporaryDirectory() as root:
        runs.make_data(root, ["listops"])
        for model in models:
            found, count = problems_of(root, model, STEPS, stops, chance)
            wrong, stopped = wrong + found, stopped + count
    # A signal may come after the last step; that must stay the exception.
    if stopped < 0.8 * stops * len(models):
        wrong.append(f"only {stopped} of {stops * len(models)} signals met a running training")
    for problem in wrong:
        print("FAILED:", problem, file=sys.stderr)
    if not arguments.quick:
        figures = {"models": len(models), "steps": STEPS, "stops": stopped, "by": "SIGTERM, SIGINT",
                   "differences": len(wrong)}
        result.record(2, "resume", figures, "red" if wrong else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/resume.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
