"""The program's random numbers (src/base/rng.h) once more: Philox 4x32-10 and its streams.

Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011.
"""
import math

WORD = 0xFFFFFFFF
# Purpose of a stream: the first word of the counter.
USE_WEIGHTS, USE_MIXER = 4, 6


def philox4x32(counter, key):
    """Four words of 32 bits; `key` has 64, its low half is key word 0."""
    c0, c1, c2, c3 = counter
    k0, k1 = key & WORD, key >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & WORD, p0 >> 32 ^ c3 ^ k1, p0 & WORD
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3


def derive_key(seed, use, a=0, b=0, c=0):
    block = philox4x32((use, a, b, c), seed)
    return block[1] << 32 | block[0]


class Stream:
    """Numbers one after another: the words of the counters 0, 1, 2, ..."""

    def __init__(self, key):
        self.key, self.index, self.words, self.spare = key, 0, [], None

    def u32(self):
        if not self.words:
            counter = (self.index & WORD, self.index >> 32, 0, 0)
            self.words, self.index = list(philox4x32(counter, self.key)), self.index + 1
        return self.words.pop(0)

    def below(self, n):
        """Uniform in [0, n): the high half of a product whose low half is at least 2^32 mod n."""
        while True:
            product = self.u32() * n
            if product & WORD >= (1 << 32) % n:
                return product >> 32

    def uniform(self):
        """Uniform in [0, 1), 53 bits; the first word is the low one."""
        low = self.u32()
        return ((self.u32() << 32 | low) >> 11) * 2.0**-53

    def normal(self):
        """Box-Muller: the cosine, then the sine of a pair."""
        if self.spare is not None:
            value, self.spare = self.spare, None
            return value
        radius = math.sqrt(-2 * math.log(1 - self.uniform()))
        angle = 2 * math.pi * self.uniform()
        self.spare = radius * math.sin(angle)
        return radius * math.cos(angle)
