"""The best tag sequence and sums over all of them, in numpy: prediction needs no torch.

``pairs`` (K+1, K+1) holds the score of each tag after each other; its last row is the start of a
sequence, its last column the end. Zeros make the tags independent (a softmax for each token), and
minus infinity forbids a pair.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
TINY = 1e-100  # what a forbidden pair weighs, so that no sum over paths is 0


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


class Chain(NamedTuple):
    """What the forward-backward algorithm finds; alpha and beta add up to 1 at every step."""

    alpha: Doubles  # (B, T, K), all paths up to a tag at a step, relative to the other tags
    beta: Doubles  # (B, T, K), all paths from the tag at that step on
    weights: Doubles  # (K+1, K+1), exp(pairs)
    inside: NDArray[np.bool_]  # (B, T)
    log_partition: Doubles  # (B,)

    def reached(self) -> Doubles:
        """All paths up to a step but for what the step itself says of the tag, (B, T, K)."""
        start = np.broadcast_to(self.weights[-1, :-1], self.alpha[:, :1].shape)
        return np.concatenate([start, self.alpha[:, :-1] @ self.weights[:-1, :-1]], axis=1)


def forward_backward(emissions: Floats, pairs: Floats, lengths: NDArray[np.int64]) -> Chain:
    """Sums over all paths of sequences, (B, T, K): products in 64 bits, scaled at every step.

    Alpha is found from the start and beta from the end of each sequence at once: they differ in
    the direction of the pairs alone.

    >>> chain = forward_backward(np.zeros((1, 2, 3)), np.zeros((4, 4)), np.array([2]))
    >>> round(float(np.exp(chain.log_partition[0])), 6)  # paths of two tags out of three
    9.0
    """
    n_rows, n_steps, _ = emissions.shape
    steps = np.arange(n_steps)
    inside = steps < lengths[:, None]  # (B, T)
    weights = np.maximum(np.exp(pairs.astype(np.float64)), TINY)
    inner, start, end = weights[:-1, :-1], weights[-1, :-1], weights[:-1, -1]
    tops = emissions.max(axis=2, keepdims=True)  # (B, T, 1)
    emitted = np.maximum(np.exp((emissions - tops).astype(np.float64)), TINY)
    emitted[~inside] = 1
    # where each step is when a sequence is read from its end; padding stays where it is
    mirrored = np.where(inside, lengths[:, None] - 1 - steps, steps)[:, :, None]  # (B, T, 1)
    both = np.stack([emitted, np.take_along_axis(emitted, mirrored, axis=1)])
    both = np.ascontiguousarray(both.transpose(2, 0, 1, 3))  # (T, 2, B, K)
    links = np.stack([inner, inner.T])
    state = np.stack([start, end])[:, None]
    sums = np.empty((n_steps, 2, n_rows, 1))
    for step, here in enumerate(both):
        here *= state if step == 0 else state @ links
        here.sum(axis=2, keepdims=True, out=sums[step])
        here /= sums[step]
        state = here
    alpha, beta = both.transpose(1, 2, 0, 3)  # (B, T, K) each
    last = alpha[np.arange(n_rows), lengths - 1]
    grown = (np.log(sums[:, 0, :, 0]).T + tops[:, :, 0]) * inside  # (B, T)
    beta = np.take_along_axis(beta, mirrored, axis=1)
    return Chain(alpha, beta, weights, inside, grown.sum(axis=1) + np.log(last @ end))


class PathProbabilities:
    """Probabilities of parts of one sequence's path.

    >>> chain = PathProbabilities(np.zeros((3, 2)), np.zeros((3, 3)))
    >>> round(chain.of(0, [1]), 6), round(chain.of(0, [1, 0]), 6)
    (0.5, 0.25)
    """

    def __init__(self, emissions: Floats, pairs: Floats) -> None:
        chain = forward_backward(emissions[None], pairs, np.array([len(emissions)]))
        marginals = chain.reached()[0] * chain.beta[0]
        self.marginals = marginals / marginals.sum(axis=1, keepdims=True)  # (T, K)
        self._pairs, self._beta = chain.weights[:-1, :-1], chain.beta[0]

    def of(self, start: int, tags: list[int]) -> float:
        """The probability that tokens from ``start`` on have these tags."""
        probability = self.marginals[start, tags[0]]
        for step, (before, tag) in enumerate(itertools.pairwise(tags), start + 1):
            next_tags = self._pairs[before] * self._beta[step]  # of each tag, if this one is there
            probability *= next_tags[tag] / next_tags.sum()
        return float(probability)
