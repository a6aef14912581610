"""How a GPT is trained: every default, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nlpkit.errors import NlpkitError
from nlpkit.models.settings import GPT2, ModelSettings, Recipe
from nlpkit.settings import DATA, DEEPEST, LONGEST, TRAINING, WIDEST, changed, option
from nlpkit.training.settings import DType, TrainerSettings, batch_size

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
class GptSettings(TrainerSettings):
    """How a GPT is trained; what is None comes from the size."""

    recipe: Recipe | None = option(
        None,
        "What the model is made of; gpt2 can be exported to transformers.",
        shown_default="modern, or that of --init",
    )
    size: str = option(
        "nano",
        "nano, micro, mini, small or gpt2 (its sizes alone): sets the next four and --batch-size.",
        metavar="NAME",
    )
    layers: int | None = option(None, "Depth.", low=1, high=DEEPEST)
    heads: int | None = option(None, "Attention heads.", low=1, high=DEEPEST)
    dim: int | None = option(None, "Width.", low=2, high=WIDEST)
    block_size: int | None = option(None, "Longest context, in tokens.", low=2, high=LONGEST)
    freeze: int = option(0, "Lowest layers of --init to leave alone.", low=0, high=DEEPEST)
    batch_size: int | None = batch_size(None, "Windows to a step and process.")
    dropout: float = changed(TrainerSettings, "dropout", 0.0)
    optimizer: Literal["muon", "adamw"] = option(
        "muon", "muon: Muon for the matrices of blocks, AdamW else.", group=TRAINING
    )
    lr: float = changed(TrainerSettings, "lr", 0.006)
    muon_lr: float = 0.03
    weight_decay: float = changed(TrainerSettings, "weight_decay", 0.1)
    max_iters: int | None = changed(TrainerSettings, "max_iters", 2000)
    dtype: DType = changed(TrainerSettings, "dtype", "auto")
    compile: bool = option(False, "Compile the model: pays in long runs.", group=TRAINING)
    val_fraction: float = option(
        0.1, "Last part of the text to hold out; 0 is none.", low=0.0, high=0.9, group=DATA
    )

    def resolve(self) -> ResolvedGpt:
        """Fill in the size.

        >>> GptSettings(size="micro", heads=8).resolve().heads
        8
        """
        if self.size not in SIZES:
            raise NlpkitError(f"no size {self.size!r}", hint=", ".join(SIZES))
        return self.resolve_as(ResolvedGpt, recipe="modern", **vars(SIZES[self.size]))


@dataclass(frozen=True, kw_only=True)
class ResolvedGpt(GptSettings):
    """Settings of which every size is known."""

    recipe: Recipe
    layers: int
    heads: int
    dim: int
    block_size: int
    batch_size: int

    def architecture(self, vocab_size: int) -> ModelSettings:
        """The model, for a vocabulary.

        >>> GptSettings(recipe="gpt2", size="micro").resolve().architecture(65).positions
        'learned'
        """
        sizes = {name: getattr(self, name) for name in ("layers", "heads", "dim", "block_size")}
        few = vocab_size <= _FEW
        recipe = GPT2 if self.recipe == "gpt2" else {"previous": 3 if few else 0, "tied": not few}
        return ModelSettings(vocab_size=vocab_size, dropout=self.dropout, **sizes, **recipe)
