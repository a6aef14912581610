"""What an encoder-decoder is made of, as one frozen record that its ``config.json`` holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from nlpkit import schema
from nlpkit.errors import NlpkitError

Kind = Literal["transformer", "lstm", "gru"]
AttentionName = Literal["dot", "scaled-dot", "general", "additive", "cosine", "location", "none"]
Positions = Literal["rotary", "sinusoidal", "learned"]

# ids that every model has, before those of its codecs
PAD, START, END, UNKNOWN = range(4)
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")


@dataclass(frozen=True)
class Seq2SeqArchitecture:
    """Size and shape of an encoder-decoder; what a kind has no use for is at its default."""

    model: Kind = "lstm"
    source_vocab: int = 256
    target_vocab: int = 256
    joint: bool = False  # whether both sides have one vocabulary and one table
    outputs: int = 0  # how many ids of the target are ever written; 0 is all of them
    tied: bool = True  # whether the head is the table of the target
    dim: int = 256
    layers: int = 1  # of the encoder, and of the decoder
    decoder_layers: int = 0  # 0 is as many as the encoder has
    dropout: float = 0.0
    members: int = 1  # models that decide together
    max_length: int = 256  # tokens of either side
    # recurrent
    attention: AttentionName = "dot"
    input_feeding: bool = False
    # the transformer
    heads: int = 4
    hidden: int = 0  # width of the feed-forward network; 0 is four times ``dim``
    norm: Literal["pre", "post"] = "pre"
    positions: Positions = "rotary"
    activation: Literal["relu", "relu2", "gelu", "gelu_tanh", "silu"] = "relu2"
    bias: bool = False
    norm_gains: bool = False
    qk_norm: bool = True
    # Marian's
    scale_embedding: bool = True  # whether embeddings are multiplied by the root of ``dim``
    output_bias: bool = False
    halves: bool = False  # whether sinusoidal positions have all sines before all cosines
    start: int = START  # what the target begins after

    RANGES: ClassVar[schema.Ranges] = {
        "source_vocab": (len(SPECIALS), 2**31 - 1),
        "target_vocab": (len(SPECIALS), 2**31 - 1),
        "dim": (2, 2**16),
        "layers": (1, 2**10),
        "decoder_layers": (0, 2**10),
        "heads": (1, 2**10),
        "hidden": (0, 2**20),
        "dropout": schema.SHARE,
        "members": (1, 2**10),
        "max_length": (2, 2**20),
    }

    def __post_init__(self) -> None:
        if self.model == "transformer":
            if self.dim % self.heads:
                near = [n for n in range(self.heads, 0, -1) if self.dim % n == 0][0]
                raise NlpkitError(
                    f"`heads` {self.heads} does not divide `dim` {self.dim}", hint=f"`heads` {near}"
                )
            if self.positions != "learned" and self.dim // self.heads % 2:
                raise NlpkitError(
                    f"{self.positions} positions need an even head size, "
                    f"not {self.dim}/{self.heads}",
                    hint=f"`dim` {2 * self.heads}",
                )
        if self.start >= self.target_vocab or self.outputs > self.target_vocab:
            raise NlpkitError("`start` or `outputs` is beyond the vocabulary of the target")
        if self.joint and self.source_vocab != self.target_vocab:
            raise NlpkitError("a joint vocabulary has one size")

    @property
    def written(self) -> int:
        """How many ids the head scores."""
        return self.outputs or self.target_vocab

    @property
    def depth(self) -> int:
        """Layers of the decoder."""
        return self.decoder_layers or self.layers

    @property
    def table_std(self) -> float:
        """How large numbers of a new table are: scaled, or as they are, inputs are of like size.

        Without a scale each step of training changes a smaller part of what recurrent cells read,
        and as much of the scores of what is written.
        """
        return float(self.dim**-0.5) if self.scale_embedding else 0.25

    @property
    def wide(self) -> int:
        """Width of the feed-forward network."""
        return self.hidden or 4 * self.dim

    def padded(self, vocab: int) -> int | None:
        """The size of a table that may have more rows than its codec has tokens: Marian's."""
        return vocab if self.halves else None

    def count_parameters(self) -> int:
        """About how many numbers a model of these settings learns, without making it."""
        dim = self.dim
        tables = self.target_vocab + (0 if self.joint else self.source_vocab)
        tables += 0 if self.tied else self.written
        if self.model == "transformer":
            feed = 2 * dim * self.wide
            layers = self.layers * (4 * dim * dim + feed) + self.depth * (8 * dim * dim + feed)
        else:
            gates = 4 if self.model == "lstm" else 3
            layers = (2 * self.layers + self.depth) * gates * 2 * dim * dim + 9 * dim * dim
        return self.members * (tables * dim + layers)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any, where: str = "config.json") -> Seq2SeqArchitecture:
        """From ``config.json``; a damaged one is an error of one line."""
        return schema.read(cls, values, where)
