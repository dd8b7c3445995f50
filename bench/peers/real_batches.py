"""Training on batches of real data beside other implementations; started by bench/peers/run real.

The batch is the first of 32 training examples with seed 0, of Text at 4,000 bytes and of ListOps at 2,000
tokens; models are the release encoders as compare.py has them. lra computes the batch as it trains: rows of
like length in groups. A peer computes the same examples, padded as its users do: to the longest of the batch,
and to the length of the task (both rounded up to the blocks of its mechanism). A peer does not mask
the padding, which would only cost it time. Figures are tokens without padding a second.

lra and the peers of a row are measured in turn, A B C A B C, --windows times each; the figure is the median,
the spread (largest - smallest) / median. A window of lra is one step. A peer computes the batch in
micro-batches of at most --positions, as with accumulated gradients; its window is as many of them as fill
--window-seconds, and seldom has the update in it. A peer that is 1.5 times slower than the fastest one
gets no further window. Of the peers of compare.py, those within --contenders of the fastest in its
table (peers.json in --out, with --dtype bf16 peers-train-bf16.json) are measured; without it, all. With
--dtype bf16 lra computes in bfloat16 and every peer stands twice, as there; the targets are those of float32.

Memory is that of processes of their own: of lra with the whole batch; of the fastest peer with one and with two
sequences of the full length, and the line through both gives that of the batch. Rows that --models and
--tasks leave out are taken over from the table in --out, which is written after each row. The exit code is 1
when lra is slower in a row than its fastest peer, or when no peer of a row could be measured.
"""
import argparse
import copy
import itertools
import json
import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]
import compare
import lra.data
import result_tables as tables
from real_page import WAYS, fastest, line_of, name_of, page
from rows import ROWS, lra_settings
from sides import lra_side, peer_side

LENGTHS = {"text": 4000, "listops": 2000}
BATCH = 32
# Peers that take no length but multiples of their blocks.
MULTIPLES = {"longformer": 256, "bigbird": 64, "reformer": 64, "reformer-pytorch": 128, "sinkhorn-transformer": 64}
# Rows whose peers hold L x L weights of every layer: one sequence at a time, one peer at a time.
DENSE, DENSE_GB = ("transformer-drop", "synthesizer"), 16
TOO_SLOW = 1.5
NAMES = [name for name, row in ROWS.items() if "workload" not in row]


