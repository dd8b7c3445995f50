"""Speed and memory of lra beside other implementations; started by bench/peers/run.

The release Text encoder (4 layers, 4 heads, width 256, MLP 1024, 257 tokens, 2 classes, mean of the
outputs), batch 4, dropout 0.1, AdamW, and the narrow ones of Image and Pathfinder (workload.py); a
step is forward, backward and update, with --mode infer a forward pass without dropout. With --dtype
bf16 lra computes in bfloat16 and every peer stands twice, in float32 and in bfloat16 (PyTorch's
autocast; JAX layers of that type). For each row and length, lra and a peer are measured in turn,
A B A B, --windows times each; the figure is the median, the spread (largest - smallest) / median.
Each side is a process that waits while the other is measured, and both are bound to the same cores.
Peers get an allocator that keeps freed memory, which is worth 13 % to PyTorch; their memory is that
of a further process with the allocator's own settings, which needs less. Kind "compiled" is the
module of kind "torch" through torch.compile.

With --device cuda both sides compute on the GPU: Text with 32 sequences, no peer in float32 beside
bf16, memory of the tensors on the GPU once steps are warm (lra's from the making of its model on). A
peer queues the steps of a window, which ends when the GPU is done with them; lra waits for every step.
A peer that cannot run there has a line that says why; JAX without a GPU is left out.

lra takes numbers below the smallest normal one for 0; the peers do what they do by default.

The fastest peer of a row is the one with the lowest ratio: every ratio comes from windows taken in
turn, while absolute speeds of two peers were measured at different times. With --contenders X a peer
that was more than X behind the fastest at the first length is not measured at the further ones.
A peer that is three times slower in its first window than the fastest so far gets no further window.

Finished cells are kept in build/peers and not measured again by the same programs with the same
options (--fresh does). Rows that --models leaves out are taken over from the table that stands in
--out, which says of every row with what it was measured. The exit code is 1 when lra is slower in a
row than its fastest peer by more than --tolerance, or when no peer of a row could be measured.
"""
import argparse
import functools
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import result_tables as tables
import targets
from rows import ROWS, peers_of, workload_of
from sides import HERE, batch_of, gpu_of_torch, jax_has_gpu, lra_side, lra_words, peer_side

REQUIREMENTS = (HERE.parents[1] / "tests/parity/requirements.txt", HERE / "requirements.txt")
# Peers that hold L x L weights of every layer in training: GB they need on the CPU, by length. Not
# started in less.
NEEDS_GB = {("transformer-drop", 4096): {"jax": 24, "torch": 20, "transformers": 20},
            ("synthesizer", 4096): {"torch": 24}}


def peak_with_plain_heap(peer, row, length, a):
    """Resident bytes of a peer that makes a few steps with the allocator's own settings."""
    side = peer_side(peer, row, length, a, 0, tunables="")
    try:
        side.expect("ready")
        found = side.window()
        side.close()
    finally:
        side.process.kill()
    return found


def summary(rates, measured, a):
    """`measured` has the peak memory: of the process, or what its tensors took on a GPU."""
    middle = statistics.median(rates)
    memory = "peak_resident_bytes" if a.device == "cpu" else "peak_tensor_bytes"
    return {"tokens_per_s": middle, "spread": (max(rates) - min(rates)) / middle, "windows": rates,
            memory: measured[memory]}


def peak_bytes(side):
    return side.get("peak_tensor_bytes") or side["peak_resident_bytes"]


def summary_of_lra(windows, whole, a):
    """`whole` is the measurement that lra prints at the end."""
    tokens = whole["tokens_per_s"] / whole["steps_per_s"]
    found = summary([w["steps_per_s"] * tokens for w in windows], whole, a)
    # Share of the matrix product that lra measures in the same process; a peer measures none.
    share = whole["model_flops"] * whole["steps_per_s"] / whole["gemm_flops_per_s"]
    return {**found, "share": share}


def available_gb():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable")) / 2**20


