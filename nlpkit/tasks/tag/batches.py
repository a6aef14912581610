"""Sentences as arrays, for training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nlpkit.tasks.tag.features import FeatureExtractor, WordFeatures
from nlpkit.tasks.tag.hashed_features import Ids
from nlpkit.text.schemes import read_spans
from nlpkit.training.batches import Padded, Ragged

LONGEST = 1000  # tokens that are looked at together; a longer sentence is cut


def cut_long(length: int, longest: int = LONGEST) -> list[slice]:
    """Chunks of a sentence that are each at most ``longest`` tokens, as even as can be.

    >>> cut_long(5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    chunks = -(-length // longest)
    size = -(-length // max(1, chunks))
    return [slice(start, min(start + size, length)) for start in range(0, length, max(1, size))]


def cut_tagged(tags: Sequence[str], longest: int = LONGEST) -> list[slice]:
    """``cut_long`` between entities; only one that is longer than a chunk is cut itself.

    >>> cut_tagged(["O", "O", "B-P", "I-P", "O"], 3)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    chunks = []
    start, length = 0, len(tags)
    entities = read_spans(tags) if length > longest else []
    around = {place: span for span in entities for place in range(span.start + 1, span.end)}
    while start < length:
        end = start + cut_long(length - start, longest)[0].stop
        if end in around:
            entity = around[end]
            end = entity.start if entity.start > start else min(entity.end, start + longest)
        chunks.append(slice(start, end))
        start = end
    return chunks


class TaggedBatch(NamedTuple):
    """Padded sentences: the features of their distinct words, and which word stands where."""

    features: WordFeatures  # of U words
    words: Padded  # (B, T), which of the U words each token is
    tags: Padded  # (B, T)


class TaggedData:
    """Sentences in the form training wants: which distinct word each token is, and its tag."""

    def __init__(
        self,
        sentences: Sequence[Sequence[str]],
        tag_rows: Sequence[Sequence[int]],
        extractor: FeatureExtractor,
    ) -> None:
        distinct: dict[str, int] = {}
        rows = [[distinct.setdefault(word, len(distinct)) for word in words] for words in sentences]
        self.tokens, self.tags = Ragged(rows), Ragged(tag_rows)
        self.features = extractor.features(list(distinct))
        self.counts = np.bincount(self.tokens.ids, minlength=len(distinct))

    def batch(self, rows: Ids) -> TaggedBatch:
        """Some of the sentences."""
        tokens = self.tokens.pad(rows)
        distinct, places = np.unique(tokens.ids[tokens.mask], return_inverse=True)
        words = np.zeros_like(tokens.ids)
        words[tokens.mask] = places
        every = self.features
        characters = every.characters[distinct]
        used = int((characters != 0).sum(axis=1).max(initial=1))
        features = WordFeatures(
            every.words[distinct],
            every.vectors[distinct],
            np.ascontiguousarray(characters[:, :used]),
            every.affixes[distinct],
            every.hashes[distinct],
        )
        return TaggedBatch(features, Padded(words, tokens.mask), self.tags.pad(rows))
