"""Every setting of a tagger with its default, in one place."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from nlpkit.errors import NlpkitError, UsageError
from nlpkit.models.finetune_settings import (
    NEW_LEARNS,
    USUAL_WIDTH,
    FineTuneSettings,
    OnEncoder,
    refuse_given,
)
from nlpkit.nn.encoder_config import EncoderConfig, EncoderKind, NormPlace, Positions
from nlpkit.nn.settings import EncoderSettings
from nlpkit.settings import LONGEST, TRAINING, WIDEST, changed, option
from nlpkit.training.settings import TrainerSettings, epochs

Switch = Literal["auto", "yes", "no"]
FEW_TOKENS = 100_000
FEW_TAGS = 64  # a CRF looks at all pairs of them
_CONTEXT = {"hidden", "layers", "positions", "norm"}  # what an encoder is made of
EPOCH_TOKENS = 600_000  # to see in all, if 12 to 30 times the data is that much


@dataclass(frozen=True)
class TagTuning(FineTuneSettings):
    """How a tagger on a pre-trained encoder is made and trained."""

    USUAL_EPOCHS = 3

    pretrained: str | None = None  # where the encoder came from
    pieces: Literal["first", "mean"] = "first"
    crf: Switch = "auto"
    batch_tokens: int = 512
    unit: Literal["word"] = "word"
    causal: bool = option(False, "Always false.", hidden_flags=("--one-way",))
    context: EncoderKind | None = None  # an encoder over the states
    hidden: int = changed(EncoderSettings, "hidden", EncoderSettings.hidden)
    layers: int = changed(EncoderSettings, "layers", EncoderSettings.layers)
    positions: Positions = EncoderSettings.positions
    norm: NormPlace = EncoderSettings.norm

    def context_config(self, n_in: int) -> EncoderConfig | None:
        """The encoder over states of ``n_in`` numbers each, if there is one."""
        if self.context is None:
            return None
        return EncoderConfig(
            self.context, n_in, self.hidden, self.layers, False, self.positions, self.norm
        )


@dataclass(frozen=True)
class TaggerSettings(OnEncoder, EncoderSettings, TrainerSettings):
    """What a tagger is and how it is trained; ``auto`` and None are decided by the data.

    >>> TaggerSettings().resolve(entities=True, tokens=1000, tags=9).crf
    'yes'
    """

    unit: Literal["word", "char"] | None = option(
        None, "What a token is: a word, or one character.", shown_default="word"
    )
    encoder: EncoderKind | None = option(
        None,
        "What looks at the context; with --pretrained, a further encoder over its states.",
        shown_default="lstm; none without --features",
    )
    features: Switch = option(
        "auto",
        "With --pretrained: learn features of words and an encoder beside and over its states, as "
        "without it; auto is yes if all of it is frozen, or it is narrower than 384.",
    )
    pieces: Literal["first", "mean"] = option(
        "first", "With --pretrained: a word's state is its first piece's, or the mean of all."
    )
    causal: bool = option(
        False, "Look at the words before only, not behind.", hidden_flags=("--one-way",)
    )
    crf: Switch = option(
        "auto",
        "Score whole tag sequences; auto is yes for entities, and for words with up to 64 tags.",
    )
    chars: Literal["cnn", "lstm", "none"] = option("cnn", "What looks at the characters of a word.")
    affixes: Switch = option("auto", "Use prefixes and suffixes; auto is no for entities.")
    linear_features: Literal["yes", "no"] = option(
        "yes",
        "Score words, shapes and affixes around a word directly too, as a linear CRF does.",
        hidden_flags=("--clues",),
    )
    word_dim: int = option(100, "Numbers in a learned word embedding.", low=1, high=WIDEST)
    dropout: float | None = changed(
        TrainerSettings, "dropout", None, shown_default="0.33; 0.5 for entities"
    )
    word_dropout: float | None = option(
        None,
        "Hide a word seen n times in s/(s+n) of cases, to learn unknown words.",
        low=0.0,
        high=1e6,
        shown_default="0.25; 0.5 for entities",
        group=TRAINING,
    )
    part_dropout: float | None = option(
        None,
        "How often one kind of a word's features is hidden.",
        low=0.0,
        high=0.9,
        shown_default="0.1; 0 for entities",
        group=TRAINING,
    )
    epochs: int | None = epochs(
        shown_default="12 to 30 by the size of the data; with --pretrained half of that, or 3 to "
        "20 without --features",
    )
    batch_tokens: int | None = option(
        None,
        "Tokens to a step.",
        low=1,
        high=LONGEST,
        shown_default="128 to 256 by the size of the data",
        group=TRAINING,
    )
    lr: float | None = changed(
        TrainerSettings, "lr", None, shown_default="0.002; 0.004 for few entities"
    )
    weight_decay: float = changed(TrainerSettings, "weight_decay", 0.01)
    eval_interval: int | None = changed(
        TrainerSettings, "eval_interval", None, shown_default="each epoch"
    )

    def encoder_config(self, n_in: int) -> EncoderConfig:
        """The encoder over words of ``n_in`` numbers each."""
        assert self.encoder is not None
        return EncoderConfig(
            self.encoder, n_in, self.hidden, self.layers, self.causal, self.positions, self.norm
        )

    def tuning(self) -> TagTuning:
        """What was given, for a tagger on ``pretrained``; what does nothing there is refused."""
        if self.encoder is None:
            refuse_given(self, _CONTEXT, "needs `encoder` or `features` yes, with `pretrained`")
        names = {field.name for field in fields(TagTuning)}
        unused = {field.name for field in fields(self)} - names - {"encoder", "features"}
        refuse_given(self, unused, "needs `features` yes, with `pretrained`")
        _check_encoder(self.encoder, self.positions, self.norm)
        given = {name: value for name, value in vars(self).items() if name in names}
        given = {name: value for name, value in given.items() if value is not None}
        return TagTuning(**given, context=self.encoder)

    def beside(self, width: int, *, frozen: bool) -> bool:
        """Whether features are learned beside a pre-trained encoder of this width.

        >>> [TaggerSettings().beside(width, frozen=False) for width in (192, 384)]
        [True, False]
        """
        small = frozen or width < USUAL_WIDTH
        return _decided(self.features, small) == "yes"

    def encoder_rate(self, width: int) -> float:
        """The learning rate of the top layer of an encoder that is trained beside features."""
        lr = None if self.lr is None else self.lr / NEW_LEARNS
        return FineTuneSettings(lr=lr).rate(width, frozen=False)

    def resolve(
        self, *, entities: bool, tokens: int, tags: int, pairs: bool = False, tuned: bool = False
    ) -> ResolvedTagger:
        """With everything decided by the kind and number of tags and of tokens to learn from.

        Entities want stronger dropout and no affixes; little data wants small batches and to be
        gone over more often. A CRF helps all tags of words, as long as there are few of them.
        ``pairs`` of a string and a tag for each character have characters as tokens. ``tuned``
        says that an encoder is trained beside the features, which halves the epochs.
        """
        if self.causal and self.crf == "yes":
            raise NlpkitError(
                "a CRF decides on the whole sentence, words behind included, so it is not causal",
                hint="`crf` no, or without `causal`",
            )
        if self.pretrained is None:
            needing = {"freeze", "layer_decay", "pieces", "features"}
            refuse_given(self, needing, "needs `pretrained`")
        if not tuned:
            refuse_given(self, {"layer_decay"}, "does nothing with `freeze` all")
        _check_encoder(self.encoder, self.positions, self.norm)
        unit = self.unit or ("char" if pairs else "word")
        by_word = unit == "word"
        chain = (entities or (by_word and tags <= FEW_TAGS)) and not self.causal
        affixes = by_word and not entities
        found = self.resolve_as(
            ResolvedTagger,
            dropout=0.5 if entities else 0.33,
            word_dropout=0.5 if entities else 0.25,
            part_dropout=0.0 if entities else 0.1,
            epochs=min(30, max(12, EPOCH_TOKENS // max(1, tokens))) // (2 if tuned else 1),
            batch_tokens=min(256, max(128, tokens // 400)),
            lr=4e-3 if tokens < FEW_TOKENS and entities else 2e-3,
            unit=unit,
            encoder="lstm",
            dtype="auto" if tuned else "float32",
        )
        return replace(
            found,
            crf=_decided(self.crf, chain),
            affixes=_decided(self.affixes, affixes),
            chars=self.chars if by_word else "none",
        )


def _check_encoder(encoder: EncoderKind | None, positions: Positions, norm: NormPlace) -> None:
    if encoder != "transformer" and (positions, norm) != ("decay", "pre"):
        raise UsageError("`positions` and `norm` need `encoder` transformer")


def _decided(switch: Switch, auto: bool) -> Switch:
    if switch != "auto":
        return switch
    return "yes" if auto else "no"


@dataclass(frozen=True, kw_only=True)
class ResolvedTagger(TaggerSettings):
    """Settings that the data has decided."""

    unit: Literal["word", "char"]
    encoder: EncoderKind
    dropout: float
    word_dropout: float
    part_dropout: float
    epochs: int
    batch_tokens: int
    lr: float
