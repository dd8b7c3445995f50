"""The same run again gives the same bits: weights, optimizer state and every figure.

    LRA_PROGRAM=build/lra python3 tests/faults/rerun.py [--quick]

Every model on generated ListOps (padded) and Pathfinder (images), 50 steps, 3 times. --quick: one task,
10 steps, twice, nothing recorded; else docs/results/scorecard/01-rerun.json.
"""
import argparse
import shutil
import sys
import tempfile

from shared import result, runs


def problems_of(root, task, model, steps, repeats):
    """Differences between runs that should be equal."""
    first, wrong = None, []
    for i in range(repeats):
        folder = runs.train(root, "run", task, model, steps)
        found = runs.state(folder)
        first = first or found
        wrong += [f"{model} on {task}, run {i}: {name}" for name in runs.differences(first, found)]
        shutil.rmtree(folder)
    print(f"{model} on {task}: {repeats} runs, {len(wrong)} differences", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    tasks = ["listops"] if arguments.quick else ["listops", "pathfinder"]
    steps, repeats = (10, 2) if arguments.quick else (50, 3)
    models, wrong = runs.models(), []
    with tempfile.TemporaryDirectory() as root:
        runs.make_data(root, tasks)
        for task in tasks:
            for model in models:
                wrong += problems_of(root, task, model, steps, repeats)
    for problem in wrong:
        print("FAILED:", problem, file=sys.stderr)
    if not arguments.quick:
        figures = {"models": len(models), "tasks": ", ".join(tasks), "steps": steps,
                   "runs of each": repeats, "differences": len(wrong)}
        result.record(1, "rerun", figures, "red" if wrong else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/rerun.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
