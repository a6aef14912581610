"""How an encoder-decoder is trained and used: every option with its default, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nlpkit.models.seq2seq_settings import AttentionName, Positions, Seq2SeqArchitecture
from nlpkit.settings import DATA, DEEPEST, LONGEST, MANY, TRAINING, WIDEST, changed, option
from nlpkit.training.settings import TrainerSettings

if TYPE_CHECKING:
    from nlpkit.tasks.translate.pick import Picked

DECODING = "Search"
_BATCH, _SYMBOL_BATCH = 2750, 400  # tokens


@dataclass(frozen=True)
class TranslateSettings(TrainerSettings):
    """Options of training; what is None is decided by the data and the time there is."""

    # --- data
    tokenizer: str = option(
        "bpe",
        "bpe (learned here), char, word, whitespace, or a tokenizer.json.",
        flags=("--tokenizer", "-t"),
        metavar="NAME|PATH",
        group=DATA,
    )
    source_tokenizer: str | None = option(
        None, "Another one for sources.", metavar="NAME|PATH", group=DATA
    )
    target_tokenizer: str | None = option(
        None, "Another one for targets.", metavar="NAME|PATH", group=DATA
    )
    vocab_size: int = option(
        4000, "Subwords or words, at most (of each side, if apart).", low=1, high=MANY, group=DATA
    )
    separate: bool = option(
        False, "A vocabulary for each side, even if both have one tokenizer.", group=DATA
    )
    max_length: int = option(
        200, "Leave out pairs with a longer side, in tokens.", low=2, high=LONGEST, group=DATA
    )
    # --- model
    model: Literal["auto", "lstm", "gru", "transformer"] = option(
        "auto", "auto: what learns most in the time there is, by a trial; says what it took."
    )
    attention: AttentionName | None = option(
        None, "Score of recurrent models; none is the bottleneck.", shown_default="dot"
    )
    input_feeding: bool = option(False, "Recurrent: feed what was attended to back in; slow.")
    dim: int | None = option(
        None, "Width of embeddings and layers.", low=2, high=WIDEST, shown_default="by time"
    )
    layers: int | None = option(
        None, "Layers of encoder and decoder.", low=1, high=DEEPEST, shown_default="1 or 3"
    )
    members: int | None = option(
        None,
        "Models that are trained side by side and decide together.",
        low=1,
        high=100,
        shown_default="1, of characters up to 4 by time",
    )
    heads: int | None = option(
        None, "Transformer: attention heads.", low=1, high=DEEPEST, shown_default="4"
    )
    norm: Literal["pre", "post"] | None = option(
        None, "Transformer: LayerNorm before or after.", shown_default="pre"
    )
    positions: Positions | None = option(
        None, "Transformer: how it knows order.", shown_default="rotary"
    )
    joint_ngram: Literal["auto", "yes", "no"] = option(
        "auto",
        "Rank answers with a joint n-gram model of aligned symbols, too; auto: of characters.",
    )
    untied: bool = option(False, "A softmax of its own, not the embeddings of the target.")
    marian: bool = option(
        False, "Transformer of Marian's kind, which can be exported: post-norm, sinusoidal."
    )
    start: Literal["pairs", "random"] = option(
        "pairs", "Embeddings start from counts of pairs, or at random."
    )
    # --- training
    dropout: float | None = changed(
        TrainerSettings, "dropout", None, shown_default="0.15, of wide models up to 0.4"
    )
    lr: float | None = changed(
        TrainerSettings,
        "lr",
        None,
        shown_default="0.02, of a Transformer 0.005, of adamw alone 0.002",
    )
    weight_decay: float | None = changed(TrainerSettings, "weight_decay", 0.0)
    warmup: float = changed(TrainerSettings, "warmup", 0.02)
    dtype: Literal["auto", "float32", "bfloat16"] = changed(TrainerSettings, "dtype", "auto")
    epochs: int | None = option(
        None, "Times over the data, without --max-time.", low=1, high=MANY, group=TRAINING
    )
    batch_tokens: int | None = option(
        None,
        "Tokens of the longer side to a step and process.",
        low=1,
        high=MANY,
        shown_default="up to 2750, of characters 400",
        group=TRAINING,
    )
    optimizer: Literal["muon", "adamw"] | None = option(
        None,
        "muon: Muon for hidden matrices, AdamW else.",
        shown_default="muon, of characters adamw",
        group=TRAINING,
    )
    smoothing: float = option(
        0.1,
        "Probability that labels give away (label smoothing).",
        low=0.0,
        high=0.9,
        group=TRAINING,
    )
    r_drop: float = option(
        0.0,
        "Read pairs twice with other dropout, and keep the answers alike (R-Drop).",
        low=0.0,
        high=100.0,
        group=TRAINING,
    )
    average: float = option(
        0.0, "Average the weights of the last share of the run.", low=0.0, high=1.0, group=TRAINING
    )
    metric: Literal["loss", "bleu", "exact"] = option(
        "loss", "What --dev is measured by, to stop and to keep the best.", group=TRAINING
    )

    @property
    def tokenizers(self) -> tuple[str, str]:
        """Of source and target."""
        return self.source_tokenizer or self.tokenizer, self.target_tokenizer or self.tokenizer

    @property
    def joint(self) -> bool:
        """Whether both sides have one vocabulary."""
        source, target = self.tokenizers
        return source == target and not self.separate

    def pick_batch(self, tokens: int, symbols: bool = False) -> int:
        """Tokens to a batch, by those of the data: few pairs are to be seen in many steps.

        >>> TranslateSettings().pick_batch(1_000_000), TranslateSettings().pick_batch(30_000)
        (2750, 600)
        """
        most = _SYMBOL_BATCH if symbols else _BATCH
        return self.batch_tokens or min(most, max(_BATCH // 10, tokens // 50))

    def architecture(
        self, picked: Picked, source_vocab: int, target_vocab: int, outputs: int
    ) -> Seq2SeqArchitecture:
        """The model that was picked, for vocabularies of these sizes."""
        kind, dim, layers = picked.model, self.dim or picked.dim, self.layers or picked.layers
        marian = kind == "transformer" and self.marian
        post = self.norm == "post" or marian
        return Seq2SeqArchitecture(
            model=kind,
            source_vocab=source_vocab,
            target_vocab=target_vocab,
            joint=self.joint,
            outputs=0 if marian else outputs,
            tied=not self.untied,
            dim=dim,
            layers=layers,
            members=self.members or picked.members,
            dropout=picked.dropout if self.dropout is None else self.dropout,
            max_length=self.max_length + 1,
            attention=self.attention or "dot",
            input_feeding=self.input_feeding,
            heads=self.heads or min(4, max(1, dim // 16)),
            norm="post" if post else "pre",
            positions="sinusoidal" if marian else self.positions or "rotary",
            activation="silu" if marian else "relu2",
            bias=marian,
            norm_gains=post,
            qk_norm=not post,
            scale_embedding=kind == "transformer",
            output_bias=True,
            halves=marian,
            start=0 if marian else 1,
        )


@dataclass(frozen=True)
class PredictSettings:
    """Options of prediction."""

    beams: int = option(
        5, "Hypotheses that are followed; 1 is greedy.", low=1, high=200, group=DECODING
    )
    nbest: int = option(1, "Show so many answers, N <= beams.", low=1, high=1000, group=DECODING)
    length_penalty: float | None = option(
        None,
        "Above 0: longer answers; 0: the likeliest.",
        low=0.0,
        high=10.0,
        group=DECODING,
        shown_default="1; 0 of characters and phones",
    )
    coverage: float = option(
        0.0, "Above 0: answers that look at all of the source.", low=0.0, high=10.0, group=DECODING
    )
    max_length: float = option(
        2.0,
        "Longest answer, in lengths of the source (and 10 tokens); train's --max-length at most.",
        low=0.01,
        high=100.0,
        group=DECODING,
    )
    no_repeat_ngram: int = option(
        0, "No N tokens in a row twice; 0 lets them be.", low=0, high=1000, group=DECODING
    )
    prefix: str = option("", "What every answer begins with.", metavar="TEXT", group=DECODING)
    copy_unknown: bool = option(
        False, "For a word it has not, the source's that it looks at.", group=DECODING
    )
    keep_loops: bool = option(False, "Leave words that are repeated over and over.", group=DECODING)
    sampling: bool = option(False, "Draw answers instead of searching.", group=DECODING)
    temperature: float = option(
        1.0, "For --sampling: below 1 plays safe.", low=0.0, high=100.0, group=DECODING
    )
    top_k: int = option(
        0, "For --sampling: from the K likeliest only; 0 is all.", low=0, high=MANY, group=DECODING
    )
    top_p: float = option(
        1.0,
        "For --sampling: the likeliest of this probability, up to 1.",
        low=1e-9,
        high=1.0,
        group=DECODING,
    )
    batch_size: int = option(
        32,
        "Sentences at a time; the answers do not depend on it.",
        low=1,
        high=LONGEST,
        group=DECODING,
    )
    seed: int = option(1, "Seed of --sampling.", low=0, high=2**32 - 1, group=DECODING)
