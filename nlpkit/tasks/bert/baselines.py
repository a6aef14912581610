"""What counting alone guesses for masked tokens: what a model must beat to have learned anything.

Counts are of the training text; guesses are for the masks of the held-out sequences, from what a
model sees there: a neighbour may be masked, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlpkit.tasks.bert.masking import IGNORED, Masked

_PRIOR = 5.0  # how many counts the unigram model is worth beside those of a left neighbour


@dataclass(frozen=True)
class Baselines:
    """Shares of masked tokens guessed right, and losses in nats."""

    unigram: float
    unigram_loss: float
    left: float  # the likeliest token given its left neighbour
    left_loss: float
    both: float  # given both neighbours; where they are new or masked, by the left one alone

    def describe(self) -> str:
        """In one line."""
        return (
            f"baselines: unigram {100 * self.unigram:.1f} % (loss {self.unigram_loss:.2f}), "
            f"left neighbour {100 * self.left:.1f} % ({self.left_loss:.2f}), "
            f"both neighbours {100 * self.both:.1f} %"
        )


def measure_baselines(
    train: NDArray[np.int32],
    ordinary: NDArray[np.bool_],
    masked: Masked,
) -> Baselines:
    """Count in a stream of ids; guess what is masked.

    ``ordinary`` (V,) is false for special tokens, which are neighbours but never guesses.
    """
    size = len(ordinary)
    rows, columns = np.nonzero(masked.targets != IGNORED)
    places = masked.places[rows, columns]
    targets = masked.targets[rows, columns]  # (M,)
    before = masked.idx[rows, np.maximum(places - 1, 0)]
    after = masked.idx[rows, np.minimum(places + 1, masked.idx.shape[1] - 1)]
    ids = train.astype(np.int64)
    counts = np.bincount(ids, minlength=size) * ordinary
    unigram = (counts + 0.1) / (counts + 0.1).sum()
    likeliest = np.full(len(targets), int(np.argmax(counts)))
    by_left, joint, total = _guess(ids[:-1], ids[1:], before, targets, ordinary)
    left = np.where(by_left >= 0, by_left, likeliest)
    left_probability = (joint + _PRIOR * unigram[targets]) / (total + _PRIOR)
    around, asked = ids[:-2] * size + ids[2:], before * size + after
    by_both, _, _ = _guess(around, ids[1:-1], asked, targets, ordinary)
    both = np.where(by_both >= 0, by_both, left)
    return Baselines(
        unigram=float((likeliest == targets).mean()),
        unigram_loss=float(-np.log(unigram[targets]).mean()),
        left=float((left == targets).mean()),
        left_loss=float(-np.log(left_probability).mean()),
        both=float((both == targets).mean()),
    )


def _guess(
    contexts: NDArray[np.int64],
    words: NDArray[np.int64],
    asked: NDArray[np.int64],
    targets: NDArray[np.int64],
    ordinary: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For contexts that are asked for: the likeliest word (-1: never seen), and two counts.

    The counts are those of the target in the context and of the context.

    >>> contexts, words = np.array([1, 1, 1, 2]), np.array([5, 5, 6, 7])
    >>> asked, targets, ordinary = np.array([1, 3]), np.array([6, 6]), np.ones(9, bool)
    >>> [part.tolist() for part in _guess(contexts, words, asked, targets, ordinary)]
    [[5, -1], [1, 0], [3, 0]]
    """
    size = len(ordinary)
    wanted, place = np.unique(asked, return_inverse=True)
    index = np.minimum(np.searchsorted(wanted, contexts), len(wanted) - 1)
    seen = (wanted[index] == contexts) & ordinary[words]
    pairs, counts = np.unique(index[seen] * size + words[seen], return_counts=True)
    context, word = pairs // size, pairs % size
    order = np.lexsort((word, -counts, context))
    best = np.full(len(wanted), -1)
    first = np.flatnonzero(np.diff(context[order], prepend=-1))
    best[context[order][first]] = word[order][first]
    total = np.bincount(index[seen], minlength=len(wanted))
    found = np.minimum(np.searchsorted(pairs, place * size + targets), max(0, len(pairs) - 1))
    if not len(pairs):
        return best[place], np.zeros(len(asked), np.int64), total[place]
    joint = np.where(pairs[found] == place * size + targets, counts[found], 0)
    return best[place], joint, total[place]
