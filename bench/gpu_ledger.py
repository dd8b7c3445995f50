#!/usr/bin/env python3
"""What a training step would ask of a GPU, counted without one.

    python3 bench/gpu_ledger.py [--program build/gpu_ledger] [--models A,B] [--cubins build/cubins]
    python3 bench/gpu_ledger.py --check

`gpu_ledger` (tests/simulated_cuda/ledger.cpp) runs a step with the operators of a GPU at its full
size and prints launches, copies and bytes. Here these become a time: for each launch the larger of
bytes at 3.0 TB/s and products at 790 TFLOP/s, and for each launch 2.5 microseconds of the host if
these are more in total. A second time has the speeds that rows reached on an H100. With --cubins, nvcc
compiles our kernels for capability 9.0: registers and spills. Results: docs/results/gpu/ledger.md
and .json; what is left out stays as it was there.
--check runs the rows that have bounds and exits with 1 if one is exceeded.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import typing

from result_tables import markdown

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/results/gpu/ledger.json"
LAUNCH_S = 2.5e-6


class Speeds(typing.NamedTuple):
    bytes_per_s: float
    products_per_s: float  # LibTorch's
    attention_per_s: float  # products of our attention


IDEAL = Speeds(3.0e12, 790e12, 790e12)
# Fitted to the code that was measured: attention to the Transformer's row, then bytes to the median of the rows of
# FITTED, local, linformer, lru, long_conv and reformer, of which only FITTED have (nearly) that code still.
REACHED = Speeds(1.8e12, 790e12, 122e12)
FITTED = ("linear_transformer", "performer", "longformer", "bigbird", "sinkhorn")
# Milliseconds of a step on an H100 (26 November, docs/results/gpu/bench), and the floor of a fused design.
H100 = {"mega": (1638, 11.8), "synthesizer": (486, 21.6), "mamba": (196, 13.7), "sparse_transformer": (102, 10.5),
        "transformer": (102, 19.1), "long_conv": (68, 10.7), "longformer": (36, 10.6), "bigbird": (29, 10.6),
        "chordmixer": (32, 10), "s5": (30, 10), "lru": (29, 10), "local": (26, 10.5), "linformer": (21, 10.5),
        "linear_transformer": (17, 10.5), "performer": (16, 10.5), "s4d": (47, 10.7), "sinkhorn": (46, 10.8),
        "reformer": (42, 10.8)}
TEXT = ("text", "release", 32, ("task.length=4096", "train.precision=bf16"))
ROWS = {model: TEXT for model in H100} | {
    "s4d, small, Image": ("image", "small", 50, ()), "linear_transformer, small, Image": ("image", "small", 50, ()),
    "transformer, small, Image": ("image", "small", 50, ())} | {
    f"{model}, small, Text": ("text", "small", 32, ("train.precision=bf16",))
    for model in ("mamba2", "gated_deltanet", "rwkv7", "gla", "min_gru")}
# Reviews of a batch with their lengths, at most 4,000 bytes: the quantiles of IMDb's training split.
REVIEWS = ("254,346,440,540,613,644,666,689,714,739,768,800,833,869,912,958,1002,1053,1114,1180,1259,1345,1439,1549,1679,1836,"
           "2008,2237,2513,2917,3508,4000")
REVIEW_MODELS = ("transformer", "synthesizer", "linear_transformer", "local", "s4d", "mamba")
QUADRATIC = ("transformer", "synthesizer")
REVIEW_SETS = ("task.length=4000", "train.precision=bf16")
ROWS |= {f"{model}, reviews": ("text", "release", REVIEWS, REVIEW_SETS) for model in REVIEW_MODELS}
ROWS |= {f"{model}, reviews, padded": ("text", "release", REVIEWS, (*REVIEW_SETS, "train.trim_padding=false"))
         for model in REVIEW_MODELS}
# Bounds of --check, of the entries of a row that BOUNDED names. A row that exceeds one has a regression; lower them
# with what is gained.
BOUNDS = {"mega": (725, 1, 246, 5.6), "synthesizer": (295, 1, 104, 8.4), "mamba": (480, 1, 190, 7.4),
          "sparse_transformer": (370, 1, 102, 4.4), "transformer": (190, 1, 58, 4.1), "local": (240, 1, 66, 4.1),
          "linear_transformer": (190, 1, 80, 4.1), "s4d, small, Image": (295, 1, 97, 0.8), "s5": (300, 1, 83, 3.9),
          "chordmixer": (190, 1, 67, 3.2), "sinkhorn": (325, 1, 107, 5.2), "mamba2, small, Text": (305, 1, 338, 0.9),
          "gated_deltanet, small, Text": (370, 1, 228, 0.7), "rwkv7, small, Text": (1950, 1, 1060, 2.9),
          "gla, small, Text": (215, 1, 119, 0.5),
          "min_gru, small, Text": (200, 1, 156, 0.7), "reformer": (390, 1, 77, 4.4), "transformer, reviews": (410, 1, 27, 1.7, 4)}
BOUNDED = ("launches", "to_host", "passes", "peak_gb", "from_host")
MOST_FROM_HOST = 2  # the batch and its labels

# Launches of LibTorch's operators on a GPU; 1 for all others.
VIEWS = {"aten::empty_strided", "aten::empty.memory_format", "aten::resize_", "aten::set_"}
LAUNCHES = {"aten::sort": 6, "aten::cumsum": 2, "aten::_fft_r2c": 2, "aten::_fft_c2r": 2, "aten::_fft_c2c": 2,
            "aten::index_put_": 8, "aten::index_add_": 4, "aten::nonzero": 4, "aten::_index_put_impl_": 8}
PRODUCTS = {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"}
# Products of a pair and a column in our attention's kernels, of two operations each.
PAIR_PRODUCTS = {"forward_kernel": 2, "query_gradients_kernel": 3, "key_gradients_kernel": 4, "bias_gradients_kernel": 2}


class Kernels:
    """Names of the simulated kernels by their place in the program."""

    def __init__(self, program):
        symbols = subprocess.run(["nm", "-C", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.names = {}
        for line in symbols.splitlines():
            place, _, name = line.partition(" ")
            match = re.search(r"(\w+_kernel)(<[^()]*>)?\(", name.replace("(anonymous namespace)::", ""))
            if match and place:
                self.names[int(place, 16)] = match.group(1) + short(match.group(2) or "")


def short(arguments):
    return arguments.replace("lra::kernels::", "").replace("cuda::", "")


def flops(entry):
    """Operations of products: by shapes for LibTorch's, by visible pairs for our attention."""
    if entry.get("op") in PRODUCTS:
        a, b = entry["shapes"][-3:-1]
        return 2 * math.prod(a) * b[-1]
    if entry.get("op", "").startswith("flash_attention"):
        b, l, h, e = entry["shapes"][0]
        return (4 if entry["op"].endswith("forward") else 10) * b * h * e * l * entry["shapes"][1][1]
    name, _, arguments = entry.get("name", "").partition("<")
    if name in PAIR_PRODUCTS and entry["pairs"]:
        return 2 * PAIR_PRODUCTS[name] * entry["pairs"] * int(arguments.rstrip(">").split(",")[1])
    return 0


