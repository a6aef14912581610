"""How a reader of questions is trained and used: every option, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass

from nlpkit.models.finetune_settings import FineTuneSettings
from nlpkit.settings import LONGEST, option


@dataclass(frozen=True)
class QaSettings(FineTuneSettings):
    """Options of ``nlpkit qa train``."""

    max_length: int = option(
        384,
        "Tokens of a window, question included, at most.",
        low=12,
        high=LONGEST,
    )
    overlap: int = option(
        128, "Tokens that a window shares with the one before.", low=0, high=LONGEST
    )
    longest_answer: int = option(30, "Tokens of an answer, at most.", low=1, high=LONGEST)
