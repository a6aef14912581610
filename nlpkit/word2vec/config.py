"""Every setting of word2vec training, with its default and its limits, in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any, ClassVar

from nlpkit.errors import NlpkitError
from nlpkit.schema import SEED, Ranges
from nlpkit.vectors.settings import parse_lengths


class Arch(str, Enum):
    """What predicts what."""

    SKIPGRAM = "skipgram"  # each word of a window and the word in the middle
    CBOW = "cbow"  # the words of a window together and the word in the middle


class Loss(str, Enum):
    """How the probability of a word is normalised, or got around."""

    NS = "ns"  # negative sampling: tell the word from a few random ones
    HS = "hs"  # hierarchical softmax: a path of yes/no decisions in a Huffman tree
    SOFTMAX = "softmax"  # the formula itself, over all words: for small vocabularies


LIMITS: dict[str, tuple[float, float]] = {  # least and most; whole numbers where they are here
    "dim": (1, 65_536),
    "window": (1, 1_000),
    "negative": (1, 1_000),
    "ns_exponent": (-10.0, 10.0),
    "epochs": (1, 1_000_000),
    "lr": (0.0, 10.0),
    "min_lr": (0.0, 10.0),
    "sample": (0.0, 1.0),
    "min_count": (1, 1_000_000_000),
    "max_vocab": (1, 1_000_000_000),
    "buckets": (1, 2**31 - 1),
    "phrases": (0, 10),
    "phrase_threshold": (0.0, 1e9),
    "seed": (0, 2**32 - 1),
    "threads": (1, 1_024),
}


@dataclass(frozen=True)
class Word2VecConfig:
    """All settings; what is wrong with one is said when it is set.

    >>> Word2VecConfig(arch=Arch.CBOW).starting_lr
    0.05
    >>> Word2VecConfig(dim=0)
    Traceback (most recent call last):
    nlpkit.errors.NlpkitError: dim must be 1 or more, not 0
    """

    arch: Arch = Arch.SKIPGRAM
    loss: Loss = Loss.NS
    dim: int = 100
    window: int = 5  # words to each side, at most
    shrink_windows: bool = True  # each window's size is drawn from 1..window
    negative: int = 5  # noise words to a true one
    ns_exponent: float = 0.75  # noise words are drawn by count ** this
    cbow_mean: bool = True  # the window's mean; otherwise its sum
    epochs: int = 5
    lr: float | None = None  # at the start; None is 0.025 for skip-gram and 0.05 for CBOW
    min_lr: float = 0.0001  # at the end
    sample: float = 1e-3  # words above this share of the text are thinned out; 0 keeps all
    min_count: int = 5
    max_vocab: int | None = None
    subwords: str | None = None  # lengths of character n-grams, such as 3-6
    buckets: int = 2_000_000  # that n-grams are hashed into
    phrases: int = 0  # passes that join frequent pairs
    phrase_threshold: float = 100.0  # how much more often than by chance a pair must occur
    seed: int = 1
    threads: int | None = None  # None is all available cores; 1 gives the same bits every time

    RANGES: ClassVar[Ranges] = {"seed": SEED}

    def __post_init__(self) -> None:
        object.__setattr__(self, "arch", _member(Arch, "arch", self.arch))
        object.__setattr__(self, "loss", _member(Loss, "loss", self.loss))
        for name, (least, most) in LIMITS.items():
            value = getattr(self, name)
            if value is not None:
                _check(name, value, least, most)
        if self.subwords is not None:
            parse_lengths(self.subwords)
            if self.loss is not Loss.NS:
                raise NlpkitError(
                    f"n-grams are trained by negative sampling, not {self.loss.value}",
                    hint="`loss` ns",
                )
        _check("lr", self.starting_lr, self.min_lr, LIMITS["lr"][1])

    @property
    def starting_lr(self) -> float:
        """The learning rate to start with, whether given or not."""
        if self.lr is not None:
            return self.lr
        return 0.025 if self.arch is Arch.SKIPGRAM else 0.05

    @property
    def workers(self) -> int:
        """How many threads to run."""
        from nlpkit.parallel import worker_count

        return worker_count(self.threads)

    def to_settings(self) -> dict[str, Any]:
        """Plain values for ``config.json``.

        >>> Word2VecConfig.from_settings(Word2VecConfig(dim=7).to_settings()).dim
        7
        """
        return {
            name: value.value if isinstance(value, Enum) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Word2VecConfig:
        """The opposite of ``to_settings``; a name that is no setting is an error."""
        names = {field.name for field in fields(cls)}
        for name in settings:
            if name not in names:
                raise NlpkitError(
                    f"word2vec has no setting {name!r}", hint=", ".join(sorted(names))
                )
        return cls(**settings)


def _member(kind: type[Enum], name: str, value: object) -> Enum:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(member.value) for member in kind)
        raise NlpkitError(f"{name} {value!r} is not known", hint=choices) from None


def _check(name: str, value: object, least: float, most: float) -> None:
    whole = isinstance(most, int)
    allowed = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, allowed) or math.isnan(value):
        what = "a whole number" if whole else "a number"
        raise NlpkitError(f"{name} must be {what}, not {value!r}")
    if value < least:
        raise NlpkitError(f"{name} must be {least} or more, not {value}")
    if value > most:
        raise NlpkitError(f"{name} must be {most} or less, not {value}")
