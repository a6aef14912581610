"""Every setting of word2vec training, with its default and its limits, in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any, ClassVar

from nlpkit.errors import NlpkitError
from nlpkit.schema import SEED, Ranges
from nlpkit.settings import (
    DATA,
    MANY,
    MOST_EPOCHS,
    MOST_WORKERS,
    TRAINING,
    WIDEST,
    changed,
    option,
    options,
)
from nlpkit.training.settings import TrainerSettings
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


@dataclass(frozen=True)
class Word2VecConfig:
    """All settings; what is wrong with one is said when it is set.

    >>> Word2VecConfig(arch=Arch.CBOW).starting_lr
    0.05
    >>> Word2VecConfig(dim=0)
    Traceback (most recent call last):
    nlpkit.errors.NlpkitError: dim must be 1 or more, not 0
    """

    arch: Arch = option(
        Arch.SKIPGRAM, "Predict the words around a word, or a word from those around it."
    )
    loss: Loss = option(
        Loss.NS,
        "ns: negative sampling; hs: hierarchical softmax over a Huffman tree; "
        "softmax: the whole formula, for small vocabularies.",
    )
    dim: int = option(100, "Length of a vector.", low=1, high=WIDEST)
    window: int = option(5, "Words to each side, at most.", low=1, high=1_000)
    shrink_windows: bool = option(
        True,
        "Draw the size of each window from 1 on.",
        flags=("--shrink-windows/--fixed-windows",),
    )
    negative: int = option(5, "Noise words to a true one, for ns.", low=1, high=1_000)
    ns_exponent: float = option(
        0.75, "Noise words are drawn by count to this power.", low=-10.0, high=10.0
    )
    cbow_mean: bool = option(
        True, "What CBOW makes of a window.", flags=("--cbow-mean/--cbow-sum",)
    )
    epochs: int = option(
        5, "Times to go through the text.", low=1, high=MOST_EPOCHS, group=TRAINING
    )
    lr: float | None = option(
        None,
        "Learning rate to start with.",
        low=0.0,
        high=10.0,
        shown_default="0.025; 0.05 for cbow, subwords, documents; 0.1 for cbow with subwords",
        group=TRAINING,
    )
    min_lr: float = option(0.0001, "Learning rate to end with.", low=0.0, high=10.0, group=TRAINING)
    sample: float = option(
        1e-3,
        "Subsampling: drop words above this share now and then; 0 keeps all.",
        low=0.0,
        high=1.0,
        group=DATA,
    )
    min_count: int = option(5, "Leave out words seen fewer times.", low=1, high=MANY, group=DATA)
    max_vocab: int | None = option(
        None, "Keep the N most frequent words.", low=1, high=MANY, group=DATA
    )
    subwords: str | None = option(
        None,
        "Learn vectors of character n-grams of these lengths too, such as 3-6.",
        metavar="N-M",
    )
    buckets: int = option(
        2_000_000, "How many places n-grams are hashed into.", low=1, high=2**31 - 1
    )
    documents: bool = option(
        False,
        "Learn a vector for each line too: PV-DBOW with skipgram, PV-DM with cbow.",
    )
    document_words: bool = option(
        False, "PV-DBOW: train the words too, by skip-gram, beside the documents."
    )
    id_key: str | None = option(
        None,
        "The key or column that holds the id of a document.",
        metavar="NAME",
        flags=("--id-key", "--id-column"),
        shown_default="lines are numbered",
        group=DATA,
    )
    phrases: int = option(
        0, "Passes that join frequent pairs: new_york.", low=0, high=10, group=DATA
    )
    phrase_threshold: float = option(
        100.0, "Join pairs so many times likelier than chance.", low=0.0, high=1e9, group=DATA
    )
    deterministic: bool = option(
        False,
        "The same bytes for the same seed and number of threads: each thread has its own copy of "
        "all vectors, and they are merged in a fixed order.",
        group=TRAINING,
    )
    seed: int = changed(TrainerSettings, "seed", 1)
    threads: int | None = None  # None is all available cores; 1 gives the same bits every time

    RANGES: ClassVar[Ranges] = {"seed": SEED}

    def __post_init__(self) -> None:
        object.__setattr__(self, "arch", _member(Arch, "arch", self.arch))
        object.__setattr__(self, "loss", _member(Loss, "loss", self.loss))
        for name, one in options(self).items():
            value = getattr(self, name)
            if value is not None and one.low is not None and one.high is not None:
                _check(name, value, one.low, one.high)
        if self.threads is not None:
            _check("threads", self.threads, 1, MOST_WORKERS)
        if self.subwords is not None:
            parse_lengths(self.subwords)
            if self.loss is not Loss.NS:
                raise NlpkitError(
                    f"n-grams are trained by negative sampling, not {self.loss.value}",
                    hint="`loss` ns",
                )
        self._check_documents()
        _check("lr", self.starting_lr, self.min_lr, 10.0)

    def _check_documents(self) -> None:
        if self.documents:
            if self.loss is not Loss.NS or self.subwords is not None:
                what = "n-grams" if self.subwords is not None else f"`loss` {self.loss.value}"
                raise NlpkitError(
                    f"documents are trained by negative sampling of words, not with {what}",
                    hint="`loss` ns, no `subwords`",
                )
            if self.document_words and self.arch is Arch.CBOW:
                raise NlpkitError("PV-DM trains words anyway", hint="no `document_words`")
        elif self.document_words or self.id_key is not None:
            name = "document_words" if self.document_words else "id_key"
            raise NlpkitError(f"`{name}` is for documents", hint="`documents` too")

    @property
    def words_are_outputs(self) -> bool:
        """Whether words are learned as predictions only: nothing but documents predicts them."""
        return self.documents and self.arch is Arch.SKIPGRAM and not self.document_words

    @property
    def starting_lr(self) -> float:
        """The learning rate to start with, whether given or not."""
        if self.lr is not None:
            return self.lr
        if self.arch is Arch.CBOW:
            return 0.05 if self.subwords is None else 0.1
        return 0.025 if self.subwords is None and not self.documents else 0.05

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
