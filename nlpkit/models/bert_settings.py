"""What a BERT is made of, as one frozen record that its ``config.json`` holds; needs no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from nlpkit import schema
from nlpkit.errors import NlpkitError

BertRecipe = Literal["bert", "modern"]
Pooling = Literal["mean", "cls", "max"]
MODERN: dict[
    str, Any
] = {  # what makes an encoder learn quickly from little text, whatever its size
    "positions": "relative",
    "segments": 0,
    "norm": "pre",
    "norm_gains": False,
    "norm_eps": 1e-5,
    "bias": False,
    "activation": "relu2",
    "head": "plain",
    "dropout": 0.0,
}


@dataclass(frozen=True)
class BertSettings:
    """Size and shape of an encoder; the defaults are BERT's (Devlin et al., 2019).

    >>> BertSettings(dim=128, heads=2).recipe, BertSettings(**MODERN).recipe
    ('bert', 'modern')
    """

    vocab_size: int = 30_522
    block_size: int = 512  # most tokens of a text, [CLS] and [SEP] included
    layers: int = 12
    heads: int = 12
    dim: int = 768
    hidden: int = 3072  # width of the feed-forward networks
    positions: Literal["learned", "relative"] = "learned"
    reach: int = 16  # distances that relative positions tell apart
    segments: int = 2  # rows of the table that tells a first text from a second; 0 for none
    norm: Literal["pre", "post"] = "post"
    norm_gains: bool = True
    norm_eps: float = 1e-12
    bias: bool = True
    activation: Literal["relu", "relu2", "gelu", "gelu_tanh"] = "gelu"
    dropout: float = 0.1
    pooler: bool = False  # a layer over the state of [CLS]
    next_sentence: bool = False  # whether it tells if a second text follows the first
    head: Literal["none", "transform", "plain"] = "transform"  # of the masked language model
    tied: bool = True  # whether that head's matrix is the embedding

    RANGES: ClassVar[schema.Ranges] = {
        "vocab_size": (1, 2**31 - 1),
        "block_size": (3, 2**31 - 1),
        "layers": (1, 2**20),
        "heads": (1, 2**20),
        "dim": (1, 2**20),
        "hidden": (1, 2**22),
        "reach": (1, 2**16),
        "segments": (0, 2**16),
        "norm_eps": (1e-20, 1.0),
        "dropout": schema.SHARE,
    }

    def __post_init__(self) -> None:
        if self.heads and self.dim % self.heads:
            divisors = [n for n in range(1, self.dim + 1) if self.dim % n == 0]
            near = min(divisors, key=lambda n: (abs(n - self.heads), n))
            raise NlpkitError(
                f"`heads` {self.heads} does not divide `dim` {self.dim}", hint=f"`heads` {near}"
            )
        if self.next_sentence and not self.pooler:
            raise NlpkitError("`next_sentence` needs a `pooler`")

    @property
    def recipe(self) -> BertRecipe:
        """The kind of encoder, told by its positions."""
        return "bert" if self.positions == "learned" else "modern"

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any, where: str = "config.json") -> BertSettings:
        """From ``config.json``; a damaged one is an error of one line."""
        return schema.read(cls, values, where)