def measure(name, peer, length, a, too_slow):
    """One cell: lra and a peer in turn. A ratio above `too_slow` in the first windows ends it."""
    row, (kind, what, _, dtype), words = ROWS[name], peer, lra_words(ROWS[name], peer, length, a)
    cell = {"row": name, "length": length, "kind": kind, "peer": what, "threads": a.threads,
            "mode": a.mode, "dtype": a.dtype, "peer_dtype": dtype, "device": a.device,
            "batch": batch_of(row, a), "lra_command": " ".join(map(str, ["lra", *words]))}
    need = NEEDS_GB.get((name, length), {}).get(kind, 0) if (a.mode, a.device) == ("train", "cpu") else 0
    if available_gb() < need:
        return {**cell, "failure": f"needs {need} GB of memory"}
    sides = [peer_side(peer, row, length, a, a.window_seconds), lra_side(words)]
    try:
        for side in sides:
            side.expect("ready")
        # lra last: what it measures after its windows must not meet one of the peer's.
        turns = [[side.window() for side in sides]]
        ratio = turns[0][1]["steps_per_s"] * cell["batch"] * length / turns[0][0]["tokens_per_s"]
        if ratio > too_slow:
            return {**cell, "failure": f"one window: {ratio:.1f} times slower than lra", "too_slow": True}
        turns += [[side.window() for side in sides] for _ in range(a.windows - 1)]
        theirs, ours = zip(*turns)
        whole = json.loads(sides[1].close())
        sides[0].close()
        memory = peak_with_plain_heap(peer, row, length, a) if a.device == "cpu" else theirs[-1]
    except (RuntimeError, BrokenPipeError) as error:
        return {**cell, "failure": str(error)}
    finally:
        for side in sides:
            side.process.kill()
    lra = summary_of_lra(ours, whole, a)
    other = summary([w["tokens_per_s"] for w in theirs], memory, a)
    return {**cell, "lra": lra, "other": other, "provenance": tables.provenance(a.threads, a.device),
            "installed": installed(),
            "ratio": lra["tokens_per_s"] / other["tokens_per_s"]}


@functools.cache
def programs_digest(gpu):
    """Hash of the program, its library of operators, the peers, and the GPU's name."""
    program = pathlib.Path(tables.program())
    peers = [HERE / f"{name}.py" for name in ("peer_process", "torch_peers", "torch_mixers", "torch_flex",
                                              "jax_peers", "jax_mixers", "rows", "sides", "workload")]
    files = (program, program.with_name("liblra_ops.so"), *peers, *REQUIREMENTS)
    parts = [f.read_bytes() for f in files if f.exists()]
    return hashlib.sha256(b"".join([*parts, (gpu or "").encode()])).hexdigest()[:12]


def cell_of(name, peer, length, a, too_slow):
    """A cell from the work folder, else measured now. Failures are tried again."""
    options = (f"{a.device}-{batch_of(ROWS[name], a)}-{a.mode}-{a.dtype}-{a.threads}-{a.windows}-"
               f"{a.window_seconds}-{programs_digest(a.gpu)}")
    file = a.work / f"{name}-{length}-{peer[0]}-{peer[1]}-{peer[3]}-{options}.json"
    if file.exists() and not a.fresh:
        return json.loads(file.read_text())
    cell = measure(name, peer, length, a, too_slow)
    if "failure" not in cell or cell.get("too_slow"):
        a.work.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(cell, indent=1) + "\n")
    return cell


def version(name):
    """None where the package is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def versions():
    lines = [line for file in REQUIREMENTS for line in file.read_text().splitlines()]
    names = [re.split("[=<>]", line)[0] for line in lines if line and not line.startswith("#")]
    return {name: found for name in names if (found := version(name))}


def installed():
    packages = ", ".join(f"{name} {found}" for name, found in versions().items())
    return f"{packages}, Python {platform.python_version()}"


def peer_of(cell):
    return f"{cell['kind']} {cell['peer']}" + (", bf16" if cell.get("peer_dtype") == "bf16" else "")


def line_of(cell):
    peer = peer_of(cell)
    if "failure" in cell:
        return [cell["row"], cell["length"], peer, cell["failure"], "", "", "", "", ""]
    rate = lambda side: f"{cell[side]['tokens_per_s']:,.0f} ({cell[side]['spread']:.0%})"
    memory = lambda side: f"{peak_bytes(cell[side]) / 2**20:,.0f}"
    return [cell["row"], cell["length"], peer, rate("lra"), rate("other"), f"{cell['ratio']:.2f}",
            memory("lra"), memory("other"), ROWS[cell["row"]]["settings"]]


def fastest(cells):
    """{(row, length): the cell of the fastest peer}"""
    best = {}
    for cell in (c for c in cells if "failure" not in c):
        key = (cell["row"], cell["length"])
        if key not in best or cell["ratio"] < best[key]["ratio"]:
            best[key] = cell
    return best


TARGET_HEADER = ["row", "length", "ratio", "target", "of the matrix product", "ratio at all of it",
                 "memory", "target", "missed"]


def against_targets(cell):
    """A row of the table of targets. "ratio at all of it": what the ratio would be, were every
    operation of lra as fast as the matrix product; a target above it asks for fewer operations."""
    row, length, mode = cell["row"], cell["length"], cell.get("mode", "train")
    device = cell.get("device", "cpu")
    wanted = targets.ratio(row, length, mode, cell.get("dtype", "fp32"), device)
    most = targets.memory(row, length, mode, device)
    part = peak_bytes(cell["lra"]) / peak_bytes(cell["other"])
    share = cell["lra"].get("share")
    missed = [what for what, bad in (("speed", wanted and cell["ratio"] < wanted),
                                     ("memory", most and part > most)) if bad]
    number = lambda value: "-" if value is None else f"{value:.2f}"
    return [row, length, number(cell["ratio"]), number(wanted),
            "-" if share is None else f"{share:.0%}",
            "-" if share is None else f"{cell['ratio'] / share:.2f}",
            number(part), number(most), ", ".join(missed) or "-"]


EPOCH_HEADER = ["row", "length", "examples", "lra minutes", "peer", "peer minutes"]


def epoch(cell):
    """How long the training split of the row's task takes once, without reading it."""
    examples = workload_of(ROWS[cell["row"]]).examples
    minutes = lambda side: f"{examples * cell['length'] / cell[side]['tokens_per_s'] / 60:,.1f}"
    return [cell["row"], cell["length"], f"{examples:,}", minutes("lra"), peer_of(cell), minutes("other")]


