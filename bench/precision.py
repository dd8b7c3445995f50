#!/usr/bin/env python3
"""Accuracy with bf16 beside fp32: preset small, three seeds each, as a table.

    LRA_PROGRAM=build/lra python3 bench/precision.py --data DATA [--work build/precision] [--threads N]

DATA is a data folder with image imported; ListOps is generated there. The settings are those of the
preset but for what CASES says, which cuts them to a third and a sixth. Both precisions begin with the
same weights and see the same batches. A run that is done in the work folder is not made again.
"""
import argparse
import json
import math
import pathlib
import statistics

import result_tables as tables

SEEDS, PRECISIONS = (0, 1, 2), ("fp32", "bf16")
CASES = {("listops", "transformer"): ("train.steps=300", "train.eval_every=100"),
         ("image", "local"): ("train.steps=1000", "train.eval_every=500")}
# Student's t for a two-sided interval of 95 % with two degrees of freedom.
T_95 = 4.303


def train(task, model, precision, seed, a):
    """The record of a run, from the work folder when it is there."""
    sets = tables.set_words((f"train.precision={precision}", *CASES[task, model]))
    return tables.finished_run(a.work / f"{task}-{model}-{precision}-s{seed}",
                               [task, model, "--preset", "small", "--seed", seed, *sets], a)


def row(task, model, records):
    """One task: the accuracies of its seeds, and what bf16 changes."""
    accuracies = {precision: [records[precision, seed]["test"]["accuracy"] for seed in SEEDS]
                  for precision in PRECISIONS}
    changes = [b - f for f, b in zip(accuracies["fp32"], accuracies["bf16"])]
    examples = records["fp32", 0]["test"]["num_examples"]
    share = statistics.mean(accuracies["fp32"])
    return {"task": task, "model": model, "settings": CASES[task, model], "accuracies": accuracies,
            "test_examples": examples, "change_mean": statistics.mean(changes),
            "change_half_interval_95": T_95 * statistics.stdev(changes) / math.sqrt(len(changes)),
            "sampling_deviation": math.sqrt(share * (1 - share) / examples),
            "provenance": records["fp32", 0]["provenance"]}


def percent(values):
    return ", ".join(f"{100 * value:.2f}" for value in values)


def page(rows):
    body = [[f"{r['task']}, {r['model']}", percent(r["accuracies"]["fp32"]),
             percent(r["accuracies"]["bf16"]), f"{100 * statistics.mean(r['accuracies']['fp32']):.2f}",
             f"{100 * statistics.mean(r['accuracies']['bf16']):.2f}",
             f"{100 * r['change_mean']:+.2f} ± {100 * r['change_half_interval_95']:.2f}",
             f"{100 * r['sampling_deviation']:.2f}"] for r in rows]
    settings = "; ".join(f"{r['task']} with `{'`, `'.join(r['settings'])}`" for r in rows)
    return (f"# bf16 beside fp32\n\nWritten by `bench/precision.py`: test accuracy in per cent after "
            f"training with `train.precision` fp32 and bf16, preset small, seeds 0 to {SEEDS[-1]}; "
            f"{settings}. The change is that of the mean over the seeds, with its interval of 95 % "
            "(Student's t); beside it the standard deviation that drawing the test examples alone "
            "gives one accuracy.\n\n"
            + tables.markdown(["task, model", "fp32", "bf16", "mean fp32", "mean bf16", "change",
                               "sampling"], body)
            + f"\nRun with {tables.where_measured(rows[-1]['provenance'])}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, default="build/precision")
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    rows = []
    for task, model in CASES:
        records = {}
        for seed in SEEDS:
            for precision in PRECISIONS:
                record = records[precision, seed] = train(task, model, precision, seed, a)
                print(f"{task} {model} {precision} seed {seed}: {record['test']['accuracy']:.4f}", flush=True)
        rows.append(row(task, model, records))
        a.out.mkdir(parents=True, exist_ok=True)
        (a.out / "precision.json").write_text(json.dumps(rows, indent=1) + "\n")
        (a.out / "precision.md").write_text(page(rows))


if __name__ == "__main__":
    main()
