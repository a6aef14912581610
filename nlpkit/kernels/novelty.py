"""Kernels that find what two texts share: rolling hashes, and how far a match goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nlpkit.kernels.compiling import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BASE = np.uint64(0x9E3779B97F4A7C15)
_MOST_TRIED = 64  # places with one hash that are looked at: common phrases have thousands


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
            out[i - size + 1] = mixed * np.uint64(0xD6E8FEB86659FD93)


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


@kernel()
def _extend(
    known: NDArray[np.uint8],
    data: NDArray[np.uint8],
    order: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sources: NDArray[np.int64],
) -> None:
    i = 0
    while i < len(first):
        best = np.int64(0)
        source = np.int64(-1)
        for place in range(first[i], min(last[i], first[i] + _MOST_TRIED)):
            at = order[place]
            length = np.int64(0)
            while (
                i + length < len(data)
                and at + length < len(known)
                and data[i + length] == known[at + length]
            ):
                length += 1
            if length > best:
                best = length
                source = at
        lengths[i] = best
        sources[i] = source
        # what is inside a long match need not be looked at again
        i += max(np.int64(1), best // 2)


def shared_length(
    known: NDArray[np.uint8],
    data: NDArray[np.uint8],
    order: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """From each place of a text, how many bytes also stand in a known text, and where.

    ``order[first[i]:last[i]]`` are the places of the known text where a match may begin.
    """
    lengths = np.zeros(len(first), np.int64)
    sources = np.full(len(first), -1, np.int64)
    _extend(known, data, order, first, last, lengths, sources)
    return lengths, sources
