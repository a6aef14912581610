"""Every setting of a classifier with its default, in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from nlpkit.nn.encoder_settings import EncoderSettings
from nlpkit.schema import SHARE, Ranges

BOW_STEPS = 300  # to take, if 2 to 20 times the data is that many
ModelKind = Literal["bow", "cnn", "lstm", "gru", "transformer"]


@dataclass(frozen=True)
class ClassifierSettings:
    """What a classifier is and how it is trained; None is decided by the model.

    >>> ClassifierSettings().resolved(texts=10_000).epochs
    2
    """

    model: ModelKind = "bow"
    tokenizer: str = "word"
    pattern: str | None = None  # of a token, for the regex tokeniser
    lower: bool = True
    ngrams: int = 2  # bow: up to so many words in a row are a feature
    dim: int | None = None  # of embeddings; for bow beside one number a label
    hidden: int = 64  # of each direction of an encoder
    layers: int = 1
    positions: Literal["decay", "sinusoidal"] = "decay"  # of the transformer
    norm: Literal["pre", "post"] = "pre"  # of the transformer
    pooling: Literal["max", "average", "last"] = "max"
    fine_tune: bool = False
    multi_label: bool = False
    dropout: float = 0.5
    epochs: int | None = None
    batch_size: int = 64
    lr: float | None = None

    RANGES: ClassVar[Ranges] = {
        "ngrams": (1, 5),
        "dim": (1, 2**20),
        "hidden": (1, 2**20),
        "layers": (1, 2**10),
        "dropout": SHARE,
        "batch_size": (1, 2**31 - 1),
    }

    def encoder_settings(self, n_in: int) -> EncoderSettings:
        """Those of the encoder over words of ``n_in`` numbers each; a bow has none."""
        assert self.model != "bow"
        return EncoderSettings(
            self.model,
            n_in,
            self.hidden,
            self.layers,
            positions=self.positions,
            norm=self.norm,
        )

    def resolved(self, *, texts: int) -> ClassifierSettings:
        """With everything decided: bow starts from naive Bayes and is soon done, but takes some
        steps to leave it, so few texts are gone over more often."""
        bow = self.model == "bow"
        bow_epochs = min(20, max(2, BOW_STEPS * self.batch_size // max(1, texts)))
        return replace(
            self,
            dim=(8 if bow else 100) if self.dim is None else self.dim,
            epochs=(bow_epochs if bow else 8) if self.epochs is None else self.epochs,
            lr=(0.03 if bow else 1e-3) if self.lr is None else self.lr,
        )
