"""Sentences as arrays, for training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nlpkit.tasks.tag.clues import Ids
from nlpkit.tasks.tag.features import Lexicon, WordFeatures
from nlpkit.text.schemes import read_spans

LONGEST = 1000  # tokens that are looked at together; a longer sentence is cut


def cut_long(length: int, longest: int = LONGEST) -> list[slice]:
    """Pieces of a sentence that are each at most ``longest`` tokens, as even as can be.

    >>> cut_long(5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    pieces = -(-length // longest)
    size = -(-length // max(1, pieces))
    return [slice(start, min(start + size, length)) for start in range(0, length, max(1, size))]


def cut_tagged(tags: Sequence[str], longest: int = LONGEST) -> list[slice]:
    """``cut_long`` between entities; only one that is longer than a piece is cut itself.

    >>> cut_tagged(["O", "O", "B-P", "I-P", "O"], 3)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    pieces = []
    start, length = 0, len(tags)
    entities = read_spans(tags) if length > longest else []
    around = {place: span for span in entities for place in range(span.start + 1, span.end)}
    while start < length:
        end = start + cut_long(length - start, longest)[0].stop
        if end in around:
            entity = around[end]
            end = entity.start if entity.start > start else min(entity.end, start + longest)
        pieces.append(slice(start, end))
        start = end
    return pieces


class TaggedData:
    """Sentences in the form training wants: which distinct word each token is, and its tag."""

    def __init__(
        self,
        sentences: Sequence[Sequence[str]],
        tag_rows: Sequence[Sequence[int]],
        lexicon: Lexicon,
    ) -> None:
        distinct: dict[str, int] = {}
        self.tokens: list[Ids] = []
        self.tags: list[Ids] = []
        for words, tags in zip(sentences, tag_rows, strict=True):
            ids = np.array([distinct.setdefault(word, len(distinct)) for word in words], np.int64)
            self.tokens.append(ids)
            self.tags.append(np.array(tags, np.int64))
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
