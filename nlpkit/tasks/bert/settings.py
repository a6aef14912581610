"""How a BERT is trained: every default, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from nlpkit.models.bert_settings import MODERN, BertRecipe, BertSettings
from nlpkit.settings import DATA, DEEPEST, LONGEST, TRAINING, WIDEST, changed, option
from nlpkit.training.settings import DType, TrainerSettings, batch_size

SizeName = Literal["tiny", "mini", "small", "base"]
SIZES: dict[SizeName, dict[str, int]] = {  # those of the paper and of its smaller relatives
    "tiny": {"layers": 2, "heads": 2, "dim": 128},
    "mini": {"layers": 4, "heads": 4, "dim": 256},
    "small": {"layers": 4, "heads": 8, "dim": 512},
    "base": {"layers": 12, "heads": 12, "dim": 768},
}
BATCH_TOKENS = 4096  # to a step
EVAL_MASK = 0.15  # of held-out tokens, whatever is masked in training: figures can be compared
LONGEST_MODERN = 512  # tokens that a model with relative positions reads, whatever it trained on
RECIPES: dict[BertRecipe, dict[str, Any]] = {
    "modern": {"length": 64, "mask": 0.3, "lr": 0.004, "dropout": 0.0},
    "bert": {"length": 128, "mask": 0.15, "lr": 0.001, "dropout": 0.1},
}


@dataclass(frozen=True)
class BertTraining(TrainerSettings):
    """How a BERT is trained; what is None comes from size and recipe."""

    recipe: BertRecipe = option(
        "modern", "What the model is made of; bert can be exported to transformers."
    )
    size: SizeName = option("mini", "Sets layers, heads and width.")
    layers: int | None = option(None, "Depth.", low=1, high=DEEPEST)
    heads: int | None = option(None, "Attention heads.", low=1, high=DEEPEST)
    dim: int | None = option(None, "Width.", low=2, high=WIDEST)
    vocab_size: int = option(
        8192, "Tokens of the vocabulary that is learned.", low=6, high=1_000_000, group=DATA
    )
    cased: bool = option(False, "Keep letter case and accents.", group=DATA)
    length: int | None = option(
        None,
        "Tokens of a sequence, [CLS] and [SEP] included.",
        low=8,
        high=LONGEST,
        shown_default="64; bert: 128",
        group=DATA,
    )
    mask: float | None = option(
        None,
        "Share of tokens to predict.",
        low=0.01,
        high=0.9,
        shown_default="0.3; bert: 0.15",
        group=TRAINING,
    )
    mask_end: float | None = option(
        None,
        "Share at the end of the run, which it approaches evenly.",
        low=0.01,
        high=0.9,
        shown_default="that of --mask",
        group=TRAINING,
    )
    whole_words: bool = option(False, "Mask all pieces of a word together.", group=TRAINING)
    next_sentence: bool = option(
        False,
        "Also learn whether a text follows another; documents are separated by blank lines.",
        group=TRAINING,
    )
    batch_size: int | None = batch_size(None, "Sequences to a step and process.")
    optimizer: Literal["muon", "adamw"] = option(
        "muon", "muon: Muon for the matrices of blocks, AdamW else.", group=TRAINING
    )
    muon_lr: float = 0.02
    weight_decay: float = changed(TrainerSettings, "weight_decay", 0.0)
    warmup: float = changed(TrainerSettings, "warmup", 0.02)
    max_iters: int | None = changed(TrainerSettings, "max_iters", 2000)
    dtype: DType = changed(TrainerSettings, "dtype", "auto")
    val_fraction: float = option(
        0.02, "Share of lines (or documents) to hold out.", low=0.001, high=0.5, group=DATA
    )

    def resolve(self) -> ResolvedBert:
        """With what size and recipe say.

        >>> BertTraining(size="tiny", heads=4).resolve().heads
        4
        """
        recipe = RECIPES[self.recipe]
        length = self.length or recipe["length"]
        sizes = {**SIZES[self.size], "batch_size": max(1, BATCH_TOKENS // length)}
        mask_end = self.mask or recipe["mask"]
        return self.resolve_as(ResolvedBert, **sizes, **recipe, mask_end=mask_end)


@dataclass(frozen=True, kw_only=True)
class ResolvedBert(BertTraining):
    """Settings of which nothing is left open."""

    layers: int
    heads: int
    dim: int
    length: int
    mask: float
    mask_end: float
    batch_size: int
    lr: float
    dropout: float

    def architecture(self, vocab_size: int) -> BertSettings:
        """The model, for a vocabulary."""
        modern = self.recipe == "modern"
        kind: dict[str, Any] = dict(MODERN) if modern else {}
        if self.next_sentence:
            kind["segments"] = 2
        return BertSettings(
            **{
                **kind,
                "vocab_size": vocab_size,
                "block_size": max(LONGEST_MODERN, self.length) if modern else self.length,
                "layers": self.layers,
                "heads": self.heads,
                "dim": self.dim,
                "hidden": 4 * self.dim,
                "dropout": self.dropout,
                "pooler": self.next_sentence,
                "next_sentence": self.next_sentence,
            }
        )
