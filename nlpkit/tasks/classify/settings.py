"""Every setting of a classifier with its default, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nlpkit.errors import UsageError
from nlpkit.nn.settings import EncoderSettings
from nlpkit.settings import DATA, WIDEST, changed, option
from nlpkit.training.settings import TrainerSettings, batch_size, epochs

BOW_STEPS = 300  # to take, if 2 to 20 times the data is that many
ModelKind = Literal["bow", "cnn", "lstm", "gru", "transformer"]


@dataclass(frozen=True)
class ClassifierSettings(EncoderSettings, TrainerSettings):
    """What a classifier is and how it is trained; None is decided by the model.

    >>> ClassifierSettings().resolve(texts=10_000).epochs
    2
    """

    model: ModelKind = option("bow", "bow is quickest and hard to beat.")
    multi_label: bool = option(False, "A text may have several labels (a,b) or none.", group=DATA)
    tokenizer: str = option(
        "word",
        "word, simple, whitespace, char, gpt2, regex, or the path of a subword model.",
        flags=("--tokenizer", "-t"),
        metavar="NAME|PATH",
        group=DATA,
    )
    pattern: str | None = option(
        None, "What a token looks like, for --tokenizer regex.", metavar="REGEX", group=DATA
    )
    lower: bool = option(True, "Lower-case the tokens.", flags=("--lower/--no-lower",), group=DATA)
    ngrams: int = option(2, "bow: words in a row to a feature, at most.", low=1, high=5)
    dim: int | None = option(
        None,
        "Numbers in a learned embedding.",
        low=1,
        high=WIDEST,
        shown_default="bow 8, else 100",
    )
    hidden: int = changed(EncoderSettings, "hidden", 64)
    pooling: Literal["max", "average", "last"] = option("max", "From tokens to a text.")
    dropout: float = changed(TrainerSettings, "dropout", 0.5)
    epochs: int | None = epochs(shown_default="bow 2 to 20 by the number of texts, else 8")
    batch_size: int = batch_size(64, "Texts to a step.")
    lr: float | None = changed(TrainerSettings, "lr", None, shown_default="bow 0.03, else 0.001")
    weight_decay: float | None = changed(
        TrainerSettings, "weight_decay", None, shown_default="bow 0, else 0.01"
    )
    grad_clip: float | None = changed(
        TrainerSettings, "grad_clip", None, shown_default="bow 0, else 1"
    )
    eval_interval: int | None = changed(
        TrainerSettings, "eval_interval", None, shown_default="each epoch"
    )

    def resolve(self, *, texts: int) -> ResolvedClassifier:
        """With everything decided: bow starts from naive Bayes and is soon done, but takes some
        steps to leave it, so few texts are gone over more often."""
        if self.model != "transformer" and (self.positions, self.norm) != ("decay", "pre"):
            raise UsageError("`positions` and `norm` need `model` transformer")
        bow = self.model == "bow"
        bow_epochs = min(20, max(2, BOW_STEPS * self.batch_size // max(1, texts)))
        return self.resolve_as(
            ResolvedClassifier,
            dim=8 if bow else 100,
            epochs=bow_epochs if bow else 8,
            lr=0.03 if bow else 1e-3,
            weight_decay=0.0 if bow else 0.01,
            grad_clip=0.0 if bow else 1.0,
        )


@dataclass(frozen=True, kw_only=True)
class ResolvedClassifier(ClassifierSettings):
    """Settings that the model and the number of texts have decided."""

    dim: int
    epochs: int
    lr: float
    weight_decay: float
    grad_clip: float
