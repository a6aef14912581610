"""What training on top of a pre-trained encoder can be told, without importing torch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from nlpkit.errors import UsageError
from nlpkit.settings import MODEL, MOST_EPOCHS, TRAINING, changed, option
from nlpkit.training.settings import DType, TrainerSettings, batch_size


@dataclass(frozen=True)
class FineTuneSettings(TrainerSettings):
    """Options of every fine-tuning; what is None is decided by what is frozen."""

    freeze: str | None = option(
        None,
        "Lowest layers of --pretrained to leave as they are, and what is below them, or all.",
        metavar="N|all",
        shown_default="0; all of an ELMo",
    )
    layer_decay: float = option(
        0.9, "Learning rate of a layer beside the one above it.", low=0.01, high=1.0, group=TRAINING
    )
    epochs: int = option(
        2, "How often to go over the data.", low=1, high=MOST_EPOCHS, group=TRAINING
    )
    batch_size: int = batch_size(16)
    lr: float | None = changed(
        TrainerSettings,
        "lr",
        None,
        help="Learning rate of the top layer; what is new learns ten times as fast.",
        shown_default="0.0001, or 0.003 with all frozen",
    )
    dropout: float = changed(TrainerSettings, "dropout", 0.1)
    weight_decay: float = changed(TrainerSettings, "weight_decay", 0.01)
    dtype: DType = changed(TrainerSettings, "dtype", "auto")

    def rate(self, frozen: bool) -> float:
        """The learning rate, given or decided.

        >>> FineTuneSettings().rate(frozen=False), FineTuneSettings(lr=0.01).rate(frozen=True)
        (0.0001, 0.01)
        """
        return (0.003 if frozen else 1e-4) if self.lr is None else self.lr


@dataclass(frozen=True)
class OnEncoder:
    """Options of what may stand on a pre-trained encoder, or be learned from scratch."""

    pretrained: str | None = option(
        None, "A BERT, ELMo or GPT that gives the states of tokens.", metavar="MODEL"
    )
    freeze: str | None = changed(FineTuneSettings, "freeze", None, group=MODEL)
    layer_decay: float = changed(
        FineTuneSettings,
        "layer_decay",
        FineTuneSettings.layer_decay,
        help="With --pretrained: learning rate of a layer beside the one above it.",
    )
    dtype: DType | None = changed(
        FineTuneSettings, "dtype", None, shown_default="float32, or auto with --pretrained"
    )


def refuse_given(settings: Any, names: Collection[str], why: str) -> None:
    """Refuse what would do nothing: a setting of these names that is not its default.

    >>> refuse_given(FineTuneSettings(freeze="all"), {"freeze"}, "needs `pretrained`")
    Traceback (most recent call last):
    ...
    nlpkit.errors.UsageError: `freeze` needs `pretrained`
    """
    for field in fields(settings):
        if field.name in names and getattr(settings, field.name) != field.default:
            raise UsageError(f"`{field.name}` {why}")
