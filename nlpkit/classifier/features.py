"""Words and word n-grams as numbers: a stable hash of each, worked out for many texts at once.

A word is hashed once and remembered; n-grams are made from the hashes of their words by
arithmetic over whole arrays, so that a text costs little more than splitting it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit.tokenizers import Tokenizer, get_tokenizer

Ids = NDArray[np.int64]
EDGE = "\x02"  # stands before the first word and behind the last: "^ not" is a bigram too
REMEMBERED = 200_000  # words before the table is emptied: memory stays bounded
HASH_BITS = 48  # of a feature; the 16 above hold the number of the text while sorting
TEXTS_AT_ONCE = 4096
_SPARE_BITS = np.uint64(64 - HASH_BITS)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Bags(NamedTuple):
    """Features of texts one after the other; text i has those from ``starts[i]`` on."""

    features: NDArray[np.uint64]  # (N,)
    starts: Ids  # (B + 1,)


class WordHashes(dict[str, int]):
    """The hash of each word, remembered."""

    def __missing__(self, word: str) -> int:
        if len(self) >= REMEMBERED:
            self.clear()
        value = zlib.crc32(word.encode("utf-8", "replace"))
        self[word] = value
        return value


class BagMaker:
    """Texts -> tokens -> hashed n-grams, each once in its text.

    >>> bags = BagMaker("whitespace", lower=True, ngrams=2).bags(["Not bad", ""])
    >>> bags.starts.tolist()
    [0, 6, 8]
    """

    def __init__(self, tokenizer: str, *, lower: bool, ngrams: int) -> None:
        self.tokenizer: Tokenizer = get_tokenizer(tokenizer)
        self.lower, self.ngrams = lower, ngrams
        self._hashes = WordHashes()

    def tokens(self, text: str) -> list[str]:
        """The words of a text."""
        return self.tokenizer.tokens(text.lower() if self.lower else text)

    def bags(self, texts: Sequence[str]) -> Bags:
        """The features of each text."""
        return self.bags_of([self.tokens(text) for text in texts])

    def bags_of(self, rows: Sequence[Sequence[str]]) -> Bags:
        """The features of tokenised texts."""
        starts = range(0, max(1, len(rows)), TEXTS_AT_ONCE)
        return join_bags([self._some_bags(rows[at : at + TEXTS_AT_ONCE]) for at in starts])

    def _some_bags(self, rows: Sequence[Sequence[str]]) -> Bags:
        look_up = self._hashes.__getitem__
        edge = look_up(EDGE)
        hashes: list[int] = []
        lengths = []
        for row in rows:
            hashes.append(edge)
            hashes.extend(map(look_up, row))
            hashes.append(edge)
            lengths.append(len(row) + 2)
        words = np.array(hashes, np.uint64)
        texts = np.repeat(np.arange(len(rows), dtype=np.uint64), lengths)
        keys = []
        current = words
        for size in range(1, self.ngrams + 1):
            if size > 1:
                current = current[:-1] * _MULTIPLIER + words[size - 1 :]
            owners = texts[: len(current)]
            # the high bits of the product are the well-mixed ones
            key = (owners << np.uint64(HASH_BITS)) | (current * _MULTIPLIER >> _SPARE_BITS)
            inside = owners == texts[size - 1 :]  # or the n-gram would run into the next text
            keys.append(key[inside])
        return _each_once(np.concatenate(keys), len(rows))


def _each_once(keys: NDArray[np.uint64], count: int) -> Bags:
    """Sort by text and feature together and drop repeats."""
    keys = np.sort(keys)
    new = np.ones(len(keys), bool)
    new[1:] = keys[1:] != keys[:-1]
    keys = keys[new]
    edges = np.arange(count + 1, dtype=np.uint64) << np.uint64(HASH_BITS)
    return Bags(keys & np.uint64((1 << HASH_BITS) - 1), np.searchsorted(keys, edges))


def join_bags(parts: Sequence[Bags]) -> Bags:
    """Bags of texts that follow each other as one."""
    starts = [np.zeros(1, np.int64)]
    for part in parts:
        starts.append(part.starts[1:] + starts[-1][-1])
    return Bags(np.concatenate([part.features for part in parts]), np.concatenate(starts))


class FeatureIndex:
    """Finds the row of a feature among the known ones, for many at once.

    Hashes are spread evenly, so their highest bits say nearly where one stands in the sorted list.

    >>> index = FeatureIndex(np.array([3, 9], np.uint64))
    >>> bags = Bags(np.array([5, 9], np.uint64), np.array([0, 2]))
    >>> [part.tolist() for part in index.rows(bags)]
    [[1], [0, 1]]
    """

    def __init__(self, known: NDArray[np.uint64]) -> None:
        self.known = known  # sorted
        bits = min(HASH_BITS, max(1, len(known)).bit_length() + 1)
        self._shift = np.uint64(HASH_BITS - bits)
        edges = np.arange((1 << bits) + 1, dtype=np.uint64) << self._shift
        self._first = np.searchsorted(known, edges)

    def rows(self, bags: Bags) -> tuple[Ids, Ids]:
        """Rows of the known features and where each text's begin; unknown ones are dropped."""
        slots = (bags.features >> self._shift).astype(np.int64)
        rows, ends = self._first[slots], self._first[slots + 1]
        found = np.zeros(len(rows), bool)
        active = np.flatnonzero(rows < ends)
        while len(active):
            hit = self.known[rows[active]] == bags.features[active]
            found[active[hit]] = True
            active = active[~hit]
            rows[active] += 1
            active = active[rows[active] < ends[active]]
        kept = np.concatenate([[0], np.cumsum(found)])
        return rows[found], kept[bags.starts]
