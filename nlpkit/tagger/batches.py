"""Sentences as arrays, and batches of sentences of one length, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nlpkit.tagger.clues import Ids
from nlpkit.tagger.features import Lexicon, WordFeatures

LONGEST = 1000  # tokens that are looked at together; a longer sentence is cut


def cut_long(length: int, longest: int = LONGEST) -> list[slice]:
    """Pieces of a sentence that are each at most ``longest`` tokens, as even as can be.

    >>> cut_long(5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    pieces = -(-length // longest)
    size = -(-length // max(1, pieces))
    return [slice(start, min(start + size, length)) for start in range(0, length, max(1, size))]


class TaggedData:
    """Sentences in the form training wants: which distinct word each token is, and its tag."""

    def __init__(
        self,
        sentences: Sequence[Sequence[str]],
        tag_rows: Sequence[Sequence[int]],
        lexicon: Lexicon,
        longest: int = LONGEST,
    ) -> None:
        distinct: dict[str, int] = {}
        self.tokens: list[Ids] = []
        self.tags: list[Ids] = []
        for words, tags in zip(sentences, tag_rows, strict=True):
            ids = np.array([distinct.setdefault(word, len(distinct)) for word in words], np.int64)
            for piece in cut_long(len(words), longest):
                self.tokens.append(ids[piece])
                self.tags.append(np.array(tags[piece], np.int64))
        self.features = lexicon.features(list(distinct))
        self.counts = np.bincount(np.concatenate(self.tokens), minlength=len(distinct))
        self.lengths = np.array([len(ids) for ids in self.tokens])

    def batch(self, rows: Ids) -> tuple[WordFeatures, Ids, Ids]:
        """Features of the distinct words of some sentences, positions (B, T) and tags (B, T)."""
        tokens = np.stack([self.tokens[row] for row in rows])
        tags = np.stack([self.tags[row] for row in rows])
        distinct, positions = np.unique(tokens, return_inverse=True)
        every = self.features
        characters = every.characters[distinct]
        used = int((characters != 0).sum(axis=1).max(initial=1))
        features = WordFeatures(
            every.words[distinct],
            every.vectors[distinct],
            np.ascontiguousarray(characters[:, :used]),
            every.affixes[distinct],
            every.clues[distinct],
        )
        return features, positions.reshape(tokens.shape), tags


class LengthBatches:
    """Batches of equal-length sequences: for each number the same rows, whatever came before.

    >>> batches = LengthBatches(np.array([3, 5, 3, 3]), tokens=6, seed=1)
    >>> batches.per_epoch
    3
    """

    def __init__(self, lengths: NDArray[np.int64], tokens: int, seed: int) -> None:
        self.lengths, self.tokens, self.seed = lengths, tokens, seed
        self._epoch = -1
        self._plan: list[NDArray[np.int64]] = self._make(0)
        self.per_epoch = len(self._plan)

    def rows(self, number: int) -> NDArray[np.int64]:
        """The rows of a batch, counted over all epochs."""
        epoch, index = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._plan, self._epoch = self._make(epoch), epoch
        return self._plan[index]

    def _make(self, epoch: int) -> list[NDArray[np.int64]]:
        generator = np.random.default_rng([self.seed, epoch])
        order = generator.permutation(len(self.lengths))
        order = order[np.argsort(self.lengths[order], kind="stable")]
        plan: list[NDArray[np.int64]] = []
        edges = np.flatnonzero(np.diff(self.lengths[order])) + 1
        for group in np.split(order, edges):
            size = max(1, self.tokens // max(1, int(self.lengths[group[0]])))
            plan += np.split(group, range(size, len(group), size))
        return [plan[index] for index in generator.permutation(len(plan))]
