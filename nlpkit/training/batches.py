"""Batches of sequences of one length, the same for the same seed and number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class LengthBatches:
    """Batches of equal-length sequences: for each number the same rows, whatever came before.

    >>> batches = LengthBatches(np.array([3, 5, 3, 3]), tokens=6, seed=1)
    >>> batches.per_epoch
    3
    """

    def __init__(self, lengths: NDArray[np.int64], tokens: int, seed: int) -> None:
        self.lengths, self.tokens, self.seed = lengths, tokens, seed
        self._epoch = -1
        self._plan: list[NDArray[np.int64]] = self._make(0)
        self.per_epoch = len(self._plan)

    def rows(self, number: int) -> NDArray[np.int64]:
        """The rows of a batch, counted over all epochs."""
        epoch, index = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._plan, self._epoch = self._make(epoch), epoch
        return self._plan[index]

    def _make(self, epoch: int) -> list[NDArray[np.int64]]:
        generator = np.random.default_rng([self.seed, epoch])
        order = generator.permutation(len(self.lengths))
        order = order[np.argsort(self.lengths[order], kind="stable")]
        plan: list[NDArray[np.int64]] = []
        edges = np.flatnonzero(np.diff(self.lengths[order])) + 1
        for group in np.split(order, edges):
            size = max(1, self.tokens // max(1, int(self.lengths[group[0]])))
            plan += np.split(group, range(size, len(group), size))
        return [plan[index] for index in generator.permutation(len(plan))]
