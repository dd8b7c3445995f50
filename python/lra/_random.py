"""The program's random numbers in NumPy: Philox 4x32-10, keys and permutations.

The same functions as src/base/rng.h and src/base/permutation.h, over arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]

SHUFFLE = 2  # RandomUse of src/base/rng.h
SPLIT = 3
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def philox(counter: tuple[Any, Any, Any, Any], key: int) -> tuple[U64, U64, U64, U64]:
    """Salmon et al., SC 2011. Counters and results: 32-bit words in uint64, of any one shape."""
    c0, c1, c2, c3 = (np.asarray(word, dtype=np.uint64) for word in counter)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (p1 >> _32) ^ c1 ^ np.uint64(k0),
            p1 & _LOW,
            (p0 >> _32) ^ c3 ^ np.uint64(k1),
            p0 & _LOW,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def derive_key(seed: int, use: int, a: int = 0, b: int = 0, c: int = 0) -> int:
    low, high, _, _ = philox((use, a, b, c), seed)
    return int(high) << 32 | int(low)


def permute(n: int, key: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Images of `places`, each below n, under the keyed permutation of 0 .. n - 1."""
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    shift, mask = np.uint64(half), np.uint64((1 << half) - 1)

    def permuted(values: U64) -> U64:
        left, right = values >> shift, values & mask
        for turn in range(8):
            mixed = philox((right, turn, 0, 0), key)[0] & mask
            left, right = right, left ^ mixed
        return left << shift | right

    values = places.astype(np.uint64)
    # The permutation of 0 .. 4^half - 1 is repeated until it is below n: many times for a few
    # places, which costs more than looking them all up.
    table = permuted(np.arange(1 << 2 * half, dtype=np.uint64)) if 2 * places.size >= n else None
    waiting = np.arange(values.size)
    while waiting.size:
        values[waiting] = permuted(values[waiting]) if table is None else table[values[waiting]]
        waiting = waiting[values[waiting] >= n]
    return values.astype(np.int64)
