"""Threads that repeat themselves: each trains its own copy of the vectors, merged in a fixed order.

Threads that write to the same rows (Hogwild) are as fast as can be, and no two runs are alike. Here
each thread has a copy of both matrices and a fixed share of the chunks. After a period all changes
of a row are added up, and every copy goes on from the sum: local SGD (Stich 2019).

A rare word has been met by one thread; the sum is its change. A frequent word has been moved
towards the same place by all threads, and the sum would go beyond it. If a step closes a part a of
the distance to that place, n steps close 1 - (1 - a)^n of it. So T threads that took n steps each
should have closed 1 - (1 - a)^(Tn), and the sum of their changes is T (1 - (1 - a)^n): the quotient
of the two is the weight of the sum, 1 for rare words and 1 / T for the most frequent.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel
from nlpkit.word2vec.tiles import aligned_zeros

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

STEP = 0.001  # part of the distance that one occurrence of a word closes, about
# Words that each thread trains on between two merges, for each row that has to be merged: fewer
# give threads that know of each other earlier, more give less time to merging.
WORDS_PER_ROW = 3
MERGES_PER_EPOCH = 10  # at least, if there are chunks enough


class Replicas:
    """Engines that are trained apart and merged; to a trainer they are one engine."""

    def __init__(
        self, engines: Sequence[Any], counts: NDArray[np.int64], words: int, chunk: int
    ) -> None:
        self.engines = list(engines)
        count = len(self.engines)
        self._inputs = _share(self.engines, "input")  # (1 + T, rows, width), the merged one first
        self._outputs = _share(self.engines, "output")
        rows = self._inputs.shape[1] + self._outputs.shape[1]
        chunks = max(words // chunk, 1)
        share = min(rows * WORDS_PER_ROW // chunk, chunks // (count * MERGES_PER_EPOCH))
        self.period = max(share, 1) * count  # chunks between two merges
        part = min(self.period * chunk / words, 1.0) / count  # of the text, for a thread
        per_row = self.engines[0].updates_per_row(counts)
        self._weights = [
            merge_weights(updates * part, count)[:size]
            for updates, size in zip(
                per_row, (self._inputs.shape[1], self._outputs.shape[1]), strict=True
            )
        ]

    def round_size(self, wanted: int) -> int:
        """Whole periods, at least one."""
        return max(1, wanted // self.period) * self.period

    def matrices(self) -> tuple[Floats, Floats]:
        """The merged ones: what threads have not merged yet is not part of the state."""
        engine = self.engines[0]
        columns = slice(engine.config.dim)
        inputs, outputs = self._inputs[0, : engine.inputs], self._outputs[0, : engine.vocabulary]
        return inputs[:, columns], outputs[:, columns]

    def set_rows(self, rows: slice, inputs: Floats) -> None:
        """Start from these vectors."""
        self._inputs[:, rows, : inputs.shape[1]] = inputs

    def set_outputs(self, rows: slice, outputs: Floats) -> None:
        """Start from these predictions."""
        self._outputs[:, rows, : outputs.shape[1]] = outputs

    @property
    def kernel(self) -> Any:
        """What trains a chunk."""
        return self.engines[0].kernel

    def make_worker(self) -> tuple[Any, Any]:
        """The next engine, and what its thread needs."""
        engine = self.engines.pop(0)
        self.engines.append(engine)
        return engine, engine.make_worker()

    def train_piece(
        self, number: int, start: int, stop: int, lr: float, worker: tuple[Any, Any]
    ) -> tuple[float, int]:
        """Train a worker's copy on ``ids[start:stop]``."""
        engine, space = worker
        found: tuple[float, int] = engine.train_piece(number, start, stop, lr, space)
        return found

    def merge(self, pool: ThreadPoolExecutor) -> None:
        """Add up what all copies have learned, each thread for some of the rows."""
        jobs = []
        for copies, weights in zip((self._inputs, self._outputs), self._weights, strict=True):
            cuts = np.linspace(0, len(weights), len(self.engines) + 1).astype(int).tolist()
            for first, last in itertools.pairwise(cuts):
                jobs.append(pool.submit(merge_rows, copies, weights, first, last))
        for job in jobs:
            job.result()

    def compile(self) -> None:
        """Compile or load the kernels."""
        self.engines[0].compile()
        merge_rows(self._inputs, self._weights[0], 0, 0)


def _share(engines: Sequence[Any], name: str) -> Floats:
    """One array for the matrices of all engines, and one more in front for what they began with."""
    rows, width = getattr(engines[0], name).shape
    copies = aligned_zeros((1 + len(engines)) * rows, width).reshape(-1, rows, width)
    for engine, copy in zip(engines, copies[1:], strict=True):
        setattr(engine, name, copy)
    return copies


def merge_weights(updates: NDArray[np.float64], copies: int) -> Floats:
    """What the summed changes of rows count, each of ``copies`` having so many updates of them.

    >>> [f"{weight:.2f}" for weight in merge_weights(np.array([0.0, 10.0, 1e5]), 2)]
    ['1.00', '1.00', '0.50']
    """
    left = (1 - STEP) ** np.maximum(updates, 1e-6)
    return ((1 - left**copies) / (copies * (1 - left))).astype(np.float32)


@kernel(fastmath=True)
def merge_rows(copies: Floats, weights: Floats, first: int, last: int) -> None:
    """``base + weight * (sum of copies - base)`` into all, for rows ``first:last``.

    ``copies`` (1 + T, rows, width) has the base in front.
    """
    count, width = copies.shape[0], copies.shape[2]
    change = np.zeros(width, np.float32)
    for row in range(first, last):
        for d in range(width):
            change[d] = np.float32(0.0)
        for t in range(1, count):
            for d in range(width):
                change[d] += copies[t, row, d] - copies[0, row, d]
        for d in range(width):
            copies[0, row, d] += weights[row] * change[d]
        for t in range(1, count):
            for d in range(width):
                copies[t, row, d] = copies[0, row, d]
