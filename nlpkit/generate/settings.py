"""How to draw the next token: every option of a sampler, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nlpkit.errors import NlpkitError
from nlpkit.settings import MANY, option

SAMPLING = "Sampling"  # the group of a help page


def _draw(default: Any, help: str, **more: Any) -> Any:
    return option(default, help, group=SAMPLING, **more)


@dataclass(frozen=True)
class SamplingSettings:
    """How to draw. The defaults draw from the model's distribution as it is."""

    temperature: float = _draw(
        1.0,
        "Below 1 plays safe, above 1 dares; 0 takes the likeliest; 100 at most.",
        flags=("--temperature", "-T"),
    )
    top_k: int = _draw(0, "Draw from the K likeliest only; 0 is all.", low=0, high=MANY)
    top_p: float = _draw(
        1.0, "Draw from the likeliest that together have this probability, up to 1."
    )
    min_p: float = _draw(0.0, "Draw only from tokens this share, 0 to 1, as likely as the first.")
    repetition_penalty: float = _draw(
        1.0, "Above 1, up to 100: tokens that were there, rarer (it divides their logits)."
    )
    typical_p: float = _draw(
        1.0, "Draw from those that surprise as expected, with this probability in all, up to 1."
    )
    frequency_penalty: float = _draw(
        0.0,
        "Taken from the logit of a token for each time that it was there.",
        low=-100.0,
        high=100.0,
    )
    presence_penalty: float = _draw(
        0.0, "Taken from the logit of every token that was there.", low=-100.0, high=100.0
    )
    no_repeat_ngram: int = _draw(
        0, "Never write N tokens in the same order twice; 0 allows it.", low=0, high=MANY
    )
    logit_bias: tuple[tuple[int, float], ...] = ()  # id and what is added to its logit

    def __post_init__(self) -> None:
        for name, low, high, what in (
            ("temperature", 0.0, 100.0, "0 (always the likeliest) or more"),
            ("top_p", 1e-9, 1.0, "more than 0, at most 1"),
            ("min_p", 0.0, 1.0, "from 0 to 1"),
            ("repetition_penalty", 1e-3, 100.0, "about 1, such as 1.2"),
            ("top_k", 0, 2**31, "0 (no limit) or more"),
            ("typical_p", 1e-9, 1.0, "more than 0, at most 1"),
            ("frequency_penalty", -100.0, 100.0, "from -100 to 100, such as 0.5"),
            ("presence_penalty", -100.0, 100.0, "from -100 to 100, such as 0.5"),
            ("no_repeat_ngram", 0, MANY, "0 (off) or more, such as 3"),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                hint = f"a value that is {what}"
                raise NlpkitError(f"`{name}` cannot be {value:g}", hint=hint)

    @property
    def looks_back(self) -> bool:
        """Whether a draw depends on what was written before."""
        penalties = (self.frequency_penalty, self.presence_penalty, self.no_repeat_ngram)
        return self.repetition_penalty != 1 or any(penalties)

    @property
    def likeliest(self) -> int:
        """Of how many of the likeliest ids the logits are needed; 0 is all.

        >>> SamplingSettings(top_k=40).likeliest, SamplingSettings(temperature=0).likeliest
        (40, 1)
        """
        if self.looks_back or self.logit_bias or self.typical_p < 1:
            return 0
        return self.top_k if self.temperature else 1

    def check_vocab(self, size: int) -> None:
        """Refuse a ``top_k`` beyond the vocabulary: it would silently do nothing."""
        if self.top_k > size:
            raise NlpkitError(
                f"`top_k` {self.top_k} is more than the {size} ids of the model",
                hint=f"`top_k` {size} or less",
            )
        for index, _ in self.logit_bias:
            if not 0 <= index < size:
                raise NlpkitError(f"there is no token {index}: the model has {size} ids")
