"""What is known of a word by itself: its id, its vector, its characters, its affixes and shape.

All of it depends on the word alone, so it is worked out once for each distinct word of a batch (or
of a run), not for each token. Numpy only: training and prediction share this file.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlpkit.vocab import UNK, Vocab

Ids = NDArray[np.int64]
AFFIX_BUCKETS = 20_000
SHAPE_BUCKETS = 1_000  # when shapes are all there is
LONGEST_WORD = 24  # characters that are looked at: the first and last half of a longer word
AFFIX_LENGTHS = (1, 2, 3, 4)
N_AFFIXES = 1 + 2 * len(AFFIX_LENGTHS)  # with the shape
N_CLUES = N_AFFIXES + 3
FAR_CLUES = (0, N_AFFIXES, N_AFFIXES + 1)  # shape and word: all that counts two words away
CLUE_CELLS = 1 << 23  # numbers in a table of clues, at most
WORD_EDGE = "\x02"  # stands before and after the characters of a word


@dataclass(frozen=True)
class WordFeatures:
    """Features of U distinct words."""

    words: Ids  # (U,) in the vocabulary of training, lower-cased
    vectors: Ids  # (U,) row of the given vectors, from 1; 0 is none
    characters: Ids  # (U, L), 0 is padding
    affixes: Ids  # (U, 1 or more) the hashed shape, then prefixes and suffixes
    clues: Ids  # (U, N_CLUES) hashes of all that a linear model looks at, 32 bits each

    def __len__(self) -> int:
        return len(self.words)


def normal_form(word: str) -> str:
    """The word as its embedding knows it: lower case, all digits alike.

    >>> normal_form("Route66")
    'route00'
    """
    lowered = word.lower()
    return lowered if lowered.isalpha() else lowered.translate(_DIGITS)


_DIGITS = {ord(digit): "0" for digit in "123456789"}


def word_shape(word: str) -> str:
    """Upper case, lower case, digits and the rest, runs cut to two.

    >>> word_shape("McDonald's"), word_shape("B-52")
    ("XxXxx'x", 'X-dd')
    """
    return _RUN.sub(_first_two, word[:LONGEST_WORD].translate(_KINDS))


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


def clue_hashes(word: str) -> list[int]:
    """Shape, prefixes, suffixes, the word with and without case, and what kind it is, hashed."""
    lowered = word.lower()
    kind = f"{word[:1].isupper():d}{word.isupper():d}{not word.isalpha():d}{'-' in word:d}"
    keys = [f"={word_shape(word)}", *_affixes(lowered), f"w{lowered}", f"W{word}", f"k{kind}"]
    return [_hash(key) for key in keys]


@dataclass(frozen=True)
class CluePlaces:
    """Where clues are taken from, counted from the word: behind it only if that may be seen.

    >>> CluePlaces.of(one_way=True).near
    (-1, 0)
    """

    near: tuple[int, ...]
    far: tuple[int, ...]

    @classmethod
    def of(cls, one_way: bool) -> CluePlaces:
        return cls((-1, 0), (-2,)) if one_way else cls((-1, 0, 1), (-2, 2))

    @property
    def in_order(self) -> tuple[int, ...]:
        """As the scores of a word are laid out."""
        return (*self.near, *self.far)


def known_clues(clues: Ids, counts: Ids, width: int) -> tuple[Ids, Ids]:
    """The clues of words that were counted, in order: those that get a row of a table. And how
    often they occur.

    All of them, if a table ``width`` numbers wide is not too large then; else the most frequent.
    """
    known, places = np.unique(clues, return_inverse=True)
    totals = np.bincount(places.ravel(), weights=np.repeat(counts, clues.shape[1]))
    room = max(1, CLUE_CELLS // width)
    kept = np.sort(np.argsort(-totals, kind="stable")[:room])
    return known[kept], totals[kept].astype(np.int64)


def find_rows(known: Ids, clues: Ids) -> Ids:
    """The row of each clue, counted from 1; 0 for what is not known.

    >>> find_rows(np.array([3, 7]), np.array([7, 5, 9])).tolist()
    [2, 0, 0]
    """
    places = np.minimum(np.searchsorted(known, clues), len(known) - 1)
    rows: Ids = np.where(known[places] == clues, places + 1, 0)
    return rows


def _affixes(lowered: str) -> list[str]:
    return [f"p{lowered[:length]}" for length in AFFIX_LENGTHS] + [
        f"s{lowered[-length:]}" for length in AFFIX_LENGTHS
    ]


def _hash(key: str) -> int:
    return zlib.crc32(key.encode("utf-8", "replace"))


def word_characters(word: str) -> str:
    """The characters an encoder looks at, with the edges of the word marked."""
    if len(word) > LONGEST_WORD:
        half = LONGEST_WORD // 2
        word = word[:half] + word[-half:]
    return f"{WORD_EDGE}{word}{WORD_EDGE}"


class Lexicon:
    """The vocabularies that turn words into features.

    >>> lexicon = Lexicon.build(["The", "dog", "the"])
    >>> lexicon.features(["THE", "cat"]).words.tolist()
    [2, 1]
    """

    def __init__(
        self,
        words: Vocab,
        characters: Vocab,
        vector_words: Sequence[str] = (),
        *,
        affixes: bool = True,
    ) -> None:
        self.affixes = affixes
        self.words, self.characters = words, characters
        self.vector_words = list(vector_words)
        self._vector_rows = {word: row for row, word in enumerate(self.vector_words, 1)}

    @classmethod
    def build(
        cls,
        tokens: Iterable[str],
        vector_words: Sequence[str] = (),
        *,
        affixes: bool = True,
    ) -> Lexicon:
        """Vocabularies of training tokens."""
        counts = Counter(tokens)
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for token, count in counts.items():
            words[normal_form(token)] += count
            for character in word_characters(token):
                characters[character] += count
        return cls(
            Vocab.from_counts(words),
            Vocab.from_counts(characters),
            vector_words,
            affixes=affixes,
        )

    def __contains__(self, word: str) -> bool:
        return normal_form(word) in self.words

    def features(self, words: Sequence[str]) -> WordFeatures:
        """Features of distinct words."""
        ids, unknown = self.words.ids, self.words.ids[UNK]
        forms = [normal_form(word) for word in words]
        rows = [self._vector_row(word) for word in words] if self._vector_rows else []
        spelled = [word_characters(word) for word in words]
        longest = max(map(len, spelled), default=1)
        characters = np.zeros((len(words), longest), np.int64)
        inside = np.arange(longest) < np.array([len(spelling) for spelling in spelled])[:, None]
        known, unknown_character = self.characters.ids, self.characters.ids[UNK]
        characters[inside] = [known.get(c, unknown_character) for c in "".join(spelled)]
        hashes = [clue_hashes(word) for word in words]
        clues = np.array(hashes, np.int64).reshape(-1, N_CLUES)
        return WordFeatures(
            np.array([ids.get(form, unknown) for form in forms], np.int64),
            np.array(rows, np.int64) if rows else np.zeros(len(words), np.int64),
            characters,
            clues[:, :N_AFFIXES] % AFFIX_BUCKETS if self.affixes else clues[:, :1] % SHAPE_BUCKETS,
            clues,
        )

    def _vector_row(self, word: str) -> int:
        rows = self._vector_rows
        return rows.get(word) or rows.get(word.lower()) or rows.get(normal_form(word), 0)


@functools.cache
def dropout_rate(count: int, strength: float) -> float:
    """How often a word seen ``count`` times is hidden in training, so that <unk> is learned."""
    return strength / (strength + count) if count else 0.0
