"""What the comparison is to reach against the fastest peer of a row, at 1,024 and 4,096 tokens.

RATIOS: tokens per second over the peer's, by mode and dtype (those of bf16 against the peer's best
in any precision). MEMORY: resident memory of training as a part of the peer's. The fp32 training
ratio of the narrow presets is one for all.
"""
LENGTHS = (1024, 4096)
NARROW = 3.0

DROP = {"train-fp32": (4, 10), "train-bf16": (5, 15), "infer-fp32": (1.5, 2)}
EXACT = {"train-fp32": (1.8, 2.2), "train-bf16": (1.8, 2.2), "infer-fp32": (1.8, 2.2)}
LINEAR = {"train-fp32": (2, 2), "train-bf16": (1.8, 2), "infer-fp32": (1.5, 2)}
BLOCKS = {"train-fp32": (2.5, 3), "train-bf16": (2.5, 3), "infer-fp32": (2, 2.5)}
SPARSE = {"train-fp32": (3, 5), "train-bf16": (3, 5), "infer-fp32": (2, 3)}
DENSE = {"train-fp32": (1.5, 2), "train-bf16": (1.5, 2), "infer-fp32": (1.5, 2)}

RATIOS = {"transformer-drop": DROP, "transformer": EXACT, "bigbird": BLOCKS, "longformer": BLOCKS,
          "sparse": SPARSE, "synthesizer": DENSE,
          **dict.fromkeys(("local", "linear", "linformer", "performer-relu", "performer-favor",
                           "reformer", "sinkhorn"), LINEAR)}
MEMORY = {"transformer-drop": (0.5, 0.15), "transformer": (0.7, 0.6),
          **dict.fromkeys(("bigbird", "longformer", "sparse", "synthesizer"), (0.5, 0.3)),
          **dict.fromkeys(("local", "linear", "linformer", "performer-relu", "performer-favor",
                           "reformer", "sinkhorn"), (0.6, 0.5))}


def ratio(row, length, mode, dtype):
    """The least ratio, or None where none is set."""
    if row not in RATIOS:
        return NARROW if (mode, dtype) == ("train", "fp32") else None
    targets = RATIOS[row].get(f"{mode}-{dtype}")
    return targets[LENGTHS.index(length)] if targets and length in LENGTHS else None


def memory(row, length, mode):
    """The largest part of the peer's memory, or None."""
    if mode != "train" or row not in MEMORY or length not in LENGTHS:
        return None
    return MEMORY[row][LENGTHS.index(length)]
