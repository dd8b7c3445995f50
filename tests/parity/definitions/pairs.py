"""Pairs of tokens that attend, as dense arrays bool [L queries, L keys], from the definitions.

Padding is hidden by the caller, except where it takes part in the definition. `settings` are those
of the mixer.
"""
import math

import numpy as np

from definitions import draws

RELEASED_RANGE = 1024  # tokens


def not_later(length):
    return np.tri(length, dtype=bool)


def sparse_transformer(length, max_length, settings):
    """Child et al. 2019, section 4.3: the union of both patterns of a factorization."""
    first = int(settings["global_first"])
    stride = settings["stride"] or max(1, math.floor(math.sqrt(max_length - first) + 0.5))
    i, j = np.ogrid[:length, :length]
    i, j = i - first, j - first
    if settings["pattern"] == "fixed":
        is_summary = j % stride >= stride - min(settings["summary"], stride)
        pairs = (i // stride == j // stride) | is_summary
    else:
        pairs = (abs(i - j) < stride) | ((i - j) % stride == 0)
    if settings["causal"]:
        pairs = pairs & (j <= i)
    if first:
        pairs = np.where((i < 0) | (j < 0), True, pairs)
    return pairs


def longformer(length, settings):
    """Beltagy et al. 2020, section 3.1, for all rows but the global ones."""
    i, j = np.ogrid[:length, :length]
    pairs = (abs(i - j) <= settings["window"] // 2) | (j < settings["global_tokens"])
    return pairs & not_later(length) if settings["causal"] else pairs


def bigbird(length, valid_length, heads, key, settings):
    """Zaheer et al. 2020, section 2 and appendix D: bool [heads, L, L], of the valid tokens."""
    block = settings["block"]
    blocks = -(-valid_length // block)
    whole = settings["random_range"] == "all"
    pairs = np.zeros((heads, blocks * block, blocks * block), bool)
    for h in range(heads):
        rows = draws.bigbird_blocks(key, h, blocks, settings["random_blocks"],
                                    blocks if whole else RELEASED_RANGE // block)
        for n, seen in enumerate(rows):
            for m in seen:
                pairs[h, n * block:(n + 1) * block, m * block:(m + 1) * block] = True
    rest = max(0, length - blocks * block)
    return np.pad(pairs, ((0, 0), (0, rest), (0, rest)))[:, :length, :length]


def reformer(q, valid, rotations, settings):
    """Kitaev et al. 2020, section 2: of one head, queries [L, E], rotations [rounds, E, N].

    A pair attends when any round shows it; a token itself when none shows it another one. Padding
    (valid [L] false) is sorted behind all buckets.
    """
    length = len(q)
    pairs = np.zeros((length, length), bool)
    for rotation in rotations:
        y = q @ rotation
        buckets = np.concatenate([y, -y], -1).argmax(-1)
        buckets = np.where(valid, buckets, 2 * rotation.shape[1])
        rank = np.empty(length, int)
        rank[np.argsort(buckets, kind="stable")] = np.arange(length)
        chunk = rank // settings["chunk"]
        back = chunk[:, None] - chunk[None, :]
        pairs |= (buckets[:, None] == buckets[None, :]) & ((back == 0) | (back == 1))
    if settings["causal"]:
        pairs &= not_later(length)
    np.fill_diagonal(pairs, False)
    np.fill_diagonal(pairs, ~pairs.any(-1))
    return pairs & valid[:, None] & valid[None, :]
