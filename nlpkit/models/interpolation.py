"""Plain interpolation of n-gram models (Jelinek and Mercer, 1980), as the lectures have it.

    P(w | u v) = l3 f(w | u v) + (1 - l3) (l2 f(w | v) + (1 - l2) (l1 f(w) + (1 - l1) / V))

where f are relative frequencies and a context that was never seen leaves its place to the shorter
one. The weights are those under which held-out text is likeliest, found by expectation
maximisation: on the text that was counted the longest n-grams would always win.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.kernels import ngrams
from nlpkit.kernels.ngrams import BACKOFF, PROBABILITY, SUFFIX
from nlpkit.models.kneser_ney import Trie, TrieBuilder
from nlpkit.models.kneser_ney_counts import Level, Scratch, count_levels

_ROUNDS = 30  # of expectation maximisation; weights change by less than a thousandth long before
_MOST_WORDS = 1 << 20  # of the held-out text, to learn a handful of weights
_LEAST = 1e-4  # a weight of 1 would make whatever is new impossible


def interpolated(
    ids: NDArray[np.int32],
    heldout: NDArray[np.int32],
    order: int,
    vocab_size: int,
    mark: int = -1,
    scratch: Scratch | None = None,
) -> Trie:
    """Relative frequencies of ``ids``, mixed as suits the ``heldout`` text.

    >>> text = np.array([0, 2, 3, 0, 2, 3, 0, 2, 0], np.int32)
    >>> trie = interpolated(text, text, 2, 4, mark=0)
    >>> len(trie.details["weights"])
    2
    """
    if not len(heldout):
        raise NlpkitError(
            "weights of an interpolation need held-out text", hint="a `val_fraction` above 0"
        )
    scratch = scratch or Scratch()
    builder = TrieBuilder(scratch, vocab_size, mark)
    for level in count_levels(ids, order, vocab_size, mark, scratch):
        frequencies, left = _frequencies(level, scratch)
        builder.keep(level, frequencies, left)
    trie = builder.finish({})
    weights = learn_weights(trie, heldout[:_MOST_WORDS])
    _mix(trie, weights)
    trie.details["weights"] = weights
    return trie


def _frequencies(level: Level, scratch: Scratch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Counts as shares of their contexts; no discounts, nothing held back."""
    frequencies = scratch.empty(len(level), np.float32)
    left = scratch.empty(len(level.first) - 1, np.float32)
    none = np.zeros(1, np.float32)
    ngrams.smooth_level(
        level.counts,
        level.first,
        np.zeros(len(level), np.int32),
        none,
        np.zeros(4),
        frequencies,
        left,
    )
    return np.maximum(frequencies, np.float32(1e-30)), left


def learn_weights(trie: Trie, heldout: NDArray[np.int32]) -> list[float]:
    """The weight of each length against all shorter ones, the shortest first."""
    order = trie.order
    chain = np.empty((len(heldout), order), np.int32)
    ids = np.ascontiguousarray(heldout, np.int32)
    ngrams.child_chain(trie.words, trie.nodes, ids, trie.start, trie.mark, chain)
    logs = trie.nodes.view(np.float32)[np.maximum(chain, 0), PROBABILITY]
    shares = np.where(chain > 0, np.exp(logs), 0.0)  # (T, order)
    shares[shares < 1e-20] = 0.0
    seen = chain >= 0
    weights = np.full(order, 0.5)
    for _ in range(_ROUNDS):
        own = np.where(seen, weights, 0.0) * shares
        passed = np.where(seen, 1 - weights, 1.0)
        # what reaches a length has been passed on by all longer ones
        reach = np.cumprod(passed[:, ::-1], axis=1)[:, ::-1]
        after = np.concatenate([reach[:, 1:], np.ones((len(reach), 1))], axis=1)
        parts = np.concatenate([reach[:, :1] / trie.vocab_size, own * after], axis=1)
        parts /= parts.sum(axis=1, keepdims=True)  # whose word it was: (T, order + 1)
        mine = (parts[:, 1:] * seen).sum(axis=0)
        all_below = (np.cumsum(parts, axis=1)[:, 1:] * seen).sum(axis=0)
        weights = np.clip(mine / np.maximum(all_below, 1e-30), _LEAST, 1 - _LEAST)
    return [float(weight) for weight in weights]


def _mix(trie: Trie, weights: list[float]) -> None:
    """Turn the frequencies in the trie into the mixture's probabilities and back-off weights."""
    values = trie.nodes.view(np.float32)
    for number, weight in enumerate(weights):
        begin, end = trie.levels[number], trie.levels[number + 1]
        for start in range(begin, end, 1 << 20):
            rows = slice(start, min(start + (1 << 20), end))
            if number:
                shorter = np.exp(values[trie.nodes[rows, SUFFIX], PROBABILITY])
            else:
                shorter = np.float32(1 / trie.vocab_size)
            own = np.exp(values[rows, PROBABILITY])
            own[own < 1e-20] = 0
            values[rows, PROBABILITY] = np.log(weight * own + (1 - weight) * shorter)
            longer = weights[number + 1] if number + 1 < len(weights) else 0.0
            contexts = trie.nodes[rows, 2] < trie.nodes[start + 1 : rows.stop + 1, 2]
            values[rows, BACKOFF] = np.where(contexts, np.log(1 - longer), 0)
