"""How much of what a model writes is copied: n-grams that are new, and the longest shared passages.

Windows of n bytes of the text are put into a table by hash, then those of the training text, which
may be long, go past it: a window is new if none of them has its hash. Held-out text is the
yardstick: it shares much with the training text, too, without having been copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nlpkit.kernels.novelty import (
    extend_matches,
    insert_windows,
    mark_windows,
    rolling_hashes,
)

_SHORTEST = 16  # bytes of a passage that is worth showing
_PART = 1 << 16  # windows that are hashed at a time


@dataclass(frozen=True)
class Passage:
    """A stretch of a text that stands in the training text, too."""

    text: str
    length: int  # bytes
    at: int  # in the text
    source: int  # in the training text


class Windows:
    """All windows of a text, by hash.

    >>> windows = Windows(b"the cat sat on a hat", 4)
    >>> round(windows.new_share(b"the cat sat on the mat and the dog sat on the log"), 2)
    0.29
    """

    def __init__(self, text: bytes, size: int) -> None:
        self._text = text
        self._data = np.frombuffer(text, np.uint8)
        self._size = size
        hashes = rolling_hashes(self._data, size)  # (N,)
        room = 1 << (4 * len(hashes)).bit_length()
        self._keys = np.zeros(room, np.uint64)
        self._heads = np.full(room, -1)
        self._following, self._slots = np.empty((2, len(hashes)), np.int64)
        insert_windows(hashes, self._keys, self._heads, self._following, self._slots)

    def _passing(self, known: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The hashes of the windows of another text, a part at a time, and where it begins."""
        for begin in range(0, len(known) - self._size + 1, _PART):
            yield begin, rolling_hashes(known[begin : begin + _PART + self._size - 1], self._size)

    def new_share(self, known: bytes) -> float:
        """The share of windows that a known text does not have."""
        found = np.zeros(len(self._keys), bool)
        for _, hashes in self._passing(np.frombuffer(known, np.uint8)):
            mark_windows(hashes, self._keys, self._heads, found)
        return float(1 - found[self._slots].mean()) if len(self._slots) else 0.0

    def passages(self, known: bytes, count: int = 5) -> list[Passage]:
        """The longest passages that a known text has, too, none inside another."""
        other = np.frombuffer(known, np.uint8)
        lengths = np.zeros(len(self._slots), np.int64)
        sources = np.full(len(self._slots), -1)
        for begin, hashes in self._passing(other):
            extend_matches(
                hashes,
                begin,
                other,
                self._data,
                self._keys,
                self._heads,
                self._following,
                lengths,
                sources,
            )
        return _longest(self._text, lengths, sources, count)


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
    known: bytes, text: bytes, sizes: Sequence[int], count: int
) -> tuple[dict[int, float], list[Passage]]:
    """The share of new n-grams by n, and the ``count`` longest passages that are not new."""
    shares = {size: Windows(text, size).new_share(known) for size in sizes}
    return shares, Windows(text, _SHORTEST).passages(known, count) if count else []
