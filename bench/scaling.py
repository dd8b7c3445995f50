#!/usr/bin/env python3
"""How does the cost of a training step grow with the length, how much of the processor's arithmetic
does it use, and what does a second thread bring?

    LRA_PROGRAM=build/lra python3 bench/scaling.py [--repeats 5] [--models A,B] [--parts growth,use,threads]

All of Text, release sizes, by `lra bench`. growth: one thread, batch 1, lengths 1,024 to 16,384; the
exponent is the slope of a line through logarithms of length and of seconds per step. use: operations
that a step's definition asks for per second, as a part of those of a 2048 x 2048 matrix product in the same
process (a float32 product beside float32, a bfloat16 one beside bfloat16), length 4,096, batch 4. threads:
tokens per second of two threads over those of one, in turn, medians. A part that is left out stays as
it is in the results.
"""
import argparse
import json
import math
import pathlib
import statistics

import result_tables as tables

LENGTHS = (1024, 2048, 4096, 8192, 16384)
# Mechanisms of the benchmark that promise cost linear in the length.
LINEAR = ("local", "longformer", "bigbird", "linformer", "linear_transformer", "performer", "sinkhorn", "reformer")
MOST = 1.1
USED = ("transformer", "local", "linear_transformer")
SHAPES = ((1024, 8), (4096, 4))


def bench(model, lengths, batch, threads, dtype="fp32", windows=5, seconds=1):
    record = tables.run_json(["bench", "--models", model, "--lengths", ",".join(map(str, lengths)), "--batch",
                              batch, "--threads", threads, "--dtype", dtype, "--windows", windows,
                              "--window-seconds", seconds])[0]
    return record["measurements"], record["provenance"]


def slope(points):
    xs, ys = ([math.log(value) for value in column] for column in zip(*points))
    x, y = statistics.mean(xs), statistics.mean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def growth(model, repeats):
    measured, provenance = bench(model, LENGTHS, 1, 1, windows=repeats)
    seconds = [1 / m["steps_per_s"] for m in measured]
    return {"model": model, "seconds": seconds, "exponent": slope(zip(LENGTHS, seconds)),
            "provenance": provenance}


def use(model, repeats):
    cells = {}
    for dtype in ("fp32", "bf16"):
        measured, provenance = bench(model, (4096,), 4, 1, dtype, repeats)
        m = measured[0]
        cells[dtype] = {"share": m["model_flops"] * m["steps_per_s"] / m["gemm_flops_per_s"],
                        "model": m["model_flops"] * m["steps_per_s"], "gemm": m["gemm_flops_per_s"]}
    return {"model": model, **cells, "provenance": provenance}


def threads(model, repeats):
    cells = []
    for length, batch in SHAPES:
        ratios = []
        for _ in range(repeats):
            one, two = (bench(model, (length,), batch, n, windows=1, seconds=2)[0][0]["tokens_per_s"] for n in (1, 2))
            ratios.append(two / one)
        cells.append({"length": length, "batch": batch, "ratios": ratios})
    provenance = bench(model, (64,), 1, 2, windows=1, seconds=0)[1]
    return {"model": model, "cells": cells, "provenance": provenance}


def growth_row(r):
    limit = "" if r["model"] not in LINEAR else f"at most {MOST}"
    return [r["model"], *(f"{1000 * s:,.0f}" for s in r["seconds"]), f"{r['exponent']:.2f}", limit]


def use_row(r):
    return [r["model"]] + [f"{100 * r[d]['share']:.0f} % ({r[d]['model'] / 1e9:,.0f} of {r[d]['gemm'] / 1e9:,.0f})"
                           for d in ("fp32", "bf16")]


def threads_row(r):
    return [r["model"]] + [f"{statistics.median(c['ratios']):.2f} ({min(c['ratios']):.2f} to {max(c['ratios']):.2f})"
                           for c in r["cells"]]


PARTS = {
    "growth": (growth, growth_row, "Time of a step by length",
               "Milliseconds of a step, one thread, batch 1; the exponent of the length.",
               ["model", *(f"{length:,}" for length in LENGTHS), "exponent", "promised"]),
    "use": (use, use_row, "Use of the processor",
            "Operations of a step's definition per second, as a part of the matrix product's (GFLOP/s); one "
            "thread, length 4,096, batch 4.", ["model", "fp32", "bf16"]),
    "threads": (threads, threads_row, "Two threads over one",
                "Tokens per second, medians; the lowest and the highest.",
                ["model", *(f"{length:,}, batch {batch}" for length, batch in SHAPES)]),
}


def page(results):
    text = "# Growth with the length, use of the processor, threads\n\nWritten by `bench/scaling.py`. Text, release sizes.\n"
    for part, (_, row, title, what, header) in PARTS.items():
        if not results.get(part):
            continue
        wheres = dict.fromkeys(tables.where_measured(r["provenance"]) for r in results[part])
        text += (f"\n## {title}\n\n{what}\n\n{tables.markdown(header, map(row, results[part]))}\n"
                 f"Measured with {'; '.join(wheres)}.\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--models", default=",".join(m for m in tables.MODELS if m != "synthesizer"))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    file = a.out / "scaling.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for part in a.parts.split(","):
        measure, row = PARTS[part][:2]
        models = [m for m in a.models.split(",") if part == "growth" or m in USED]
        results[part] = []
        for model in models:
            results[part].append(measure(model, a.repeats))
            print(part, *row(results[part][-1]), flush=True)
        file.write_text(json.dumps(results, indent=1) + "\n")
        (a.out / "scaling.md").write_text(page(results))


if __name__ == "__main__":
    main()
