#!/usr/bin/env python3
"""Is the memory of a run what was estimated before it, and what does recomputation save?

    LRA_PROGRAM=build/lra python3 bench/training_memory.py [--models A,B] [--lengths 1024,4096]
        [--skip-recompute] [--out docs/results]

Estimates: `lra train` for a step of full batches, one validation and a test of one example; its
record has the estimate made before the run. The same run without the estimate, whose probes could
be what takes most, tells the largest resident memory. The exit code is 1 when an estimate is off by
more than LIMIT. Rows that are not measured again stay as they are in the results. Recomputation: bytes of tensors and steps per second of
`lra bench` with and without train.recompute, Text as released, length 4096, batch 1.
"""
import argparse
import json
import pathlib
import random
import sys
import tempfile

import result_tables as tables

LIMIT = 0.15
# Task, preset, length, examples per step.
SHAPES = (("text", "release", 1024, 32), ("text", "release", 4096, 4), ("text", "small", 1000, 32),
          ("listops", "small", 2000, 32))
RECOMPUTED = ("transformer", "local", "performer")


def write_reviews(folder):
    """aclImdb of 64 + 64 reviews, three quarters longer than any shape: a step meets a longest one."""
    stream = random.Random(1)
    for split in ("train", "test"):
        for label, rating in (("neg", 2), ("pos", 9)):
            for i in range(32):
                path = folder / "aclImdb" / split / label / f"{i}_{rating}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                length = stream.randrange(300, 4000) if i % 4 == 0 else stream.randrange(4200, 6000)
                letters = stream.choices("abcdefghij ", k=length)
                path.write_text("".join(letters), encoding="utf-8")


def train(model, shape, memory_check, folder, threads):
    """The record of a run of one step."""
    task, preset, length, batch = shape
    sets = {"task.length": length, "train.batch_size": batch, "train.steps": 1,
            "train.warmup_steps": 0, "train.eval_batch_size": batch, "train.eval_examples": batch,
            "train.test_examples": 1, "train.memory_check": f'"{memory_check}"'}
    if task == "listops":
        sets |= {"task.num_train": 100, "task.num_val": 40, "task.num_test": 40}
    else:
        sets["task.validation"] = '"heldout"'
    words = ["train", task, model, "--preset", preset, "--data", folder / "data", "--out",
             folder / f"{model}-{task}-{preset}-{length}-{memory_check}", "--threads", threads]
    return tables.run_json(words + tables.set_words(f"{key}={value}" for key, value in sets.items()))


def estimate(model, shape, folder, threads):
    record = train(model, shape, "off", folder, threads)
    measured = record["peak_resident_bytes"]
    estimated = train(model, shape, "warn", folder, threads)["estimated_resident_bytes"]
    return {"model": model, "shape": shape, "estimated": estimated, "measured": measured,
            "error": estimated / measured - 1, "provenance": record["provenance"]}


def recompute(model, threads):
    measured = []
    for setting in ("false", "true"):
        record = tables.run_json(["bench", "--models", model, "--lengths", 4096, "--batch", 1,
                                  "--windows", 5, "--window-seconds", 0, "--threads", threads,
                                  "--set", f"train.recompute={setting}"])[0]
        measured.append(record["measurements"][0])
        provenance = record["provenance"]
    kept, again = measured
    return {"model": model, "kept": kept, "again": again,
            "memory": again["peak_tensor_bytes"] / kept["peak_tensor_bytes"],
            "time": kept["steps_per_s"] / again["steps_per_s"], "provenance": provenance}


def estimate_row(model, results):
    """One model, every shape: estimated / measured MB and the error."""
    cells = [model]
    for shape in SHAPES:
        found = [r for r in results if r["model"] == model and tuple(r["shape"]) == shape]
        cells.append(f"{found[0]['estimated'] / 1e6:,.0f} / {found[0]['measured'] / 1e6:,.0f}, "
                     f"{100 * found[0]['error']:+.1f} %" if found else "")
    return cells


def recompute_row(r):
    return [r["model"], f"{r['kept']['peak_tensor_bytes'] / 1e6:,.1f}",
            f"{r['again']['peak_tensor_bytes'] / 1e6:,.1f}", f"{r['memory']:.2f}",
            f"{r['kept']['peak_resident_bytes'] / 1e6:,.0f}",
            f"{r['again']['peak_resident_bytes'] / 1e6:,.0f}", f"{r['time']:.2f}"]


def page(estimates, recomputed):
    header = ["model", *(f"{task} {preset}, {length}, batch {batch}"
                         for task, preset, length, batch in SHAPES)]
    models = [model for model in tables.MODELS if any(r["model"] == model for r in estimates)]
    worst = max(abs(r["error"]) for r in estimates)
    wheres = dict.fromkeys(tables.where_measured(r["provenance"]) for r in (*estimates, *recomputed))
    return ("# Memory of training runs\n\nWritten by `bench/training_memory.py`.\n\n"
            "## Estimated before the run / measured, resident MB\n\n"
            f"The largest error is {100 * worst:.1f} %.\n\n"
            + tables.markdown(header, (estimate_row(model, estimates) for model in models))
            + "\n## Activations of encoder blocks kept or computed again (`train.recompute`)\n\n"
            "Text as released, length 4096, batch 1.\n\n"
            + tables.markdown(["model", "tensors kept, MB", "again, MB", "ratio",
                               "resident kept, MB", "again, MB", "time of a step, ratio"],
                              map(recompute_row, recomputed))
            + f"\nMeasured with {'; '.join(wheres)}.\n")


class Results:
    """The table of docs/results, updated by the measurements."""

    def __init__(self, folder):
        self.json, self.page = folder / "training_memory.json", folder / "training_memory.md"
        known = json.loads(self.json.read_text()) if self.json.exists() else {}
        self.estimates, self.recomputed = known.get("estimates", []), known.get("recompute", [])
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, rows, row, names):
        """Replaces the row that has the same values under `names`, and writes everything."""
        rows[:] = [r for r in rows if any(r[n] != row[n] for n in names)] + [row]
        text = json.dumps({"estimates": self.estimates, "recompute": self.recomputed}, indent=1)
        self.json.write_text(tables.without_scratch(text) + "\n")
        self.page.write_text(page(self.estimates, self.recomputed))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(tables.MODELS))
    parser.add_argument("--lengths", default=",".join(str(shape[2]) for shape in SHAPES))
    parser.add_argument("--skip-recompute", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    a = parser.parse_args()
    results = Results(a.out)
    with tempfile.TemporaryDirectory() as root:
        write_reviews(pathlib.Path(root) / "data")
        for shape in (s for s in SHAPES if str(s[2]) in a.lengths.split(",")):
            for model in a.models.split(","):
                found = estimate(model, list(shape), pathlib.Path(root), a.threads)
                print(*shape, *filter(None, estimate_row(model, [found])), flush=True)
                results.add(results.estimates, found, ("model", "shape"))
    for model in () if a.skip_recompute else RECOMPUTED:
        found = recompute(model, a.threads)
        print(*recompute_row(found), flush=True)
        results.add(results.recomputed, found, ("model",))
    far = [f"{r['model']} {r['shape']}" for r in results.estimates if abs(r["error"]) > LIMIT]
    if far:
        sys.exit(f"estimates off by more than {LIMIT:.0%}: {', '.join(far)}")


if __name__ == "__main__":
    main()
