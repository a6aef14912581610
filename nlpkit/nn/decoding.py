"""The best tag sequence and the probability of a part of it, in numpy: prediction needs no torch.

``pairs`` (K+1, K+1) holds the score of each tag after each other; its last row is the start of a
sequence, its last column the end. Zeros make the tags independent (a softmax for each token), and
minus infinity forbids a pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def best_paths(emissions: Floats, pairs: Floats, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The path of highest score of each sequence, (B, T, K) -> (B, T); what is padding is 0.

    >>> best_paths(np.eye(2, dtype=np.float32)[None], np.zeros((3, 3)), np.array([2])).tolist()
    [[0, 1]]
    """
    n_rows, n_steps, _ = emissions.shape
    inner = pairs[:-1, :-1]
    # sequences side by side, (T, K, B): what numpy then does in its inner loops is long
    best = np.ascontiguousarray(emissions.transpose(1, 2, 0))
    best[0] += pairs[-1, :-1, None]
    into = inner.T[:, :, None]  # (K, K before, 1)
    for step in range(1, n_steps):
        best[step] += (best[step - 1] + into).max(axis=1)
    rows = np.arange(n_rows)
    paths = np.zeros((n_rows, n_steps), np.int64)
    tags = (best[lengths - 1, :, rows] + pairs[:-1, -1]).argmax(axis=1)  # (B,)
    for step in range(n_steps - 1, -1, -1):
        inside = step < lengths
        paths[inside, step] = tags[inside]
        if step:
            before = (best[step - 1] + inner[:, tags]).argmax(axis=0)
            tags = np.where(inside, before, tags)
    return paths


def left_to_right_paths(emissions: Floats, pairs: Floats) -> NDArray[np.int64]:
    """The best tag at each step after the one chosen before it, (B, T, K) -> (B, T).

    What comes later changes nothing, as it may in the best path of all.

    >>> emissions = np.array([[[1, 0], [0, 9]]], np.float32)
    >>> pairs = np.array([[0, -99, 0], [0, 0, 0], [0, 0, 0]], np.float32)  # never 1 after 0
    >>> left_to_right_paths(emissions, pairs).tolist()
    [[0, 0]]
    """
    paths = np.empty(emissions.shape[:2], np.int64)
    before = pairs[-1:, :-1]  # (1 or B, K)
    for step in range(emissions.shape[1]):
        paths[:, step] = (emissions[:, step] + before).argmax(axis=1)
        before = pairs[paths[:, step], :-1]
    return paths


def _log_sum(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    top = values.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        return (np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top).squeeze(axis)


class PathProbabilities:
    """Probabilities of parts of one sequence's path, by the forward-backward algorithm.

    >>> chain = PathProbabilities(np.zeros((3, 2)), np.zeros((3, 3)))
    >>> round(chain.of(0, [1]), 6), round(chain.of(0, [1, 0]), 6)
    (0.5, 0.25)
    """

    def __init__(self, emissions: Floats, pairs: Floats) -> None:
        self.emissions = emissions.astype(np.float64)  # (T, K)
        self.pairs = pairs.astype(np.float64)
        n_steps = len(emissions)
        inner = self.pairs[:-1, :-1]
        self.forward = np.empty_like(self.emissions)
        self.backward = np.empty_like(self.emissions)
        self.forward[0] = self.pairs[-1, :-1] + self.emissions[0]
        for step in range(1, n_steps):
            before = self.forward[step - 1][:, None] + inner
            self.forward[step] = _log_sum(before, 0) + self.emissions[step]
        self.backward[-1] = self.pairs[:-1, -1]
        for step in range(n_steps - 2, -1, -1):
            after = inner + self.emissions[step + 1] + self.backward[step + 1]
            self.backward[step] = _log_sum(after, 1)
        self.log_partition = float(_log_sum(self.forward[-1] + self.backward[-1], 0))

    def of(self, start: int, tags: list[int]) -> float:
        """The probability that tokens from ``start`` on have these tags."""
        score = self.forward[start, tags[0]]
        for offset in range(1, len(tags)):
            score += self.pairs[tags[offset - 1], tags[offset]]
            score += self.emissions[start + offset, tags[offset]]
        score += self.backward[start + len(tags) - 1, tags[-1]]
        return float(min(1.0, np.exp(score - self.log_partition)))
