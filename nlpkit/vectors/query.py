"""Questions put in words: neighbours, analogies, the odd one out, similarity, query expansion.

Each builds query vectors and calls the same search with the words of the question banned.
Sums of words are sums of unit vectors, so that a frequent word with a long vector does not drown
the others; only ``dot`` and ``euclidean`` neighbours use the vectors as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.vectors.search import QUERIES_AT_ONCE, ScoreBlock, best_rows
from nlpkit.vectors.settings import QUERY, AnalogyMethod, Metric
from nlpkit.vectors.store import Neighbour, Vectors, unit_rows

Floats = NDArray[np.float32]

Question = tuple[Sequence[str], Sequence[str]]  # words to add up, words to take away

_TINY = np.float32(1e-3)  # keeps 3CosMul and PairDirection from dividing by zero


def stack(vectors: Vectors, words: Iterable[str]) -> Floats:
    """The vectors of words, a row each; an unknown word is an error."""
    rows = [vectors.get(word) for word in words]
    return np.stack(rows) if rows else np.empty((0, vectors.dim), np.float32)


def known_rows(vectors: Vectors, words: Iterable[str]) -> set[int]:
    """The rows of those words that have one."""
    found = (vectors.words.find(word) for word in words)
    return {row for row in found if row is not None}


def mean_vectors(
    vectors: Vectors, questions: Sequence[Question], metric: Metric = QUERY.metric
) -> Floats:
    """For each question the mean of its words, those of the second list taken away.

    >>> vectors = Vectors(["a", "b"], np.array([[2, 0], [0, 3]], np.float32))
    >>> mean_vectors(vectors, [(["a"], ["b"]), (["b"], [])]).tolist()
    [[0.5, -0.5], [0.0, 1.0]]
    """
    words = [word for plus, minus in questions for word in [*plus, *minus]]
    signs = [sign for plus, minus in questions for sign in [1] * len(plus) + [-1] * len(minus)]
    lengths = np.array([len(plus) + len(minus) for plus, minus in questions])
    if not lengths.all():
        raise NlpkitError("a question needs at least one word")
    rows = stack(vectors, words)
    if metric is Metric.COSINE:
        rows = unit_rows(rows)
    starts = np.cumsum(lengths) - lengths
    sums: Floats = np.add.reduceat(rows * np.array(signs, np.float32)[:, None], starts, axis=0)
    return sums / lengths.astype(np.float32)[:, None]


def nearest(
    vectors: Vectors,
    questions: Sequence[Question],
    n: int = QUERY.n,
    *,
    metric: Metric = QUERY.metric,
    restrict: int | None = None,
) -> list[list[Neighbour]]:
    """The words nearest to the mean of each question's (positive, negative) words.

    >>> vectors = Vectors(["a", "b", "c"], np.array([[1, 0], [1, 1], [0, 1]], np.float32))
    >>> [near.word for near in nearest(vectors, [(["a", "c"], [])], 1)[0]]
    ['b']
    """
    if not questions:
        return []
    queries = mean_vectors(vectors, questions, metric)
    banned = [known_rows(vectors, [*plus, *minus]) for plus, minus in questions]
    return vectors.nearest_to(queries, n, metric=metric, banned=banned, restrict=restrict)


def analogy(
    vectors: Vectors,
    questions: Sequence[tuple[str, str, str]],
    n: int = QUERY.n,
    *,
    method: AnalogyMethod = QUERY.method,
    restrict: int | None = None,
) -> list[list[Neighbour]]:
    """For each (a, b, c), in the order of questions-words: "a is to b as c is to ?".

    >>> rows = [[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 1, 0]]
    >>> vectors = Vectors(["man", "king", "woman", "queen", "child"], np.array(rows, np.float32))
    >>> analogy(vectors, [("man", "king", "woman")], 1)[0][0].word
    'queen'
    """
    found: list[list[Neighbour]] = []
    for start in range(0, len(questions), QUERIES_AT_ONCE):
        batch = questions[start : start + QUERIES_AT_ONCE]
        words = [word for question in batch for word in question]
        units = unit_rows(stack(vectors, words)).reshape(len(batch), 3, -1)
        a, b, c = units[:, 0], units[:, 1], units[:, 2]  # (Q, D) each
        banned = [known_rows(vectors, question) for question in batch]
        if method is AnalogyMethod.COSADD:
            found += vectors.nearest_to(b - a + c, n, banned=banned, restrict=restrict)
            continue
        how = _multiplied if method is AnalogyMethod.COSMUL else _pair_direction
        score = partial(how, vectors, a, b, c)
        n_rows = len(vectors) if restrict is None else min(restrict, len(vectors))
        rows, scores = best_rows(score, len(batch), n_rows, keep=n + 3)
        found += vectors.neighbours(rows, scores, banned, n)
    return found


def _multiplied(vectors: Vectors, a: Floats, b: Floats, c: Floats) -> ScoreBlock:
    to_a, to_b, to_c = vectors.cosines(a), vectors.cosines(b), vectors.cosines(c)

    def block(start: int, stop: int) -> Floats:
        scores = to_b(start, stop) + 1
        scores *= to_c(start, stop) + 1
        scores /= 2 * (to_a(start, stop) + 1 + 2 * _TINY)
        return scores

    return block


def _pair_direction(vectors: Vectors, a: Floats, b: Floats, c: Floats) -> ScoreBlock:
    direction = unit_rows(b - a)
    along, to_c = vectors.cosines(direction), vectors.cosines(c)
    from_c = np.einsum("qd,qd->q", direction, c)[:, None]

    def block(start: int, stop: int) -> Floats:
        distance = np.sqrt(np.maximum(2 - 2 * to_c(start, stop), 0))
        return (along(start, stop) - from_c) / np.maximum(distance, _TINY)

    return block


def similarity(vectors: Vectors, first: str, second: str, metric: Metric = QUERY.metric) -> float:
    """How near two words are by a metric.

    >>> vectors = Vectors(["a", "b"], np.array([[1, 0], [1, 1]], np.float32))
    >>> round(similarity(vectors, "a", "b"), 4)
    0.7071
    """
    left, right = stack(vectors, [first, second]).astype(np.float64)
    if metric is Metric.EUCLIDEAN:
        return float(np.linalg.norm(left - right))
    product = float(left @ right)
    if metric is Metric.DOT:
        return product
    lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
    return product / lengths if lengths else 0.0


def odd_one_out(vectors: Vectors, words: Sequence[str]) -> list[tuple[str, float]]:
    """Words with their cosine to the mean of all of them, the odd one first.

    >>> vectors = Vectors(["cat", "dog", "car"], np.array([[1, 0], [1, 0.1], [0, 1]], np.float32))
    >>> odd_one_out(vectors, ["cat", "dog", "car"])[0][0]
    'car'
    """
    if len(words) < 3:
        raise NlpkitError("the odd one out needs at least three words")
    units = unit_rows(stack(vectors, words))
    cosines = units @ unit_rows(units.mean(axis=0, keepdims=True))[0]
    return [(words[index], float(cosines[index])) for index in np.argsort(cosines, kind="stable")]


def expand(
    vectors: Vectors,
    lines: Sequence[Sequence[str]],
    n: int = QUERY.expand_n,
    *,
    minimum: float = QUERY.expand_minimum,
    restrict: int | None = None,
) -> list[list[str]]:
    """For each line of words, what to append: up to ``n`` near words of each, none twice.

    Words without a vector add nothing, nor do neighbours with a cosine under ``minimum``.

    >>> vectors = Vectors(["cat", "dog", "car"], np.array([[1, 0], [1, 0.1], [0, 1]], np.float32))
    >>> expand(vectors, [["a", "cat"]])
    [['dog']]
    """
    words = list(dict.fromkeys(word for line in lines for word in line if vectors.knows(word)))
    found = nearest(vectors, [([word], []) for word in words], n, restrict=restrict)
    near = {
        word: [neighbour.word for neighbour in row if neighbour.score >= minimum]
        for word, row in zip(words, found, strict=True)
    }
    expanded = []
    for line in lines:
        more = dict.fromkeys(word for known in line for word in near.get(known, []))
        expanded.append([word for word in more if word not in set(line)])
    return expanded
