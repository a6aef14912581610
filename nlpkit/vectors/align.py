"""Two sets of vectors in one space: rotate one onto the other, and see which words moved.

The rotation is the orthogonal one that brings pairs of words together best (Procrustes; Schönemann
1966), learned from words that both sets have or from a dictionary. Translations are then found by
cosine, or by CSLS, which takes off how near a word is to everything (Conneau et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError, plural
from nlpkit.vectors.settings import AlignSettings
from nlpkit.vectors.store import Vectors, unit_rows
from nlpkit.vectors.words import ListedWords

Floats = NDArray[np.float32]

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Alignment:
    """A rotation and how well it translates pairs that it was not learned from."""

    rotation: Floats  # (D, D): a row of the first set times this lies in the second
    pairs: int  # that it was learned from
    held_out: int
    precision: dict[str, float]  # at 1 and at 5, by cosine and by CSLS


def rotation(first: Floats, second: Floats) -> Floats:
    """The orthogonal matrix R for which ``first @ R`` is nearest to ``second``; rows are pairs.

    >>> turn = np.array([[0, 1], [-1, 0]], np.float32)
    >>> points = np.array([[1, 2], [3, 4], [0, 1]], np.float32)
    >>> np.abs(rotation(points, points @ turn) - turn).max() < 1e-6
    np.True_
    """
    left, _, right = np.linalg.svd(first.astype(np.float64).T @ second.astype(np.float64))
    return (left @ right).astype(np.float32)


def align(
    first: Vectors, second: Vectors, pairs: Sequence[tuple[str, str]], settings: AlignSettings
) -> tuple[Vectors, Alignment]:
    """The first set, scaled to length 1 and rotated into the second's space, and the scores."""
    if first.dim != second.dim:
        raise NlpkitError(
            f"the sets have vectors of {first.dim} and {second.dim} numbers",
            hint="vectors of one length: nlpkit vectors pca",
        )
    rows = known_pairs(first, second, pairs)
    held = int(len(rows) * settings.held_out)
    if len(rows) - held < 2:
        raise NlpkitError(
            f"too few pairs of words are in both sets: {len(rows)}",
            hint="a dictionary, or other sets",
        )
    order = np.random.default_rng(settings.seed).permutation(len(rows))
    test, train = rows[order[:held]], rows[order[held:]]
    left, right = unit_rows(first.matrix[train[:, 0]]), unit_rows(second.matrix[train[:, 1]])
    turn = rotation(left, right)
    turned = unit_rows(np.asarray(first.matrix)) @ turn
    precision = _precision(turned, second, test) if held else {}
    words = ListedWords(list(first.words), first.words.counts)
    return Vectors(words, turned), Alignment(turn, len(train), held, precision)


def shared_words(first: Vectors, second: Vectors) -> list[tuple[str, str]]:
    """Words that both sets have, each with itself, by their rank in the first."""
    others = set(second.words)
    return [(word, word) for word in first.words if word in others]


def known_pairs(
    first: Vectors, second: Vectors, pairs: Sequence[tuple[str, str]]
) -> NDArray[np.int64]:
    """Rows (N, 2) of the pairs whose words are both known."""
    first.words.expect(left for left, _ in pairs)
    second.words.expect(right for _, right in pairs)
    found = [(first.words.find(left), second.words.find(right)) for left, right in pairs]
    return np.array([pair for pair in found if None not in pair], np.int64).reshape(-1, 2)


def _precision(turned: Floats, second: Vectors, test: NDArray[np.int64]) -> dict[str, float]:
    """How often the right word is the nearest, or among five, of all words of the second set."""
    targets = unit_rows(np.asarray(second.matrix))
    queries = turned[test[:, 0]]
    # how near each target is to the queries around it: CSLS takes half of both off
    nearness = np.concatenate(
        [
            _mean_of_highest(targets[start : start + _ROWS_AT_ONCE] @ queries.T)
            for start in range(0, len(targets), _ROWS_AT_ONCE)
        ]
    )
    hits = {"cosine@1": 0, "cosine@5": 0, "csls@1": 0, "csls@5": 0}
    for start in range(0, len(queries), _ROWS_AT_ONCE):
        scores = queries[start : start + _ROWS_AT_ONCE] @ targets.T  # (Q, V)
        right = test[start : start + _ROWS_AT_ONCE, 1]
        for name, ranked in (("cosine", scores), ("csls", 2 * scores - nearness)):
            own = ranked[np.arange(len(right)), right]
            better = (ranked > own[:, None]).sum(axis=1)
            hits[f"{name}@1"] += int((better < 1).sum())
            hits[f"{name}@5"] += int((better < 5).sum())
    return {name: count / len(test) for name, count in hits.items()}


def _mean_of_highest(scores: Floats, n: int = 10) -> Floats:
    n = min(n, scores.shape[1])
    highest = np.partition(scores, scores.shape[1] - n, axis=1)[:, scores.shape[1] - n :]
    mean: Floats = highest.mean(axis=1)
    return mean


@dataclass(frozen=True)
class Shift:
    """A word that moved: 1 - cosine between its two vectors, and the interval over runs."""

    word: str
    shift: float
    low: float
    high: float
    before: list[str]
    after: list[str]


def shifts(
    firsts: Sequence[Vectors], seconds: Sequence[Vectors], settings: AlignSettings, n: int
) -> list[Shift]:
    """The words that moved most from the first space to the second.

    Several sets of a side are runs with other seeds: each first set is rotated onto each second
    one, and a word's shift is the mean over them, with the lowest and highest as its interval.
    """
    words = [word for word, _ in shared_words(firsts[0], seconds[0])][: settings.restrict]
    for other in [*firsts[1:], *seconds[1:]]:
        words = [word for word in words if word in other]
    if len(words) < 2:
        shared = plural(len(words), "word")
        raise NlpkitError(f"the sets have {shared} in common", hint="other sets")
    pairs = [(word, word) for word in words]
    found = []
    for first in firsts:
        for second in seconds:
            rows = known_pairs(first, second, pairs)
            left = unit_rows(first.matrix[rows[:, 0]])
            right = unit_rows(second.matrix[rows[:, 1]])
            found.append(1 - np.einsum("nd,nd->n", left @ rotation(left, right), right))
    moved = np.stack(found)  # (runs, N)
    mean = moved.mean(axis=0)
    return [
        Shift(
            words[row],
            float(mean[row]),
            float(moved[:, row].min()),
            float(moved[:, row].max()),
            [near.word for near in firsts[0].nearest(words[row], settings.neighbours)],
            [near.word for near in seconds[0].nearest(words[row], settings.neighbours)],
        )
        for row in np.argsort(-mean, kind="stable")[:n].tolist()
    ]
