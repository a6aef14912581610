"""The hashed linear features of a word: all that a linear model looks at in it.

Its shape, its prefixes and suffixes, the word with and without case, and what kind it is. Each is
known by a hash of 32 bits. They are worked out for many words at once: a hash is a sum of powers,
so that those of all affixes are differences of one running sum.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
AFFIX_LENGTHS = (1, 2, 3, 4)
N_AFFIXES = 1 + 2 * len(AFFIX_LENGTHS)  # with the shape
N_HASHES = N_AFFIXES + 3
FAR_FEATURES = (0, N_AFFIXES, N_AFFIXES + 1)  # shape and word: all that counts two words away
TABLE_CELLS = 1 << 23  # numbers in a table of features, at most
LONGEST_SHAPE = 24  # characters that are looked at

_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse among numbers of 64 bits
_INVERSE = pow(_BASE, -1, 1 << 64)


def feature_hashes(words: Sequence[str]) -> Ids:
    """The features of words, (U, N_HASHES): shape, prefixes, suffixes, lower case, as is, kind.

    >>> one, other = feature_hashes(["Talking", "walking"])
    >>> (one == other).nonzero()[0].tolist()  # suffixes of 1 to 4 characters
    [5, 6, 7, 8]
    """
    lowered = _Spelled([word.lower() for word in words])
    kinds = [
        word[:1].isupper() | word.isupper() << 1 | word.isalpha() << 2 | ("-" in word) << 3
        for word in words
    ]
    columns = [
        _scatter(_Spelled([word_shape(word) for word in words]).whole(), "="),
        *(_scatter(lowered.prefix(length), "p") for length in AFFIX_LENGTHS),
        *(_scatter(lowered.suffix(length), "s") for length in AFFIX_LENGTHS),
        _scatter(lowered.whole(), "w"),
        _scatter(_Spelled(words).whole(), "W"),
        _scatter(np.array(kinds, np.uint64), "k"),
    ]
    return np.stack(columns, axis=1)


def character_codes(text: str) -> NDArray[np.uint32]:
    """The numbers of the characters.

    >>> character_codes("aé").tolist()
    [97, 233]
    """
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


class _Spelled:
    """The characters of all words in a row: c0 + c1 b + c2 b^2 + ... from the start of each.

    Sums are of 64 bits, and what goes over is lost.
    """

    def __init__(self, words: Sequence[str]) -> None:
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        self.ends = np.cumsum(lengths)
        self.starts = self.ends - lengths
        longest = int(lengths.max(initial=0)) + 1
        powers = _powers(_BASE, longest)
        places = np.arange(lengths.sum()) - np.repeat(self.starts, lengths)
        codes = character_codes("".join(words)).astype(np.uint64) + np.uint64(1)
        self.sums = np.append(np.uint64(0), np.cumsum(codes * powers[places]))
        self.inverse = _powers(_INVERSE, longest)

    def whole(self) -> NDArray[np.uint64]:
        return self._between(self.starts, self.ends)

    def prefix(self, length: int) -> NDArray[np.uint64]:
        return self._between(self.starts, np.minimum(self.starts + length, self.ends))

    def suffix(self, length: int) -> NDArray[np.uint64]:
        begins = np.maximum(self.ends - length, self.starts)
        # counted from where the suffix begins, not the word
        return self._between(begins, self.ends) * self.inverse[begins - self.starts]

    def _between(self, begins: Ids, ends: Ids) -> NDArray[np.uint64]:
        return self.sums[ends] - self.sums[begins]


def _powers(base: int, count: int) -> NDArray[np.uint64]:
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    return powers.cumprod()


def _scatter(sums: NDArray[np.uint64], kind: str) -> Ids:
    """32 bits that depend on every bit of the sum and on the kind of feature."""
    mixed = sums + np.uint64(ord(kind))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(32)).astype(np.int64)


# --- shapes -------------------------------------------------------------------------------------


def word_shape(word: str) -> str:
    """Upper case, lower case, digits and the rest, runs cut to two.

    >>> word_shape("McDonald's"), word_shape("B-52")
    ("XxXxx'x", 'X-dd')
    """
    return _RUN.sub(_first_two, word[:LONGEST_SHAPE].translate(_KINDS))


def _first_two(run: re.Match[str]) -> str:
    return run[0][:2]


class _Kinds(dict[int, str]):
    """The kind of each character, worked out when first met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isupper():
            kind = "X"
        elif character.isalpha():
            kind = "x"
        else:
            kind = "d" if character.isdigit() else character
        self[code] = kind
        return kind


_KINDS = _Kinds()
_RUN = re.compile(r"(.)\1{2,}", re.DOTALL)


# --- places and tables --------------------------------------------------------------------------


@dataclass(frozen=True)
class FeaturePlaces:
    """Where features are taken from, counted from the word: behind it only if that may be seen.

    >>> FeaturePlaces.of(causal=True).near
    (-1, 0)
    """

    near: tuple[int, ...]
    far: tuple[int, ...]

    @classmethod
    def of(cls, causal: bool) -> FeaturePlaces:
        return cls((-1, 0), (-2,)) if causal else cls((-1, 0, 1), (-2, 2))

    @property
    def in_order(self) -> tuple[int, ...]:
        """As the scores of a word are laid out."""
        return (*self.near, *self.far)


def known_features(hashes: Ids, counts: Ids, width: int) -> tuple[Ids, Ids]:
    """The features of words that were counted, in order: those that get a row of a table. And how
    often they occur.

    All of them, if a table ``width`` numbers wide is not too large then; else the most frequent.
    """
    known, places = np.unique(hashes, return_inverse=True)
    totals = np.bincount(places.ravel(), weights=np.repeat(counts, hashes.shape[1]))
    room = max(1, TABLE_CELLS // width)
    kept = np.sort(np.argsort(-totals, kind="stable")[:room])
    return known[kept], totals[kept].astype(np.int64)


def find_rows(known: NDArray[Any], wanted: NDArray[Any]) -> Ids:
    """The row of each number among the known ones, counted from 1; 0 for what is not known.

    >>> find_rows(np.array([3, 7]), np.array([7, 5, 9])).tolist()
    [2, 0, 0]
    """
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    rows: Ids = np.where(known[places] == wanted, places + 1, 0)
    return rows
