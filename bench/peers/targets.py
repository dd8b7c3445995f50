"""Targets of the comparison with the fastest peer of a row, at 1,024 and 4,096 tokens.

By mode and dtype, tokens per second over the peer's (those of bf16 against the peer's best in any
precision); memory: resident memory of training as a part of the peer's. The fp32 training ratio of
the narrow presets is one for all. On a GPU only training in bf16 at 4,096 tokens has a target, a
speed.
"""
LENGTHS = (1024, 4096)
NARROW = 3.0

DROP = {"train-fp32": (4, 10), "train-bf16": (5, 15), "infer-fp32": (1.5, 2), "memory": (0.5, 0.15)}
EXACT = {"train-fp32": (1.8, 2.2), "train-bf16": (1.8, 2.2), "infer-fp32": (1.8, 2.2),
         "memory": (0.7, 0.6)}
LINEAR = {"train-fp32": (2, 2), "train-bf16": (1.8, 2), "infer-fp32": (1.5, 2),
          "memory": (0.6, 0.5)}
BLOCKS = {"train-fp32": (2.5, 3), "train-bf16": (2.5, 3), "infer-fp32": (2, 2.5),
          "memory": (0.5, 0.3)}
SPARSE = {"train-fp32": (3, 5), "train-bf16": (3, 5), "infer-fp32": (2, 3), "memory": (0.5, 0.3)}
DENSE = {"train-fp32": (1.5, 2), "train-bf16": (1.5, 2), "infer-fp32": (1.5, 2),
         "memory": (0.5, 0.3)}

ROWS = {"transformer-drop": DROP, "transformer": EXACT, "bigbird": BLOCKS, "longformer": BLOCKS,
        "sparse": SPARSE, "synthesizer": DENSE,
        **dict.fromkeys(("local", "linear", "linformer", "performer-relu", "performer-favor",
                         "reformer", "sinkhorn"), LINEAR)}

GPU = {**dict.fromkeys(ROWS, 1.0),
       **dict.fromkeys(("longformer", "bigbird", "reformer", "sinkhorn"), 2.0)}


# On real batches (real_batches.py), by task: the ratio, and that of the Transformer with attention
# dropout; positions that lra computes for each token; its memory as a part of the padded peer's.
REAL = {"text": (4, 8), "listops": (2.5, 5)}
REAL_POSITIONS, REAL_MEMORY = 1.15, 0.5


def at(row, length, what):
    """The figure of a row at a length, or None where none is set."""
    figures = ROWS.get(row, {}).get(what)
    return figures[LENGTHS.index(length)] if figures and length in LENGTHS else None


def ratio(row, length, mode, dtype, device="cpu"):
    """The least ratio, or None."""
    if device == "cuda":
        return GPU.get(row) if (length, mode, dtype) == (4096, "train", "bf16") else None
    if row not in ROWS:
        is_narrow = row.startswith(("image-", "pathfinder-"))
        return NARROW if is_narrow and (mode, dtype) == ("train", "fp32") else None
    return at(row, length, f"{mode}-{dtype}")


def memory(row, length, mode, device="cpu"):
    """The largest part of the peer's memory, or None."""
    return at(row, length, "memory") if (mode, device) == ("train", "cpu") else None


def real_ratio(row, task):
    return REAL[task][row == "transformer-drop"]
