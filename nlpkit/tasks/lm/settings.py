"""How language models of running text are trained: every default, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nlpkit.errors import NlpkitError
from nlpkit.models.settings import GPT2, ModelSettings, Recipe, Softmax
from nlpkit.settings import DATA, DEEPEST, LONGEST, MANY, OUTPUT, TRAINING, WIDEST, changed, option
from nlpkit.training.settings import DType, TrainerSettings, batch_size

MANY_WORDS = 10_000  # from which on a full softmax takes most of the time
TextModelName = Literal["ngram", "mlp", "rnn", "lstm", "gru", "gpt"]
Unit = Literal["stream", "lines", "documents"]
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


# the same names for models of one or two layers, with about as many parameters as the GPTs have
RECURRENT = {
    "nano": Size(layers=1, heads=1, dim=256, block_size=64, batch_size=32),
    "micro": Size(layers=1, heads=1, dim=512, block_size=64, batch_size=32),
    "mini": Size(layers=2, heads=1, dim=768, block_size=100, batch_size=32),
    "small": Size(layers=2, heads=1, dim=1024, block_size=100, batch_size=32),
    "gpt2": Size(layers=3, heads=1, dim=2048, block_size=128, batch_size=32),
}
FEEDFORWARD = {
    name: Size(layers=1, heads=1, dim=dim, block_size=64, batch_size=32)
    for name, dim in {"nano": 64, "micro": 128, "mini": 256, "small": 512, "gpt2": 1024}.items()
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


@dataclass(frozen=True)
class LmSettings(GptSettings):
    """How any language model of running text is trained; what is None depends on the model."""

    model: TextModelName = option("gpt", "What is trained.")
    order: int = option(
        5, "Length of n-grams, up to 6; tokens that the MLP looks back on.", low=1, high=64
    )
    smoothing: Literal["kneser-ney", "interpolation"] = option(
        "kneser-ney",
        "Of n-grams: modified Kneser-Ney, or a plain mixture weighted on the held-out text.",
    )
    memory: int = option(
        64, "Megabytes to sort n-grams in; more goes to temporary files.", low=1, high=1 << 20
    )
    hidden: int | None = option(
        None, "Units of the MLP's layer.", low=1, high=WIDEST, shown_default="4 x --dim"
    )
    direct: bool = option(False, "The MLP's direct connections from embeddings to the softmax.")
    recurrent_dropout: float = option(
        0.0, "Share of the weights between states set to 0 in training.", low=0.0, high=0.9
    )
    softmax: Softmax | None = option(
        None,
        "Of rnn, lstm, gru: adaptive or sampled train a large vocabulary faster.",
        shown_default="adaptive from 10,000 words on",
    )
    unit: Unit | None = option(
        None,
        "What is independent of what: nothing, each line, or documents between blank lines.",
        group=DATA,
        shown_default="lines for n-grams of words, else stream",
    )
    vocab_size: int | None = option(
        None,
        "Most words to know; others are <unk>.",
        low=3,
        high=2**31 - 1,
        group=DATA,
        shown_default="all for n-grams, else 20000",
    )
    min_count: int = option(1, "Leave out words that are rarer.", low=1, high=MANY, group=DATA)

    def resolve_lm(self, tokenizer: str) -> ResolvedLm:
        """Fill in what depends on the model and on how text is cut.

        >>> LmSettings(model="lstm").resolve_lm("char").dim
        256
        """
        tables = {"gpt": SIZES, "mlp": FEEDFORWARD}
        sizes = tables.get(self.model, RECURRENT)
        if self.size not in sizes:
            raise NlpkitError(f"no size {self.size!r}", hint=", ".join(sizes))
        if self.model == "ngram" and self.order > 6:
            raise NlpkitError(f"`order` {self.order}: n-grams have at most 6 tokens", hint="5")
        words = tokenizer in ("word", "whitespace")
        counted = self.model == "ngram"
        return self.resolve_as(
            ResolvedLm,
            recipe="modern",
            unit="lines" if words and counted else "stream",
            vocab_size=2**31 - 1 if counted else 20_000,
            words=tokenizer if words else "word",
            **vars(sizes[self.size]),
        )


@dataclass(frozen=True, kw_only=True)
class ResolvedLm(LmSettings, ResolvedGpt):
    """Settings of which everything is known but the text."""

    recipe: Recipe
    layers: int
    heads: int
    dim: int
    block_size: int
    batch_size: int
    unit: Unit
    vocab_size: int
    words: str  # how words are cut, where tokens are words

    def architecture(self, vocab_size: int) -> ModelSettings:
        """The model, for a vocabulary.

        >>> LmSettings(model="gru").resolve_lm("char").architecture(65).softmax
        'full'
        """
        if self.model == "gpt":
            return ResolvedGpt.architecture(self, vocab_size)
        many = vocab_size >= MANY_WORDS and self.model != "mlp"
        return ModelSettings(
            model=self.model,
            vocab_size=vocab_size,
            block_size=self.block_size,
            layers=self.layers,
            dim=self.dim,
            dropout=self.dropout,
            order=self.order,
            hidden=self.hidden or 0,
            direct=self.direct,
            recurrent_dropout=self.recurrent_dropout,
            softmax=self.softmax or ("adaptive" if many else "full"),
        )


@dataclass(frozen=True)
class WritingSettings:
    """What a model is to write, besides how it draws."""

    max_tokens: int = option(
        200, "Tokens to write.", low=1, high=MANY, flags=("--max-tokens", "-n"), group=OUTPUT
    )
    samples: int = option(1, "Texts for each prompt.", low=1, high=10_000, group=OUTPUT)
    beams: int = option(
        0,
        "Search for the likeliest text with so many hypotheses instead of drawing; --samples "
        "shows the best of them.",
        low=0,
        high=1_000,
        group=OUTPUT,
    )
    length_penalty: float = option(
        1.0, "Of beams: above 0 favours long texts.", low=-10.0, high=10.0, group=OUTPUT
    )
    quantize: Literal["none", "int8"] = option(
        "none", "Weights of 8 bits: faster, for a GPT on a CPU.", group=OUTPUT
    )
