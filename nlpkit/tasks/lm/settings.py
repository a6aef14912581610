"""How a GPT is trained: every default, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from nlpkit.errors import NlpkitError
from nlpkit.models.settings import GPT2, ModelSettings, Recipe
from nlpkit.schema import SEED, Ranges

if TYPE_CHECKING:
    from nlpkit.training.loop import TrainingSettings

_FEW = 1024  # a vocabulary up to this size can afford tables of preceding tokens


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

    recipe: Recipe = "modern"
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

    RANGES: ClassVar[Ranges] = {"seed": SEED}

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
        """The model of a resolved size, for a vocabulary.

        >>> GptSettings(recipe="gpt2", size="micro").resolve().architecture(65).positions
        'learned'
        """
        sizes = {name: getattr(self, name) for name in ("layers", "heads", "dim", "block_size")}
        few = vocab_size <= _FEW
        recipe = GPT2 if self.recipe == "gpt2" else {"previous": 3 if few else 0, "tied": not few}
        return ModelSettings(vocab_size=vocab_size, dropout=self.dropout, **sizes, **recipe)

    def training(self) -> TrainingSettings:
        """What the loop needs to know."""
        from nlpkit.training.loop import TrainingSettings

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
