"""Training on batches of real data beside other implementations; started by bench/peers/run real.

The first batch of 32 training examples of Text at 4,000 bytes and of ListOps at 2,000 tokens (seed 0), release
encoders as in compare.py. lra computes it as it trains: rows of like length in groups. A peer computes the
same examples, padded as its users pad them: to the longest of the batch, and to the full length of
the task; both up to a multiple that its mechanism takes. Peers do not mask the padding, which would only cost
them time. Figures are tokens without padding a second, whatever was computed for them.

lra and all peers of a row are measured in turn, A B C A B C, --windows times each; the figure is the
median, the spread (largest - smallest) / median. A window of lra is one step of the batch. A
peer takes the batch in micro-batches of about --positions, as accumulated gradients do; a window is as many of them as
fill --window-seconds, and seldom has the update in it. A peer whose first window is 1.5 times slower than the
fastest peer's gets no further one. Only peers within --contenders of the fastest in the table of
compare.py (peers.json in --out) are measured; without that table, all.

Memory is that of processes of their own: of lra for the whole batch, of the fastest peer for one and two
sequences at the full length, from which the line through both gives it for the batch. Results of earlier calls are kept for rows
that --models and --tasks leave out. The exit code is 1 when lra is slower than a peer, or no peer of a row
could be measured.
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

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[n]) + folder for n, folder in ((1, ""), (2, "/python"))]
import compare
import lra.data
import result_tables as tables
import targets
from rows import ROWS, lra_settings
from sides import lra_side, peer_side

LENGTHS = {"text": 4000, "listops": 2000}
BATCH = 32
WAYS = ("longest", "full")
# The lengths that a mechanism takes are multiples of its blocks.
MULTIPLES = {"longformer": 256, "bigbird": 64, "reformer": 64, "reformer-pytorch": 128, "sinkhorn-transformer": 64}
# L x L weights: one sequence at a time.
DENSE = ("transformer-drop", "synthesizer")
NAMES = [name for name, row in ROWS.items() if "workload" not in row]


class Examples:
    """The first batch of a task's training data, and the padding of the first hundred."""

    def __init__(self, task, a, folder):
        words = ["data", "prepare", task, "--data", a.data]
        split = lra.data.Split(tables.run_json(words)["folder"], "train", length=LENGTHS[task])
        batches = split.loader(BATCH, steps=100, trim=False)
        self.task, self.folder = task, pathlib.Path(folder)
        self.batch = next(batches)
        self.num_tokens = int(self.batch.lengths.sum())
        lengths = np.stack([batch.lengths for batch in itertools.chain([self.batch], batches)])
        self.positions = {"longest": lengths.max(1).sum() * BATCH / lengths.sum(),
                          "full": lengths.size * LENGTHS[task] / lengths.sum()}

    def length(self, way, peer):
        """Positions of a row that a peer computes."""
        length = int(self.batch.lengths.max()) if way == "longest" else LENGTHS[self.task]
        multiple = MULTIPLES.get(peer[1], 1)
        return -(-length // multiple) * multiple

    def file(self, length):
        """The batch, padded to `length`."""
        path = self.folder / f"{self.task}-{length}.npz"
        if not path.exists():
            longest = int(self.batch.lengths.max())
            tokens = np.zeros((BATCH, length), np.int64)
            tokens[:, :longest] = self.batch.tokens[:, :longest]
            np.savez(path, tokens=tokens, labels=self.batch.labels)
        return path


class Peer:
    """A peer in two processes, one for each way to pad."""

    def __init__(self, peer, row, examples, a):
        self.peer, self.windows = peer, {way: [] for way in WAYS}
        self.lengths = {way: examples.length(way, peer) for way in WAYS}
        self.share = {way: examples.num_tokens / (BATCH * length) for way, length in self.lengths.items()}
        self.sides = {way: peer_side(peer, row, length, a, a.window_seconds, file=examples.file(length))
                      for way, length in self.lengths.items()}
        self.failure = None

    def each(self, call):
        """What `call` gives for each way; on a failure the peer is out."""
        try:
            return {way: call(side) for way, side in self.sides.items()}
        except (RuntimeError, BrokenPipeError) as error:
            self.end(str(error))

    def window(self):
        for way, found in (self.each(lambda side: side.window()) or {}).items():
            self.windows[way].append(found["tokens_per_s"] * self.share[way])

    def rate(self):
        """Tokens a second of its better way."""
        return max(statistics.median(rates) for rates in self.windows.values())

    def end(self, failure=None):
        self.failure = self.failure or failure
        for side in self.sides.values():
            side.process.kill()
            side.process.wait()


def row_of(name, task):
    return {**ROWS[name], "workload": task}


def sequences_at_once(name, task, a):
    return 1 if name in DENSE else max(1, a.positions // LENGTHS[task])


def lra_words(row, peer, a):
    task = row["workload"]
    sets = tables.set_words(lra_settings(row, peer, LENGTHS[task]))
    return ["bench", "--task", task, "--preset", "release", "--measure-one", row["model"], "--lengths",
            LENGTHS[task], "--batch", BATCH, "--data", a.data, "--real-batch", "--windows", a.windows,
            "--window-seconds", 0, "--threads", a.threads, *sets]


def memory_of_batch(peer, row, length, a):
    """(bytes of one sequence and of two, those of the batch by the line through both)"""
    measured = []
    for a.batch in (1, 2):
        measured.append(compare.peak_with_plain_heap(peer, row, length, a)["peak_resident_bytes"])
    return measured, measured[0] + (BATCH - 1) * (measured[1] - measured[0])


def take_turns(peers, side, a):
    """The windows of lra, after those of the peers, until all have theirs."""
    ours = []
    for _ in range(a.windows):
        for peer in peers:
            if not peer.failure:
                peer.window()
        ours.append(side.window())
        there = [peer for peer in peers if not peer.failure]
        for peer in there:
            slower = max(map(Peer.rate, there)) / peer.rate()
            if slower > 1.5:
                peer.end(f"{slower:.1f} times slower than the fastest")
    return ours


def measure(name, examples, peers, a):
    """The cells of peers that lra has the same settings against."""
    row, words = row_of(name, examples.task), lra_words(row_of(name, examples.task), peers[0], a)
    common = {"task": examples.task, "row": name, "length": LENGTHS[examples.task], "batch": BATCH, "threads": a.threads,
              "tokens": examples.num_tokens, "positions": examples.positions, "busy_processors": tables.warn_if_loaded(),
              "provenance": tables.provenance(a.threads), "lra_command": " ".join(map(str, ["lra", *words]))}
    a.batch = sequences_at_once(name, examples.task, a)
    running, side = [Peer(peer, row, examples, a) for peer in peers], lra_side(words)
    try:
        for peer in running:
            peer.each(lambda s: s.expect("ready"))
        side.expect("ready")
        windows = take_turns(running, side, a)
        whole = json.loads(side.close())
    finally:
        side.process.kill()
        for peer in running:
            peer.end()
    if round(whole["tokens_per_s"] / whole["steps_per_s"]) != examples.num_tokens:
        sys.exit(f"lra read another batch than lra.data: {whole}")
    lra_found = compare.summary_of_lra(windows, whole, a) | {
        "positions": whole["computed_tokens_per_s"] / whole["tokens_per_s"]}
    return [cell_of(peer, lra_found, common, a) for peer in running]


def cell_of(peer, lra_found, common, a):
    kind, what = peer.peer[:2]
    cell = {**common, "kind": kind, "peer": what, "at_once": a.batch, "lra": lra_found}
    if peer.failure:
        return {**cell, "failure": peer.failure}
    for way in WAYS:
        rates = peer.windows[way]
        middle = statistics.median(rates)
        cell[way] = {"length": peer.lengths[way], "positions": 1 / peer.share[way], "tokens_per_s": middle,
                     "spread": (max(rates) - min(rates)) / middle, "windows": rates,
                     "ratio": lra_found["tokens_per_s"] / middle}
    return {**cell, "ratio": min(cell[way]["ratio"] for way in WAYS)}


def contenders(name, a):
    """The peers of a row that were near its fastest in the table of compare.py, at its largest length."""
    peers = [(*peer, "fp32") for peer in ROWS[name]["peers"]]
    file = a.out / "peers.json"
    cells = json.loads(file.read_text()) if file.exists() else []
    cells = [c for c in cells if c["row"] == name and "ratio" in c]
    if not cells:
        return peers
    length = max(c["length"] for c in cells)
    ratios = {(c["kind"], c["peer"]): c["ratio"] for c in cells if c["length"] == length}
    most = min(ratios.values()) * (1 + a.contenders)
    return [peer for peer in peers if ratios.get(peer[:2], float("inf")) <= most]


def measure_row(name, examples, a):
    settings = lambda peer: lra_settings(row_of(name, examples.task), peer, LENGTHS[examples.task])
    groups = itertools.groupby(sorted(contenders(name, a), key=settings), settings)
    cells = [cell for _, peers in groups for cell in measure(name, examples, list(peers), copy.copy(a))]
    found = [cell for cell in cells if "ratio" in cell]
    if found:
        best = min(found, key=lambda c: c["ratio"])
        peer = next(p for p in contenders(name, a) if p[:2] == (best["kind"], best["peer"]))
        best["peer_bytes_of_1_and_2"], best["peer_bytes"] = memory_of_batch(
            peer, row_of(name, examples.task), best["full"]["length"], copy.copy(a))
    for cell in cells:
        print(*line_of(cell)[:7], sep="  ", flush=True)
    return cells


def name_of(cell):
    return f"{cell['task']} {cell['row']}"


HEADER = ["row", "peer", "lra tokens/s (spread)", "padded to the longest", "ratio", "to the full length", "ratio",
          "lra MB", "peer MB", "settings of both"]


def line_of(cell):
    rate = lambda side: f"{side['tokens_per_s']:,.0f} ({side['spread']:.0%})"
    first = [name_of(cell), compare.peer_of(cell), rate(cell["lra"])]
    ours = f"{compare.peak_bytes(cell['lra']) / 2**20:,.0f}"
    last = ROWS[cell["row"]]["settings"]
    if "failure" in cell:
        return [*first, cell["failure"], "", "", "", ours, "", last]
    ways = [text for way in WAYS for text in (rate(cell[way]), f"{cell[way]['ratio']:.2f}")]
    theirs = f"{cell['peer_bytes'] / 2**20:,.0f}" if "peer_bytes" in cell else "-"
    return [*first, *ways, ours, theirs, last]


TARGET_HEADER = ["row", "ratio", "target", "positions a token", "target", "memory", "target", "missed"]


def against_targets(cell):
    wanted, positions = targets.real_ratio(cell["row"], cell["task"]), cell["lra"]["positions"]
    part = compare.peak_bytes(cell["lra"]) / cell["peer_bytes"]
    missed = [what for what, bad in (("speed", cell["ratio"] < wanted),
                                     ("positions", positions > targets.REAL_POSITIONS),
                                     ("memory", part > targets.REAL_MEMORY)) if bad]
    return [name_of(cell), f"{cell['ratio']:.2f}", f"{wanted:.1f}", f"{positions:.2f}", targets.REAL_POSITIONS,
            f"{part:.2f}", targets.REAL_MEMORY, ", ".join(missed) or "-"]


def fastest(cells):
    """The cell of the fastest peer of each row."""
    best = {}
    for cell in (c for c in cells if "ratio" in c):
        best[name_of(cell)] = min(cell, best.get(name_of(cell), cell), key=lambda c: c["ratio"])
    return list(best.values())


PADDING_HEADER = ["task", "tokens of the batch", "to the longest", "to the full length", "of 100 batches, longest",
                  "of 100 batches, full"]


def padding(cells):
    """Positions that padding alone makes of each token, of the measured batch and of the first hundred."""
    rows = {}
    for cell in cells:
        whole = BATCH * cell["length"] / cell["tokens"]
        here = min((c["longest"]["positions"] for c in cells if c["task"] == cell["task"] and "longest" in c),
                   default=whole)
        rows[cell["task"]] = [cell["task"], f"{cell['tokens']:,}", *(f"{x:.2f}" for x in (
            here, whole, cell["positions"]["longest"], cell["positions"]["full"]))]
    return list(rows.values())


def page(cells, a):
    best = fastest(cells)
    loaded = sorted({f"{name_of(c)} ({c['busy_processors']})" for c in cells if c["busy_processors"]})
    note = f"Measured while other programs kept processors busy: {', '.join(loaded)}.\n\n" if loaded else ""
    return ("# Training speed on real batches beside other implementations\n\n"
            f"Written by `bench/peers/run real --data DIR --threads {a.threads} --windows {a.windows}`; the head of "
            "`bench/peers/real_batches.py` says how. Tokens are those without padding. Ratio above 1: lra is "
            f"faster. Memory of a peer: of all {BATCH} sequences at the full length, on the line through that of one "
            f"and that of two.\n\n{note}## Against the fastest peer\n\n{tables.markdown(HEADER, map(line_of, best))}\n"
            "## Against the targets\n\nThe ratio is to the better way of the fastest peer.\n\n"
            f"{tables.markdown(TARGET_HEADER, map(against_targets, best))}\n"
            f"## Padding\n\nPositions that a padded batch has for each token.\n\n"
            f"{tables.markdown(PADDING_HEADER, padding(cells))}\n"
            f"## All peers\n\n{tables.markdown(HEADER, map(line_of, cells))}\n"
            f"Measured with {', '.join(f'{n} {v}' for n, v in compare.versions().items())}:\n\n"
            f"{compare.where_measured([{**c, 'row': name_of(c)} for c in cells])}")


def write(measured, a):
    """With the rows of earlier calls."""
    file = a.out / "peers-real.json"
    again = set(map(name_of, measured))
    kept = [c for c in (json.loads(file.read_text()) if file.exists() else []) if name_of(c) not in again]
    order = lambda c: (list(LENGTHS).index(c["task"]), NAMES.index(c["row"]))
    cells = sorted(measured + kept, key=order)
    a.out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(cells, indent=1) + "\n")
    file.with_suffix(".md").write_text(page(cells, a))


def parse():
    parser = argparse.ArgumentParser(prog="bench/peers/run real", description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of the data, as --data of lra")
    parser.add_argument("--tasks", default="text,listops")
    parser.add_argument("--models", default=",".join(NAMES), help="rows: " + ", ".join(NAMES))
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
    a.mode, a.dtype, a.device = "train", "fp32", "cpu"
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
    if slow or missing:
        sys.exit(f"slower than the fastest peer: {', '.join(slow) or 'none'}; "
                 f"no peer measured: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main()
