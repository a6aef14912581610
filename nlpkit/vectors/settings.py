"""What can be chosen and what is assumed: names and defaults, and nothing heavy to import."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from nlpkit.errors import NlpkitError, UsageError
from nlpkit.settings import (
    DATA,
    LARGEST_SEED,
    MANY,
    MODEL,
    MOST_EPOCHS,
    OUTPUT,
    TRAINING,
    WIDEST,
    check,
    option,
)


class Metric(str, Enum):
    """How near two vectors are: by angle, by product, or by distance (smaller is nearer)."""

    COSINE = "cosine"
    DOT = "dot"
    EUCLIDEAN = "euclidean"


class AnalogyMethod(str, Enum):
    """How "a is to b as c is to x" scores x; all vectors have length 1.

    - 3cosadd: cos(x, b - a + c)
    - 3cosmul: cos(x, b) cos(x, c) / cos(x, a), cosines moved to 0..1 (Levy and Goldberg 2014)
    - pairdirection: cos(x - c, b - a)
    """

    COSADD = "3cosadd"
    COSMUL = "3cosmul"
    PAIR_DIRECTION = "pairdirection"


class VectorFormat(str, Enum):
    """What can be written. ``fasttext`` is the ``.vec`` text file; ``fasttext-bin``, the ``.bin``
    model, needs vectors that have n-grams."""

    FOLDER = "folder"
    WORD2VEC = "word2vec"
    BINARY = "binary"
    GLOVE = "glove"
    FASTTEXT = "fasttext"
    FASTTEXT_BIN = "fasttext-bin"


class MergeMethod(str, Enum):
    """Put the vectors of a word side by side, or take their mean (then of one length)."""

    CONCATENATE = "concatenate"
    AVERAGE = "average"


class Projection(str, Enum):
    """PCA keeps directions (parallel pairs stay parallel), t-SNE and UMAP keep neighbourhoods."""

    PCA = "pca"
    TSNE = "tsne"
    UMAP = "umap"


class Weighting(str, Enum):
    """What a neighbour at distance d counts: (window - d + 1) / window, 1, or 1 / d."""

    LINEAR = "linear"
    FLAT = "flat"
    HARMONIC = "harmonic"


class CountMethod(str, Enum):
    """PPMI and singular values (Levy et al. 2015), or GloVe (Pennington et al. 2014)."""

    SVD = "svd"
    GLOVE = "glove"


@dataclass(frozen=True)
class QuerySettings:
    """Questions put in words."""

    n: int = 10
    metric: Metric = Metric.COSINE
    method: AnalogyMethod = AnalogyMethod.COSADD
    expand_n: int = 3
    expand_minimum: float = 0.5


@dataclass(frozen=True)
class EvaluationSettings:
    """The protocol. 30,000 words and folded case is what the original word2vec tool does."""

    restrict: int = 30_000
    fold_case: bool = True
    method: AnalogyMethod = AnalogyMethod.COSADD
    seed: int = 1


@dataclass(frozen=True)
class CountSettings:
    """How counts become vectors."""

    method: CountMethod = option(
        CountMethod.SVD, "svd: PPMI, factorised at once; glove: trained.", group=MODEL
    )
    dim: int = option(100, "Numbers in a vector.", low=1, high=WIDEST, metavar="N")
    window: int | None = option(
        None,
        "Words to each side that count as neighbours.",
        low=1,
        high=1_000,
        metavar="N",
        shown_default="5, 10 for glove",
    )
    min_count: int = option(5, "Leave out words seen fewer times.", low=1, high=MANY, metavar="N")
    max_vocab: int | None = option(
        None, "Keep so many words at most.", low=1, high=MANY, metavar="N", shown_default="all"
    )
    weighting: Weighting | None = option(
        None,
        "A neighbour at distance d counts less by steps (linear), 1 (flat) or 1/d (harmonic).",
        shown_default="linear, harmonic for glove",
    )
    smoothing: float = option(0.75, "svd: exponent of the context counts.", low=0.0, high=10.0)
    shift: float = option(1.0, "svd: its logarithm is taken off each PMI.", low=1.0, high=1e6)
    power: float = option(0.5, "svd: exponent of the singular values.", low=0.0, high=10.0)
    x_max: float = option(
        100.0, "glove: pairs seen so often have full weight.", low=1e-6, high=1e12, group=TRAINING
    )
    alpha: float = option(
        0.75, "glove: exponent of the weight of rarer pairs.", low=0.0, high=10.0, group=TRAINING
    )
    epochs: int = option(
        25, "glove: passes over the pairs.", low=1, high=MOST_EPOCHS, metavar="N", group=TRAINING
    )
    lr: float = option(0.05, "glove: learning rate of AdaGrad.", low=0.0, high=10.0, group=TRAINING)
    threads: int | None = None  # None is all available cores; 1 gives the same bits every time
    seed: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", CountMethod(self.method))
        if self.weighting is not None:
            object.__setattr__(self, "weighting", Weighting(self.weighting))
        check(self)

    @property
    def chosen_window(self) -> int:
        """The window, given or not."""
        return self.window or (10 if self.method is CountMethod.GLOVE else 5)

    @property
    def chosen_weighting(self) -> Weighting:
        """The weighting, given or not."""
        by_method = {CountMethod.SVD: Weighting.LINEAR, CountMethod.GLOVE: Weighting.HARMONIC}
        return self.weighting or by_method[self.method]


class TextMethod(str, Enum):
    """The mean of a text's words, SIF, in which frequent words count less (Arora et al. 2017), or
    a paragraph vector, inferred by a model of documents (Le and Mikolov 2014)."""

    MEAN = "mean"
    SIF = "sif"
    INFER = "infer"


@dataclass(frozen=True)
class TextSettings:
    """How the words of a text become one vector."""

    method: TextMethod = option(
        TextMethod.SIF,
        "mean: of all words; sif: frequent words count less; infer: as a document of a model that "
        "has learned documents.",
        group=MODEL,
    )
    a: float = option(1e-3, "sif: a word counts a / (a + its share of text).", low=1e-9, high=1e3)
    common: bool = option(
        True,
        "sif: take out what the texts have in common.",
        flags=("--common/--keep-common",),
    )
    epochs: int = option(
        20, "infer: passes over a text.", low=1, high=MOST_EPOCHS, metavar="N", group=TRAINING
    )
    seed: int = option(
        1, "infer: seed of every random choice.", low=0, high=LARGEST_SEED, group=TRAINING
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", TextMethod(self.method))
        check(self)


@dataclass(frozen=True)
class AlignSettings:
    """How two sets are brought into one space."""

    held_out: float = option(
        0.1, "Part of the pairs that is kept for testing.", low=0.0, high=0.9, group=MODEL
    )
    restrict: int | None = None  # the so many most frequent words
    neighbours: int = 5  # that are shown for a word
    seed: int = 1

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class PlotSettings:
    """A picture of words in a plane or in space."""

    top: int | None = option(
        None,
        "Show the so many most frequent words; stop words, punctuation and numbers are left out.",
        low=1,
        high=MANY,
        group=DATA,
    )
    all_words: bool = option(False, "Do not leave any out of --top.", group=DATA)
    groups: str | None = option(
        None,
        "Colours: word<TAB>group, or words below ': group'; these words are shown, too.",
        metavar="FILE",
        group=DATA,
    )
    relations: str | None = option(
        None,
        "Arrows: pairs of words, such as france paris; these words are shown, too.",
        metavar="FILE",
        group=DATA,
    )
    clusters: int | None = option(
        None,
        "Colours by so many clusters (k-means), instead of --groups.",
        low=1,
        high=1_000,
    )
    method: Projection = option(
        Projection.PCA,
        "pca keeps directions, tsne and umap (if umap-learn is installed) neighbourhoods.",
    )
    title: str | None = option(None, "What stands above the picture.", metavar="TEXT", group=OUTPUT)
    count: int = option(
        10,
        "Neighbours to show of a word, in a page.",
        low=1,
        high=1_000,
        flags=("--count", "--number", "-n"),
        group=OUTPUT,
    )
    seed: int = option(1, "Seed of every random choice.", low=0, high=LARGEST_SEED)

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", Projection(self.method))
        check(self)
        if self.clusters is not None and self.groups is not None:
            raise UsageError("`clusters` and `groups` contradict each other")


def plain_settings(settings: CountSettings) -> dict[str, Any]:
    """Settings as JSON holds them."""
    values = asdict(settings).items()
    return {name: value.value if isinstance(value, Enum) else value for name, value in values}


QUERY = QuerySettings()
EVALUATION = EvaluationSettings()
COUNTS = CountSettings()
PLOT = PlotSettings()


def parse_lengths(text: str) -> tuple[int, int]:
    """The shortest and longest n-gram that a text such as 3-6 names.

    >>> parse_lengths("3-6"), parse_lengths("4")
    ((3, 6), (4, 4))
    """
    match = re.fullmatch(r"([1-9][0-9]?)(?:-([1-9][0-9]?))?", text)
    shortest, longest = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if longest < shortest:
        raise NlpkitError(f"{text!r} are no lengths of n-grams", hint="`subwords` 3-6")
    return shortest, longest
