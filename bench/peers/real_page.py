"""The page docs/results/peers-real.md, from the cells that real_batches.py measured."""
import compare
import result_tables as tables
import targets
from rows import ROWS

WAYS = ("longest", "full")  # to which a peer pads: the longest of the batch, the length of the task
HEADER = ["row", "peer", "lra tokens/s (spread)", "padded to the longest", "ratio", "to the full length", "ratio",
          "lra MB", "peer MB", "settings of both"]
TARGET_HEADER = ["row", "ratio", "target", "positions a token", "target", "memory", "target", "missed"]
PADDING_HEADER = ["task", "tokens", "padded to the longest", "to the full length", "100 batches: to the longest",
                  "to the full length"]


def name_of(cell):
    return f"{cell['task']} {cell['row']}"


def line_of(cell):
    rate = lambda side: f"{side['tokens_per_s']:,.0f} ({side['spread']:.0%})"
    first = [name_of(cell), compare.peer_of(cell), rate(cell["lra"])]
    ours, settings = f"{compare.peak_bytes(cell['lra']) / 2**20:,.0f}", ROWS[cell["row"]]["settings"]
    if "failure" in cell:
        return [*first, cell["failure"], "", "", "", ours, "", settings]
    ways = [text for way in WAYS for text in (rate(cell[way]), f"{cell[way]['ratio']:.2f}")]
    theirs = f"{cell['peer_bytes'] / 2**20:,.0f}" if "peer_bytes" in cell else "-"
    return [*first, *ways, ours, theirs, settings]


def fastest(cells):
    """The cell of the fastest peer of each row."""
    best = {}
    for cell in (c for c in cells if "ratio" in c):
        best[name_of(cell)] = min(cell, best.get(name_of(cell), cell), key=lambda c: c["ratio"])
    return list(best.values())


def against_targets(cell):
    wanted, positions = targets.real_ratio(cell["row"], cell["task"]), cell["lra"]["positions"]
    part = compare.peak_bytes(cell["lra"]) / cell["peer_bytes"]
    missed = [what for what, bad in (("speed", cell["ratio"] < wanted),
                                     ("positions", positions > targets.REAL_POSITIONS),
                                     ("memory", part > targets.REAL_MEMORY)) if bad]
    return [name_of(cell), f"{cell['ratio']:.2f}", f"{wanted:.1f}", f"{positions:.2f}", targets.REAL_POSITIONS,
            f"{part:.2f}", targets.REAL_MEMORY, ", ".join(missed) or "-"]


def padding(cells):
    """Positions of a padded batch for each token: of the measured batch and of the first hundred."""
    found = {cell["task"]: (cell["tokens"], cell["padding"]) for cell in cells}
    return [[task, f"{tokens:,}", *(f"{by[way]:.2f}" for by in ways for way in WAYS)]
            for task, (tokens, ways) in found.items()]


def page(cells, a):
    best = fastest(cells)
    loaded = sorted({f"{name_of(c)} ({c['busy_processors']})" for c in cells if c["busy_processors"]})
    note = ("**Other programs ran** when these rows began (processors that they kept busy): "
            f"{', '.join(loaded)}.\n\n" if loaded else "")
    return ("# Training speed on real batches beside other implementations\n\n"
            f"Written by `bench/peers/run real --data DIR --dtype {a.dtype} --threads {a.threads} "
            f"--windows {a.windows}`; the head of "
            "`bench/peers/real_batches.py` says how. Tokens are those without padding. Ratio above 1: lra is faster. "
            "Memory of a peer: of all sequences of the batch at the full length, on the line through "
            f"that of one and that of two.{compare.LOST_SUMS if a.dtype == 'bf16' else ''}\n\n"
            f"{note}## Against the fastest peer\n\n{tables.markdown(HEADER, map(line_of, best))}\n"
            "## Against the targets\n\nThe ratio is to the better way of the fastest peer.\n\n"
            f"{tables.markdown(TARGET_HEADER, map(against_targets, best))}\n"
            "## Padding\n\nPositions that a padded batch has for each token.\n\n"
            f"{tables.markdown(PADDING_HEADER, padding(cells))}\n"
            f"## All peers\n\n{tables.markdown(HEADER, map(line_of, cells))}\n"
            "Measured by:\n\n"
            f"{compare.where_measured([{**c, 'row': name_of(c)} for c in cells])}")
