"""How names and streams are learned: every default of their training, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from nlpkit.errors import NlpkitError
from nlpkit.lm.settings import ModelName, ModelSettings

if TYPE_CHECKING:
    from nlpkit.training import TrainingSettings

_LONG_RUN = 180.0  # seconds from which on a wider model pays
_FEWEST_STEPS = 400
_FEW = 1024  # a vocabulary up to this size can afford tables of preceding tokens


@dataclass(frozen=True)
class NamesSettings:
    """How names are learned; what is None depends on the names and on the time there is."""

    model: ModelName = "gpt"
    dim: int | None = None  # 64; 96 in a long run; 128 if recurrent
    layers: int | None = None  # 4; 2 if recurrent
    heads: int = 4
    order: int = 5  # characters that an n-gram model or MLP sees
    dropout: float | None = None  # 0; 0.1 in a long run
    lr: float = 0.004
    muon_lr: float = 0.02  # of the matrices inside a transformer
    weight_decay: float | None = None  # 0.1; 0.2 in a long run
    batch_size: int | None = None  # rows of about 32 characters: 64, fewer for few names
    epochs: float | None = None  # 7, more for few names
    max_time: float | None = None  # seconds, instead of epochs
    patience: int = 6  # evaluations (of 20) without a better held-out loss
    seed: int = 1

    def resolve(self, characters: int) -> NamesSettings:
        """Fill in what depends on the number of characters in the names and on the time.

        >>> NamesSettings(max_time=300).resolve(200_000).dim
        96
        """
        recurrent = self.model in ("rnn", "lstm", "gru")
        long_run = self.model == "gpt" and (self.max_time or 0) >= _LONG_RUN
        batch_size = self.batch_size or min(64, max(8, characters // (32 * 40)))
        steps = max(1.0, characters / (32 * batch_size))  # to an epoch
        return replace(
            self,
            dim=self.dim or (96 if long_run else 128 if recurrent else 64),
            layers=self.layers or (2 if recurrent else 4),
            dropout=(0.1 if long_run else 0.0) if self.dropout is None else self.dropout,
            weight_decay=(0.2 if long_run else 0.1)
            if self.weight_decay is None
            else self.weight_decay,
            batch_size=batch_size,
            epochs=self.epochs or max(7.0, round(_FEWEST_STEPS / steps, 1)),
        )


@dataclass(frozen=True)
class Size:
    """A preset of ``--size``."""

    layers: int
    heads: int
    dim: int
    block_size: int
    batch_size: int


SIZES = {
    "nano": Size(layers=4, heads=2, dim=128, block_size=64, batch_size=32),
    "micro": Size(layers=4, heads=4, dim=256, block_size=128, batch_size=16),
    "mini": Size(layers=6, heads=6, dim=384, block_size=256, batch_size=16),
    "small": Size(layers=8, heads=8, dim=512, block_size=512, batch_size=16),
    "gpt2": Size(layers=12, heads=12, dim=768, block_size=1024, batch_size=8),
}


@dataclass(frozen=True)
class GptSettings:
    """How a GPT is trained; what is None comes from the size."""

    size: str = "nano"
    layers: int | None = None
    heads: int | None = None
    dim: int | None = None
    block_size: int | None = None
    batch_size: int | None = None  # windows to a step and process
    dropout: float = 0.0
    optimizer: Literal["muon", "adamw"] = "muon"
    lr: float = 0.006
    muon_lr: float = 0.03
    weight_decay: float = 0.1
    warmup: float = 0.05
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    grad_clip: float = 1.0
    grad_accum: int = 1
    max_iters: int | None = 2000
    max_time: float | None = None
    eval_interval: int | None = None
    val_fraction: float = 0.1
    dtype: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    freeze: int = 0  # lowest layers (and embeddings) that stay as they are
    seed: int = 1

    def resolve(self) -> GptSettings:
        """Fill in the size."""
        if self.size not in SIZES:
            raise NlpkitError(f"no size {self.size!r}", hint=", ".join(SIZES))
        size = {
            name: value
            for name, value in vars(SIZES[self.size]).items()
            if getattr(self, name) is None
        }
        return replace(self, **size)

    def architecture(self, vocab_size: int) -> ModelSettings:
        """The model of a resolved size, for a vocabulary."""
        sizes = {name: getattr(self, name) for name in ("layers", "heads", "dim", "block_size")}
        return ModelSettings(
            vocab_size=vocab_size,
            dropout=self.dropout,
            previous=3 if vocab_size <= _FEW else 0,
            tied=vocab_size > _FEW,
            **sizes,
        )

    def training(self) -> TrainingSettings:
        """What the loop needs to know."""
        from nlpkit.training import TrainingSettings

        return TrainingSettings(
            max_steps=None if self.max_time else self.max_iters,
            max_time=self.max_time,
            warmup=self.warmup,
            schedule=self.schedule,
            grad_clip=self.grad_clip,
            grad_accum=self.grad_accum,
            eval_interval=self.eval_interval,
            dtype=self.dtype,
            seed=self.seed,
        )
