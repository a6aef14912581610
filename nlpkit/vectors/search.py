"""Find the best-scoring rows for many queries at once, a block of rows at a time.

Scores come from a function, so that nearest neighbours and all kinds of analogy share this loop.
A block of scores is one matrix product that stays in the processor's cache. Of each block only
what beats the best found so far is looked at, which soon is next to nothing; so finding the top
costs little beside the products.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

# (start, stop) -> scores (queries, stop - start), the higher the better
ScoreBlock = Callable[[int, int], "NDArray[np.float32]"]

QUERIES_AT_ONCE = 1024
_SCORES_AT_ONCE = 1 << 20
_LARGEST_BLOCK = 1 << 16
_SCORES_WORTH_THREADS = 1 << 24


class _Best:
    """Candidates (query, row, score) and, for each query, the score a new one has to beat."""

    def __init__(self, n_queries: int, keep: int) -> None:
        self.keep = keep
        self.queries = np.empty(0, np.int64)
        self.rows = np.empty(0, np.int64)
        self.scores = np.empty(0, np.float32)
        self.threshold = np.full(n_queries, -np.inf, np.float32)

    def add(self, scores: NDArray[np.float32], first_row: int) -> None:
        # most queries find nothing new in a block, which their highest score there tells soonest
        hit = np.flatnonzero(scores.max(axis=1) > self.threshold)
        flat = np.flatnonzero(scores[hit] > self.threshold[hit, None])
        places, columns = np.divmod(flat, scores.shape[1])
        queries = hit[places]
        self.queries = np.concatenate([self.queries, queries])
        self.rows = np.concatenate([self.rows, columns + first_row])
        self.scores = np.concatenate([self.scores, scores[queries, columns]])

    def tidy(self) -> None:
        """Keep the best of each query, best first; between equals the earlier row."""
        order = np.lexsort((self.rows, -self.scores, self.queries))
        queries = self.queries[order]
        rank = np.arange(len(queries)) - np.searchsorted(queries, queries)
        order = order[rank < self.keep]
        self.queries, self.rows, self.scores = (
            self.queries[order],
            self.rows[order],
            self.scores[order],
        )
        last = np.searchsorted(self.queries, np.arange(len(self.threshold)), side="right") - 1
        self.threshold = self.scores[last]


def best_rows(
    make_score: Callable[[], ScoreBlock], n_queries: int, n_rows: int, keep: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ``keep`` best rows of each query and their scores, both (queries, keep), best first.

    Scores must be finite; at most ``n_rows`` rows come back. ``make_score`` is called once for
    each thread, so that what it makes may keep memory of its own.

    >>> table = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.3]], np.float32)
    >>> best_rows(lambda: lambda start, stop: table[:, start:stop], 2, 3, keep=2)[0].tolist()
    [[1, 2], [0, 2]]
    """
    keep = min(keep, n_rows)
    if keep == 0 or n_queries == 0:
        return np.empty((n_queries, 0), np.int64), np.empty((n_queries, 0), np.float32)
    if n_queries * n_rows < _SCORES_WORTH_THREADS:
        return _best_of_range(make_score(), n_queries, 0, n_rows, keep)
    return _best_in_threads(make_score, n_queries, n_rows, keep)


def _best_of_range(
    score: ScoreBlock, n_queries: int, first: int, last: int, keep: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    keep = min(keep, last - first)
    best = _Best(n_queries, keep)
    block = max(keep, min(_LARGEST_BLOCK, _SCORES_AT_ONCE // n_queries))
    tidy_at = 0
    for start in range(first, last, block):
        stop = min(start + block, last)
        scores = score(start, stop)
        if start == first:
            # just under the block's own keep-th best, so that it is found among the candidates
            seed = np.partition(scores, -keep, axis=1)[:, -keep]
            best.threshold = np.nextafter(seed, np.float32(-np.inf), dtype=np.float32)
        best.add(scores, start)
        # with twice the rows seen, about as many candidates as kept ones have piled up
        if stop - first >= tidy_at or len(best.rows) > 8 * keep * n_queries or stop == last:
            best.tidy()
            tidy_at = 2 * (stop - first)
    return best.rows.reshape(n_queries, keep), best.scores.reshape(n_queries, keep)


def _best_in_threads(
    make_score: Callable[[], ScoreBlock], n_queries: int, n_rows: int, keep: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """A range of rows for each core.

    The matrix products could use all cores themselves, but then everything between them has one
    core only, and the others wait for it by spinning.
    """
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from nlpkit.parallel import available_cores

    parts = min(available_cores(), n_rows)
    cuts = [n_rows * part // parts for part in range(parts + 1)]

    def search(part: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return _best_of_range(make_score(), n_queries, cuts[part], cuts[part + 1], keep)

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(parts) as pool:
        found = list(pool.map(search, range(parts)))
    rows = np.concatenate([rows for rows, _ in found], axis=1)
    scores = np.concatenate([scores for _, scores in found], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, :keep]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