class Examples:
    """The first batch of a task's training data, and how much padding it and the first hundred have."""

    def __init__(self, task, a, folder):
        words = ["data", "prepare", task, "--data", a.data]
        split = lra.data.Split(tables.run_json(words)["folder"], "train", length=LENGTHS[task])
        batches = list(split.loader(BATCH, steps=100, trim=False))
        self.task, self.folder, self.batch = task, pathlib.Path(folder), batches[0]
        self.num_tokens = int(self.batch.lengths.sum())
        self.padding = [self.padding_of([b.lengths for b in some]) for some in (batches[:1], batches)]

    def padding_of(self, lengths):
        """Positions for each token, padded in either way."""
        lengths = np.stack(lengths)
        return {"longest": lengths.max(1).sum() * BATCH / lengths.sum(),
                "full": lengths.size * LENGTHS[self.task] / lengths.sum()}

    def length(self, way, peer):
        """Positions of a row that a peer computes."""
        length = int(self.batch.lengths.max()) if way == "longest" else LENGTHS[self.task]
        multiple = MULTIPLES.get(peer[1], 1)
        return -(-length // multiple) * multiple

    def file(self, length):
        """The batch with rows of `length`, for peer_process.py."""
        path = self.folder / f"{self.task}-{length}.npz"
        if not path.exists():
            longest = self.batch.lengths.max()
            tokens = np.zeros((BATCH, length), np.int64)
            tokens[:, :longest] = self.batch.tokens[:, :longest]
            np.savez(path, tokens=tokens, labels=self.batch.labels)
        return path


class Peer:
    """A peer as two processes, one for each way to pad."""

    def __init__(self, peer, row, examples, a):
        self.peer, self.failure = peer, None
        self.lengths = {way: examples.length(way, peer) for way in WAYS}
        self.windows = {way: [] for way in WAYS}  # tokens a second
        self.positions = {way: BATCH * length / examples.num_tokens for way, length in self.lengths.items()}
        self.sides = {way: peer_side(peer, row, length, a, a.window_seconds, file=examples.file(length))
                      for way, length in self.lengths.items()}

    def each(self, call):
        """call(way, side) for both ways, unless the peer is out; it is when a call fails."""
        if self.failure:
            return
        try:
            for way, side in self.sides.items():
                call(way, side)
        except (RuntimeError, BrokenPipeError) as error:
            self.end(str(error))

    def wait(self):
        self.each(lambda way, side: side.expect("ready"))

    def window(self):
        self.each(lambda way, side: self.windows[way].append(side.window()["tokens_per_s"] / self.positions[way]))

    def rate(self):
        """Median rate of its faster way, 0 after a failure."""
        return 0 if self.failure else max(map(statistics.median, self.windows.values()))

    def end(self, failure=None):
        self.failure = failure
        for side in self.sides.values():
            side.process.kill()
            side.process.wait()


def row_of(name, task):
    return {**ROWS[name], "workload": task}


def sequences_at_once(name, task, a):
    return 1 if name in DENSE else max(1, a.positions // LENGTHS[task])


def lra_words(row, peer, a):
    length = LENGTHS[row["workload"]]
    sets = tables.set_words(lra_settings(row, peer, length))
    return ["bench", "--task", row["workload"], "--preset", "release", "--measure-one", row["model"], "--lengths",
            length, "--batch", BATCH, "--data", a.data, "--real-batch", "--dtype", a.dtype, "--windows", a.windows,
            "--window-seconds", 0, "--threads", a.threads, *sets]


def take_turns(peers, side, a):
    """Returns the windows of lra, each after one of every peer."""
    ours = []
    for _ in range(a.windows):
        for peer in peers:
            peer.window()
        ours.append(side.window())
        fastest_rate = max(map(Peer.rate, peers))
        for peer in peers:
            if not peer.failure and peer.rate() * TOO_SLOW < fastest_rate:
                peer.end(f"{fastest_rate / peer.rate():.1f} times slower than the fastest peer")
    return ours


def measure(name, examples, peers, a):
    """The cells of peers that lra has the same settings against, all of them alive at once."""
    row = row_of(name, examples.task)
    a.batch, words = sequences_at_once(name, examples.task, a), lra_words(row, peers[0], a)
    common = {"task": examples.task, "row": name, "length": LENGTHS[examples.task], "batch": BATCH,
              "at_once": a.batch, "threads": a.threads, "dtype": a.dtype, "tokens": examples.num_tokens,
              "padding": examples.padding,
              "busy_processors": tables.warn_if_loaded(), "provenance": tables.provenance(a.threads),
              "installed": compare.installed(),
              "lra_command": " ".join(map(str, ["lra", *words])).replace(str(a.data), "DATA")}
    running, side = [Peer(peer, row, examples, a) for peer in peers], lra_side(words)
    try:
        for peer in running:
            peer.wait()
        side.expect("ready")
        windows = take_turns(running, side, a)
        whole = json.loads(side.close())
    finally:
        side.process.kill()
        for peer in running:
            peer.end(peer.failure)
    if round(whole["tokens_per_s"] / whole["steps_per_s"]) != examples.num_tokens:
        sys.exit(f"lra read another batch than lra.data: {whole}, {examples.num_tokens} tokens")
    found = compare.summary_of_lra(windows, whole, a)
    found["positions"] = whole["computed_tokens_per_s"] / whole["tokens_per_s"]
    return [cell_of(peer, {**common, "lra": found}) for peer in running]


def cell_of(peer, common):
    cell = {**common, "kind": peer.peer[0], "peer": peer.peer[1], "peer_dtype": peer.peer[3]}
    if peer.failure:
        return {**cell, "failure": peer.failure}
    for way, rates in peer.windows.items():
        middle = statistics.median(rates)
        cell[way] = {"length": peer.lengths[way], "tokens_per_s": middle, "windows": rates,
                     "spread": (max(rates) - min(rates)) / middle, "ratio": cell["lra"]["tokens_per_s"] / middle}
    return {**cell, "ratio": min(cell[way]["ratio"] for way in WAYS)}


def contenders(name, a):
    """The peers of a row, less those far behind in the table of compare.py, at its largest length."""
    peers = [(*peer, dtype) for peer in ROWS[name]["peers"] for dtype in compare.dtypes_of_peers(a)]
    file = a.out / f"{compare.results_name(a)}.json"
    cells = [c for c in json.loads(file.read_text()) if c["row"] == name and "ratio" in c] if file.exists() else []
    if not cells:
        return peers
    longest = max(c["length"] for c in cells)
    ratios = {(c["kind"], c["peer"], c.get("peer_dtype", "fp32")): c["ratio"] for c in cells if c["length"] == longest}
    most = min(ratios.values()) * (1 + a.contenders)
    return [peer for peer in peers if ratios.get((*peer[:2], peer[3]), float("inf")) <= most]


def add_memory(cell, a):
    """Adds the memory that the whole batch would take the peer, padded to the full length."""
    peer, row = (cell["kind"], cell["peer"], (), cell["peer_dtype"]), row_of(cell["row"], cell["task"])
    for a.batch in (1, 2):
        found = compare.peak_with_plain_heap(peer, row, cell["full"]["length"], a)["peak_resident_bytes"]
        cell.setdefault("peer_bytes_of_one_and_two", []).append(found)
    one, two = cell["peer_bytes_of_one_and_two"]
    cell["peer_bytes"] = one + (BATCH - 1) * (two - one)


def measure_row(name, examples, a):
    if name in DENSE and compare.available_gb() < DENSE_GB:
        sys.exit(f"{examples.task} {name} needs {DENSE_GB} GB of memory; leave it out of --models")

    def alike(peer):
        settings = lra_settings(row_of(name, examples.task), peer, LENGTHS[examples.task])
        return settings, (*peer[:2], peer[3]) if name in DENSE else ()
    groups = itertools.groupby(sorted(contenders(name, a), key=alike), alike)
    cells = [cell for _, peers in groups for cell in measure(name, examples, list(peers), copy.copy(a))]
    for best in fastest(cells):
        add_memory(best, copy.copy(a))
    for cell in cells:
        print(*line_of(cell)[:9], sep="  ", flush=True)
    return cells


def write(measured, a):
    """Writes the rows, including those of earlier calls."""
    file = a.out / ("peers-real.json" if a.dtype == "fp32" else f"peers-real-{a.dtype}.json")
    again = set(map(name_of, measured))
    kept = [c for c in (json.loads(file.read_text()) if file.exists() else []) if name_of(c) not in again]
    cells = sorted(measured + kept, key=lambda c: (list(LENGTHS).index(c["task"]), NAMES.index(c["row"])))
    a.out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(cells, indent=1) + "\n")
    file.with_suffix(".md").write_text(page(cells, a))


def parse():
    parser = argparse.ArgumentParser(prog="bench/peers/run real", description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of the data, as --data of lra")
    parser.add_argument("--tasks", default=",".join(LENGTHS))
    parser.add_argument("--models", default=",".join(NAMES), help="rows: " + ", ".join(NAMES))
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32",
                        help="of lra; with bf16 every peer stands twice, as in compare.py")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--window-seconds", type=float, default=1, help="of the peers")
    parser.add_argument("--positions", type=int, default=8000, help="of a peer's micro-batch, at most")
    parser.add_argument("--contenders", type=float, default=0.1,
                        help="0.1: peers at most 10 %% behind the fastest in the table of compare.py; inf: all")
    parser.add_argument("--out", type=pathlib.Path, default="docs/results")
    a = parser.parse_args()
    for what, known in (("tasks", LENGTHS), ("models", NAMES)):
        if unknown := set(getattr(a, what).split(",")) - set(known):
            parser.error(f"--{what}: no {', '.join(unknown)}; known: {', '.join(known)}")
    a.mode, a.device, a.fp32_peers = "train", "cpu", False  # as for compare.py
    return a


def main():
    a = parse()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:a.threads])
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        for task in a.tasks.split(","):
            examples = Examples(task, a, folder)
            for name in a.models.split(","):
                cells += measure_row(name, examples, a)
                write(cells, a)
    best = {name_of(c): c["ratio"] for c in fastest(cells)}
    slow = [name for name, ratio in best.items() if ratio < 1]
    missing = sorted(set(map(name_of, cells)) - set(best))
    if missing:
        print(f"no peer measured: {', '.join(missing)}", file=sys.stderr)
    if slow or missing:
        sys.exit(f"slower than the fastest peer: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