def time_of(speeds, moved, products, entry):
    rate = speeds.attention_per_s if entry.get("pairs") else speeds.products_per_s
    return max(moved / speeds.bytes_per_s, products / rate)


def step(program, names, model, task, preset, batch, sets):
    """The entries of a row, and its totals."""
    words = [program, task, model, preset, str(batch), *sets]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{sys.argv[0]}: exit code {done.returncode} of: {' '.join(map(str, words))}")
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    facts = entries.pop()
    total, costs = collections.Counter(), collections.Counter()
    for e in entries:
        count = e["count"]
        if "copy" in e:
            total["copies " + e["copy"]] += count
            continue
        if e.get("op") in VIEWS:
            continue
        if "kernel" in e:
            e["name"] = names.names[e["kernel"]]
        moved, products = e.get("bytes", 0) + e.get("read", 0) + e.get("written", 0), flops(e)
        ideal, seconds = (count * time_of(speeds, moved, products, e) for speeds in (IDEAL, REACHED))
        total["launches"] += count * LAUNCHES.get(e.get("op"), 1)
        total["ours"] += count if "kernel" in e else 0
        total["bytes"] += count * moved
        total["flops"] += count * products
        total["pass_bytes"] += 0 if products else count * moved
        total["ideal"] += ideal
        total["seconds"] += seconds
        costs[e.get("name") or e["op"]] += seconds
    one_pass = facts["rows"] * facts["length"] * facts["width"] * facts["element"] * facts["layers"]
    host = total["launches"] * LAUNCH_S
    return {"model": model, "task": task, "preset": preset, "batch": batch, "launches": total["launches"],
            "ours": total["ours"], "from_host": total["copies from host"], "to_host": total["copies to host"],
            "gb": total["bytes"] / 1e9, "tflop": total["flops"] / 1e12, "passes": total["pass_bytes"] / one_pass,
            "peak_gb": facts["peak"] / 1e9, "ideal_ms": 1000 * max(total["ideal"], host),
            "ms": 1000 * max(total["seconds"], host), "host_ms": 1000 * host,
            "parameters": facts["parameters"], "tokens": facts["tokens"], "positions": facts["positions"],
            "largest": [[name, 1000 * seconds] for name, seconds in costs.most_common(4)]}


