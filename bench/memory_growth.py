#!/usr/bin/env python3
"""Does training memory grow linearly with the length? For every mixer, exact attention included.

    LRA_PROGRAM=build/lra python3 bench/memory_growth.py [--models A,B] [--out docs/results]

One encoder layer of width 256 with 4 heads, one sequence: forward, backward and update. A figure is
the largest number of bytes that tensors held at one time (peak_tensor_bytes of lra bench). Resident
memory is shown beside it; it goes up and down with what the heap keeps. Settings are the mixers' defaults (preset
paper). Four times the length may take four times the memory; a matrix of L x L would need sixteen
times. The exit code is 1 above LIMIT.
"""
import argparse
import json
import pathlib
import sys

import result_tables as tables

LENGTHS, LIMIT = (4096, 8192, 16384), 4.0
SETTINGS = ("model.layers=1", "model.embed_dim=256", "model.qkv_dim=256", "model.heads=4",
            "model.mlp_dim=256", "model.pooling=mean")


def words(model, lengths, threads):
    line = ["bench", "--task", "listops", "--preset", "paper", "--models", model, "--lengths",
            ",".join(map(str, lengths)), "--batch", 1, "--windows", 1, "--window-seconds", 0,
            "--threads", threads]
    return line + tables.set_words(SETTINGS)


def measure(model, threads):
    record = tables.run_json(words(model, LENGTHS, threads))[0]
    tensors, resident = ({m["length"]: m[what] for m in record["measurements"]}
                         for what in ("peak_tensor_bytes", "peak_resident_bytes"))
    return {"model": model, "tensor_bytes": tensors, "resident_bytes": resident,
            "growth": tensors[LENGTHS[-1]] / tensors[LENGTHS[0]], "mixer": record["config"]["mixer"],
            "provenance": record["provenance"]}


def row(result):
    tensors, resident = result["tensor_bytes"], result["resident_bytes"]
    return [result["model"], *(f"{tensors[length] / 2**20:,.1f}" for length in LENGTHS),
            f"{tensors[LENGTHS[-1]] / LENGTHS[-1] / 1024:.1f}", f"{result['growth']:.2f}",
            f"{resident[LENGTHS[-1]] / 2**20:,.0f}"]


def page(results):
    header = ["model", *(f"{length}, MB" for length in LENGTHS), f"KB a token, {LENGTHS[-1]}",
              f"growth {LENGTHS[0]} to {LENGTHS[-1]}", f"resident, {LENGTHS[-1]}, MB"]
    return (f"# Training memory and length\n\nWritten by `bench/memory_growth.py`: the most bytes of "
            f"tensors at one time in a training step, and resident memory beside them. One layer, batch 1, fp32, preset paper with "
            f"`{'`, `'.join(SETTINGS)}`. Linear growth is 4, quadratic growth 16.\n\n"
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
