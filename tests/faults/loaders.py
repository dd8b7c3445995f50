"""How batches are prepared does not matter: by no thread, by 1, by 4 that are 4 batches ahead; and two
processes see the samples that one sees.

    LRA_PROGRAM=build/lra python3 tests/faults/loaders.py [--quick]

Every model on generated ListOps, 60 steps over an epoch's end, train.prefetch and train.loader_threads 0, 1 and 4. Then two
processes, each with half of every batch, against one that takes the halves one after the other
(train.accumulate=2): losses, accuracies, gradient norms and weights are functions of the samples, so
that equal bits in every step mean equal samples, dropout included. --quick: 10 steps, nothing
recorded; else docs/results/scorecard/04-loaders.json.
"""
import argparse
import shutil
import sys
import tempfile

from shared import result, runs

THREADS = (0, 1, 4)
RANKS = 2


def of_loaders(root, model, steps):
    """Differences between the ways to prepare batches."""
    states = []
    for threads in THREADS:
        folder = runs.train(root, "run", "listops", model, steps, settings=[
            f"train.prefetch={threads}", f"train.loader_threads={max(1, threads)}"])
        states.append(runs.state(folder))
        shutil.rmtree(folder)
    return [f"{model}, {threads} loader threads: {name}" for threads, found in zip(THREADS, states)
            for name in runs.differences(states[0], found)]


def of_processes(root, model, steps):
    """Differences between one process and several."""
    one = runs.train(root, "one", "listops", model, steps, settings=[f"train.accumulate={RANKS}"])
    several = runs.train_on_ranks(root, "several", "listops", model, steps, RANKS)
    # Their files differ in one setting, the number of micro-batches, which no checkpoint holds.
    wrong = runs.differences(runs.state(one), runs.state(several))
    shutil.rmtree(one)
    shutil.rmtree(several)
    return [f"{model}, {RANKS} processes: {name}" for name in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    steps, models = 10 if arguments.quick else 60, runs.models()
    loaders, processes = [], []
    with tempfile.TemporaryDirectory() as root:
        runs.make_data(root, ["listops"])
        for model in models:
            loaders += of_loaders(root, model, steps)
            processes += of_processes(root, model, steps)
            print(f"{model}: {len(loaders) + len(processes)} differences so far", flush=True)
    wrong = loaders + processes
    for problem in wrong:
        print("FAILED:", problem, file=sys.stderr)
    if not arguments.quick:
        figures = {"models": len(models), "steps": steps,
                   "loader threads": ", ".join(map(str, THREADS)), "differences": len(loaders),
                   "processes": f"1 and {RANKS}", "differences of processes": len(processes)}
        result.record(4, "loaders", figures, "red" if wrong else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/loaders.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
