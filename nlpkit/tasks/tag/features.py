"""What is known of a word by itself: its id, its vector, its characters, its affixes and shape.

All of it depends on the word alone, so it is worked out once for each distinct word of a batch (or
of a run), not for each token. Numpy only: training and prediction share this file.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nlpkit.tasks.tag.hashed_features import (
    N_AFFIXES,
    Ids,
    character_codes,
    feature_hashes,
    find_rows,
)
from nlpkit.text.codec import save_codec
from nlpkit.text.vocab import UNK, Vocab
from nlpkit.text.vocab_codec import WORDS, VocabCodec

CHARACTERS = "characters.tsv"
LINEAR = "clues."  # how tensors of the linear features begin in files, since 0.1.0
AFFIX_BUCKETS = 20_000
SHAPE_BUCKETS = 1_000  # when shapes are all there is
AFFIX_DIM = 64
CHAR_KERNEL = 3
CHAR_DIM = 32
CHAR_FILTERS = 64
MIX = 128  # width of all features of a word together
VECTOR_MIX = 64  # how much wider it is with vectors
LONGEST_WORD = 24  # characters that are looked at: the first and last half of a longer word
SLOPE = 0.1  # of what is below 0 when all features of a word have been mixed
WORD_EDGE = "\x02"  # stands before and after the characters of a word


@dataclass(frozen=True)
class WordFeatures:
    """Features of U distinct words."""

    words: Ids  # (U,) in the vocabulary of training, lower-cased
    vectors: Ids  # (U,) row of the given vectors, from 1; 0 is none
    characters: Ids  # (U, L), 0 is padding
    affixes: Ids  # (U, 1 or more) the hashed shape, then prefixes and suffixes
    hashes: Ids  # (U, N_HASHES) hashes of all that a linear model looks at, or rows of its tables

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


def word_characters(word: str) -> str:
    """The characters an encoder looks at, with the edges of the word marked."""
    if len(word) > LONGEST_WORD:
        half = LONGEST_WORD // 2
        word = word[:half] + word[-half:]
    return f"{WORD_EDGE}{word}{WORD_EDGE}"


class FeatureExtractor:
    """Words and characters as ids, and affixes and shapes as hashes.

    >>> extractor = FeatureExtractor.build(["The", "dog", "the"])
    >>> extractor.features(["THE", "cat"]).words.tolist()
    [2, 1]
    """

    def __init__(self, words: VocabCodec, characters: VocabCodec, *, affixes: bool = True) -> None:
        self.words, self.characters, self.affixes = words, characters, affixes
        ids = characters.vocab.ids
        single = sorted(token for token in ids if len(token) == 1)
        self._codes = character_codes("".join(single))  # in order
        # what is not known comes first, as find_rows has it
        self._code_ids = np.array([ids[token] for token in (UNK, *single)], np.int64)

    @classmethod
    def build(
        cls,
        tokens: Iterable[str],
        vector_words: Sequence[str] = (),
        *,
        affixes: bool = True,
    ) -> FeatureExtractor:
        """Vocabularies of training tokens."""
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for token, count in Counter(tokens).items():
            words[normal_form(token)] += count
            for character in word_characters(token):
                characters[character] += count
        return cls(
            VocabCodec(Vocab.from_counts(words), vector_words=vector_words, form=normal_form),
            VocabCodec(Vocab.from_counts(characters), "char", file=CHARACTERS),
            affixes=affixes,
        )

    def write(self, folder: Path) -> None:
        """Put both vocabularies into a model folder."""
        save_codec(self.words, folder)
        save_codec(self.characters, folder)

    @classmethod
    def read(cls, folder: Path, *, affixes: bool) -> FeatureExtractor:
        """What ``write`` wrote."""
        return cls(
            VocabCodec.read(folder / WORDS, form=normal_form),
            VocabCodec.read(folder / CHARACTERS, "char", padded=True),
            affixes=affixes,
        )

    def features(self, words: Sequence[str]) -> WordFeatures:
        """Features of distinct words."""
        spelled = [word_characters(word) for word in words]
        lengths = np.array([len(spelling) for spelling in spelled])
        inside = np.arange(lengths.max(initial=1)) < lengths[:, None]
        characters = np.zeros(inside.shape, np.int64)
        rows_of_codes = find_rows(self._codes, character_codes("".join(spelled)))
        characters[inside] = self._code_ids[rows_of_codes]
        hashes = feature_hashes(words)
        return WordFeatures(
            np.array(self.words.encode_tokens(words), np.int64),
            np.array(self.words.vector_rows(words), np.int64),
            characters,
            hashes[:, :N_AFFIXES] % AFFIX_BUCKETS
            if self.affixes
            else hashes[:, :1] % SHAPE_BUCKETS,
            hashes,
        )


@functools.cache
def dropout_rate(count: int, strength: float) -> float:
    """How often a word seen ``count`` times is hidden in training, so that <unk> is learned."""
    return strength / (strength + count) if count else 0.0
