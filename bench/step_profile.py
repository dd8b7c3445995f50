#!/usr/bin/env python3
"""Profile of a training step, for every model: shares of time of kinds of operators.

    LRA_PROGRAM=build/lra python3 bench/step_profile.py --data DATA [--dtypes fp32,bf16] [--tasks text,image] [--models A,B]

Text as released, batch 4, at 1,024 and 4,096 tokens, and the narrow presets of Image and Pathfinder, batch 32, two
threads: what bench/peers compares. Steps are traced with `lra train --profile`, and the time of an
operator is that without what it calls. DATA holds the prepared tasks, as `lra data` writes them. Figures are
the mean of --steps steps. Models or tasks that are left out stay as they are in the results.
"""
import argparse
import collections
import itertools
import json
import pathlib
import tempfile

import result_tables as tables

WARM_UP = 10  # steps that lra trains before it traces
THREADS = 2
NARROW = ("transformer", "local", "linformer", "linear_transformer", "performer")
# Task -> sequences a step, lengths, models. None: the task's own length.
TASKS = {"text": (4, (1024, 4096), tables.MODELS), "image": (32, (None,), NARROW),
         "pathfinder": (32, (None,), NARROW)}
# The first kind whose word is in an operator's name; what computes products, what has no other name.
KINDS = {"weight gradients": ("sum_of_outer_products", "sum_of_rows"),
         "products": ("_linear_pointwise", "::mm", "::bmm", "addmm", "lra::product", "lra::linear"),
         "mixing": ("attention", "sinkhorn", "softmax", "sort", "hash", "logsumexp", "argmax"),
         "GELU and dropout": ("gelu", "dropout", "feed_forward"),
         "layer norm": ("layer_norm",),
         "update": ("adam", "sum_of_squares"),
         "copies and sums": ("aten::",)}
OTHER = "the rest"


def trace(task, model, length, dtype, a, folder):
    """Microseconds by operator, of all traced steps."""
    settings = (f"train.precision={dtype}", f"train.batch_size={TASKS[task][0]}", "train.trim_padding=false", f"train.steps={WARM_UP + a.steps}",
                "train.warmup_steps=1", "train.eval_examples=4", "train.test_examples=4",
                "train.checkpoint_every=0", "train.memory_check=off",
                *((f"task.length={length}", "task.validation=test") if length else ()))
    file = folder / "trace.json"
    tables.run_json(["train", task, model, "--preset", "release", "--data", a.data, "--threads", THREADS, "--out",
                     folder / "run", "--profile", file, "--profile-steps", a.steps,
                     *tables.set_words(settings)])
    events = [e for e in json.loads(file.read_text())["traceEvents"]
              if e.get("ph") == "X" and isinstance(e["tid"], int)]
    return own_times(events)


def own_times(events):
    """Self time of nested events, by name: without the time of events inside them."""
    times, open_events = collections.Counter(), collections.defaultdict(list)
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        around = open_events[event["tid"]]
        while around and around[-1]["ts"] + around[-1]["dur"] <= event["ts"]:
            around.pop()
        if around:
            times[around[-1]["name"]] -= event["dur"]
        times[event["name"]] += event["dur"]
        around.append(event)
    return times


def kind_of(name):
    return next((kind for kind, words in KINDS.items() if any(w in name for w in words)), OTHER)


def measure(task, model, length, dtype, a):
    with tempfile.TemporaryDirectory() as folder:
        times = trace(task, model, length, dtype, a, pathlib.Path(folder))
    kinds = collections.Counter()
    for op, time in times.items():
        kinds[kind_of(op)] += time
    total = sum(times.values())
    result = {"task": task, "model": model, "length": length, "dtype": dtype, "seconds": total / a.steps / 1e6,
            "shares": {kind: kinds[kind] / total for kind in (*KINDS, OTHER)},
            "operators": {op: time / total for op, time in times.most_common(8)},
            "steps": a.steps, "provenance": tables.provenance(THREADS)}
    print(f"{name(result)}: {result['seconds']:.3f} s a step", flush=True)
    return result


def name(result):
    length = f", {result['length']:,}" if result["length"] else ""
    return f"{result['task']}, {result['model']}{length}, {result['dtype']}"


def row(result):
    return [name(result), f"{result['seconds']:.3f}",
            *(f"{result['shares'][kind]:.0%}" for kind in (*KINDS, OTHER))]


def page(results):
    operators = "\n".join(
        f"- {name(r)}: " + ", ".join(f"`{op}` {s:.0%}" for op, s in r["operators"].items())
        for r in results)
    wheres = dict.fromkeys(tables.where_measured(r["provenance"]) for r in results)
    steps = dict.fromkeys(str(r["steps"]) for r in results)
    return ("# Where a training step spends its time\n\nWritten by `bench/step_profile.py`: release presets, Text "
            f"with 4 sequences a step, Image and Pathfinder with 32, two threads; mean of {' or '.join(steps)} steps.\n\n"
            + tables.markdown(["task, model, length, precision", "seconds a step", *KINDS, OTHER], map(row, results))
            + f"\nOperators:\n\n{operators}\n\nMeasured with {'; '.join(wheres)}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--models", default=",".join(tables.MODELS))
    parser.add_argument("--dtypes", default="fp32,bf16")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    file = a.out / "step_profile.json"
    earlier = json.loads(file.read_text()) if file.exists() else []
    results = {name(r): r for r in earlier if "dtype" in r}  # others were measured on one thread
    for task in a.tasks.split(","):
        _, lengths, models = TASKS[task]
        for model in filter(a.models.split(",").__contains__, models):
            for length, dtype in itertools.product(lengths, a.dtypes.split(",")):
                result = measure(task, model, length, dtype, a)
                results[name(result)] = result
    results = list(results.values())
    file.write_text(json.dumps(results, indent=1) + "\n")
    (a.out / "step_profile.md").write_text(page(results))


if __name__ == "__main__":
    main()
