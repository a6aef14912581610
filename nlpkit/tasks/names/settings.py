"""How names are learned: every default of their training, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass

from nlpkit.models.settings import ModelName
from nlpkit.settings import DEEPEST, MANY, WIDEST, changed, option
from nlpkit.training.settings import TrainerSettings, batch_size, epochs

_LONG_RUN = 180.0  # seconds from which on a wider model pays
_FEWEST_STEPS = 400
NAME = "Options"  # the first group of a help page


@dataclass(frozen=True)
class NamesSettings(TrainerSettings):
    """How names are learned; what is None depends on the names and on the time there is."""

    model: ModelName = option("gpt", "What learns; ngram is counted at once.")
    dim: int | None = option(
        None,
        "Width.",
        low=2,
        high=WIDEST,
        shown_default="64; 96 from --max-time 3m on; 128 if recurrent",
    )
    layers: int | None = option(
        None, "Depth.", low=1, high=DEEPEST, shown_default="4; 2 if recurrent"
    )
    heads: int = option(4, "Attention heads.", low=1, high=DEEPEST)
    order: int = option(5, "Characters that ngram and mlp look back.", low=1, high=20)
    epochs: float | None = epochs(
        "Passes over the names, when there is no --max-time.",
        low=0.01,
        shown_default="7, more for few names",
    )
    batch_size: int | None = batch_size(
        None, "Rows of 32 characters to a step; up to 64 unless told."
    )
    dropout: float | None = changed(
        TrainerSettings, "dropout", None, shown_default="0; 0.1 from --max-time 3m on"
    )
    lr: float = changed(TrainerSettings, "lr", 0.004)
    muon_lr: float = 0.02  # of the matrices inside a transformer
    weight_decay: float | None = changed(
        TrainerSettings, "weight_decay", None, shown_default="0.1; 0.2 from --max-time 3m on"
    )
    patience: int = changed(TrainerSettings, "patience", 6)

    def resolve(self, characters: int) -> ResolvedNames:
        """Fill in what depends on the number of characters in the names and on the time.

        >>> NamesSettings(max_time=300).resolve(200_000).dim
        96
        """
        recurrent = self.model in ("rnn", "lstm", "gru")
        long_run = self.model == "gpt" and (self.max_time or 0) >= _LONG_RUN
        rows = self.batch_size or min(64, max(8, characters // (32 * 40)))
        steps = max(1.0, characters / (32 * rows))  # to an epoch
        return self.resolve_as(
            ResolvedNames,
            dim=96 if long_run else 128 if recurrent else 64,
            layers=2 if recurrent else 4,
            dropout=0.1 if long_run else 0.0,
            weight_decay=0.2 if long_run else 0.1,
            batch_size=rows,
            epochs=max(7.0, round(_FEWEST_STEPS / steps, 1)),
        )


@dataclass(frozen=True, kw_only=True)
class ResolvedNames(NamesSettings):
    """Settings that the names and the time have decided."""

    dim: int
    layers: int
    dropout: float
    weight_decay: float
    batch_size: int
    epochs: float


@dataclass(frozen=True)
class NameConstraints:
    """What a name must be like."""

    prefix: str = option("", "Begin so; - reads one prefix per line.", group=NAME)
    suffix: str = option("", "End so.", group=NAME)
    contains: str = option("", "Have this inside.", group=NAME)
    pattern: str = option("", "Match this as a whole.", metavar="REGEX", group=NAME)
    min_length: int = option(1, "Fewest characters of a name.", low=1, high=MANY, group=NAME)
    max_length: int | None = option(
        None, "Most characters of a name.", low=1, high=MANY, group=NAME
    )
    label: str = option("", "Names of this label.", group=NAME)
    unique: bool = option(False, "No name twice.", group=NAME)
    novel: bool = option(False, "No name that the model was trained on.", group=NAME)
    tries: int = option(10_000, "Names to draw before giving up.", low=1, high=MANY, group=NAME)
