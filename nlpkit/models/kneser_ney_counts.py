"""Counting n-grams in constant memory: a level of the trie at a time, by sorted runs on disk.

An n-gram is the node of its first n - 1 words and its last word: two numbers, one 64-bit key,
however long n-grams are and however many words there are. Keys are sorted in runs that fit in
memory; the runs are merged; a key's place in the merged order is the number of its node. Each
position of the text then knows the node of the n-gram that ends there, which makes the keys of the
next level. Arrays as long as the text or a level are files without a name, mapped into memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.kernels import ngrams

MEMORY = 1 << 27  # bytes that sorting may take, unless told
_LEAST_RUN = 1024  # positions
_BYTES = 28  # that a position takes while its run is sorted
_MOST = 2**31 - 1  # nodes of a level, words of a text


@dataclass
class Level:
    """The n-grams of one length, sorted by their words from the first to the last."""

    words: NDArray[np.int32]  # the last word of each
    first: NDArray[np.int32]  # (contexts + 1,): where the n-grams of each context begin
    counts: NDArray[np.int32]  # how often each occurs
    left: NDArray[np.int32]  # behind how many words each occurs; 0 at the beginning of a sentence
    suffixes: NDArray[np.int32]  # each without its first word: a place in the level before

    def __len__(self) -> int:
        return len(self.words)


class Scratch:
    """Arrays for a while: in memory, or in files without a name when they are large."""

    def __init__(self, folder: str | None = None, memory: int = MEMORY) -> None:
        self.folder, self.memory = folder, memory

    def empty(self, size: int, dtype: Any) -> NDArray[Any]:
        """An array of any content."""
        nbytes = size * np.dtype(dtype).itemsize
        if nbytes <= self.memory // 8:
            return np.empty(size, dtype)
        try:
            with tempfile.TemporaryFile(dir=self.folder) as file:
                # room is taken now: a write to a mapping that finds the disk full ends the program
                os.posix_fallocate(file.fileno(), 0, nbytes)
                return np.memmap(file, dtype, "r+", shape=(size,)).view(np.ndarray)
        except OSError as error:
            raise NlpkitError(
                f"cannot make a temporary file of {nbytes:,} bytes: {error.strerror}",
                hint="TMPDIR=FOLDER with room in it",
            ) from None

    @staticmethod
    def rest(*arrays: NDArray[Any]) -> None:
        """Let the system take the memory of mapped arrays; they are read again when needed."""
        for array in arrays:
            base: Any = array
            while base is not None and not isinstance(base, np.memmap):
                base = getattr(base, "base", None)
            if base is not None and hasattr(mmap, "MADV_DONTNEED"):
                base._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]

    def filled(self, size: int, value: int, dtype: Any) -> NDArray[Any]:
        """An array of one value."""
        array = self.empty(size, dtype)
        array[:] = value
        return array


def count_levels(
    ids: NDArray[np.int32],
    order: int,
    vocab_size: int,
    mark: int = -1,
    scratch: Scratch | None = None,
) -> Iterator[Level]:
    """The levels of the trie of a text, the shortest n-grams first.

    Sentences stand between marks, one before the first and one behind the last; without a mark the
    text is one long stream.

    >>> levels = list(count_levels(np.array([0, 1, 2, 0, 1, 0], np.int32), 2, 3, mark=0))
    >>> [level.counts.tolist() for level in levels]
    [[2, 2, 1], [2, 1, 1, 1]]
    >>> levels[0].left.tolist()
    [2, 1, 1]
    """
    scratch = scratch or Scratch()
    _check_text(ids, order, vocab_size)
    level = _unigrams(ids, vocab_size, mark)
    nodes = scratch.empty(len(ids), np.int32)
    nodes[:] = ids
    for length in range(2, order + 1):
        level, nodes, shorter = _longer(ids, level, nodes, length, vocab_size, mark, scratch)
        yield shorter
    yield level


def _check_text(ids: NDArray[np.int32], order: int, vocab_size: int) -> None:
    if ids.dtype != np.int32 or not len(ids):
        raise NlpkitError("no text to count n-grams in", hint="a file that is not empty")
    if len(ids) > _MOST:
        raise NlpkitError(f"{len(ids):,} tokens are more than {_MOST:,}", hint="a part of the text")
    if order > len(ids):
        raise NlpkitError(
            f"`order` {order} is more than the {len(ids)} tokens of the text",
            hint=f"`order` {len(ids)} or less, or more text",
        )
    if int(ids.min()) < 0 or int(ids.max()) >= vocab_size:
        raise NlpkitError(f"ids from {ids.min()} to {ids.max()}: there are {vocab_size:,} words")


def _unigrams(ids: NDArray[np.int32], vocab_size: int, mark: int) -> Level:
    counts = np.zeros(vocab_size, np.int64)
    for start in range(0, len(ids), 1 << 22):
        counts += np.bincount(ids[start : start + (1 << 22)], minlength=vocab_size)
    if mark >= 0:
        counts[mark] -= 1  # the first begins a sentence and ends none
    return Level(
        words=np.arange(vocab_size, dtype=np.int32),
        first=np.array([0, vocab_size], np.int32),
        counts=counts.astype(np.int32),
        left=np.zeros(vocab_size, np.int32),
        suffixes=np.zeros(vocab_size, np.int32),
    )


def _longer(
    ids: NDArray[np.int32],
    level: Level,
    nodes: NDArray[np.int32],
    length: int,
    vocab_size: int,
    mark: int,
    scratch: Scratch,
) -> tuple[Level, NDArray[np.int32], Level]:
    """The next level, the nodes of its n-grams by position, and this level with its left words."""
    bits = max(1, (vocab_size - 1).bit_length())
    runs = _Runs(scratch, len(ids))
    for start in range(0, len(ids), runs.positions):
        stop = min(start + runs.positions, len(ids))
        size = ngrams.next_keys(
            ids, start, stop, nodes, length > 2, mark, bits, runs.keys, runs.places
        )
        runs.add(size, stop - start, bits + max(1, (len(level) - 1).bit_length()))
    keys, counts = runs.merge()
    suffixes = scratch.filled(len(keys), -1, np.int32)
    longer_nodes = scratch.empty(len(ids), np.int32)
    for number, start in enumerate(range(0, len(ids), runs.positions)):
        part = runs.nodes(number)
        longer_nodes[start : start + len(part)] = part
        ngrams.count_left_words(ids, start, nodes, part, suffixes, level.left)
    words = scratch.empty(len(keys), np.int32)
    first = scratch.empty(len(level) + 1, np.int32)
    _split(keys, bits, words, first)
    scratch.rest(words, first, counts, suffixes, longer_nodes)
    found = Level(words, first, counts, scratch.filled(len(keys), 0, np.int32), suffixes)
    return found, longer_nodes, level


def _split(
    keys: NDArray[np.int64], bits: int, words: NDArray[np.int32], first: NDArray[np.int32]
) -> None:
    """Keys into words and the place where the children of each context begin, a part at a time."""
    first[0] = 0
    sizes = np.zeros(len(first) - 1, np.int32)
    for start in range(0, len(keys), 1 << 20):
        part = keys[start : start + (1 << 20)]
        words[start : start + len(part)] = part & ((1 << bits) - 1)
        contexts = part >> bits
        low = int(contexts[0])
        here = np.bincount(contexts - low)
        sizes[low : low + len(here)] += here.astype(np.int32)
    np.cumsum(sizes, out=first[1:])


class _Runs:
    """Sorted runs of distinct keys, each with its counts and, by position, which key it has."""

    def __init__(self, scratch: Scratch, positions: int) -> None:
        self._scratch = scratch
        self.positions = max(_LEAST_RUN, min(positions, scratch.memory // _BYTES))  # in a run
        self.keys: NDArray[np.int64] = np.empty(self.positions, np.int64)
        self.places: NDArray[np.int32] = np.empty(self.positions, np.int32)
        self._spare_keys, self._spare_places = np.empty_like(self.keys), np.empty_like(self.places)
        self._done: list[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]] = []
        self._numbers: NDArray[np.int32] | None = None
        self._edges: NDArray[np.int64] = np.zeros(1, np.int64)

    def add(self, size: int, positions: int, bits: int) -> None:
        """Sort and number the keys that were just filled in, those of so many positions."""
        keys, places = self.keys[:size], self.places[:size]
        spare_keys, spare_places = self._spare_keys[:size], self._spare_places[:size]
        if ngrams.sort_keys(keys, places, spare_keys, spare_places, bits):
            keys, places = spare_keys, spare_places
        counts = self._scratch.empty(size, np.int32)
        ranks = self._scratch.filled(positions, -1, np.int32)
        distinct = ngrams.number_keys(keys, places, counts, ranks)
        kept = self._scratch.empty(distinct, np.int64)
        kept[:] = keys[:distinct]
        self._done.append((kept, counts[:distinct], ranks))

    def merge(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The distinct keys of all runs with their counts; the memory for sorting is given back."""
        self.keys = self._spare_keys = np.empty(0, np.int64)
        self.places = self._spare_places = np.empty(0, np.int32)
        if len(self._done) == 1:
            return self._done[0][:2]
        self._edges = np.cumsum([0, *(len(keys) for keys, _, _ in self._done)])
        total = int(self._edges[-1])
        keys, counts = self._scratch.empty(total, np.int64), self._scratch.empty(total, np.int32)
        for number, (run, run_counts, ranks) in enumerate(self._done):
            keys[self._edges[number] : self._edges[number + 1]] = run
            counts[self._edges[number] : self._edges[number + 1]] = run_counts
            self._done[number] = (run[:0], run_counts[:0], ranks)
        merged, totals = self._scratch.empty(total, np.int64), self._scratch.empty(total, np.int32)
        self._numbers = self._scratch.empty(total, np.int32)
        distinct = ngrams.merge_runs(keys, counts, self._edges, merged, totals, self._numbers)
        return merged[:distinct], totals[:distinct]

    def nodes(self, number: int) -> NDArray[np.int32]:
        """By position of a run: the number of its key among the merged, or -1."""
        ranks = self._done[number][2]
        if self._numbers is None:
            return ranks
        mine = self._numbers[self._edges[number] : self._edges[number + 1]]
        return np.where(ranks >= 0, mine[ranks], np.int32(-1)) if len(mine) else ranks
