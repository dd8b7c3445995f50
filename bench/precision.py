#!/usr/bin/env python3
"""Accuracy with bf16 beside fp32: preset small, three seeds each, as a table.

    LRA_PROGRAM=build/lra python3 bench/precision.py --data DATA [--tasks text,image] [--models s4d] [--work build/precision]

DATA is a data folder with image and text imported; ListOps is generated there. The settings are those
of the preset but for what CASES says, which cuts them to a half to a sixth, Text to 512 bytes. Both
precisions begin with the same weights and see the same batches. A run that is done in the work folder
is not made again; rows that --tasks and --models leave out stay in the table as they are.
"""
import argparse
import json
import math
import pathlib
import statistics

import result_tables as tables

SEEDS, PRECISIONS = (0, 1, 2), ("fp32", "bf16")
CASES = {("listops", "transformer"): ("train.steps=300", "train.eval_every=100"),
         ("image", "local"): ("train.steps=1000", "train.eval_every=500"),
         **{("text", model): ("task.length=512", "train.steps=1500", "train.eval_every=500")
            for model in ("local", "linear_transformer", "transformer")},
         # Its schedule ends where the preset says, not where the run does.
         ("text", "s4d"): ("task.length=512", "train.steps=1500", "train.cycle_steps=900", "train.eval_every=500")}
# Student's t for a two-sided interval of 95 % with two degrees of freedom.
T_95 = 4.303


def train(task, model, precision, seed, a):
    """The record of a run, from the work folder when it is there; without the caller's folders."""
    sets = tables.set_words((f"train.precision={precision}", *CASES[task, model]))
    record = tables.finished_run(a.work / f"{task}-{model}-{precision}-s{seed}",
                                 [task, model, "--preset", "small", "--seed", seed, *sets], a)
    command = record["provenance"]["command"]
    record["provenance"]["command"] = [w.replace(str(a.work), "WORK").replace(str(a.data), "DATA") for w in command]
    return record


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


def with_rows_left_out(rows, a):
    """All rows in the order of CASES: the new ones, and of those in the results the others."""
    file = a.out / "precision.json"
    earlier = json.loads(file.read_text()) if file.exists() else []
    found = {(r["task"], r["model"]): r for r in (*earlier, *rows)}
    return [found[case] for case in CASES if case in found]


def where(rows):
    """A line for each machine and program, with the rows that ran there."""
    places = {}
    for r in rows:
        places.setdefault(tables.where_measured(r["provenance"]), []).append(f"{r['task']}, {r['model']}")
    return "".join(f"- {'; '.join(names)}: {place}\n" for place, names in places.items())


def percent(values):
    return ", ".join(f"{100 * value:.2f}" for value in values)


def page(rows):
    body = [[f"{r['task']}, {r['model']}", percent(r["accuracies"]["fp32"]),
             percent(r["accuracies"]["bf16"]), f"{100 * statistics.mean(r['accuracies']['fp32']):.2f}",
             f"{100 * statistics.mean(r['accuracies']['bf16']):.2f}",
             f"{100 * r['change_mean']:+.2f} ± {100 * r['change_half_interval_95']:.2f}",
             f"{100 * r['sampling_deviation']:.2f}"] for r in rows]
    models = {}
    for r in rows:
        models.setdefault((r["task"], *r["settings"]), []).append(r["model"])
    settings = "; ".join(f"{key[0]}, {' and '.join(names)} with `{'`, `'.join(key[1:])}`"
                         for key, names in models.items())
    return (f"# bf16 beside fp32\n\nWritten by `bench/precision.py`: test accuracy in per cent after "
            f"training with `train.precision` fp32 and bf16, preset small, seeds 0 to {SEEDS[-1]}; "
            f"{settings}. The change is that of the mean over the seeds, with its interval of 95 % "
            "(Student's t); beside it the standard deviation that drawing the test examples alone "
            "gives one accuracy.\n\n"
            + tables.markdown(["task, model", "fp32", "bf16", "mean fp32", "mean bf16", "change",
                               "sampling"], body)
            + f"\nRun with:\n\n{where(rows)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, default="build/precision")
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=[task for task, _ in CASES])
    parser.add_argument("--models", type=lambda text: text.split(","), default=[model for _, model in CASES])
    a = parser.parse_args()
    for flag, given, known in (("--tasks", a.tasks, {task for task, _ in CASES}),
                               ("--models", a.models, {model for _, model in CASES})):
        if unknown := set(given) - known:
            parser.error(f"{flag}: no {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    rows = []
    for task, model in (case for case in CASES if case[0] in a.tasks and case[1] in a.models):
        records = {}
        for seed in SEEDS:
            for precision in PRECISIONS:
                record = records[precision, seed] = train(task, model, precision, seed, a)
                print(f"{task} {model} {precision} seed {seed}: {record['test']['accuracy']:.4f}", flush=True)
        rows.append(row(task, model, records))
        a.out.mkdir(parents=True, exist_ok=True)
        all_rows = with_rows_left_out(rows, a)
        (a.out / "precision.json").write_text(json.dumps(all_rows, indent=1) + "\n")
        (a.out / "precision.md").write_text(page(all_rows))


if __name__ == "__main__":
    main()
