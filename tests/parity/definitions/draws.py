"""Random draws of the mixers that are in no file, as defined at the top of src/mixers/*.cpp.

Rounded to float32 where the program rounds, and returned as float64.
"""
import functools
import math

import numpy as np

from definitions.philox import USE_MIXER, USE_WEIGHTS, Stream, derive_key


def weight_key(seed, name):
    """Key of what is drawn under a name, as "encoder.layers.0.mixer.qkv.weight.0"; FNV-1a."""
    number = 0xCBF29CE484222325
    for byte in name.encode():
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return derive_key(seed, USE_WEIGHTS, number & 0xFFFFFFFF, number >> 32)


def normals(stream, *shape):
    return np.array([stream.normal() for _ in range(math.prod(shape))]).reshape(shape)


def xavier(key, rows, columns):
    """Uniform weight [rows, columns] (Glorot and Bengio 2010)."""
    stream, limit = Stream(key), math.sqrt(6 / (rows + columns))
    values = [limit * (2 * stream.uniform() - 1) for _ in range(rows * columns)]
    return np.float64(np.float32(values).reshape(rows, columns))


def reformer_rotations(layer, heads, rounds, head_dim, columns):
    """[heads, rounds, E, columns] of a layer outside training: the same in every run."""
    key = derive_key(0, USE_MIXER, layer)
    drawn = [normals(Stream(derive_key(key, USE_MIXER, h, r)), head_dim, columns)
             for h in range(heads) for r in range(rounds)]
    return np.float64(np.float32(drawn).reshape(heads, rounds, head_dim, columns))


@functools.cache
def performer_features(key, count, head_dim):
    """[count, E], draw 0: orthonormal blocks by Gram-Schmidt, rows as long as Gaussian ones."""
    stream, rows = Stream(derive_key(key, USE_MIXER, 0)), []
    while len(rows) < count:
        block = np.zeros((0, head_dim))
        for _ in range(head_dim):
            row = normals(stream, head_dim)
            for _ in range(2):
                for other in block:
                    row = row - (row @ other) * other
            block = np.vstack([block, row / np.linalg.norm(row)])
        for row in block[: count - len(rows)]:
            rows.append(row * np.linalg.norm(normals(stream, head_dim)))
    return np.float64(np.float32(rows))


def bigbird_blocks(key, head, blocks, random_blocks, candidate_blocks):
    """The set of key blocks that each query block sees, of a sequence of `blocks` blocks.

    Random ones are among the first `candidate_blocks`: number below(count) of those not seen
    already, in ascending order, until there are enough; all of them where there are too few.
    """
    blocks = int(blocks)  # integers of NumPy overflow in the key
    stream = Stream(derive_key(key, USE_MIXER, head, blocks))
    last, rows = blocks - 1, []
    for query in range(blocks):
        if query in (0, last):
            rows.append(set(range(blocks)))
            continue
        seen = {0, query - 1, query, query + 1, last}
        left = [j for j in range(min(blocks, candidate_blocks)) if j not in seen]
        wanted = len(seen) + min(len(left), random_blocks)
        if len(left) <= random_blocks:
            seen.update(left)
        while len(seen) < wanted:
            seen.add(left[stream.below(len(left))])
        rows.append(seen)
    return rows
