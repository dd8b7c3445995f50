"""Runs that are preempted five times and queued again end as if nothing had happened.

    LRA_PROGRAM=build/lra python3 tests/faults/preempted.py [--quick]

Batch systems send a signal, wait, and kill; the job is queued again and runs the same way. Here the
signals are SIGUSR2 (saves, and is killed once it has), SIGTERM (saves and ends) and SIGUSR2 in a job of
SLURM (saves and ends), in turn, each at a random step. For every model the last weights and moments, the record and every line of metrics must be
those of an undisturbed run. --quick takes two models and records nothing; the full form takes all and
writes docs/results/scorecard/14-preemptions.json.
"""
import argparse
import random
import signal
import sys
import tempfile

from shared import result, runs
from shared.tiny_run import Run, make_data, report

PREEMPTIONS, STEPS = 5, 120


# Signal and environment.
PREEMPTED_BY = ((signal.SIGUSR2, {}), (signal.SIGTERM, {}), (signal.SIGUSR2, {"SLURM_JOB_ID": "1"}))


def preempt(run, number, environment, step):
    """Lets the run get to `step`, tells it, and ends it; what is wrong."""
    run.start(**environment)
    if not run.wait_for_training() or not run.wait_for(lambda: run.logged() >= step):
        return [f"it ended with {run.process.returncode} before step {step}: {run.said()}"]
    logged = run.logged()
    run.process.send_signal(number)
    if number == signal.SIGTERM or environment:
        code = run.end()
        return [] if code == 3 else [f"exit code {code}: {run.said()}"]
    saved = run.wait_for(lambda: run.latest() >= logged)
    run.kill()
    return [] if saved else ["it ended without the checkpoint that was asked for"]


def trial(root, data, model, chance):
    """One model, undisturbed and preempted; what differs."""
    settings = {"train__steps": STEPS, "train__checkpoint_every": 50}
    whole, other = (Run(root, f"{model}-{name}", data, model, **settings) for name in ("whole", "other"))
    if whole.to_the_end() != 0:
        return [whole.said()]
    problems = []
    points = sorted(chance.sample(range(2, STEPS - 40), PREEMPTIONS))
    for i, step in enumerate(points):
        problems += preempt(other, *PREEMPTED_BY[i % len(PREEMPTED_BY)], step)
    code = other.to_the_end()
    if code != 0:
        return problems + [f"exit code {code} at the end: {other.said()}"]
    if whole.files() != other.files():
        problems.append("the last checkpoint differs")
    if whole.result() != other.result():
        problems.append("the record or the metrics differ")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    chosen, problems, chance = runs.models(), [], random.Random(14)
    if quick:
        chosen = [chosen[0], chosen[-1]]
    with tempfile.TemporaryDirectory() as root:
        data = make_data(root)
        for model in chosen:
            found = trial(root, data, model, chance)
            print(f"{model}: {PREEMPTIONS} preemptions, {len(found)} problems", flush=True)
            problems += [f"{model}: {text}" for text in found]
    if not quick:
        figures = {"models": len(chosen), "preemptions of each": PREEMPTIONS,
                   "models whose weights, moments, record and metrics are equal":
                       len(chosen) - len({text.split(":")[0] for text in problems})}
        result.record(14, "preemptions", figures, "red" if problems else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/preempted.py")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
