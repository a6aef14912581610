"""Vectors of whole texts from vectors of words, and the search among texts by them.

The mean of the words is hard to beat; better is the mean in which frequent words count less, from
which what all texts have in common is then taken out (SIF, Arora, Liang and Ma 2017).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nlpkit.vectors import query
from nlpkit.vectors.settings import Metric, TextMethod, TextSettings
from nlpkit.vectors.store import Vectors, unit_rows

Floats = NDArray[np.float32]

FIRST_TEXTS = 10_000  # from which the common component is estimated
TEXTS_AT_ONCE = 1024


class TextVectors:
    """Turns texts, as lists of words, into vectors.

    >>> words = Vectors(["cold", "soup"], np.array([[1, 0], [0, 1]], np.float32))
    >>> TextVectors(words, TextSettings(method="mean")).embed([["cold", "soup"], ["?"]]).tolist()
    [[0.5, 0.5], [0.0, 0.0]]
    """

    def __init__(self, vectors: Vectors, settings: TextSettings) -> None:
        self.vectors, self.settings = vectors, settings
        self.common: Floats | None = None  # (D,) a direction of length 1
        self._weights = None
        if settings.method is TextMethod.SIF:
            self._weights = settings.a / (settings.a + word_shares(vectors))  # (V,)

    def embed(self, texts: Sequence[Sequence[str]]) -> Floats:
        """A row for each text; zeros for one without a known word."""
        rows = np.zeros((len(texts), self.vectors.dim), np.float32)
        self.vectors.words.expect({word for text in texts for word in text})
        for place, text in enumerate(texts):
            known, weights = [], []
            for word in text:
                row = self.vectors.words.find(word)
                if row is not None:
                    known.append(self.vectors.matrix[row])
                    weights.append(1.0 if self._weights is None else self._weights[row])
                elif self.vectors.subwords is not None:
                    vector = self.vectors.subwords.vector(word)
                    if vector is not None:
                        known.append(vector)
                        weights.append(1.0)  # as rare as can be
            if known:
                rows[place] = np.array(weights, np.float32) @ np.stack(known) / len(known)
        if self.common is not None:
            rows -= np.outer(rows @ self.common, self.common)
        return rows

    def find_common(self, texts: Sequence[Sequence[str]]) -> None:
        """Learn the direction that texts share most, to be taken out from now on."""
        self.common = None
        rows = self.embed(texts)
        if self.settings.method is TextMethod.SIF and self.settings.common and len(rows) > 1:
            _, values, directions = np.linalg.svd(rows, full_matrices=False)
            self.common = directions[0].astype(np.float32) if values[0] > 0 else None

    def stream(self, texts: Iterable[Sequence[str]]) -> Iterator[Floats]:
        """Rows for texts as they come, some at a time; the first ones tell what is common."""
        waiting: list[Sequence[str]] = []
        begun = self.settings.method is TextMethod.MEAN or not self.settings.common
        for text in texts:
            waiting.append(text)
            if len(waiting) >= (TEXTS_AT_ONCE if begun else FIRST_TEXTS):
                if not begun:
                    self.find_common(waiting)
                    begun = True
                yield self.embed(waiting)
                waiting = []
        if waiting:
            if not begun:
                self.find_common(waiting)
            yield self.embed(waiting)


def word_shares(vectors: Vectors) -> NDArray[np.float64]:
    """How large a part of all text each word is; by Zipf's law of ranks where nobody counted.

    >>> word_shares(Vectors(["the", "of"], np.zeros((2, 1), np.float32))).round(2).tolist()
    [0.67, 0.33]
    """
    counts = vectors.words.counts
    known = 1 / np.arange(1, len(vectors) + 1) if counts is None else counts.astype(np.float64)
    return known / max(known.sum(), 1e-300)


def similarity(vectors: Vectors, first: str, second: str, metric: Metric) -> float:
    """How near two words are, or two texts, each the mean of its known words."""
    mean = TextVectors(vectors, TextSettings(method=TextMethod.MEAN))
    rows = [
        vectors.get(text) if vectors.knows(text) else mean.embed([text.split()])[0]
        for text in (first, second)
    ]
    return query.similarity(Vectors(["first", "second"], np.stack(rows)), "first", "second", metric)


class Found(NamedTuple):
    """A text that was found."""

    score: float
    line: int  # from 1
    text: str


@dataclass(frozen=True)
class Line:
    """A text to be searched: as it is shown, where it stands, and its words."""

    number: int
    text: str
    words: Sequence[str]


class Embedder(Protocol):
    """Whatever turns texts into vectors."""

    def embed(self, texts: Sequence[Sequence[str]]) -> Floats:
        """A row for each text."""

    def stream(self, texts: Iterable[Sequence[str]]) -> Iterator[Floats]:
        """Rows for texts as they come, some at a time."""


def search(
    embedder: Embedder, queries: Sequence[Sequence[str]], lines: Iterable[Line], n: int
) -> list[list[Found]]:
    """The ``n`` lines nearest to each query by cosine, best first; equal ones in their order.

    Lines are a stream: no more than the best and some hundred others are kept.
    """
    best: list[list[tuple[float, int, str]]] = [[] for _ in queries]
    kept: list[Line] = []

    def words() -> Iterator[Sequence[str]]:
        for line in lines:
            kept.append(line)
            yield line.words

    for rows in embedder.stream(words()):
        some, kept[:] = kept[: len(rows)], kept[len(rows) :]
        wanted = unit_rows(embedder.embed(queries))  # after the common component is known
        scores = unit_rows(rows) @ wanted.T  # (L, Q)
        known = rows.any(axis=1)
        for heap, column in zip(best, scores.T, strict=True):
            enough = heap[0][0] if len(heap) == n else -np.inf
            for place in np.flatnonzero(known & (column > enough)).tolist():
                entry = (float(column[place]), -some[place].number, some[place].text)
                if len(heap) < n:
                    heapq.heappush(heap, entry)
                else:
                    heapq.heappushpop(heap, entry)
    return [
        [Found(score, -number, text) for score, number, text in sorted(heap, reverse=True)]
        for heap in best
    ]
