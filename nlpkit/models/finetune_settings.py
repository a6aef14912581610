"""What training on top of a pre-trained encoder can be told, without importing torch."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from nlpkit.errors import UsageError
from nlpkit.settings import MODEL, TRAINING, changed, option
from nlpkit.training.settings import DType, TrainerSettings, batch_size, epochs

FEWEST_STEPS = 600  # of a run, unless that takes more than so many passes over the data:
MOST_PASSES = 20
USUAL_WIDTH = 384  # of an encoder that learns best at the rate below
USUAL_RATE = 1e-4
NEW_LEARNS = 10  # times as fast as the top layer: what starts from nothing


@dataclass(frozen=True)
class FineTuneSettings(TrainerSettings):
    """Options of every fine-tuning; what is None is decided by the encoder and the data."""

    USUAL_EPOCHS: ClassVar[int] = 2  # over data that is large enough

    freeze: str | None = option(
        None,
        "Lowest layers of --pretrained to leave as they are, and what is below them, or all.",
        metavar="N|all",
        shown_default="0; all of an ELMo",
    )
    layer_decay: float = option(
        0.9, "Learning rate of a layer beside the one above it.", low=0.01, high=1.0, group=TRAINING
    )
    epochs: int | None = epochs(shown_default="2, or up to 20 where those are under 600 steps")
    batch_size: int = batch_size(16)
    lr: float | None = changed(
        TrainerSettings,
        "lr",
        None,
        help="Learning rate of the top layer; what is new learns ten times as fast.",
        shown_default="0.0001 at width 384, less for wider ones; 0.003 with all frozen",
    )
    dropout: float = changed(TrainerSettings, "dropout", 0.1)
    weight_decay: float = changed(TrainerSettings, "weight_decay", 0.01)
    dtype: DType = changed(TrainerSettings, "dtype", "auto")

    def rate(self, width: int, *, frozen: bool) -> float:
        """The learning rate, given or decided: the wider the encoder, the smaller.

        >>> [FineTuneSettings().rate(width, frozen=False) for width in (768, 384)]
        [2.5e-05, 0.0001]
        >>> FineTuneSettings(lr=0.01).rate(384, frozen=True)
        0.01
        """
        if self.lr is not None:
            return self.lr
        return 0.003 if frozen else min(5e-4, USUAL_RATE * (USUAL_WIDTH / width) ** 2)

    def passes(self, per_epoch: int) -> int:
        """How often to go over data of so many batches, given or decided: often if they are few.

        >>> [FineTuneSettings().passes(batches) for batches in (1, 100, 1000)]
        [20, 6, 2]
        """
        return self.epochs or min(
            MOST_PASSES, max(self.USUAL_EPOCHS, math.ceil(FEWEST_STEPS / per_epoch))
        )


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
