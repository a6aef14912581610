"""How much of what a model writes is copied: n-grams that are new, and the longest shared passages.

Windows of n characters of the training text are hashed and sorted; a window of another text is
copied if its hash is among them. Held-out text is the yardstick: it shares much with the training
text, too, without having been copied. Windows are of bytes, so any two texts can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nlpkit.kernels.novelty import rolling_hashes, shared_length

_SHORTEST = 16  # bytes of a passage that is worth showing


@dataclass(frozen=True)
class Passage:
    """A stretch of a text that stands in the training text, too."""

    text: str
    length: int  # bytes
    at: int  # in the text
    source: int  # in the training text


class TrainingIndex:
    """All windows of a training text, by hash.

    >>> index = TrainingIndex(b"the cat sat on the mat and the dog sat on the log")
    >>> round(index.new_share(b"the cat sat on a hat", 4), 2)
    0.29
    """

    def __init__(self, data: bytes, step: int = _SHORTEST) -> None:
        self.data = np.frombuffer(data, np.uint8)
        self._step = step
        self._tables: dict[int, np.ndarray] = {}
        self._places: tuple[np.ndarray, np.ndarray] | None = None

    def _hashes(self, size: int) -> np.ndarray:
        if size not in self._tables:
            self._tables[size] = np.unique(rolling_hashes(self.data, size))
        return self._tables[size]

    def new_share(self, text: bytes, size: int) -> float:
        """The share of windows of ``size`` bytes that the training text does not have."""
        data = np.frombuffer(text, np.uint8)
        if len(data) < size:
            return 0.0
        wanted = rolling_hashes(data, size)
        table = self._hashes(size)
        if not len(table):
            return 1.0
        places = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
        return float((table[places] != wanted).mean())

    def passages(self, text: bytes, count: int = 5) -> list[Passage]:
        """The longest passages that both have in common, none inside another."""
        data = np.frombuffer(text, np.uint8)
        if len(data) < self._step or len(self.data) < self._step:
            return []
        hashes, order = self._anchors()
        wanted = rolling_hashes(data, self._step)
        first = np.searchsorted(hashes, wanted, "left")
        last = np.searchsorted(hashes, wanted, "right")
        lengths, sources = shared_length(self.data, data, order, first, last)
        return _longest(text, lengths, sources, count)

    def _anchors(self) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of all windows of the training text, sorted, and where each stands."""
        if self._places is None:
            hashes = rolling_hashes(self.data, self._step)
            order = np.argsort(hashes, kind="stable")
            self._places = hashes[order], order.astype(np.int64)
        return self._places


def _longest(text: bytes, lengths: np.ndarray, sources: np.ndarray, count: int) -> list[Passage]:
    found: list[Passage] = []
    taken = np.zeros(len(text), bool)
    for at in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[at])
        if length < _SHORTEST or len(found) == count:
            break
        if taken[at] or taken[at + length - 1]:
            continue
        taken[at : at + length] = True
        shown = text[at : at + length].decode("utf-8", "ignore")
        found.append(Passage(shown, length, at, int(sources[at])))
    return found


def novelty(
    index: TrainingIndex, text: bytes, sizes: Sequence[int], count: int
) -> tuple[dict[int, float], list[Passage]]:
    """The share of new n-grams by n, and the longest passages that are not new."""
    return {size: index.new_share(text, size) for size in sizes}, index.passages(text, count)