# ---- our kernels, by nvcc

def resources(cubins):
    """Registers and spills of every kernel, for capability 9.0."""
    cubins.mkdir(parents=True, exist_ok=True)
    kernels = {}
    newest = max(p.stat().st_mtime for p in (ROOT / "src/kernels").rglob("*cuda*") if p.is_file())
    for source in sorted((ROOT / "src/kernels").glob("*/*_cuda.cu")):
        cubin, log = cubins / f"{source.stem}.cubin", cubins / f"{source.stem}.txt"
        if not log.exists() or log.stat().st_mtime < newest:
            done = subprocess.run(["nvcc", "-std=c++20", "--expt-relaxed-constexpr", "-Werror", "all-warnings",
                                   f"-I{ROOT / 'src'}", "-arch=sm_90", "-cubin", "-Xptxas", "-v", source, "-o", cubin],
                                  stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr)
            log.write_text(done.stderr)
        kernels.update(parsed(log.read_text()))
    return kernels


def parsed(log):
    kernels, name = {}, None
    for line in log.splitlines():
        if match := re.search(r"entry function '(\w+)'", line):
            mangled = match.group(1)
            plain = subprocess.run(["c++filt", mangled], stdout=subprocess.PIPE, text=True).stdout
            match = re.search(r"(\w+_kernel)(<[^()]*>)?\(", plain.replace("(anonymous namespace)::", ""))
            name = match.group(1) + short(match.group(2) or "")
            kernels[name] = {}
        elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            kernels[name]["spilled_bytes"] = int(match.group(1)) + int(match.group(2))
        elif match := re.search(r"Used (\d+) registers", line):
            kernels[name]["registers"] = int(match.group(1))
    return kernels


# ---- the page

def calibration(rows):
    lines = []
    for row in rows:
        if row["preset"] != "release":
            continue
        measured, floor = H100[row["model"]]
        lines.append([row["model"], f"{row['ideal_ms']:.1f}", f"{row['ms']:.1f}", measured,
                      f"{100 * (row['ms'] / measured - 1):+.0f} %", floor, ", ".join(f"{name.replace('aten::', '')} {ms:.1f}" for name, ms in row["largest"])])
    return markdown(["model", "ideal speeds", "reached speeds", "H100", "off by", "floor", "largest parts"], lines)


def without_padding(model, padded, grouped):
    """Milliseconds on the line through both; layers of quadratic cost have no such line."""
    if model in QUADRATIC:
        return ""
    per_position = (padded["ms"] - grouped["ms"]) / (padded["positions"] - grouped["positions"])
    return f"{grouped['ms'] - per_position * (grouped['positions'] - grouped['tokens']):.1f}"


