"""What every trainer can be told, declared once, without importing torch.

A trainer's settings class inherits ``TrainerSettings``, gives another default where it has one with
``changed``, and adds its own options:

    @dataclass(frozen=True)
    class MySettings(TrainerSettings):
        lr: float | None = changed(TrainerSettings, "lr", 0.001)
        layers: int = option(2, "Layers, one on the other.", low=1, high=DEEPEST)

What is None is decided when the data is known: ``settings.resolve(ResolvedMine, lr=..., ...)``
gives a ``ResolvedMine(MySettings)``, a dataclass (``frozen=True, kw_only=True``) that names the
fields that are no longer None. ``loop(steps)`` is what ``training/loop.py`` is run with.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar

from nlpkit.schema import SEED, Ranges
from nlpkit.settings import (
    LARGEST_SEED,
    LONGEST,
    MANY,
    MOST_EPOCHS,
    TRAINING,
    option,
    parse_duration,
)

Schedule = Literal["linear", "cosine", "constant"]
DType = Literal["auto", "float32", "bfloat16"]
Resolved = TypeVar("Resolved")


@dataclass(frozen=True)
class LoopSettings:
    """How long and how to train. At least one of ``max_steps`` and ``max_time`` must be set."""

    max_steps: int | None = None
    max_time: float | None = None  # seconds
    warmup: float = 0.05  # share of the run
    schedule: Schedule = "linear"
    grad_clip: float = 1.0  # largest gradient norm; 0 for any
    grad_accum: int = 1  # batches to a step
    eval_interval: int | None = None  # steps; None is 20 evaluations in all
    patience: int | None = None  # evaluations without a better held-out loss before stopping
    dtype: DType = "float32"  # of the arithmetic, not of the weights
    seed: int = 1


def batch_size(
    default: int | None, help: str = "Examples to a step and process.", shown: str | None = None
) -> Any:
    """The option of trainers whose batches are counted in examples."""
    return option(default, help, low=1, high=LONGEST, shown_default=shown, group=TRAINING)


def epochs(help: str = "Passes over the data, when there is no --max-time.", **more: Any) -> Any:
    """The option of trainers that go over their data several times."""
    return option(None, help, **{"low": 1, "high": MOST_EPOCHS, "group": TRAINING, **more})


@dataclass(frozen=True)
class TrainerSettings:
    """Options that every trainer has; see above."""

    dropout: float | None = option(
        None, "Share of activations set to 0 in training.", low=0.0, high=0.9, group=TRAINING
    )
    lr: float | None = option(
        None, "Highest learning rate of AdamW.", low=0.0, high=10.0, group=TRAINING
    )
    weight_decay: float | None = option(
        None, "Pull of weights towards 0.", low=0.0, high=10.0, group=TRAINING
    )
    warmup: float = option(
        0.05, "Share of the run with a rising rate.", low=0.0, high=1.0, group=TRAINING
    )
    schedule: Schedule = option(
        "linear", "How the learning rate falls after that, to 0 or not.", group=TRAINING
    )
    grad_clip: float | None = option(
        1.0, "Largest gradient norm; 0 for any.", low=0.0, high=1e6, group=TRAINING
    )
    # not too many: a signal is answered after the step
    grad_accum: int = option(1, "Batches to a step.", low=1, high=1024, group=TRAINING)
    max_iters: int | None = option(
        None, "Steps, when there is no --max-time.", low=1, high=MANY, group=TRAINING
    )
    max_time: float | None = option(
        None,
        "Train for this long from the first step on: 90, 30s, 5m or 1.5h. "
        "How far that gets depends on the machine.",
        metavar="TIME",
        parser=parse_duration,
        group=TRAINING,
    )
    eval_interval: int | None = option(
        None,
        "Steps between evaluations.",
        low=1,
        high=MANY,
        shown_default="20 in all",
        group=TRAINING,
    )
    patience: int | None = option(
        None,
        "Stop after so many evaluations without a better held-out loss.",
        low=1,
        high=MANY,
        shown_default="never",
        group=TRAINING,
    )
    dtype: DType | None = option(
        "float32",
        "Of the arithmetic; auto is bfloat16 where a trial of the first steps says it is faster.",
        group=TRAINING,
    )
    seed: int = option(1, "Seed of every random choice.", low=0, high=LARGEST_SEED, group=TRAINING)

    RANGES: ClassVar[Ranges] = {"seed": SEED}

    def resolve_as(self, kind: type[Resolved], **decided: Any) -> Resolved:
        """With what was left open (None) decided; what was given stays."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return kind(**{**decided, **given})

    def loop(self, steps: int | None = None, **changes: Any) -> LoopSettings:
        """What the loop needs to know; ``steps`` are taken unless steps or a time were given.

        >>> TrainerSettings(max_time=60).loop(100).max_steps is None
        True
        >>> TrainerSettings(warmup=0.0).loop(100, eval_interval=10)  # doctest: +ELLIPSIS
        LoopSettings(max_steps=100, max_time=None, warmup=0.0, ..., eval_interval=10, ...)
        """
        names = {field.name for field in fields(LoopSettings)}
        own = {name: value for name, value in vars(self).items() if name in names}
        own = {name: value for name, value in own.items() if value is not None}
        limit = None if self.max_time else self.max_iters or steps
        return LoopSettings(**{**changes, **own, "max_steps": limit})
