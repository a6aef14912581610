"""Every setting of a tagger with its default, in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from nlpkit.errors import NlpkitError
from nlpkit.nn.encoder_settings import EncoderSettings
from nlpkit.schema import SHARE, Ranges

Switch = Literal["auto", "yes", "no"]
FEW_TOKENS = 100_000
FEW_TAGS = 64  # a CRF looks at all pairs of them
EPOCH_TOKENS = 600_000  # to see in all, if 12 to 30 times the data is that much


@dataclass(frozen=True)
class TaggerSettings:
    """What a tagger is and how it is trained; ``auto`` and None are decided by the tags.

    >>> TaggerSettings().resolved(entities=True, tokens=1000, tags=9).crf
    'yes'
    """

    unit: Literal["word", "char"] = "word"
    encoder: Literal["lstm", "gru", "cnn", "transformer"] = "lstm"
    layers: int = 1
    hidden: int = 128  # of each direction
    one_way: bool = False
    positions: Literal["decay", "sinusoidal"] = "decay"  # of the transformer
    norm: Literal["pre", "post"] = "pre"  # of the transformer
    crf: Switch = "auto"
    chars: Literal["cnn", "lstm", "none"] = "cnn"
    affixes: Switch = "auto"
    clues: Literal["yes", "no"] = "yes"
    fine_tune: bool = False
    word_dim: int = 100
    dropout: float | None = None
    word_dropout: float | None = None  # a word seen n times is hidden in s / (s + n) of cases
    part_dropout: float | None = None  # how often one kind of a word's features is hidden
    epochs: int | None = None
    batch_tokens: int | None = None
    lr: float | None = None

    RANGES: ClassVar[Ranges] = {
        "layers": (1, 2**10),
        "hidden": (1, 2**20),
        "word_dim": (1, 2**20),
        "dropout": SHARE,
        "part_dropout": SHARE,
    }

    def encoder_settings(self, n_in: int) -> EncoderSettings:
        """Those of the encoder over words of ``n_in`` numbers each."""
        return EncoderSettings(
            self.encoder, n_in, self.hidden, self.layers, self.one_way, self.positions, self.norm
        )

    def resolved(self, *, entities: bool, tokens: int, tags: int) -> TaggerSettings:
        """With everything decided by the kind and number of tags and of tokens to learn from.

        Entities want stronger dropout and no affixes; little data wants small batches and to be
        gone over more often. A CRF helps all tags of words, as long as there are few of them.
        """
        if self.one_way and self.crf == "yes":
            raise NlpkitError(
                "a CRF decides on the whole sentence, words behind included, so it is not one-way",
                hint="`crf` no, or without `one_way`",
            )
        by_word = self.unit == "word"
        affixes: Switch = "yes" if by_word and not entities else "no"
        few = tokens < FEW_TOKENS
        chain = entities or (by_word and tags <= FEW_TAGS)
        batch = min(256, max(128, tokens // 400))
        epochs = min(30, max(12, EPOCH_TOKENS // max(1, tokens)))
        return replace(
            self,
            crf=("yes" if chain and not self.one_way else "no") if self.crf == "auto" else self.crf,
            affixes=affixes if self.affixes == "auto" else self.affixes,
            chars=self.chars if by_word else "none",
            dropout=(0.5 if entities else 0.33) if self.dropout is None else self.dropout,
            word_dropout=(
                (0.5 if entities else 0.25) if self.word_dropout is None else self.word_dropout
            ),
            part_dropout=(
                (0.0 if entities else 0.1) if self.part_dropout is None else self.part_dropout
            ),
            epochs=epochs if self.epochs is None else self.epochs,
            batch_tokens=batch if self.batch_tokens is None else self.batch_tokens,
            lr=(4e-3 if few and entities else 2e-3) if self.lr is None else self.lr,
        )
