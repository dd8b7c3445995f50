#!/usr/bin/env python3
"""Does training memory grow linearly with the length? For every mixer, exact attention included.

    LRA_PROGRAM=build/lra python3 bench/memory_growth.py [--models A,B] [--out docs/results]

One encoder layer of width 256 with 4 heads, one sequence: forward, backward and update. Each figure
is the peak resident memory of a process of its own, above that of the same model at length 64.
Settings are the mixers' defaults (preset paper). Four times the length needs about four times the
memory; a matrix of L x L would need sixteen times. The exit code is 1 above LIMIT. It stands at 5.5
because resident bytes per token go up and down with the length: the first limit, 4.2, was passed by
eight of eleven mixers (up to 4.73), blocks of 50 tokens among them. docs/results/README.md has
four of them up to 65536: 15.5 to 18.1 times the memory for 16 times the length. Why it goes up and
down was not found out.
"""
import argparse
import json
import pathlib
import sys

import result_tables as tables

BASELINE, LENGTHS, LIMIT = 64, (4096, 8192, 16384), 5.5
SETTINGS = ("model.layers=1", "model.embed_dim=256", "model.qkv_dim=256", "model.heads=4",
            "model.mlp_dim=256", "model.pooling=mean")


def words(model, lengths, threads):
    line = ["bench", "--task", "listops", "--preset", "paper", "--models", model, "--lengths",
            ",".join(map(str, lengths)), "--batch", 1, "--windows", 1, "--window-seconds", 0,
            "--threads", threads]
    return line + [word for setting in SETTINGS for word in ("--set", setting)]


def measure(model, threads):
    """{length: bytes above the baseline}, growth, provenance."""
    record = tables.run_json(words(model, (BASELINE, *LENGTHS), threads))[0]
    peak = {m["length"]: m["peak_resident_bytes"] for m in record["measurements"]}
    above = {length: peak[length] - peak[BASELINE] for length in LENGTHS}
    return {"model": model, "baseline_bytes": peak[BASELINE], "bytes_above_baseline": above,
            "growth": above[LENGTHS[-1]] / above[LENGTHS[0]], "mixer": record["config"]["mixer"],
            "provenance": record["provenance"]}


def row(result):
    above = [result["bytes_above_baseline"][length] for length in LENGTHS]
    before, last = above[-2:]
    return [result["model"], *(f"{size / 2**20:,.0f}" for size in above),
            f"{(last - before) / (LENGTHS[-1] - LENGTHS[-2]) / 1024:.1f}", f"{result['growth']:.2f}"]


def page(results):
    header = ["model", *(f"{length}, MB" for length in LENGTHS), "KB a token, last doubling",
              f"growth {LENGTHS[0]} to {LENGTHS[-1]}"]
    return (f"# Training memory and length\n\nWritten by `bench/memory_growth.py`: peak resident "
            f"memory of one training step above that at length {BASELINE}. One layer, batch 1, "
            f"fp32, preset paper with `{'`, `'.join(SETTINGS)}`. Linear growth is 4, quadratic "
            f"growth 16; figures between 4 and {LIMIT} are explained in README.md.\n\n"
            + tables.markdown(header, map(row, results))
            + f"\nMeasured with {tables.where_measured(results[0]['provenance'])}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(tables.MODELS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    a = parser.parse_args()
    results = []
    for model in a.models.split(","):
        results.append(measure(model, a.threads))
        print(*row(results[-1]), flush=True)
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "memory.json").write_text(json.dumps(results, indent=1) + "\n")
    (a.out / "memory.md").write_text(page(results))
    steep = [r["model"] for r in results if r["growth"] > LIMIT]
    if steep:
        sys.exit(f"memory grows faster than the length: {', '.join(steep)}")


if __name__ == "__main__":
    main()
