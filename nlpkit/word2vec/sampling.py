"""Chance in word2vec: which words of a sentence are kept, how wide a window is, what noise is.

Random numbers are a 64-bit linear congruential sequence of which the upper half is used: a
multiplication and an addition each, and a state of one number that a kernel can carry along.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel

_MULTIPLIER = np.uint64(6364136223846793005)
_INCREMENT = np.uint64(1442695040888963407)
_HALF = np.uint64(32)
_TOP = 2**32 - 1
_GUIDE_BITS = 16


def keep_probabilities(counts: NDArray[np.int64], sample: float) -> NDArray[np.float64]:
    """How likely each word is kept: ``(sqrt(f / sample) + 1) * sample / f``, at most 1.

    f is the word's share of all words. The formula is word2vec.c's, which is kinder to frequent
    words than the ``sqrt(sample / f)`` of the paper.

    >>> keep_probabilities(np.array([900, 99, 1]), 0.1).round(3).tolist()
    [0.444, 1.0, 1.0]
    """
    if sample <= 0:
        return np.ones(len(counts))
    share = np.maximum(counts, 1) / max(int(counts.sum()), 1)
    return np.minimum((np.sqrt(share / sample) + 1) * sample / share, 1.0)


def keep_limits(counts: NDArray[np.int64], sample: float) -> NDArray[np.uint32]:
    """The same as the highest 32-bit random number with which a word is kept."""
    return np.round(keep_probabilities(counts, sample) * _TOP).astype(np.uint32)


class Noise(NamedTuple):
    """The noise distribution, for drawing by one look-up and a step or two.

    A random number u lies between two entries of ``limits``, the running sum of the
    probabilities. ``guide`` says, for the upper bits of u, where the search begins.
    """

    limits: NDArray[np.uint32]  # (vocabulary,)
    guide: NDArray[np.int32]  # (2 ** 16,)


def noise_probabilities(counts: NDArray[np.int64], exponent: float) -> NDArray[np.float64]:
    """``count ** exponent``, normalised; words that were never seen are no noise.

    >>> noise_probabilities(np.array([16, 1]), 0.75).round(3).tolist()
    [0.889, 0.111]
    """
    weights = np.where(counts > 0, np.maximum(counts, 1).astype(np.float64) ** exponent, 0.0)
    if not weights.sum():
        weights = np.ones(len(counts))
    return weights / weights.sum()


def make_noise(counts: NDArray[np.int64], exponent: float) -> Noise:
    """Prepare drawing from ``noise_probabilities``."""
    running = np.cumsum(noise_probabilities(counts, exponent))
    limits = np.round(running / running[-1] * _TOP).astype(np.uint32)
    starts = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(32 - _GUIDE_BITS)
    return Noise(limits, np.searchsorted(limits, starts).astype(np.int32))


@kernel()
def seeded(seed: int, number: int) -> np.uint64:
    """A state for the given seed and number of a piece of work; neighbours are unlike."""
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(number)
    for _ in range(3):
        state = (state ^ (state >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return state


@kernel()
def advance(state: np.uint64) -> np.uint64:
    """The next state; its upper 32 bits are the random number."""
    return state * _MULTIPLIER + _INCREMENT


@kernel()
def noise_word(number: np.uint64, limits: NDArray[np.uint32], guide: NDArray[np.int32]) -> np.int32:
    """The noise word for a random number of 32 bits."""
    word = guide[number >> np.uint64(32 - _GUIDE_BITS)]
    while limits[word] < number:
        word += 1
    return np.int32(word)


@kernel()
def draw_noise(
    state: np.uint64,
    limits: NDArray[np.uint32],
    guide: NDArray[np.int32],
    noise: NDArray[np.int32],
) -> np.uint64:
    """Fill ``noise`` with draws, one from each of ``len(noise)`` equal slices of the distribution.

    Each word is as likely as in independent draws, on average, but frequent and rare words come
    in their proportion in every block, which makes the sum over a block's noise less noisy.
    """
    slices = np.uint64(len(noise))
    for k in range(len(noise)):
        state = advance(state)
        number = ((np.uint64(k) << _HALF) + (state >> _HALF)) // slices
        noise[k] = noise_word(number, limits, guide)
    return state


@kernel(forceinline=True)
def draw_window(
    state: np.uint64, limit: np.uint32, window: int, shrink: bool
) -> tuple[np.uint64, int]:
    """How many words to each side of a word are its window; 0 when the word is dropped."""
    state = advance(state)
    if np.uint32(state >> _HALF) > limit:
        return state, 0
    half = window
    if shrink:  # 1..window, from bits that did not decide about keeping
        bits = (state >> np.uint64(8)) & np.uint64(0xFFFFFF)
        half = 1 + np.int64((bits * np.uint64(window)) >> np.uint64(24))
    return state, half


@kernel()
def read_windows(
    state: np.uint64,
    ids: NDArray[np.int32],
    start: int,
    stop: int,
    keep: NDArray[np.uint32],
    window: int,
    shrink: bool,
    word: NDArray[np.int32],
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    sentence: NDArray[np.int32],
) -> tuple[np.uint64, int]:
    """Thin out the sentences of ``ids[start:stop]`` and give each word left its window.

    ``word[:n]`` are the words; the window of word p is ``low[p]:high[p]``, p itself included.
    A sentence of one word has no pairs and is left out, unless sentences are documents, which
    predict their words: then ``sentence[p]``, if it has a length, is the number of each word's.
    """
    n = 0
    first = 0  # of the sentence
    ended = 0  # sentences
    documents = len(sentence) > 0
    for position in range(start, stop):
        here = ids[position]
        is_last = here < 0
        if is_last:
            here = ~here
        state, half = draw_window(state, keep[here], window, shrink)
        if half:
            word[n] = here
            low[n] = max(first, n - half)
            high[n] = n + half + 1
            if documents:
                sentence[n] = ended
            n += 1
        if is_last:
            for p in range(max(first, n - window), n):
                high[p] = min(high[p], n)
            if n - first == 1 and not documents:
                n = first
            first = n
            ended += 1
    return state, n