def reviews(steps):
    lines = []
    for model in REVIEW_MODELS:
        grouped, padded = steps[f"{model}, reviews"], steps[f"{model}, reviews, padded"]
        lines.append([model, f"{padded['ms']:.1f}", f"{grouped['ms']:.1f}", f"{padded['ms'] / grouped['ms']:.1f}",
                      without_padding(model, padded, grouped), f"{padded['launches']:,}", f"{grouped['launches']:,}"])
    return markdown(["model", "ms, padded to the longest", "ms, in groups", "ratio", "ms, without padding",
                     "launches, padded", "in groups"], lines)


def misses(rows):
    """How far the ledger is off in the rows that it was fitted to, as a line."""
    off = [abs(r["ms"] / H100[r["model"]][0] - 1) for r in rows if r["preset"] == "release" and r["model"] in FITTED]
    within = sum(x <= 0.3 for x in off)
    return f"Of the {len(off)} rows whose code is that of the measurement, {within} are within 30 %; the median is off by {100 * statistics.median(off):.0f} %.\n"


def counts(rows):
    lines = [[f"{r['model']}, {r['task']} {r['preset']}", f"{r['launches']:,}", f"{r['ours']:,}", r["from_host"], r["to_host"],
              f"{r['passes']:.0f}", f"{r['gb']:.1f}", f"{r['tflop']:.1f}", f"{r['peak_gb']:.1f}", f"{r['host_ms']:.1f}"]
             for r in rows]
    return markdown(["step", "launches", "of ours", "copies from the host", "to it", "passes a layer", "GB moved",
                     "TFLOP of products", "peak GB", "launches, ms"], lines)


def kernel_table(kernels):
    """The kernels that keep numbers in memory for want of registers, and how many there are in all."""
    lines = [[f"`{name}`", k["registers"], k["spilled_bytes"]] for name, k in sorted(kernels.items()) if k["spilled_bytes"]]
    return f"{len(lines)} of {len(kernels)} kernels.\n\n" + markdown(["kernel, capability 9.0", "registers", "spilled bytes"], lines)


def write_page(results):
    rows = [step for name, step in results["steps"].items() if "reviews" not in name]
    page = (ROOT / "bench/gpu_ledger_page.md").read_text()
    for name, table in (("CALIBRATION", calibration(rows)), ("MISSES", misses(rows)), ("COUNTS", counts(rows)),
                        ("REVIEWS", reviews(results["steps"])), ("KERNELS", kernel_table(results.get("kernels", {})))):
        page = page.replace(f"{{{name}}}\n", table)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    RESULTS.with_suffix(".md").write_text(page)


def exceeded(rows):
    """Bounds that rows exceed, as lines."""
    return [f"{row}: {what} is {rows[row][what]:.1f}, at most {most} was allowed" for row, bounds in BOUNDS.items()
            if row in rows for what, most in zip(BOUNDED, (*bounds, MOST_FROM_HOST)) if rows[row][what] > most]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/gpu_ledger")
    parser.add_argument("--models", default="", help="rows to count; default: all")
    parser.add_argument("--cubins", type=pathlib.Path, help="folder for nvcc's results")
    parser.add_argument("--check", action="store_true")
    a = parser.parse_args()
    wanted = [r for r in ROWS if r in (BOUNDS if a.check else ROWS)]
    if a.models:
        wanted = [r for r in wanted if r.split(",")[0] in a.models.split(",")]
    names = Kernels(a.program)
    steps = {}
    for row in wanted:
        steps[row] = step(a.program, names, row.split(",")[0], *ROWS[row])
        print(row, {k: v for k, v in steps[row].items() if k not in ("model", "task", "preset", "batch")}, flush=True)
    if a.check:
        wrong = exceeded(steps)
        print("\n".join(wrong) or f"{len(steps)} rows are within their bounds")
        return 1 if wrong else 0
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"steps": {}}
    results["steps"] = {r: (results["steps"] | steps)[r] for r in ROWS if r in results["steps"] | steps}
    if a.cubins:
        results["kernels"] = resources(a.cubins)
    write_page(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
