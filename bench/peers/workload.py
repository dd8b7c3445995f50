"""The workload that all sides train: the release Text encoder with the mean of the outputs."""
import numpy as np

LAYERS, HEADS, WIDTH, MLP, VOCABULARY, CLASSES, BATCH, RATE = 4, 4, 256, 1024, 257, 2, 4, 0.1


def sinusoids(length):
    angle = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, WIDTH, 2) / WIDTH)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(length, WIDTH).astype(np.float32)
