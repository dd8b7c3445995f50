#!/usr/bin/env python3
"""Every model on every task of the paper: twenty training steps each, as a table.

    LRA_PROGRAM=build/lra python3 bench/pairs_table.py --data DATA [--work build/pairs]

DATA is a data folder with text, retrieval and image imported; the other tasks are generated there.
That every pair trains is the claim: the loss must be finite at every step. The settings are those
of the preset small but for what SETTINGS and BATCH say. A cell that is done in the work folder is
not run again, so a stopped table goes on where it was.
"""
import argparse
import json
import math
import pathlib
import sys

import result_tables as tables

STEPS, TAIL = 20, 5
BATCH = {"listops": 8, "text": 8, "retrieval": 4, "image": 8, "pathfinder": 8, "pathx": 1}
SETTINGS = (f"train.steps={STEPS}", "train.warmup_steps=5", "train.log_every=1",
            f"train.eval_every={STEPS}", "train.eval_examples=8", "train.test_examples=8",
            "train.eval_batch_size=4")
# Small generated data sets: the steps see 160 examples at most.
DATA_SETTINGS = {"listops": ("task.num_train=400", "task.num_val=50", "task.num_test=50"),
                 "pathfinder": ("task.num_images=400",), "pathx": ("task.num_images=200",)}


def settings_of(task):
    return [*SETTINGS, f"train.batch_size={BATCH[task]}", *DATA_SETTINGS.get(task, ())]


def train(task, model, a):
    """The run's record, from the work folder when it is there."""
    folder = a.work / f"{task}-{model}"
    words = [task, model, "--preset", "small", *tables.set_words(settings_of(task))]
    return tables.finished_run(folder, words, a), folder


def cell(task, model, a):
    record, folder = train(task, model, a)
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    loss = {line["step"]: line["loss"] for line in lines if line["kind"] == "train"}
    if len(loss) != STEPS or not all(map(math.isfinite, loss.values())):
        sys.exit(f"{task} {model}: expected {STEPS} finite losses, got {loss}")
    last = [loss[step] for step in range(STEPS - TAIL + 1, STEPS + 1)]
    return {"task": task, "model": model, "batch": BATCH[task], "data": record["data_source"],
            "parameters": record["num_parameters"], "loss_first": loss[1],
            "loss_last": sum(last) / TAIL, "tokens_per_s": record["train_tokens_per_s"],
            "peak_resident_bytes": record["peak_resident_bytes"],
            "provenance": record["provenance"]}


def page(cells, tasks):
    parts = [f"# Every model on every task\n\nWritten by `bench/pairs_table.py`: {STEPS} training "
             f"steps of each pair, preset small with `{'`, `'.join(SETTINGS)}` and the batch sizes "
             f"below. The last loss is the mean of the last {TAIL} steps. Speeds are of short runs "
             "and say little; `lra bench` measures.\n"]
    for task in tasks:
        chosen = [c for c in cells if c["task"] == task]
        if not chosen:
            parts.append(f"\n## {task}\n\nNot run yet.\n")
            continue
        extra = ", ".join(f"`{s}`" for s in DATA_SETTINGS.get(task, ()))
        parts.append(f"\n## {task}\n\nBatch {BATCH[task]}, {chosen[0]['data']} data"
                     + (f", {extra}" if extra else "") + ".\n\n" + tables.markdown(
                         ["model", "parameters", "first loss", "last loss", "tokens/s", "peak MB"],
                         [[c["model"], f"{c['parameters']:,}", f"{c['loss_first']:.4f}",
                           f"{c['loss_last']:.4f}", f"{c['tokens_per_s']:,.0f}",
                           f"{c['peak_resident_bytes'] / 2**20:,.0f}"] for c in chosen]))
    return "".join(parts) + f"\nRun with {tables.where_measured(cells[-1]['provenance'])}.\n"


def write(cells, tasks, out):
    """After every cell, so that a stopped table shows what there is."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "pairs.json").write_text(json.dumps(cells, indent=1) + "\n")
    (out / "pairs.md").write_text(page(cells, tasks))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, default="build/pairs")
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    parser.add_argument("--tasks", default=",".join(BATCH))
    parser.add_argument("--models", default=",".join(tables.MODELS))
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    tasks, cells = a.tasks.split(","), []
    for task in tasks:
        for model in a.models.split(","):
            cells.append(cell(task, model, a))
            write(cells, tasks, a.out)
            c = cells[-1]
            print(f"{task} {model}: loss {c['loss_first']:.4f} to {c['loss_last']:.4f}, "
                  f"{c['tokens_per_s']:,.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
