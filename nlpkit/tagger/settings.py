"""Every setting of a tagger with its default, in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Switch = Literal["auto", "yes", "no"]


@dataclass(frozen=True)
class TaggerSettings:
    """What a tagger is and how it is trained; ``auto`` and None are decided by the tags.

    >>> TaggerSettings().resolved(entities=True).crf
    'yes'
    """

    unit: Literal["word", "char"] = "word"
    encoder: Literal["lstm", "gru", "cnn", "transformer"] = "lstm"
    layers: int = 1
    hidden: int = 128  # of each direction
    one_way: bool = False
    crf: Switch = "auto"
    chars: Literal["cnn", "lstm", "none"] = "cnn"
    affixes: Switch = "auto"
    fine_tune: bool = False
    word_dim: int = 64
    dropout: float | None = None
    word_dropout: float = 0.25  # strength: a word seen n times is hidden in s / (s + n) of cases
    epochs: int = 12
    batch_tokens: int = 512
    lr: float = 2e-3

    def resolved(self, *, entities: bool) -> TaggerSettings:
        """With everything decided: entities want a CRF, stronger dropout and no affixes."""
        by_word = self.unit == "word"
        affixes: Switch = "yes" if by_word and not entities else "no"
        return replace(
            self,
            crf=("yes" if entities else "no") if self.crf == "auto" else self.crf,
            affixes=affixes if self.affixes == "auto" else self.affixes,
            chars=self.chars if by_word else "none",
            dropout=(0.5 if entities else 0.33) if self.dropout is None else self.dropout,
        )