def header(a):
    memory = "MB" if a.device == "cpu" else "MB of tensors on the GPU"
    return ["row", "length", "peer", "lra tokens/s (spread)", "peer tokens/s (spread)", "ratio",
            f"lra {memory}", f"peer {memory}", "settings of both"]


def where_measured(cells):
    """A line for each program, set of peers and machine that measured some rows."""
    rows = {}
    for cell in (c for c in cells if "failure" not in c):
        where = f"{tables.where_measured(cell['provenance'])}; peers: {cell['installed']}"
        rows.setdefault(where, {})[cell["row"]] = True
    return "".join(f"- {', '.join(names)}: {where}\n" for where, names in rows.items())


def command_of(a):
    """The options that say what was measured."""
    parts = [] if results_name(a) == "peers" else [f"--mode {a.mode} --dtype {a.dtype}"]
    parts += ["--device cuda"] if a.device == "cuda" else []
    parts += [f"--batch {a.batch}"] if a.batch else []
    parts += ["--fp32-peers"] if a.fp32_peers else []
    parts += [f"--threads {a.threads} --windows {a.windows} --window-seconds {a.window_seconds}"]
    parts += [f"--contenders {a.contenders}"] if a.contenders != float("inf") else []
    return " ".join(["bench/peers/run", *parts])


def kinds_of(a):
    flex = (", `flex` is FlexAttention (no attention dropout on either side), `flex-compiled` the whole "
            "encoder around it through torch.compile")
    return ("Kinds `torch` and `jax` are plain modules in `bench/peers`, `compiled` the former through "
            f"torch.compile{flex if a.device == 'cuda' else ''}, the others are packages.")


# A remark on the pages about training in bfloat16, in docs/results.
LOST_SUMS = (" In bfloat16 on a CPU, gradients of some peers stop at 256 equal terms ([numerics](../numerics.md#bfloat16)): "
             "their speed says nothing of how they would train.")


def page(cells, a):
    warned = LOST_SUMS if (a.mode, a.dtype, a.device) == ("train", "bf16", "cpu") else ""
    best = list(fastest(cells).values())
    what = "Training" if a.mode == "train" else "Inference"
    epochs = f"## An epoch\n\n{tables.markdown(EPOCH_HEADER, map(epoch, best))}\n" if a.mode == "train" else ""
    return (f"# {what} speed beside other implementations\n\nWritten by `{command_of(a)}`; "
            f"the head of `bench/peers/compare.py` says how. Ratio above 1: lra is faster. {kinds_of(a)}{warned}\n\n"
            f"## Against the fastest peer\n\n{tables.markdown(header(a), map(line_of, best))}\n"
            f"## Against the targets\n\n"
            f"{tables.markdown(TARGET_HEADER, map(against_targets, best))}\n{epochs}"
            f"## All peers\n\n{tables.markdown(header(a), map(line_of, cells))}\n"
            f"Measured on {platform.machine()}, {os.cpu_count()} cores{f', {a.gpu}' if a.gpu else ''}:\n\n"
            f"{where_measured(cells)}")


