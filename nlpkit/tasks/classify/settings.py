"""Every setting of a classifier with its default, in one place."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from nlpkit.errors import UsageError
from nlpkit.models.finetune_settings import FineTuneSettings, OnEncoder, refuse_given
from nlpkit.nn.encoder_config import EncoderConfig
from nlpkit.nn.settings import EncoderSettings
from nlpkit.settings import DATA, WIDEST, changed, option
from nlpkit.training.settings import TrainerSettings, batch_size, epochs

BOW_EPOCHS = 20
# what a bow has no use for, as its models record it
BOW_UNUSED = {
    "dim": 8,
    "dropout": 0.5,
    "batch_size": 64,
    "lr": 0.03,
    "weight_decay": 0.0,
    "grad_clip": 0.0,
    "grad_accum": 1,
    "warmup": 0.05,
    "schedule": "linear",
    "dtype": "float32",
}
FEW_TEXTS = 5000  # an encoder takes larger steps, for it takes few
ModelKind = Literal["bow", "cnn", "lstm", "gru", "transformer"]
Pooling = Literal["max", "average", "last", "first", "attention"]


@dataclass(frozen=True)
class TextTuning(FineTuneSettings):
    """How a classifier on a pre-trained encoder is made and trained."""

    pretrained: str | None = None  # where the encoder came from
    pooling: Pooling | None = None  # None: average, or last where only that has seen all
    multi_label: bool = False
    pairs: bool = False  # whether there are two texts


@dataclass(frozen=True)
class ClassifierSettings(OnEncoder, EncoderSettings, TrainerSettings):
    """What a classifier is and how it is trained; None is decided by the model.

    >>> ClassifierSettings().resolve(texts=10_000).epochs
    20
    """

    model: ModelKind = option(
        "bow", "bow is quickest and hard to beat; --pretrained takes the place of all."
    )
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
    counts: Literal["sublinear", "binary"] = option(
        "sublinear", "bow: a word that is there n times counts 1 + ln n, or once."
    )
    dim: int | None = option(
        None,
        "Numbers in a learned embedding; bow has none.",
        low=1,
        high=WIDEST,
        shown_default="100",
    )
    hidden: int = changed(EncoderSettings, "hidden", 64)
    pooling: Pooling | None = option(
        None,
        "From tokens to a text; first and attention with --pretrained only.",
        shown_default="max; average or, of a GPT, last with --pretrained",
    )
    dropout: float | None = changed(
        TrainerSettings,
        "dropout",
        None,
        shown_default="0.5, or 0.1 with --pretrained; bow has none",
    )
    epochs: int | None = epochs(
        shown_default="bow 20 at most, those with the lowest held-out loss; else 8, "
        "or 2 to 20 by the number of texts with --pretrained"
    )
    batch_size: int | None = batch_size(None, "Texts to a step.", "64, or 16 with --pretrained")
    lr: float | None = changed(
        TrainerSettings,
        "lr",
        None,
        shown_default="0.001, 0.004 for few texts; bow has none; "
        "with --pretrained 0.0001 at width 384, 0.003 if all is frozen",
    )
    pairs: bool = option(
        False, "There must be two texts, text and text2; where there are, both count.", group=DATA
    )
    weight_decay: float | None = changed(
        TrainerSettings, "weight_decay", None, shown_default="0.01; bow has its own"
    )
    grad_clip: float | None = changed(
        TrainerSettings, "grad_clip", None, shown_default="1; bow has none"
    )
    eval_interval: int | None = changed(
        TrainerSettings, "eval_interval", None, shown_default="each epoch; bow 5"
    )

    def tuning(self) -> TextTuning:
        """What was given, for a classifier on ``pretrained``."""
        if self.model != "bow":
            raise UsageError(f"`model` {self.model} and `pretrained` contradict each other")
        names = {field.name for field in fields(TextTuning)}
        unused = {field.name for field in fields(self)} - names
        refuse_given(self, unused, "does nothing with `pretrained`")
        given = {name: value for name, value in vars(self).items() if name in names}
        return TextTuning(**{name: value for name, value in given.items() if value is not None})

    def encoder_config(self, n_in: int) -> EncoderConfig:
        """The encoder over words of ``n_in`` numbers each; a bow has none."""
        assert self.model != "bow"
        return EncoderConfig(
            self.model, n_in, self.hidden, self.layers, False, self.positions, self.norm
        )

    def resolve(self, *, texts: int) -> ResolvedClassifier:
        """With everything decided by the model and the number of texts."""
        if self.model != "transformer" and (self.positions, self.norm) != ("decay", "pre"):
            raise UsageError("`positions` and `norm` need `model` transformer")
        if self.pooling in ("first", "attention"):
            raise UsageError(f"`pooling` {self.pooling} needs `pretrained`")
        refuse_given(self, {"freeze", "layer_decay"}, "needs `pretrained`")
        if self.model == "bow":
            for name, recorded in BOW_UNUSED.items():
                if getattr(self, name) not in (None, recorded):
                    raise UsageError(f"`{name}` is for the other models, not for bow")
            return self.resolve_as(
                ResolvedClassifier, pooling="max", epochs=BOW_EPOCHS, **BOW_UNUSED
            )
        return self.resolve_as(
            ResolvedClassifier,
            dim=100,
            pooling="max",
            dropout=0.5,
            batch_size=64,
            epochs=8,
            lr=4e-3 if texts < FEW_TEXTS else 1e-3,
            weight_decay=0.01,
            grad_clip=1.0,
        )


@dataclass(frozen=True, kw_only=True)
class ResolvedClassifier(ClassifierSettings):
    """Settings that the model and the number of texts have decided."""

    dim: int
    pooling: Pooling
    dropout: float
    batch_size: int
    epochs: int
    lr: float
    weight_decay: float = 0.0  # 0.1.0 did not record these two
    grad_clip: float = 0.0
