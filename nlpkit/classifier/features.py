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
        texts = np.repeat(np.arange(len(rows)), lengths)
        grams, owners = [words], [texts]
        current = words
        for size in range(2, self.ngrams + 1):
            if len(words) < size:
                break
            current = current[:-1] * _MULTIPLIER + words[size - 1 :]
            inside = texts[: len(current)] == texts[size - 1 :]
            grams.append(current[inside])
            owners.append(texts[: len(current)][inside])
        return _each_once(np.concatenate(grams), np.concatenate(owners), len(rows))


def _each_once(features: NDArray[np.uint64], owners: Ids, count: int) -> Bags:
    """Sort by text, then feature, and drop repeats within a text."""
    order = np.lexsort((features, owners))
    features, owners = features[order], owners[order]
    new = np.ones(len(features), bool)
    new[1:] = (features[1:] != features[:-1]) | (owners[1:] != owners[:-1])
    features, owners = features[new], owners[new]
    starts = np.searchsorted(owners, np.arange(count + 1))
    return Bags(features, starts)


def find_rows(bags: Bags, known: NDArray[np.uint64]) -> tuple[Ids, Ids]:
    """Rows of the known features (sorted hashes) and where each text's begin; others are dropped.

    >>> bags = Bags(np.array([5, 9], np.uint64), np.array([0, 2]))
    >>> [part.tolist() for part in find_rows(bags, np.array([3, 9], np.uint64))]
    [[1], [0, 1]]
    """
    if not len(known):
        return np.zeros(0, np.int64), np.zeros_like(bags.starts)
    rows = np.minimum(np.searchsorted(known, bags.features), len(known) - 1)
    found = known[rows] == bags.features
    kept = np.concatenate([[0], np.cumsum(found)])
    return rows[found], kept[bags.starts]
