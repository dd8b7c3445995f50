#!/usr/bin/env python3
"""Where the time of a training step goes, for every model: shares of kinds of operators.

    LRA_PROGRAM=build/lra python3 bench/step_profile.py --data DATA [--models A,B] [--lengths 1024,4096]

Text as released, batch 4, one thread: what bench/peers compares. Steps are traced with `lra train
--profile`, and the time of an operator is that without what it calls. DATA holds the prepared task, as
`lra data import text` writes it. Figures are the mean of --steps steps.
"""
import argparse
import collections
import json
import pathlib
import tempfile

import result_tables as tables

WARM_UP = 10  # steps that lra trains before it traces
# The first kind whose word is in an operator's name; what computes products, what has no other name.
KINDS = {"weight gradients": ("sum_of_outer_products",),
         "products": ("_linear_pointwise", "::mm", "::bmm", "addmm", "lra::product", "lra::linear"),
         "mixing": ("attention", "sinkhorn", "softmax", "sort", "hash", "logsumexp", "argmax"),
         "GELU and dropout": ("gelu", "dropout", "feed_forward"),
         "layer norm": ("layer_norm",),
         "update": ("adam", "sum_of_squares"),
         "copies and sums": ("aten::",)}
OTHER = "the rest"


def trace(model, length, a, folder):
    """Microseconds by operator, of all traced steps."""
    settings = (f"task.length={length}", "task.validation=test", "train.batch_size=4", "train.trim_padding=false",
                f"train.steps={WARM_UP + a.steps}", "train.eval_examples=4", "train.test_examples=4",
                "train.checkpoint_every=0", "train.memory_check=off")
    file = folder / "trace.json"
    tables.run_json(["train", "text", model, "--preset", "release", "--data", a.data, "--threads", 1, "--out",
                     folder / "run", "--profile", file, "--profile-steps", a.steps,
                     *tables.set_words(settings)])
    events = [e for e in json.loads(file.read_text())["traceEvents"]
              if e.get("ph") == "X" and isinstance(e["tid"], int)]
    return own_times(events)


def own_times(events):
    """Of nested events, by name: their time without that of what lies inside them."""
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


def measure(model, length, a):
    with tempfile.TemporaryDirectory() as folder:
        times = trace(model, length, a, pathlib.Path(folder))
    kinds = collections.Counter()
    for name, time in times.items():
        kinds[kind_of(name)] += time
    total = sum(times.values())
    print(f"{model}, {length}: {total / a.steps / 1e6:.2f} s a step", flush=True)
    return {"model": model, "length": length, "seconds": total / a.steps / 1e6,
            "shares": {kind: kinds[kind] / total for kind in (*KINDS, OTHER)},
            "operators": {name: time / total for name, time in times.most_common(8)}}


def row(result):
    return [f"{result['model']}, {result['length']:,}", f"{result['seconds']:.2f}",
            *(f"{result['shares'][kind]:.0%}" for kind in (*KINDS, OTHER))]


def page(results, a):
    operators = "\n".join(
        f"- {r['model']}, {r['length']:,}: " + ", ".join(f"`{n}` {s:.0%}" for n, s in r["operators"].items())
        for r in results)
    return ("# Where a training step spends its time\n\nWritten by `bench/step_profile.py`: Text as released, batch "
            f"4, fp32, one thread; mean of {a.steps} steps.\n\n"
            + tables.markdown(["model, length", "seconds a step", *KINDS, OTHER], map(row, results))
            + f"\nOperators:\n\n{operators}\n\nMeasured with {tables.where_measured(tables.provenance(1))}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--models", default=",".join(tables.MODELS))
    parser.add_argument("--lengths", default="1024,4096")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    a = parser.parse_args()
    results = [measure(model, length, a) for model in a.models.split(",")
               for length in map(int, a.lengths.split(","))]
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "step_profile.json").write_text(json.dumps(results, indent=1) + "\n")
    (a.out / "step_profile.md").write_text(page(results, a))


if __name__ == "__main__":
    main()
