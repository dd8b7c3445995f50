#!/usr/bin/env python3
"""Accuracy at equal time instead of equal steps, from records of a suite that are there.

    bench/equal_time.py [FOLDER]

FOLDER (docs/results/laptop) holds a folder for each run, named TASK-MODEL-sSEED, with record.json and metrics.jsonl, and hours.csv: the
seconds that a step of each model takes, measured side by side on one machine. The time of a task is what its
quickest run needs for all of its steps; every model then has the validation accuracy of its last validation within that
time. Learning rates follow the whole run's schedule, so a run that is cut here has not seen its end. Prints a
Markdown table for each task, with the ranks by steps and by time and Kendall's rank correlation of both.
"""
import csv
import itertools
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def seconds_of_steps(folder):
    with open(folder / "hours.csv", newline="") as rows:
        return {(row["task"], row["model"]): float(row["seconds_per_step"]) for row in csv.DictReader(rows)}


def finished_runs(folder):
    """Yields (task, model, steps, [(step, validation accuracy)]) of runs with seed 0 that are done."""
    for path in sorted(folder.glob("*-s0/record.json")):
        record = json.loads(path.read_text())
        lines = map(json.loads, (path.parent / "metrics.jsonl").read_text().splitlines())
        validations = [(line["step"], line["accuracy"]) for line in lines if line["kind"] == "val"]
        if record["status"] == "done" and validations:
            yield record["task"], record["model"], record["steps"], validations


def ranks(values):
    order = sorted(values, key=values.get, reverse=True)
    return {name: place for place, name in enumerate(order, start=1)}


def kendall(a, b):
    """Rank correlation of two rankings without ties of the same names."""
    pairs = list(itertools.combinations(a, 2))
    return sum(1 if (a[x] < a[y]) == (b[x] < b[y]) else -1 for x, y in pairs) / len(pairs)


def table(task, runs, seconds):
    """{model: (steps, validations)} -> lines of Markdown"""
    limit = min(steps * seconds[task, model] for model, (steps, _) in runs.items())
    at_end = {model: validations[-1][1] for model, (_, validations) in runs.items()}
    in_time = {model: max(((step, accuracy) for step, accuracy in validations if step * seconds[task, model] <= limit),
                          default=(0, 0.0))[1] for model, (_, validations) in runs.items()}
    by_steps, by_time = ranks(at_end), ranks(in_time)
    yield f"{task}: {limit / 60:.0f} minutes, Kendall's rank correlation {kendall(by_steps, by_time):.2f}"
    yield ""
    yield "| model | s a step | all steps | rank | in that time | rank |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for model in sorted(by_time, key=by_time.get):
        yield (f"| {model} | {seconds[task, model]:.2f} | {100 * at_end[model]:.1f} | {by_steps[model]} | "
               f"{100 * in_time[model]:.1f} | {by_time[model]} |")
    yield ""


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/results/laptop"
    seconds, tasks = seconds_of_steps(folder), {}
    for task, model, steps, validations in finished_runs(folder):
        tasks.setdefault(task, {})[model] = steps, validations
    for task, runs in tasks.items():
        if len(runs) > 1:
            print("\n".join(table(task, runs, seconds)))


if __name__ == "__main__":
    main()
