"""Word vectors by counting: co-occurrence, positive PMI, truncated SVD.

The relative of word2vec that predicts nothing: skip-gram with negative sampling factorises
nearly the same matrix (Levy and Goldberg 2014). The details that make it strong are theirs too
(Levy, Goldberg and Dagan 2015): near words count more, contexts are smoothed, and the singular
values enter with exponent 1/2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nlpkit.errors import NlpkitError

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINE_END = -1  # stands after each line in a stream of ids; windows do not reach over it
UNKNOWN = -2  # a word outside the vocabulary: taken out before windows are counted


@dataclass(frozen=True)
class CountSettings:
    """How counts become vectors."""

    dim: int = 100
    window: int = 5
    smoothing: float = 0.75  # exponent of the context counts
    shift: float = 1.0  # log of this is taken off each PMI; the negatives of word2vec
    # a neighbour at distance d counts (window - d + 1) / window, or 1 when flat
    weighting: Literal["linear", "flat"] = "linear"
    eigenvalue_power: float = 0.5
    seed: int = 1


DEFAULTS = CountSettings()


def cooccurrence(
    blocks: Iterable[NDArray[np.int32]], size: int, settings: CountSettings = DEFAULTS
) -> Any:
    """How often two words stand within the window of each other: a symmetric sparse (V, V).

    ``blocks`` are ids of whole lines, with ``LINE_END`` after each line.

    >>> ids = np.array([0, 1, 2, LINE_END, 0, 2, LINE_END], np.int32)
    >>> cooccurrence([ids], 3, CountSettings(window=2, weighting="flat")).toarray().tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    from scipy.sparse import coo_matrix, csr_matrix

    total = csr_matrix((size, size), dtype=np.float32)
    for ids in blocks:
        ids = ids[ids != UNKNOWN]
        line = np.cumsum(ids == LINE_END)
        is_word = ids != LINE_END
        ids, line = ids[is_word], line[is_word]
        firsts, seconds, weights = [], [], []
        for distance in range(1, settings.window + 1):
            same_line = line[distance:] == line[:-distance]
            firsts.append(ids[:-distance][same_line])
            seconds.append(ids[distance:][same_line])
            near = (settings.window - distance + 1) / settings.window
            weight = near if settings.weighting == "linear" else 1.0
            weights.append(np.full(len(firsts[-1]), weight, np.float32))
        pairs = (np.concatenate(firsts), np.concatenate(seconds))
        total = total + coo_matrix((np.concatenate(weights), pairs), (size, size)).tocsr()
    return (total + total.T).tocsr()


def positive_pmi(counts: Any, settings: CountSettings = DEFAULTS) -> Any:
    """max(0, log P(w, c) / (P(w) P(c)) - log shift), context probabilities smoothed.

    >>> from scipy.sparse import csr_matrix
    >>> counts = csr_matrix(np.array([[0.0, 3.0], [3.0, 2.0]], np.float32))
    >>> positive_pmi(counts, CountSettings(smoothing=1.0)).toarray().round(2)
    array([[0.  , 0.47],
           [0.47, 0.  ]], dtype=float32)
    """
    words = np.asarray(counts.sum(axis=1), np.float64).ravel()
    contexts = np.asarray(counts.sum(axis=0), np.float64).ravel() ** settings.smoothing
    entries = counts.tocoo()
    joint = entries.data.astype(np.float64)
    pmi = np.log(joint * contexts.sum() / (words[entries.row] * contexts[entries.col]))
    result = entries.copy()
    result.data = np.maximum(pmi - np.log(settings.shift), 0).astype(np.float32)
    result = result.tocsr()
    result.eliminate_zeros()
    return result


def factorize(matrix: Any, settings: CountSettings = DEFAULTS) -> NDArray[np.float32]:
    """Rows (V, dim) of U S^power, the truncated SVD of a sparse matrix, by random projection."""
    from sklearn.utils.extmath import randomized_svd

    if settings.dim >= matrix.shape[0]:
        raise NlpkitError(
            f"{matrix.shape[0]:,} words are too few for {settings.dim} dimensions",
            hint="a smaller --dim or --min-count",
        )
    left, values, _ = randomized_svd(matrix, settings.dim, random_state=settings.seed)
    return (left * values**settings.eigenvalue_power).astype(np.float32)


def vectors_from_counts(
    blocks: Iterable[NDArray[np.int32]], size: int, settings: CountSettings = DEFAULTS
) -> NDArray[np.float32]:
    """Vectors (V, dim) for the words of a stream of ids below ``size``."""
    counts = cooccurrence(blocks, size, settings)
    if counts.nnz == 0:
        raise NlpkitError("no two known words stand near each other", hint="more text")
    return factorize(positive_pmi(counts, settings), settings)
