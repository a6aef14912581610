"""What a language model is made of, as one frozen record that its ``config.json`` holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from nlpkit.errors import NlpkitError

ModelName = Literal["ngram", "bigram", "mlp", "rnn", "lstm", "gru", "gpt"]
MODEL_NAMES: tuple[ModelName, ...] = ("ngram", "bigram", "mlp", "rnn", "lstm", "gru", "gpt")


@dataclass(frozen=True)
class ModelSettings:
    """Size and shape of a model; what a model has no use for is left at its default.

    The defaults of the transformer are the recipe that learned fastest on a CPU: LayerNorm without
    gains (RMSNorm learns as well, but has no fused kernel there), rotary positions, normalised
    queries and keys, squared ReLU, no biases. ``gpt2()`` gives GPT-2's instead.
    """

    model: ModelName = "gpt"
    vocab_size: int = 256
    block_size: int = 64  # longest context
    starts: int = 0  # ids below this begin a new, independent text (names); 0 for one stream
    layers: int = 4
    heads: int = 4
    dim: int = 64
    dropout: float = 0.0
    order: int = 5  # characters an n-gram model sees before the next one; also of the MLP
    # the transformer
    previous: int = 0  # so many preceding tokens are embedded along with each token
    positions: Literal["rotary", "learned"] = "rotary"
    norm_gains: bool = False  # whether LayerNorm has weights
    activation: Literal["relu2", "gelu", "gelu_tanh"] = "relu2"
    bias: bool = False
    qk_norm: bool = True
    embedding_norm: bool = True
    tied: bool = False  # whether the head is the embedding

    def __post_init__(self) -> None:
        if self.model == "gpt" and self.dim % self.heads:
            divisors = [n for n in range(1, self.dim + 1) if self.dim % n == 0]
            near = min(divisors, key=lambda n: (abs(n - self.heads), n))
            raise NlpkitError(
                f"--heads {self.heads} does not divide --dim {self.dim}", hint=f"--heads {near}"
            )
        if self.model == "gpt" and self.positions == "rotary" and self.dim // self.heads % 2:
            raise NlpkitError(
                f"rotary positions need an even head size, not {self.dim}/{self.heads}",
                hint=f"--dim {2 * self.heads * max(1, self.dim // self.heads // 2)}",
            )

    @classmethod
    def gpt2(cls, **changes: Any) -> ModelSettings:
        """GPT-2's kind of transformer (its smallest, unless told).

        >>> ModelSettings.gpt2(layers=2).dim
        768
        """
        gpt2 = {
            "vocab_size": 50257,
            "block_size": 1024,
            "layers": 12,
            "heads": 12,
            "dim": 768,
            "positions": "learned",
            "norm_gains": True,
            "activation": "gelu_tanh",
            "bias": True,
            "qk_norm": False,
            "embedding_norm": False,
            "tied": True,
        }
        return cls(**{**gpt2, **changes})

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelSettings:
        """From ``config.json``; a damaged one is an error of one line."""
        defaults = vars(cls())
        for name, value in values.items():
            default = defaults.get(name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            fits = (
                number and 0 <= value < 2**31
                if isinstance(default, int | float) and not isinstance(default, bool)
                else type(value) is type(default)
            )
            if name not in defaults or not fits:
                raise NlpkitError(f"config.json: {name} cannot be {value!r}")
        return cls(**values)
