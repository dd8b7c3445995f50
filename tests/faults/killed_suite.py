"""A suite that is killed at random and started again ends with the records of an undisturbed one.

    LRA_PROGRAM=build/lra python3 tests/faults/killed_suite.py [--quick] [--jobs N]

Every model on generated ListOps (padded) and Pathfinder (images), two seeds, killed five times without a
warning: in turn the suite alone, whose runs then end by themselves, and the suite together with its
runs, as when a machine goes down. Weights, moments, figures and every line of metrics of all runs must be
equal. --quick: two models, one task and seed, killed twice, nothing recorded; else
docs/results/killed_suite.json.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from shared import result, runs
from shared.tiny_run import report

TIMEOUT_S = 600
SUITE = """name = "killed"
tasks = {tasks}
models = {models}
seeds = {seeds}
preset = "small"

[set.train]
steps = {steps}
eval_every = 10
warmup_steps = 3
log_every = 1
checkpoint_every = 5
eval_examples = 12
test_examples = 12
"""
TABLES = {"listops": "\n[listops.task]\nlength = 200\n\n[listops.train]\nbatch_size = 6\n",
          "pathfinder": "\n[pathfinder.train]\nbatch_size = 2\n"}


def suite_command(root, out, jobs):
    return [runs.PROGRAM, "suite", "run", f"{root}/suite.toml", "--out", str(out), "--data", f"{root}/data",
            "--threads", str(jobs), "--jobs", str(jobs), "--quiet"]


def folders(out):
    """Folders of the runs that have begun."""
    return sorted(path.parent for path in out.glob("*/metrics.jsonl"))


def logged(out):
    return sum(runs.logged_steps(folder) for folder in folders(out))


def children(process):
    return [int(child) for child in
            pathlib.Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()]


def wait_until(condition, what):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: nothing happened for {TIMEOUT_S} s")
        time.sleep(0.01)


def kill_at(words, out, lines, with_runs):
    """Starts the suite and kills it once its runs have written so many lines; whether it was at work."""
    process = subprocess.Popen(words, env=runs.ENVIRONMENT, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_until(lambda: process.poll() is not None or logged(out) >= lines, out)
    if process.poll() is not None:
        return False
    # Stopped first, so that it starts no run between the two kills.
    process.send_signal(signal.SIGSTOP)
    trained = children(process.pid)
    process.kill()
    for child in trained:
        if with_runs:
            os.kill(child, signal.SIGKILL)
    process.wait()
    wait_until(lambda: not any(pathlib.Path(f"/proc/{child}").exists() for child in trained), out)
    return True


def write_suite(root, models, tasks, seeds, steps):
    text = SUITE.format(tasks=json.dumps(tasks), models=json.dumps(models), seeds=seeds, steps=steps)
    text += "".join(TABLES[task] for task in tasks)
    (root / "suite.toml").write_text(text, encoding="utf-8")


def compare(whole, killed, cells):
    """Differences between the runs of the two suites."""
    names = [folder.name for folder in folders(whole)]
    if len(names) != cells or names != [folder.name for folder in folders(killed)]:
        return [f"expected {cells} runs; one suite has {len(names)}, the other {len(folders(killed))}"]
    return [f"{name}: {what}" for name in names
            for what in runs.differences(runs.state(whole / name), runs.state(killed / name))]


def trial(root, arguments, models, tasks, seeds, steps, kills):
    """Problems; and how many kills met the suite at work, how many of them its runs too."""
    runs.make_data(root, tasks)
    write_suite(root, models, tasks, seeds, steps)
    whole, killed = root / "whole", root / "killed"
    runs.run(suite_command(root, whole, arguments.jobs))
    chance, total = random.Random(arguments.seed), logged(whole)
    points = sorted(chance.sample(range(total // 50, total - total // 10), kills))
    words, problems = suite_command(root, killed, arguments.jobs), []
    for i, lines in enumerate(points):
        if not kill_at(words, killed, lines, with_runs=i % 2 == 1):
            problems.append(f"the suite had ended before kill {i + 1}")
        print(f"killed at {lines} of {total} lines of metrics", flush=True)
    runs.run(words)
    return problems + compare(whole, killed, len(models) * len(tasks) * len(seeds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    quick = arguments.quick
    models = ["local", "performer"] if quick else runs.models()
    tasks, seeds = (["listops"], [0]) if quick else (["listops", "pathfinder"], [0, 1])
    steps, kills = (20, 2) if quick else (40, 5)
    with tempfile.TemporaryDirectory() as folder:
        problems = trial(pathlib.Path(folder), arguments, models, tasks, seeds, steps, kills)
    if not quick:
        figures = {"models": len(models), "tasks": tasks, "seeds": seeds, "steps": steps, "kills": kills,
                   "of them with the runs": kills // 2, "runs compared": len(models) * len(tasks) * len(seeds),
                   "differences": len(problems), "command": "LRA_PROGRAM=build/lra python3 "
                   "tests/faults/killed_suite.py", "machine": result.machine(),
                   "revision": result.revision()}
        path = result.ROOT / "docs" / "results" / "killed_suite.json"
        path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
