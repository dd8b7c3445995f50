"""How batches are prepared does not matter: no thread, or one that is 1 or 4 batches ahead.

    LRA_PROGRAM=build/lra python3 tests/faults/loaders.py [--quick]

Every model on generated ListOps, 50 steps over an epoch's end, train.prefetch 0, 1 and 4. --quick: 10
steps, nothing recorded; else docs/results/scorecard/04-loaders.json.
"""
import argparse
import shutil
import sys
import tempfile

from shared import result, runs

AHEAD = (0, 1, 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    steps, models, wrong = 10 if arguments.quick else 60, runs.models(), []
    with tempfile.TemporaryDirectory() as root:
        runs.make_data(root, ["listops"])
        for model in models:
            states = []
            for ahead in AHEAD:
                folder = runs.train(root, "run", "listops", model, steps,
                                    settings=[f"train.prefetch={ahead}"])
                states.append(runs.state(folder))
                shutil.rmtree(folder)
            wrong += [f"{model}, {ahead} ahead: {name}" for ahead, found in zip(AHEAD, states)
                      for name in runs.differences(states[0], found)]
            print(f"{model}: {len(wrong)} differences so far", flush=True)
    for problem in wrong:
        print("FAILED:", problem, file=sys.stderr)
    if not arguments.quick:
        figures = {"models": len(models), "steps": steps,
                   "batches prepared ahead": ", ".join(map(str, AHEAD)), "differences": len(wrong)}
        result.record(4, "loaders", figures, "red" if wrong else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/loaders.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
