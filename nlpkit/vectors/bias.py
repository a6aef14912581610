"""The word embedding association test (WEAT; Caliskan, Bryson and Narayanan 2017).

Are the words of one list (flowers) nearer to one kind of attribute (pleasant) and those of another
(insects) to the other (unpleasant)? The association of a word is the mean of its cosines with the
first attributes less that with the second; the effect is the difference of the two lists' means in
standard deviations, and p how often a random division of the words into lists does as well.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nlpkit.errors import NlpkitError
from nlpkit.vectors.query import stack
from nlpkit.vectors.store import Vectors, unit_rows

MOST_EXACT = 20_000  # divisions that are all tried; beyond, as many random ones


@dataclass(frozen=True)
class Association:
    """The result of a test."""

    effect: float  # -2 to 2
    p: float  # one-sided
    known: int  # words that have a vector
    words: int


def weat(
    vectors: Vectors,
    targets: tuple[Sequence[str], Sequence[str]],
    attributes: tuple[Sequence[str], Sequence[str]],
    *,
    seed: int = 1,
) -> Association:
    """Test whether the first targets go with the first attributes.

    >>> words = ["rose", "tulip", "wasp", "flea", "good", "bad"]
    >>> matrix = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [1, 0], [0, 1]], np.float32)
    >>> lists = (["rose", "tulip"], ["wasp", "flea"]), (["good"], ["bad"])
    >>> found = weat(Vectors(words, matrix), *lists)
    >>> round(found.effect, 2), round(found.p, 3), found.known
    (1.73, 0.167, 6)
    """
    lists = [*targets, *attributes]
    known = [[word for word in words if vectors.knows(word)] for words in lists]
    for number, words in enumerate(known):
        if len(words) < (2 if number < 2 else 1):
            what = ("first targets", "second targets", "first attributes", "second attributes")
            raise NlpkitError(
                f"of the {what[number]} {len(words)} of {len(lists[number])} words are known",
                hint="more words, or vectors that know them",
            )
    first, second, plus, minus = (unit_rows(stack(vectors, words)) for words in known)
    words_of_both = np.concatenate([first, second])
    scores = (words_of_both @ plus.T).mean(axis=1) - (words_of_both @ minus.T).mean(axis=1)
    size = len(first)
    deviation = scores.std(ddof=1)
    difference = float(scores[:size].mean() - scores[size:].mean())
    effect = difference / float(deviation) if deviation > 0 else 0.0
    total, counted = sum(map(len, lists)), sum(map(len, known))
    return Association(effect, _chance(scores, size, seed), counted, total)


def _chance(scores: np.ndarray, size: int, seed: int) -> float:
    """How often a division of the words has a first list whose sum is as high as this one's."""
    observed = scores[:size].sum() - 1e-9
    if math.comb(len(scores), size) <= MOST_EXACT:
        sums = [
            scores[list(some)].sum() for some in itertools.combinations(range(len(scores)), size)
        ]
        return float(np.mean(np.array(sums) >= observed))
    random = np.random.default_rng(seed)
    shuffled = random.permuted(np.tile(scores, (MOST_EXACT, 1)), axis=1)
    as_high = (shuffled[:, :size].sum(axis=1) >= observed).sum()
    return float((as_high + 1) / (MOST_EXACT + 1))
