"""The order in which the trainer reads the examples of a split."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from . import _random

_ORDER_BLOCK = 1 << 13  # places of an epoch whose examples are computed at a time


class Order:
    """Indices of the examples of each step of a run of the program: src/data/batch_order.h.

    Iterating gives an int64 array for each step: a batch_sampler of a DataLoader, whose workers and
    restarts do not change it. Rank r of n takes its share of every batch. Without `steps` it is
    endless.
    """

    def __init__(
        self, num_examples: int, batch_size: int, *, seed: int = 0, first_step: int = 0,
        steps: int | None = None, rank: int = 0, ranks: int = 1,
    ) -> None:
        if num_examples < 1 or not 1 <= ranks <= batch_size or not 0 <= rank < ranks:
            raise ValueError("expected examples, and 0 <= rank < ranks <= batch_size")
        self.num_examples, self.batch_size, self.seed = num_examples, batch_size, seed
        self.first_step, self.steps, self.rank, self.ranks = first_step, steps, rank, ranks
        self._kept: tuple[tuple[int, int], NDArray[np.int64]] = (-1, 0), np.empty(0, np.int64)

    def step(self, step: int) -> NDArray[np.int64]:
        """The examples of one step, of this rank."""
        begin, end = (self.batch_size * r // self.ranks for r in (self.rank, self.rank + 1))
        first, last = step * self.batch_size + begin, step * self.batch_size + end
        pieces = []
        while first < last:
            epoch, place = divmod(first, self.num_examples)
            block = self._block(epoch, place // _ORDER_BLOCK)
            pieces.append(block[place % _ORDER_BLOCK :][: last - first])
            first += pieces[-1].size
        return np.concatenate(pieces)

    def _block(self, epoch: int, number: int) -> NDArray[np.int64]:
        """The examples at _ORDER_BLOCK places of an epoch, fewer at its end; the last is kept."""
        if self._kept[0] != (epoch, number):
            end = min(self.num_examples, (number + 1) * _ORDER_BLOCK)
            key = _random.derive_key(self.seed, _random.SHUFFLE, epoch & 0xFFFFFFFF, epoch >> 32)
            places = np.arange(number * _ORDER_BLOCK, end, dtype=np.int64)
            self._kept = (epoch, number), _random.permute(self.num_examples, key, places)
        return self._kept[1]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        step = self.first_step
        while self.steps is None or step < self.first_step + self.steps:
            yield self.step(step)
            step += 1

    def __len__(self) -> int:
        if self.steps is None:
            raise TypeError("an order without steps is endless")
        return self.steps
