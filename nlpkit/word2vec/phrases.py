"""Join pairs of words that occur together far more often than by chance: new york -> new_york.

The score is word2phrase's, (count(ab) - min_count) * words / (count(a) * count(b)): how many times
more often than by chance, with rare pairs held back. One pass joins two words; a second pass can
join the result with a third. Works on provisional ids with ``LINE_END`` between lines, in place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.wordcount import LINE_END

Change = Callable[[NDArray[np.int32]], int]

JOINER = "_"
MOST_PAIRS = 1 << 25  # slots of the table of pairs; when it fills up the rarest pairs are dropped
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def join_phrases(
    ids: NDArray[np.int32],
    words: list[str],
    counts: NDArray[np.int64],
    *,
    threshold: float,
    min_count: int,
    most_pairs: int = MOST_PAIRS,
    rewrite: Callable[[NDArray[np.int32], Change], int] = lambda ids, change: change(ids),
) -> tuple[int, list[str], NDArray[np.int64]]:
    """One pass. Returns how many ids are left, and words and counts with the phrases at the end.

    ``rewrite`` hands ids that are no memory of ours to a function that changes whole lines.

    >>> ids = np.array([0, 1, 2, 0, 1, -1, 0, 1, 3, -1], dtype=np.int32)
    >>> length, words, counts = join_phrases(
    ...     ids, ["new", "york", "is", "big"], np.array([3, 3, 1, 1]), threshold=1, min_count=1)
    >>> words, counts.tolist(), ids[:length].tolist()
    (['new', 'york', 'is', 'big', 'new_york'], [0, 0, 1, 1, 3], [4, 2, 4, -1, 4, 3, -1])
    """
    keys = np.full(min(1 << 12, most_pairs), _EMPTY, dtype=np.uint64)
    pair_counts = np.zeros(len(keys), dtype=np.int64)
    position, used, dropped = 0, 0, 0
    while True:
        position, used = _count_pairs(ids, position, counts, min_count, keys, pair_counts, used)
        if position >= len(ids):
            break
        slots = min(2 * len(keys), most_pairs)
        dropped += slots == len(keys)  # no room to grow: forget pairs seen this often or less
        alive = pair_counts > dropped
        old_keys, old_counts = keys[alive], pair_counts[alive]
        keys = np.full(slots, _EMPTY, dtype=np.uint64)
        pair_counts = np.zeros(slots, dtype=np.int64)
        _insert(old_keys, old_counts, keys, pair_counts)
        used = len(old_keys)

    first = (keys >> np.uint64(32)).astype(np.int64)
    second = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    taken = keys != _EMPTY
    scores = np.zeros(len(keys))
    by_chance = counts[first[taken]].astype(np.float64) * counts[second[taken]] / counts.sum()
    scores[taken] = (pair_counts[taken] - min_count) / by_chance
    joined = np.flatnonzero(scores > threshold)
    joined = joined[np.argsort(keys[joined])]  # ids must not depend on the size of the table
    phrase_of_slot = np.full(len(keys), -1, dtype=np.int32)
    phrase_of_slot[joined] = len(words) + np.arange(len(joined), dtype=np.int32)
    phrases = [
        words[a] + JOINER + words[b] for a, b in zip(first[joined], second[joined], strict=True)
    ]
    new_counts = np.concatenate([counts, np.zeros(len(joined), dtype=np.int64)])
    length = rewrite(ids, lambda part: _join(part, keys, phrase_of_slot, new_counts))
    return length, words + phrases, new_counts


@kernel()
def _slot_of(keys: NDArray[np.uint64], key: np.uint64) -> np.uint64:
    """Where the key is, or the empty slot where it would go."""
    mask = np.uint64(len(keys) - 1)
    slot = (key * _GOLDEN) >> np.uint64(20) & mask
    while keys[slot] != key and keys[slot] != _EMPTY:
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel()
def _pair_key(a: np.int32, b: np.int32) -> np.uint64:
    return np.uint64(a) << np.uint64(32) | np.uint64(b)


@kernel()
def _count_pairs(
    ids: NDArray[np.int32],
    position: int,
    counts: NDArray[np.int64],
    min_count: int,
    keys: NDArray[np.uint64],
    pair_counts: NDArray[np.int64],
    used: int,
) -> tuple[int, int]:
    """Count neighbours from a position on; stops where the table is half full."""
    room = len(keys) // 2
    for i in range(max(position, 1), len(ids)):
        a, b = ids[i - 1], ids[i]
        if a == LINE_END or b == LINE_END or counts[a] < min_count or counts[b] < min_count:
            continue
        slot = _slot_of(keys, _pair_key(a, b))
        if keys[slot] == _EMPTY:
            if used == room:
                return i, used
            keys[slot] = _pair_key(a, b)
            used += 1
        pair_counts[slot] += 1
    return len(ids), used


@kernel()
def _insert(
    old_keys: NDArray[np.uint64],
    old_counts: NDArray[np.int64],
    keys: NDArray[np.uint64],
    pair_counts: NDArray[np.int64],
) -> None:
    for i in range(len(old_keys)):
        slot = _slot_of(keys, old_keys[i])
        keys[slot] = old_keys[i]
        pair_counts[slot] = old_counts[i]


@kernel()
def _join(
    ids: NDArray[np.int32],
    keys: NDArray[np.uint64],
    phrase_of_slot: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Replace pairs from left to right; a word is part of one phrase only. Counts follow."""
    end = 0
    i = 0
    while i < len(ids):
        word = ids[i]
        if word != LINE_END and i + 1 < len(ids) and ids[i + 1] != LINE_END:
            slot = _slot_of(keys, _pair_key(word, ids[i + 1]))
            if keys[slot] != _EMPTY and phrase_of_slot[slot] >= 0:
                counts[word] -= 1
                counts[ids[i + 1]] -= 1
                word = phrase_of_slot[slot]
                counts[word] += 1
                i += 1
        ids[end] = word
        end += 1
        i += 1
    return end
