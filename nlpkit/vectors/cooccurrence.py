"""Which words stand near which, counted in bounded memory.

Pairs are added up in a hash table. When it is full its entries are sorted and written to a
temporary file (a sorted run), and in the end the runs are merged: so memory is bounded however
large the corpus, as in GloVe's own counting program.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit import textio
from nlpkit.kernels.compiling import kernel
from nlpkit.vectors.counts import weights_of_distances
from nlpkit.vectors.settings import CountSettings

Keys = NDArray[np.int64]

MEMORY_LIMIT = 1 << 30  # bytes for the table
_FIRST_SLOTS = 1 << 16
_ENTRY = 16  # bytes of a key and a count
_ENTRIES_AT_ONCE = 1 << 20  # of a run, while runs are merged
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Pairs(NamedTuple):
    """Some counted pairs, by rising (first, second): ``first <= second``."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    counts: NDArray[np.float64]


class PairCounter:
    """Counts the pairs of a corpus of ids, in which the last word of a sentence is ``~id``.

    >>> counter = PairCounter(3, CountSettings(window=2, weighting="flat"))
    >>> counter.add(np.array([0, 1, ~2, 0, ~2], np.int32))
    >>> [column.tolist() for pairs in counter.pairs() for column in pairs]
    [[0, 0, 1], [1, 2, 2], [1.0, 2.0, 1.0]]
    """

    def __init__(
        self, size: int, settings: CountSettings, memory_limit: int = MEMORY_LIMIT
    ) -> None:
        self._size = size
        self._weights = weights_of_distances(settings)
        slots = max(1, memory_limit // _ENTRY)
        self._most_slots = max(_FIRST_SLOTS, 1 << slots.bit_length() - 1)
        self._keys = np.full(_FIRST_SLOTS, -1, np.int64)
        self._counts = np.zeros(_FIRST_SLOTS)
        self._used = 0
        self._runs: list[tuple[int, int]] = []  # first entry and how many, of the file
        self._file: tempfile._TemporaryFileWrapper[bytes] | None = None
        self._written = 0

    def add(self, ids: NDArray[np.int32]) -> None:
        """Count whole sentences."""
        start = 0
        while start < len(ids):
            start, self._used = _count(
                ids, start, self._size, self._weights, self._keys, self._counts, self._used
            )
            if start < len(ids):
                self._make_room()

    def _make_room(self) -> None:
        if len(self._keys) < self._most_slots:
            keys, counts = self._entries()
            self._keys = np.full(2 * len(self._keys), -1, np.int64)
            self._counts = np.zeros(len(self._keys))
            _insert(keys, counts, self._keys, self._counts)
            return
        self._write_run()

    def _entries(self) -> tuple[Keys, NDArray[np.float64]]:
        used = self._keys >= 0
        return self._keys[used], self._counts[used]

    def _write_run(self) -> None:
        keys, counts = self._entries()
        order = np.argsort(keys)
        with textio.temporary_files():
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # type: ignore[assignment] # noqa: SIM115
            assert self._file is not None
            for start in range(0, len(order), _ENTRIES_AT_ONCE):
                some = order[start : start + _ENTRIES_AT_ONCE]
                entries = np.empty(len(some), [("key", "i8"), ("count", "f8")])
                entries["key"], entries["count"] = keys[some], counts[some]
                self._file.write(entries.tobytes())
        self._runs.append((self._written, len(order)))
        self._written += len(order)
        self._keys.fill(-1)
        self._counts.fill(0)
        self._used = 0

    @property
    def most_pairs(self) -> int:
        """At least as many as there are different pairs."""
        return self._written + self._used

    def pairs(self) -> Iterator[Pairs]:
        """All pairs, each once, in order; nothing can be added afterwards."""
        if not self._runs:
            keys, counts = self._entries()
            order = np.argsort(keys)
            for start in range(0, len(order), _ENTRIES_AT_ONCE):
                some = order[start : start + _ENTRIES_AT_ONCE]
                yield self._split(keys[some], counts[some])
            return
        if self._used:
            self._write_run()
        yield from (self._split(keys, counts) for keys, counts in self._merged())

    def _split(self, keys: Keys, counts: NDArray[np.float64]) -> Pairs:
        first, second = np.divmod(keys, self._size)
        return Pairs(first.astype(np.int32), second.astype(np.int32), counts)

    def _merged(self) -> Iterator[tuple[Keys, NDArray[np.float64]]]:
        """Runs merged: of each some entries are in memory, and as far as all of them reach, all
        entries are known."""
        runs = [_SortedRun(self._file, first, length) for first, length in self._runs]
        while True:
            runs = [run for run in runs if run.fill()]
            if not runs:
                return
            known = min(int(run.keys[-1]) for run in runs)
            parts = [run.take(known) for run in runs]
            found = np.concatenate([part[0] for part in parts])
            keys, place = np.unique(found, return_inverse=True)
            totals: NDArray[np.float64] = np.zeros(len(keys), np.float64)
            np.add.at(totals, place, np.concatenate([part[1] for part in parts]))
            for start in range(0, len(keys), _ENTRIES_AT_ONCE):
                some = slice(start, start + _ENTRIES_AT_ONCE)
                yield keys[some], totals[some]


class _SortedRun:
    """One sorted run of a file, read some entries at a time."""

    def __init__(self, file: object, first: int, length: int) -> None:
        self._file, self._next, self._left = file, first, length
        self.keys = np.empty(0, np.int64)
        self._counts = np.empty(0)

    def fill(self) -> bool:
        """Have some entries in memory; false at the end."""
        if not len(self.keys) and self._left:
            some = min(self._left, _ENTRIES_AT_ONCE)
            with textio.temporary_files():
                self._file.seek(self._next * _ENTRY)  # type: ignore[attr-defined]
                data = self._file.read(some * _ENTRY)  # type: ignore[attr-defined]
            entries = np.frombuffer(data, [("key", "i8"), ("count", "f8")])
            self.keys, self._counts = entries["key"].copy(), entries["count"].copy()
            self._next += some
            self._left -= some
        return bool(len(self.keys))

    def take(self, last: int) -> tuple[Keys, NDArray[np.float64]]:
        """The entries up to a key, which are then gone from here."""
        end = int(np.searchsorted(self.keys, last, side="right"))
        taken = self.keys[:end], self._counts[:end]
        self.keys, self._counts = self.keys[end:], self._counts[end:]
        return taken


@kernel()
def _slot(keys: Keys, key: int) -> int:
    """Where a key is or belongs, in a table whose size is a power of 2."""
    mask = len(keys) - 1
    place = np.int64((np.uint64(key) * _GOLDEN) >> np.uint64(20)) & mask
    while keys[place] >= 0 and keys[place] != key:
        place = (place + 1) & mask
    return place


@kernel()
def _insert(
    some: Keys, some_counts: NDArray[np.float64], keys: Keys, counts: NDArray[np.float64]
) -> None:
    for i in range(len(some)):
        place = _slot(keys, some[i])
        keys[place] = some[i]
        counts[place] = some_counts[i]


@kernel()
def _count(
    ids: NDArray[np.int32],
    start: int,
    size: int,
    weights: NDArray[np.float64],
    keys: Keys,
    counts: NDArray[np.float64],
    used: int,
) -> tuple[int, int]:
    """Count from word ``start`` on, each word with those behind it; stops between two words when
    the table is half full. Returns the next word and how many slots are used."""
    window = len(weights)
    most = len(keys) // 2 - window
    for i in range(start, len(ids)):
        if used >= most:
            return i, used
        here = ids[i]
        if here < 0:
            continue  # the last of its sentence has none behind it
        for distance in range(1, window + 1):
            other = ids[i + distance]
            is_last = other < 0
            if is_last:
                other = ~other
            low, high = min(here, other), max(here, other)
            key = np.int64(low) * size + high
            place = _slot(keys, key)
            if keys[place] < 0:
                keys[place] = key
                used += 1
            # a pair of equal words is found once, and stands for both orders
            counts[place] += weights[distance - 1]
            if is_last:
                break
    return len(ids), used
