"""What a language model is made of, as one frozen record that its ``config.json`` holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from nlpkit import schema
from nlpkit.errors import NlpkitError

ModelName = Literal["ngram", "bigram", "mlp", "rnn", "lstm", "gru", "gpt"]
MODEL_NAMES: tuple[ModelName, ...] = ("ngram", "bigram", "mlp", "rnn", "lstm", "gru", "gpt")
Recipe = Literal["modern", "gpt2"]
Softmax = Literal["full", "adaptive", "sampled"]
GPT2: dict[str, Any] = {  # what makes a transformer GPT-2's kind, whatever its size
    "previous": 0,
    "positions": "learned",
    "norm_gains": True,
    "activation": "gelu_tanh",
    "bias": True,
    "qk_norm": False,
    "embedding_norm": False,
    "tied": True,
}


@dataclass(frozen=True)
class ModelSettings:
    """Size and shape of a model; what a model has no use for is left at its default.

    The defaults of the transformer are the modern recipe, which learned fastest on a CPU:
    LayerNorm without gains (RMSNorm learns as well, but has no fused kernel there), rotary
    positions, normalised queries and keys, squared ReLU, no biases. ``GPT2`` has GPT-2's instead.
    """

    model: ModelName = "gpt"
    vocab_size: int = 256
    block_size: int = 64  # longest context
    starts: int = 0  # ids below this begin a new, independent text (names); 0 for one stream
    layers: int = 4
    heads: int = 4
    dim: int = 64
    dropout: float = 0.0
    order: int = 5  # tokens an n-gram model sees before the next one; also of the MLP
    # the MLP
    hidden: int = 0  # units of its layer; 0 is four times the width
    direct: bool = False  # whether embeddings also reach the softmax directly
    # recurrent models
    recurrent_dropout: float = 0.0  # share of the weights between states set to 0 in training
    softmax: Softmax = "full"  # how a large vocabulary is trained
    # the transformer
    previous: int = 0  # so many preceding tokens are embedded along with each token
    positions: Literal["rotary", "learned"] = "rotary"
    norm_gains: bool = False  # whether LayerNorm has weights
    activation: Literal["relu2", "gelu", "gelu_tanh"] = "relu2"
    bias: bool = False
    qk_norm: bool = True
    embedding_norm: bool = True
    tied: bool = False  # whether the head is the embedding

    RANGES: ClassVar[schema.Ranges] = {
        "vocab_size": (1, 2**31 - 1),
        "block_size": (2, 2**31 - 1),
        "layers": (1, 2**20),
        "heads": (1, 2**20),
        "dim": (1, 2**20),
        "dropout": schema.SHARE,
        "recurrent_dropout": schema.SHARE,
        "hidden": (0, 2**20),
        "order": (1, 2**10),
        "previous": (0, 2**10),
    }

    def __post_init__(self) -> None:
        if self.model == "gpt" and self.dim % self.heads:
            divisors = [n for n in range(1, self.dim + 1) if self.dim % n == 0]
            near = min(divisors, key=lambda n: (abs(n - self.heads), n))
            raise NlpkitError(
                f"`heads` {self.heads} does not divide `dim` {self.dim}", hint=f"`heads` {near}"
            )
        if self.model == "gpt" and self.positions == "rotary" and self.dim // self.heads % 2:
            raise NlpkitError(
                f"rotary positions need an even head size, not {self.dim}/{self.heads}",
                hint=f"`dim` {2 * self.heads * max(1, self.dim // self.heads // 2)}",
            )

    @classmethod
    def gpt2(cls, **changes: Any) -> ModelSettings:
        """GPT-2's kind of transformer (its smallest, unless told).

        >>> ModelSettings.gpt2(layers=2).dim
        768
        """
        sizes = {"vocab_size": 50257, "block_size": 1024, "layers": 12, "heads": 12, "dim": 768}
        return cls(**{**sizes, **GPT2, **changes})

    @property
    def recipe(self) -> Recipe:
        """The transformer's kind, told by its positions: all else may differ in an imported GPT-2.

        >>> ModelSettings().recipe, ModelSettings.gpt2(bias=False, tied=False).recipe
        ('modern', 'gpt2')
        """
        return "gpt2" if self.positions == "learned" else "modern"

    def count_parameters(self) -> int:
        """How many numbers a model of these settings learns, without making it.

        >>> ModelSettings(model="bigram", vocab_size=3).count_parameters()
        9
        """
        vocab, dim, layers = self.vocab_size, self.dim, self.layers
        if self.model == "ngram":
            return 0
        if self.model == "bigram":
            return vocab * vocab
        if self.model == "mlp":
            hidden = self.hidden or 4 * dim
            inputs = self.order * dim
            direct = vocab * inputs * self.direct
            return (vocab + 1) * dim + hidden * (inputs + 1) + vocab * (hidden + 1) + direct
        if self.model == "gpt":
            norm = dim * self.norm_gains * (1 + self.bias)
            block = 12 * dim * dim + 9 * dim * self.bias + 2 * norm
            block += dim // self.heads * self.qk_norm
            tables = 1 + self.previous + (not self.tied)
            positions = self.block_size if self.positions == "learned" else 0
            return (tables * vocab + positions) * dim + layers * block + norm
        gates = {"rnn": 1, "gru": 3, "lstm": 4}[self.model]
        states = 2 if self.model == "lstm" else 1
        cells = layers * (gates * 2 * dim * (dim + 1) + states * dim)
        if self.softmax == "adaptive":
            from nlpkit.models.softmax import adaptive_parameters

            return vocab * dim + cells + adaptive_parameters(vocab, dim)
        return (2 - self.tied) * vocab * dim + cells + vocab

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any, where: str = "config.json") -> ModelSettings:
        """From ``config.json``; a damaged one is an error of one line."""
        return schema.read(cls, values, where)
