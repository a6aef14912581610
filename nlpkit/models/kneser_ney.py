"""An n-gram model as a trie in two arrays that are mapped into memory: score, and what comes next.

Smoothing is interpolated modified Kneser-Ney (Chen and Goodman, 1998), as KenLM has it: counts of
shorter n-grams say behind how many words they occur, counts 1, 2 and more are discounted by three
amounts for each length, and what is held back goes to the shorter context, in the end to all words
alike. ``interpolation.py`` has the plain mixture of all lengths instead.

Both become the same tables: the probability of an n-gram, and the factor for words that were not
seen behind it (back-off weight). A scorer goes down the trie with a word, and along a link to the
next shorter context where there is no such word: an Aho-Corasick automaton.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import modeldir
from nlpkit.errors import NlpkitError, NlpkitWarning
from nlpkit.kernels import ngrams
from nlpkit.kernels.ngrams import BACKOFF, FIRST, PROBABILITY, SUFFIX
from nlpkit.models.kneser_ney_counts import Level, Scratch, count_levels
from nlpkit.npy import read_array
from nlpkit.schema import AGAIN

HIGHEST_ORDER = 8
_WORDS, _NODES = "words.npy", "nodes.npy"
_FALLBACK = (0.5, 1.0, 1.5)  # discounts where a text is too small or too regular to tell
_ROWS = 1 << 18
_TINY = np.float32(1e-30)


@dataclass
class Trie:
    """N-grams of all lengths, those of a context side by side; see ``kernels/ngrams.py``.

    >>> trie = kneser_ney(np.array([0, 2, 3, 0, 2, 0], np.int32), 2, 4, mark=0)
    >>> round(float(np.exp(trie.distribution(trie.start)).sum()), 5)
    1.0
    """

    words: NDArray[np.int32]  # (M,)
    nodes: NDArray[np.int32]  # (M + 1, 4)
    vocab_size: int
    mark: int = -1  # the word that begins and ends sentences; -1 where text is one stream
    levels: list[int] = field(default_factory=list)  # where each length begins, and the end
    details: dict[str, Any] = field(default_factory=dict)  # discounts or weights

    def __post_init__(self) -> None:
        self._values = self.nodes.view(np.float32)

    @property
    def order(self) -> int:
        """Words of the longest n-grams."""
        return len(self.levels) - 1

    @property
    def start(self) -> int:
        """The context at the beginning of a text."""
        return 1 + self.mark if self.mark >= 0 else 0

    def score(self, ids: NDArray[np.int32], state: int) -> tuple[NDArray[np.float32], int]:
        """The log-probability of each word behind all before it, and the context after the last."""
        ids = self._checked(ids)
        out = np.empty(len(ids), np.float32)
        state = ngrams.score_words(
            self.words, self.nodes, self._values, ids, self._known(state), self.mark, out
        )
        return out, state

    def distribution(self, state: int) -> NDArray[np.float32]:
        """The log-probabilities of all words behind a context."""
        out = np.empty(self.vocab_size, np.float32)
        ngrams.spread(
            self.words, self.nodes, self._values, self._known(state), self.vocab_size, out
        )
        return out

    def context(self, ids: Sequence[int], state: int | None = None) -> int:
        """The context behind some words."""
        given = self.start if state is None else state
        return self.score(np.array(ids, np.int32), given)[1]

    def _known(self, state: int) -> int:
        if not 0 <= state < len(self.words):
            raise NlpkitError(f"there is no context {state}")
        return state

    def _checked(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) < self.vocab_size):
            raise NlpkitError(f"ids from {ids.min()} to {ids.max()}: {self.vocab_size:,} words")
        return np.ascontiguousarray(ids, dtype=np.int32)

    def write(self, folder: Path) -> None:
        """Write the arrays into a folder that ``modeldir.create`` gave."""
        modeldir.write_array(folder / _WORDS, self.words)
        modeldir.write_array(folder / _NODES, self.nodes)

    @classmethod
    def read(cls, folder: Path, vocab_size: int, mark: int, levels: Sequence[int]) -> Trie:
        """Map what ``write`` wrote; only a few pages are read until words are scored."""
        words = read_array(folder / _WORDS, "i4", 1)
        nodes = read_array(folder / _NODES, "i4", 2)
        rising = all(low <= high for low, high in itertools.pairwise(levels))
        fits = (
            nodes.shape == (len(words) + 1, 4)
            and len(words) > vocab_size
            and -1 <= mark < vocab_size
            and 2 <= len(levels) <= HIGHEST_ORDER + 1
            and (levels[0], levels[-1]) == (1, len(words))
            and (rising and levels[1] == 1 + vocab_size)
        )
        if not fits:
            raise NlpkitError(f"{folder}: the n-grams do not fit their sizes", hint=AGAIN)
        return cls(words, nodes, vocab_size, mark, list(levels))


def kneser_ney(
    ids: NDArray[np.int32],
    order: int,
    vocab_size: int,
    mark: int = -1,
    scratch: Scratch | None = None,
) -> Trie:
    """The modified Kneser-Ney model of a text; ``count_levels`` says what text looks like."""
    scratch = scratch or Scratch()
    builder = TrieBuilder(scratch, vocab_size, mark)
    discounts: list[list[float]] = []
    # the counts of a level are known when the next one is: it says what stands before
    for number, level in enumerate(count_levels(ids, order, vocab_size, mark, scratch), 1):
        counts = level.counts
        if number < order:
            np.copyto(counts, level.left, where=level.left > 0)
        amounts = discounts_of(counts, number)
        discounts.append(amounts.tolist()[1:])
        builder.add(level, counts, amounts)
    return builder.finish({"discounts": discounts})


def discounts_of(counts: NDArray[np.int32], number: int = 0) -> NDArray[np.float64]:
    """What counts 0, 1, 2 and more lose, from how many n-grams there are of counts 1 to 4.

    >>> discounts_of(np.array([1] * 100 + [2] * 30 + [3] * 15 + [4] * 8)).round(3).tolist()
    [0.0, 0.625, 1.062, 1.667]
    """
    kinds = np.zeros(5)
    for start in range(0, len(counts), 1 << 22):
        kinds += np.bincount(np.minimum(counts[start : start + (1 << 22)], 5), minlength=6)[:5]
    if kinds[1:].all():
        ratio = kinds[1] / (kinds[1] + 2 * kinds[2])
        found = [n - (n + 1) * ratio * kinds[n + 1] / kinds[n] for n in (1, 2, 3)]
        if all(0 <= amount <= n for n, amount in enumerate(found, 1)):
            return np.array([0.0, *found])
    if number:
        warnings.warn(
            f"too few n-grams of length {number} occur once to four times to tell their "
            f"discounts: {_FALLBACK} instead",
            NlpkitWarning,
            stacklevel=2,
        )
    return np.array([0.0, *_FALLBACK])


class TrieBuilder:
    """Probabilities level by level, and the two arrays of the trie in the end."""

    def __init__(self, scratch: Scratch, vocab_size: int, mark: int, *, logs: bool = False) -> None:
        self._scratch, self._vocab_size, self._mark = scratch, vocab_size, mark
        self._logs = logs  # whether it is given logarithms
        self.backs = np.zeros(1, np.float32)  # of the contexts of the level that comes next
        self._levels: list[Level] = []
        self._probabilities: list[NDArray[np.float32]] = [np.full(1, 1 / vocab_size, np.float32)]
        self._left: list[NDArray[np.float32]] = []

    def add(self, level: Level, counts: NDArray[np.int32], discounts: NDArray[np.float64]) -> None:
        """Smooth the counts of the next level."""
        probabilities = self._scratch.empty(len(level), np.float32)
        left = self._scratch.empty(len(level.first) - 1, np.float32)
        ngrams.smooth_level(
            counts,
            level.first,
            level.suffixes,
            self._probabilities[-1],
            discounts,
            probabilities,
            left,
        )
        self.keep(level, probabilities, left)

    def keep(
        self, level: Level, probabilities: NDArray[np.float32], left: NDArray[np.float32]
    ) -> None:
        """A level with the probabilities of its n-grams and what is left in its contexts."""
        level.counts = level.left = np.empty(0, np.int32)
        self._scratch.rest(level.words, level.first, level.suffixes, probabilities, left)
        self._levels.append(level)
        self._probabilities.append(probabilities)
        self._left.append(left)

    def finish(self, details: dict[str, Any]) -> Trie:
        """The trie; a level is let go when its rows have been written."""
        begins = np.cumsum([0, 1, *(len(level) for level in self._levels)]).tolist()
        size = begins[-1]
        if size > 2**31 - 1:
            raise NlpkitError(f"{size:,} n-grams are more than 2**31", hint="a smaller `order`")
        words = self._scratch.empty(size, np.int32)
        nodes = self._scratch.empty(4 * (size + 1), np.int32).reshape(-1, 4)
        values = nodes.view(np.float32)
        nodes[0], words[0], nodes[-1] = (0, 0, 1, 0), 0, (0, 0, size, 0)
        self._left.append(np.ones(0, np.float32))
        for number, level in enumerate(self._levels, 1):
            begin, end = begins[number], begins[number + 1]
            longer = self._levels[number].first if number < len(self._levels) else None
            words[begin:end] = level.words
            for start in range(begin, end, _ROWS):
                rows = slice(start, min(start + _ROWS, end))
                own = slice(start - begin, rows.stop - begin)
                left = self._left[number][own]
                values[rows, PROBABILITY] = self._log(self._probabilities[number][own])
                values[rows, BACKOFF] = self._log(left) if len(left) else 0
                nodes[rows, FIRST] = size if longer is None else end + longer[:-1][own]
                nodes[rows, SUFFIX] = begins[number - 1] + level.suffixes[own]
            self._scratch.rest(words, nodes)
            level.words = level.suffixes = level.first = np.empty(0, np.int32)
            self._probabilities[number] = self._left[number] = np.empty(0, np.float32)
        return Trie(words, nodes, self._vocab_size, self._mark, begins[1:], details)

    def _log(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        return values if self._logs else np.log(np.maximum(values, _TINY))
