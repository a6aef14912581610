"""What a masked language model has to guess: tokens are hidden anew at each step.

BERT hides 15 % of the tokens: of ten, eight become [MASK], one a random token and one stays as it
is, so that the model must have an opinion on every token (Devlin et al., 2019). Each sequence has
the same number of hidden tokens, so that states can be gathered as one array (B, K).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit.text.wordpiece import PREFIX, WordPiece

IGNORED = -100  # a target that does not count


class Masked(NamedTuple):
    """Sequences with hidden tokens."""

    idx: NDArray[np.int64]  # (B, T), as the model sees them
    places: NDArray[np.int64]  # (B, K): where tokens are hidden
    targets: NDArray[np.int64]  # (B, K): what they were, or IGNORED


@dataclass(frozen=True)
class Masking:
    """How tokens are hidden."""

    mask_id: int
    ordinary: NDArray[np.bool_]  # (V,): no special token
    continues: NDArray[np.bool_]  # (V,): a piece that continues a word
    rate: float = 0.15
    masked: float = 0.8  # of the chosen ones, become [MASK]
    random: float = 0.1  # become any token
    whole_words: bool = False

    @classmethod
    def of(cls, codec: WordPiece, **options: float | bool) -> Masking:
        """For a tokenizer."""
        tokens = codec.vocabulary()
        ordinary = np.ones(len(tokens), bool)
        ordinary[codec.special_ids] = False
        continues = np.array([token.startswith(PREFIX) for token in tokens])
        return cls(codec.mask_id, ordinary, continues, **options)  # type: ignore[arg-type]

    def apply(self, idx: NDArray[np.int64], random: np.random.Generator) -> Masked:
        """Hide tokens of sequences (B, T)."""
        count = max(1, round(self.rate * idx.shape[1]))
        places, counted = self._choose(idx, count, random)
        rows = np.arange(len(idx))[:, None]
        originals = idx[rows, places]
        kind = random.random(places.shape)
        shown = np.where(kind < self.masked, self.mask_id, originals)
        by_chance = (kind >= self.masked) & (kind < self.masked + self.random)
        pool = np.flatnonzero(self.ordinary)
        shown[by_chance] = pool[random.integers(0, len(pool), int(by_chance.sum()))]
        changed = idx.copy()
        changed[rows, places] = np.where(counted, shown, originals)
        return Masked(changed, places, np.where(counted, originals, IGNORED))

    def _choose(
        self, idx: NDArray[np.int64], count: int, random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Places (B, K), and which of them hold a token that may be hidden."""
        ordinary = self.ordinary[idx]  # (B, T)
        keys = random.random(idx.shape)
        if self.whole_words:  # all pieces of a word have the key of its first
            begins = ~self.continues[idx] | ~ordinary
            begins[:, 1:] |= ~ordinary[:, :-1]
            begins[:, 0] = True
            words = np.cumsum(begins, axis=1) - 1  # (B, T): the number of each one's word
            keys = np.take_along_axis(keys, words, axis=1)
        keys = np.where(ordinary, keys, 2.0)
        order = np.argsort(keys, axis=1, kind="stable")  # pieces of a word stay together
        places = order[:, :count]
        chosen = np.take_along_axis(keys, places, axis=1)
        counted = chosen < 2.0
        if self.whole_words and count < idx.shape[1]:
            # a word of which only a part fits is left out, unless there is no other
            following = np.take_along_axis(keys, order[:, count : count + 1], axis=1)
            cut = (chosen == following) & (chosen[:, :1] != following)
            counted &= ~cut
        return places, counted
