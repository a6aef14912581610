"""Vectors: words, a matrix with a row for each, and the search for the rows nearest to a vector.

The matrix may be memory-mapped: it is only ever read block by block, and no scaled copy of it is
made. Reading and writing files is in ``formats``; questions put in words are in ``query``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.vectors.search import QUERIES_AT_ONCE, ScoreBlock, best_rows
from nlpkit.vectors.settings import QUERY, AnalogyMethod, Metric, VectorFormat
from nlpkit.vectors.words import ListedWords, Words, close_spellings

Floats = NDArray[np.float32]

_BLOCK_ROWS = 1 << 14
_QUERIES_IN_CACHE = 32
_NUMBERS_AT_ONCE = 1 << 25  # of the vectors that were found, which are looked at again


class Neighbour(NamedTuple):
    """A row that was found. ``score`` is a distance when the metric is euclidean."""

    word: str
    score: float
    row: int


class UnknownWord(NlpkitError, KeyError):
    """A word that has no vector."""


class SubwordVectors(Protocol):
    """Something that makes a vector for a word outside the vocabulary."""

    def vector(self, word: str) -> Floats | None: ...


class Vectors:
    """A set of word vectors. Rows are ordered by frequency, the most frequent word first.

    >>> vectors = Vectors(["cat", "dog", "car"], np.array([[1, 0], [1, 0.2], [0, 1]], np.float32))
    >>> "cat" in vectors, vectors.index("dog")
    (True, 1)
    >>> [near.word for near in vectors.nearest("cat", 2)]
    ['dog', 'car']
    >>> vectors["cat"]
    array([1., 0.], dtype=float32)
    >>> vectors
    <Vectors: 3 words, 2 dimensions>
    """

    def __init__(
        self,
        words: Words | list[str],
        matrix: Floats,
        *,
        norms: Floats | None = None,
        subwords: SubwordVectors | None = None,
        duplicates: int = 0,
    ) -> None:
        self.words = ListedWords(words) if isinstance(words, list) else words
        self.matrix = matrix  # (V, D)
        self._norms = norms
        self.subwords = subwords
        self.duplicates = duplicates  # rows of the file that repeated a word and were dropped
        if matrix.ndim != 2 or len(self.words) != len(matrix):
            raise ValueError(f"{len(self.words)} words for a matrix of shape {matrix.shape}")

    @classmethod
    def from_rows(
        cls,
        words: list[str],
        matrix: Floats,
        *,
        name: str,
        counts: NDArray[np.int64] | None = None,
        subwords: SubwordVectors | None = None,
    ) -> Vectors:
        """Rows as a file gives them: the first of a repeated word is kept, NaN is refused.

        >>> Vectors.from_rows(["a", "b", "a"], np.eye(3, dtype=np.float32), name="x").duplicates
        1
        """
        for start in range(0, len(matrix), _BLOCK_ROWS):
            finite = np.isfinite(matrix[start : start + _BLOCK_ROWS]).all(axis=1)
            if not finite.all():
                row = start + int(np.argmin(finite))
                raise NlpkitError(
                    f"{name}: the vector of {words[row]!r} holds a number that is not finite",
                    hint="remove that word from the file",
                )
        first = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))
        duplicates = len(words) - len(first)
        if duplicates:
            rows = np.sort(np.fromiter(first.values(), np.int64, len(first)))
            words = [words[row] for row in rows]
            matrix = matrix[rows]
            counts = None if counts is None else counts[rows]
        listed = ListedWords(words, counts)
        return cls(listed, matrix, subwords=subwords, duplicates=duplicates)

    # --- files ----------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vectors:
        """Vectors from a model folder or a file of any known format."""
        from nlpkit.vectors.formats import load

        return load(os.fspath(path))

    def save(
        self,
        path: str | os.PathLike[str],
        format: VectorFormat | str | None = None,
        *,
        force: bool = False,
    ) -> None:
        """Write a model folder, or a file in the format that is named or that its ending means."""
        from nlpkit.vectors.formats import save

        save(self, os.fspath(path), None if format is None else VectorFormat(format), force=force)

    # --- one word -------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} words, {self.dim} dimensions>"

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __getitem__(self, word: str) -> Floats:
        return self.get(word)

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return int(self.matrix.shape[1])

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.words.find(word) is not None

    def index(self, word: str) -> int:
        """The row of a word; an unknown one is an error that names spellings that exist."""
        row = self.words.find(word)
        if row is None:
            raise self.unknown(word)
        return row

    def get(self, word: str) -> Floats:
        """The vector of a word, from its subwords when the word is unknown and the set has them."""
        row = self.words.find(word)
        if row is not None:
            return np.array(self.matrix[row])
        vector = None if self.subwords is None else self.subwords.vector(word)
        if vector is None:
            raise self.unknown(word)
        return vector

    def knows(self, word: str) -> bool:
        """Whether there is a vector for a word, of its own or from its subwords."""
        return word in self or (
            self.subwords is not None and self.subwords.vector(word) is not None
        )

    def unknown(self, word: str) -> UnknownWord:
        """The error for a word that has no vector."""
        close = close_spellings(word, self.words)
        return UnknownWord(f"unknown word: {word!r}", hint=" or ".join(map(repr, close)))

    # --- questions, see query for many at once --------------------------------------------------

    def nearest(
        self,
        words: str | Sequence[str],
        n: int = QUERY.n,
        *,
        minus: Sequence[str] = (),
        metric: Metric | str = QUERY.metric,
        restrict: int | None = None,
    ) -> list[Neighbour]:
        """The words nearest to a word, or to the mean of some, those of ``minus`` taken away."""
        from nlpkit.vectors import query

        plus = [words] if isinstance(words, str) else list(words)
        minus = [minus] if isinstance(minus, str) else list(minus)
        return query.nearest(self, [(plus, minus)], n, metric=Metric(metric), restrict=restrict)[0]

    def analogy(
        self,
        a: str,
        b: str,
        c: str,
        n: int = QUERY.n,
        *,
        method: AnalogyMethod | str = QUERY.method,
        restrict: int | None = None,
    ) -> list[Neighbour]:
        """What ``c`` is to as ``a`` is to ``b``: man, king, woman."""
        from nlpkit.vectors import query

        how = AnalogyMethod(method)
        return query.analogy(self, [(a, b, c)], n, method=how, restrict=restrict)[0]

    def similarity(self, first: str, second: str, metric: Metric | str = QUERY.metric) -> float:
        """How near two words are."""
        from nlpkit.vectors import query

        return query.similarity(self, first, second, Metric(metric))

    # --- many rows ------------------------------------------------------------------------------

    @cached_property
    def norms(self) -> Floats:
        """The length of each row."""
        norms = row_norms(self.matrix) if self._norms is None else self._norms
        if not np.isfinite(norms).all():
            word = self.words[int(np.argmin(np.isfinite(norms)))]
            raise NlpkitError(
                f"the vector of {word!r} holds a number that is not finite or too large",
                hint="train or fetch the vectors again",
            )
        return norms

    @cached_property
    def _inverse_norms(self) -> Floats:
        # a zero vector is at a right angle to everything
        return np.divide(1, self.norms, out=np.zeros_like(self.norms), where=self.norms > 0)

    def cosines(self, queries: Floats) -> ScoreBlock:
        """Blocks of cosines between query vectors (Q, D) and rows, for ``best_rows``.

        A block is overwritten by the next.
        """
        queries = unit_rows(queries)
        scaled, products = _Scratch(), _Scratch()
        inverse_norms = self._inverse_norms

        def block(start: int, stop: int) -> Floats:
            rows, inverse = self.matrix[start:stop], inverse_norms[start:stop]
            out = products.take(len(queries), len(rows))
            if len(queries) > self.dim:  # scale whichever is smaller: the rows or the products
                rows = np.multiply(rows, inverse[:, None], out=scaled.take(*rows.shape))
                return np.matmul(queries, rows.T, out=out)
            return np.multiply(np.matmul(queries, rows.T, out=out), inverse, out=out)

        return block

    def _scores(self, queries: Floats, metric: Metric) -> ScoreBlock:
        if metric is Metric.COSINE:
            return self.cosines(queries)
        if metric is Metric.DOT:
            return lambda start, stop: queries @ self.matrix[start:stop].T
        # |q - x|^2 = |q|^2 - 2 (q.x - |x|^2 / 2), so the bracket ranks by distance
        halves = np.square(self.norms) / 2
        return lambda start, stop: queries @ self.matrix[start:stop].T - halves[start:stop]

    def nearest_to(
        self,
        queries: Floats,
        n: int,
        *,
        metric: Metric = QUERY.metric,
        banned: Sequence[Iterable[int]] = (),
        restrict: int | None = None,
    ) -> list[list[Neighbour]]:
        """The ``n`` nearest words of each query vector (Q, D), nearest first.

        ``banned`` has the rows that each query must not find (the words of the question);
        ``restrict`` looks at the so many most frequent words only.
        """
        queries = np.atleast_2d(np.asarray(queries, np.float32))
        forbidden = [frozenset(rows) for rows in banned] or [frozenset()] * len(queries)
        n_rows = len(self) if restrict is None else min(restrict, len(self))
        keep = n + max(map(len, forbidden), default=0)
        at_once = max(1, min(QUERIES_AT_ONCE, _NUMBERS_AT_ONCE // (keep * self.dim + 1)))
        found: list[list[Neighbour]] = []
        for start in range(0, len(queries), at_once):
            batch = queries[start : start + at_once]
            bans = forbidden[start : start + len(batch)]
            scores = partial(self._scores, batch, metric)
            rows, _ = best_rows(scores, len(batch), n_rows, keep)
            exact = self._exact(batch, rows, metric)
            sign = 1 if metric is Metric.EUCLIDEAN else -1
            order = np.lexsort((rows, sign * exact), axis=1)
            rows = np.take_along_axis(rows, order, axis=1)
            exact = np.take_along_axis(exact, order, axis=1)
            found += self.neighbours(rows, exact, bans, n)
        return found

    def neighbours(
        self,
        rows: NDArray[np.int64],
        scores: NDArray[np.floating],
        banned: Sequence[Container[int]],
        n: int,
    ) -> list[list[Neighbour]]:
        """The first ``n`` of each query's rows (Q, K) that are not banned, with their words."""
        found = []
        for query_rows, query_scores, ban in zip(rows, scores, banned, strict=True):
            pairs = zip(query_rows.tolist(), query_scores.tolist(), strict=True)
            kept = [(row, score) for row, score in pairs if row not in ban][:n]
            found.append([Neighbour(self.words[row], score, row) for row, score in kept])
        return found

    def _exact(
        self, queries: Floats, rows: NDArray[np.int64], metric: Metric
    ) -> NDArray[np.float64]:
        """Scores (Q, K) in float64, so that one query and a thousand give the same digits."""
        some = range(0, len(queries), _QUERIES_IN_CACHE)
        parts = [slice(start, start + _QUERIES_IN_CACHE) for start in some]
        return np.concatenate([self._exact_part(queries[p], rows[p], metric) for p in parts])

    def _exact_part(
        self, queries: Floats, rows: NDArray[np.int64], metric: Metric
    ) -> NDArray[np.float64]:
        exact_queries = queries.astype(np.float64)
        near = self.matrix[rows].astype(np.float64)  # (Q, K, D)
        if metric is Metric.EUCLIDEAN:
            return np.linalg.norm(near - exact_queries[:, None], axis=2)
        products = np.einsum("qd,qkd->qk", exact_queries, near)
        if metric is Metric.DOT:
            return products
        near_lengths = np.sqrt(np.einsum("qkd,qkd->qk", near, near))
        lengths = np.linalg.norm(exact_queries, axis=1)[:, None] * near_lengths
        return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)


class _Scratch:
    """Memory for one block after the other; asking for fresh megabytes each time takes a while."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.float32)

    def take(self, *shape: int) -> Floats:
        size = math.prod(shape)
        if size > len(self._memory):
            self._memory = np.empty(size, np.float32)
        return self._memory[:size].reshape(shape)


def row_norms(matrix: Floats) -> Floats:
    """The length of each row, block by block.

    >>> row_norms(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [5.0, 0.0]
    """
    norms = np.empty(len(matrix), np.float32)
    for start in range(0, len(matrix), _BLOCK_ROWS):
        block = matrix[start : start + _BLOCK_ROWS]
        np.sqrt(np.einsum("rd,rd->r", block, block), out=norms[start : start + len(block)])
    return norms


def unit_rows(matrix: Floats) -> Floats:
    """Rows scaled to length 1; a row of zeros stays.

    >>> unit_rows(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    # in float64, where the square of no float32 overflows
    squares = np.einsum("rd,rd->r", matrix, matrix, dtype=np.float64)
    norms = np.sqrt(squares).astype(np.float32)[:, None]
    return np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
