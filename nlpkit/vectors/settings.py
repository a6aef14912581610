"""What can be chosen and what is assumed: names and defaults, and nothing heavy to import."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from nlpkit.errors import NlpkitError


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


class Format(str, Enum):
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
    """PCA keeps directions (parallel pairs stay parallel), t-SNE keeps neighbourhoods."""

    PCA = "pca"
    TSNE = "tsne"


class Weighting(str, Enum):
    """What a neighbour at distance d counts: (window - d + 1) / window, or 1 when flat."""

    LINEAR = "linear"
    FLAT = "flat"


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

    dim: int = 100
    window: int = 5
    min_count: int = 5
    max_vocab: int | None = None
    weighting: Weighting = Weighting.LINEAR
    smoothing: float = 0.75  # exponent of the context counts
    shift: float = 1.0  # its log is taken off each PMI: the number of negatives of word2vec
    power: float = 0.5  # exponent of the singular values
    seed: int = 1


@dataclass(frozen=True)
class PlotSettings:
    """A picture of words in a plane."""

    method: Projection = Projection.PCA
    neighbours: int = 10
    seed: int = 1


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
