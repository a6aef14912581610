"""How tokens become rows of numbers: names and defaults, and nothing heavy to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nlpkit.errors import UsageError
from nlpkit.settings import LONGEST, MANY, OUTPUT, check, option

Mode = Literal["one-hot", "hash", "binary", "count", "freq", "tfidf"]


@dataclass(frozen=True)
class VectorizeSettings:
    """What a row of numbers says of its tokens.

    >>> VectorizeSettings(mode="hash", buckets=50).columns_from
    1
    """

    mode: Mode = option(
        "count",
        "hash: bucket numbers; one-hot: a row for each token; the others: a row for each line, "
        "weighted so.",
        group=OUTPUT,
    )
    vocab: str | None = option(
        None,
        "A column for each entry of this.",
        flags=("--vocab", "-V"),
        metavar="FILE",
    )
    buckets: int | None = option(
        None, "No vocabulary: hash tokens into so many columns.", low=1, high=MANY
    )
    maxlen: int | None = option(
        None, "For one-hot: pad or cut lines to so many tokens.", low=1, high=LONGEST
    )
    sparse: bool = option(False, "Write only what is not zero (index:value, or CSR).", group=OUTPUT)

    def __post_init__(self) -> None:
        check(self)
        if (self.vocab is None) == (self.buckets is None):
            raise UsageError("give exactly one of `vocab` and `buckets`")
        if self.mode == "hash" and self.buckets is None:
            raise UsageError("`mode` hash needs `buckets`")
        if self.maxlen is not None and self.mode != "one-hot":
            raise UsageError("`maxlen` goes with `mode` one-hot")

    @property
    def columns_from(self) -> int:
        """The first id: buckets are counted from 1, 0 being left for padding."""
        return 0 if self.buckets is None else 1
