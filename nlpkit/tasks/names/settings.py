"""How names are learned: every default of their training, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from nlpkit.models.settings import ModelName
from nlpkit.schema import SEED, Ranges

_LONG_RUN = 180.0  # seconds from which on a wider model pays
_FEWEST_STEPS = 400


@dataclass(frozen=True)
class NamesSettings:
    """How names are learned; what is None depends on the names and on the time there is."""

    model: ModelName = "gpt"
    dim: int | None = None  # 64; 96 in a long run; 128 if recurrent
    layers: int | None = None  # 4; 2 if recurrent
    heads: int = 4
    order: int = 5  # characters that an n-gram model or MLP sees
    dropout: float | None = None  # 0; 0.1 in a long run
    lr: float = 0.004
    muon_lr: float = 0.02  # of the matrices inside a transformer
    weight_decay: float | None = None  # 0.1; 0.2 in a long run
    batch_size: int | None = None  # rows of about 32 characters: 64, fewer for few names
    epochs: float | None = None  # 7, more for few names
    max_time: float | None = None  # seconds, instead of epochs
    patience: int = 6  # evaluations (of 20) without a better held-out loss
    seed: int = 1

    RANGES: ClassVar[Ranges] = {"seed": SEED}

    def resolve(self, characters: int) -> NamesSettings:
        """Fill in what depends on the number of characters in the names and on the time.

        >>> NamesSettings(max_time=300).resolve(200_000).dim
        96
        """
        recurrent = self.model in ("rnn", "lstm", "gru")
        long_run = self.model == "gpt" and (self.max_time or 0) >= _LONG_RUN
        batch_size = self.batch_size or min(64, max(8, characters // (32 * 40)))
        steps = max(1.0, characters / (32 * batch_size))  # to an epoch
        return replace(
            self,
            dim=self.dim or (96 if long_run else 128 if recurrent else 64),
            layers=self.layers or (2 if recurrent else 4),
            dropout=(0.1 if long_run else 0.0) if self.dropout is None else self.dropout,
            weight_decay=(0.2 if long_run else 0.1)
            if self.weight_decay is None
            else self.weight_decay,
            batch_size=batch_size,
            epochs=self.epochs or max(7.0, round(_FEWEST_STEPS / steps, 1)),
        )