def results_name(a):
    """Training in float32 on the CPU is the table that the others are beside."""
    if a.device == "cuda":
        return f"gpu/peers-{a.mode}-{a.dtype}"
    return "peers" if (a.mode, a.dtype) == ("train", "fp32") else f"peers-{a.mode}-{a.dtype}"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(ROWS), help="rows: " + ", ".join(ROWS))
    parser.add_argument("--lengths", default="1024,4096")
    parser.add_argument("--mode", choices=("train", "infer"), default="train")
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=int, help="sequences; default of the CPU: Text 4, others 16; of a GPU: Text 32")
    parser.add_argument("--fp32-peers", action="store_true",
                        help="beside bf16 no peer in bf16: without such arithmetic theirs takes minutes a step")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--window-seconds", type=float, default=3)
    parser.add_argument("--contenders", type=float, default=float("inf"),
                        help="0.3: at further lengths without peers 30 %% behind at the first")
    parser.add_argument("--tolerance", type=float, default=0.0, help="ratio 1 - this passes")
    parser.add_argument("--fresh", action="store_true", help="measure finished cells again")
    parser.add_argument("--work", type=pathlib.Path, default="build/peers")
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    a = parser.parse_args()
    if unknown := set(a.models.split(",")) - set(ROWS):
        parser.error(f"no row {', '.join(unknown)}; known: {', '.join(ROWS)}")
    a.gpu = gpu_of_torch(a) if a.device == "cuda" else None
    if a.device == "cuda" and not a.gpu:
        parser.error(f"--device cuda: the torch of {sys.executable} has no GPU")
    return a


def dtypes_of_peers(a):
    if a.dtype == "fp32" or a.fp32_peers:
        return ("fp32",)
    # Those in float32 first: on a processor without bfloat16 arithmetic the others are far behind.
    return ("fp32", "bf16") if a.device == "cpu" else ("bf16",)


def peers_here(name, a):
    """The peers of a row that this device can have, each with its precision."""
    known = peers_of(name, a.device)
    if a.device == "cuda" and any(peer[0] == "jax" for peer in known) and not jax_has_gpu(a):
        known = [peer for peer in known if peer[0] != "jax"]
    return [(*peer, dtype) for dtype in dtypes_of_peers(a) for peer in known]


def measure_row(name, a):
    """The cells of a row, all lengths."""
    peers, row = peers_here(name, a), []
    for length in ROWS[name].get("lengths", map(int, a.lengths.split(","))):
        cells, ratios = [], []
        for peer in peers:
            too_slow = 3 * min(ratios, default=float("inf"))
            cells.append(cell_of(name, peer, length, a, too_slow))
            ratios.append(cells[-1].get("ratio", float("inf")))
            print(*line_of(cells[-1])[:6], sep="  ", flush=True)
        row += cells
        peers = [p for p, r in zip(peers, ratios) if r <= min(ratios) * (1 + a.contenders)]
    return row


def with_rows_left_out(measured, a):
    """The cells in the order of ROWS, those of other rows and lengths from an earlier call."""
    file = a.out / f"{results_name(a)}.json"
    earlier = json.loads(file.read_text()) if file.exists() else []
    again = {(c["row"], c["length"]) for c in measured}
    kept = [c for c in earlier if (c["row"], c["length"]) not in again]
    order = {name: i for i, name in enumerate(ROWS)}
    return sorted(measured + kept, key=lambda c: (order[c["row"]], c["length"]))


def main():
    a = parse()
    if a.device == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:a.threads])
    tables.warn_if_loaded()
    cells = with_rows_left_out([c for name in a.models.split(",") for c in measure_row(name, a)], a)
    best = fastest(cells)
    if not best:
        sys.exit("nothing was measured")
    results = a.out / results_name(a)
    results.parent.mkdir(parents=True, exist_ok=True)
    results.with_suffix(".json").write_text(json.dumps(cells, indent=1) + "\n")
    results.with_suffix(".md").write_text(page(cells, a))
    slow = [f"{row} at {length}" for (row, length), cell in best.items()
            if cell["ratio"] < 1 - a.tolerance]
    missing = {(c["row"], c["length"]) for c in cells} - set(best)
    if missing:
        print(f"no peer measured: {sorted(missing)}", file=sys.stderr)
    if slow or missing:
        sys.exit(f"slower than the fastest peer: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
