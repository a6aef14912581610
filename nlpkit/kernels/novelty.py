"""Kernels that find what two texts share: rolling hashes, a table of them, how far a match goes.

The table has the windows of one text; the other, which may be long, is only read past it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel

_BASE = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)
_MOST_TRIED = 64  # windows of one hash that are looked at: a text may repeat itself for ever


@kernel()
def _roll(data: NDArray[np.uint8], size: int, out: NDArray[np.uint64]) -> None:
    power = np.uint64(1)
    for _ in range(size):
        power *= _BASE
    value = np.uint64(0)
    for i in range(len(data)):
        value = value * _BASE + np.uint64(data[i]) + np.uint64(1)
        if i >= size:
            value -= power * (np.uint64(data[i - size]) + np.uint64(1))
        if i >= size - 1:
            mixed = value ^ (value >> np.uint64(32))
            out[i - size + 1] = mixed * _SPREAD


def rolling_hashes(data: NDArray[np.uint8], size: int) -> NDArray[np.uint64]:
    """A hash of each window of ``size`` bytes (Rabin and Karp, 1987).

    >>> hashes = rolling_hashes(np.frombuffer(b"abcabc", np.uint8), 3)
    >>> bool(hashes[0] == hashes[3]), len(hashes)
    (True, 4)
    """
    out = np.empty(max(0, len(data) - size + 1), np.uint64)
    if len(out):
        _roll(np.ascontiguousarray(data), size, out)
    return out


@kernel(inline="always")
def _slot(wanted: np.uint64, keys: NDArray[np.uint64], heads: NDArray[np.int64]) -> int:
    """Where a hash stands in a table, or could be put."""
    mask = len(keys) - 1
    slot = np.int64(wanted >> np.uint64(20)) & mask
    while heads[slot] >= 0 and keys[slot] != wanted:
        slot = (slot + 1) & mask
    return slot


@kernel()
def insert_windows(
    hashes: NDArray[np.uint64],  # (N,)
    keys: NDArray[np.uint64],  # (slots,), a power of two greater than N
    heads: NDArray[np.int64],  # (slots,), -1 where nothing is
    following: NDArray[np.int64],  # (N,)
    slots: NDArray[np.int64],  # (N,)
) -> None:
    """Put windows into a table: the first of each hash, from each the next one of its hash."""
    for i in range(len(hashes) - 1, -1, -1):
        slot = _slot(hashes[i], keys, heads)
        keys[slot] = hashes[i]
        following[i] = heads[slot]
        heads[slot] = i
        slots[i] = slot


@kernel()
def mark_windows(
    hashes: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    heads: NDArray[np.int64],
    found: NDArray[np.bool_],  # (slots,)
) -> None:
    """Mark the slots of a table whose hashes are among these."""
    for i in range(len(hashes)):
        slot = _slot(hashes[i], keys, heads)
        if heads[slot] >= 0:
            found[slot] = True


@kernel()
def extend_matches(
    hashes: NDArray[np.uint64],  # of windows of the known text, from ``begin`` on
    begin: int,
    known: NDArray[np.uint8],
    text: NDArray[np.uint8],
    keys: NDArray[np.uint64],
    heads: NDArray[np.int64],
    following: NDArray[np.int64],
    lengths: NDArray[np.int64],  # (N,), of the longest match from each place of the text
    sources: NDArray[np.int64],  # (N,), where it stands in the known text
) -> None:
    """Follow each match of windows as far as both texts agree, and keep the longest."""
    for i in range(len(hashes)):
        slot = _slot(hashes[i], keys, heads)
        at = begin + i
        place = heads[slot]
        tried = 0
        while place >= 0 and tried < _MOST_TRIED:
            best = lengths[place]
            if place > 0 and sources[place - 1] == at - 1 and lengths[place - 1] - 1 > best:
                lengths[place] = lengths[place - 1] - 1  # the rest of a match that is known
                sources[place] = at
            elif (
                place + best < len(text)
                and at + best < len(known)
                and text[place + best] == known[at + best]  # or it is no longer than the best
            ):
                length = np.int64(0)
                while (
                    place + length < len(text)
                    and at + length < len(known)
                    and text[place + length] == known[at + length]
                ):
                    length += 1
                if length > best:
                    lengths[place] = length
                    sources[place] = at
            place = following[place]
            tried += 1
