#!/usr/bin/env python3
"""Tiles of bfloat16 (AMX) beside pairs, vectors and float32 on this machine, as tables.

    LRA_PROGRAM=build/lra python3 bench/tiles.py [--threads 2] [--windows 5] [--models A,B] [--kernels-only]

Prints Markdown: sums of outer products (bench_linear, against torch.mm of the same LibTorch), attention and
feature attention (bench_kernels), then training steps of the release Text encoder, batch 4, and of the small
preset of Image, batch 50, as multiples of float32. Each instruction set is forced by LRA_KERNELS; one that the
processor lacks is left out. All sides take turns, figures are medians of --windows. The benchmarks are expected
in the folder bench beside the program. On a processor without tiles the columns that it has are printed.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import result_tables as tables

ISAS = ("amx", "avx512_bf16", "avx512", "avx2")
STEPS = {"text": ("release", 4, (1024, 4096)), "image": ("small", 50, ())}
MODELS = ("transformer", "synthesizer", "local", "longformer", "linear_transformer", "performer", "s4d")
WEIGHT_ROW = re.compile(r"^(.*?)\s+(\d+ x +\d+ x +\d+)\s+weight, bfloat16\s+(\d+)\s+(\d+) GFLOP/s")


def run(words, isa, threads):
    """Output of a command with kernels of `isa`, or None if the processor lacks it."""
    environment = {**os.environ, "LRA_KERNELS": isa, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(list(map(str, words)), env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return done.stdout
    if "this processor cannot run" in done.stderr:
        return None
    sys.exit(f"{sys.argv[0]}: exit code {done.returncode} of: {' '.join(map(str, words))}\n{done.stderr}")


def available(a):
    return [isa for isa in ISAS if run([tables.program(), "info"], isa, a.threads) is not None]


def medians(measure, sides, rounds):
    """{(side, row): median} of measure(side) -> {row: number}, the sides taking turns."""
    found = {}
    for _ in range(rounds):
        for side in sides:
            for row, value in measure(side).items():
                found.setdefault((side, row), []).append(value)
    return {key: statistics.median(values) for key, values in found.items()}


def table(title, unit, rows, sides, values):
    body = [[row, *(f"{values[side, row]:,.0f}" if (side, row) in values else "-" for side in sides)] for row in rows]
    print(f"## {title}\n\n{tables.markdown([unit, *sides], body)}", flush=True)


def rows_of(values):
    return list(dict.fromkeys(row for _, row in values))


def outer_products(a, isas):
    def measure(isa):
        out = run([a.folder / "bench_linear"], isa, a.threads)
        found = {}
        for line in out.splitlines():
            if match := WEIGHT_ROW.match(line):
                found[f"{match[1]}, {match[2]}"] = float(match[3])
                found[f"{match[1]}, {match[2]}, torch.mm"] = float(match[4])
        return found
    values = medians(measure, isas, 1)  # a median of rounds already
    table("Gradient of a weight", "GFLOP/s, bfloat16", rows_of(values), isas, values)


def kernels(a, isas):
    def measure(isa):
        out = run([a.folder / "bench_kernels", "--benchmark_filter=attention", "--benchmark_format=json"], isa, a.threads)
        return {each["name"].removesuffix("/real_time"): each["FLOP/s"] / 1e9 for each in json.loads(out)["benchmarks"]}
    values = medians(measure, isas, a.windows)
    table("Attention", "GFLOP/s", rows_of(values), isas, values)


def steps(a, isas):
    sides = [("avx512" if "avx512" in isas else isas[-1], "fp32"), *((isa, "bf16") for isa in isas)]
    for task, (preset, batch, lengths) in STEPS.items():
        def measure(side):
            out = run([tables.program(), "bench", "--json", "--quiet", "--task", task, "--preset", preset, "--batch", batch,
                       "--models", ",".join(a.models), "--dtype", side[1],
                       *(("--lengths", ",".join(map(str, lengths))) if lengths else ()), "--threads", a.threads, "--windows", 1], side[0], a.threads)
            return {f"{record['model']}, {m['length']}": m["tokens_per_s"]
                    for record in json.loads(out) for m in record["measurements"]}
        values = medians(measure, sides, a.windows)
        named = {(" ".join(side), row): value for (side, row), value in values.items()}
        table(f"Training step, {task}, preset {preset}, batch {batch}", "tokens/s", rows_of(named),
              [" ".join(side) for side in sides], named)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--kernels-only", action="store_true")
    a = parser.parse_args()
    a.folder = pathlib.Path(tables.program()).resolve().parent / "bench"
    tables.warn_if_loaded()
    isas = available(a)
    print(f"# Tiles beside other instruction sets\n\n{tables.where_measured(tables.provenance(a.threads))}\n")
    outer_products(a, isas)
    kernels(a, isas)
    if not a.kernels_only:
        steps(a, isas)


if __name__ == "__main__":
    main()
