"""The workloads that all sides train: encoders of the release presets with the mean of the outputs."""
import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Workload:
    task: str
    layers: int
    heads: int
    width: int
    qkv: int  # all heads together
    mlp: int
    vocabulary: int
    classes: int
    batch: int
    dropout: float
    examples: int  # of the task's training split


WORKLOADS = {
    "text": Workload("text", 4, 4, 256, 256, 1024, 257, 2, 4, 0.1, 25000),
    "listops": Workload("listops", 4, 8, 512, 512, 1024, 17, 10, 4, 0.1, 96000),
    "image": Workload("image", 1, 8, 128, 64, 128, 256, 10, 16, 0.3, 45000),
    "pathfinder": Workload("pathfinder", 4, 4, 32, 16, 32, 256, 2, 16, 0.2, 160000),
}
# That of the paper's Table 2: four sequences leave most of a GPU without work.
GPU_BATCH = {"text": 32}


def default_batch(name, device):
    batch = WORKLOADS[name].batch
    return GPU_BATCH.get(name, batch) if device == "cuda" else batch


def examples(work, length, file=""):
    """Tokens [n, length] and labels [n], int64: those of a file that real_batches.py wrote, else random
    ones of one step."""
    if file:
        with np.load(file) as found:
            return found["tokens"], found["labels"]
    random = np.random.default_rng(0)
    return random.integers(1, work.vocabulary, (work.batch, length)), random.integers(work.classes, size=work.batch)


def sinusoids(length, width):
    angle = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(length, width).astype(np.float32)
