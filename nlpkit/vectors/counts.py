"""Word vectors by counting: co-occurrence, positive PMI, truncated SVD.

The relative of word2vec that predicts nothing: skip-gram with negative sampling factorises
nearly the same matrix (Levy and Goldberg 2014). The details that make it strong are theirs too
(Levy, Goldberg and Dagan 2015): near words count more, contexts are smoothed, and the singular
values enter with exponent 1/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.vectors.settings import COUNTS, CountSettings, Weighting

_WORDS_AT_ONCE = 1 << 21  # of the corpus; bounds the memory for pairs


def weights_of_distances(settings: CountSettings) -> NDArray[np.float64]:
    """What a neighbour at distance 1, 2, ... counts.

    >>> harmonic = CountSettings(window=4, weighting=Weighting.HARMONIC)
    >>> weights_of_distances(harmonic).round(2).tolist()
    [1.0, 0.5, 0.33, 0.25]
    """
    window, weighting = settings.chosen_window, settings.chosen_weighting
    distance = np.arange(1, window + 1)
    if weighting is Weighting.FLAT:
        return np.ones(window)
    return 1 / distance if weighting is Weighting.HARMONIC else (window - distance + 1) / window


def cooccurrence(ids: NDArray[np.int32], size: int, settings: CountSettings = COUNTS) -> Any:
    """How often two words stand within the window of each other: a symmetric sparse (V, V).

    ``ids`` is a corpus as word2vec stores it: the last word of a sentence as ``~id``, so that
    windows end there.

    >>> ids = np.array([0, 1, ~2, 0, ~2], np.int32)
    >>> flat = CountSettings(window=2, weighting=Weighting.FLAT)
    >>> cooccurrence(ids, 3, flat).toarray().tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    from scipy.sparse import coo_matrix, csr_matrix

    window, weights_by_distance = settings.chosen_window, weights_of_distances(settings)
    total = csr_matrix((size, size), dtype=np.float32)
    for start in range(0, len(ids), _WORDS_AT_ONCE):
        piece = np.asarray(ids[start : start + _WORDS_AT_ONCE + window])
        is_last = piece < 0
        sentence: NDArray[np.int64] = np.cumsum(is_last) - is_last
        words = np.where(is_last, ~piece, piece)
        firsts, seconds, weights = [], [], []
        for distance in range(1, window + 1):
            n = max(0, min(_WORDS_AT_ONCE, len(piece) - distance))  # words with one so far behind
            together = sentence[:n] == sentence[distance : distance + n]
            firsts.append(words[:n][together])
            seconds.append(words[distance : distance + n][together])
            weight = weights_by_distance[distance - 1]
            weights.append(np.full(len(firsts[-1]), weight, np.float32))
        pairs = (np.concatenate(firsts), np.concatenate(seconds))
        total = total + coo_matrix((np.concatenate(weights), pairs), (size, size)).tocsr()
    return (total + total.T).tocsr()


def positive_pmi(counts: Any, settings: CountSettings = COUNTS) -> Any:
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


def factorize(matrix: Any, settings: CountSettings = COUNTS) -> NDArray[np.float32]:
    """Rows (V, dim) of U S^power, the truncated SVD of a sparse matrix, by random projection."""
    from sklearn.utils.extmath import randomized_svd

    if settings.dim >= matrix.shape[0]:
        raise NlpkitError(
            f"{matrix.shape[0]:,} words are too few for {settings.dim} dimensions",
            hint="a smaller `dim` or `min_count`",
        )
    left, values, _ = randomized_svd(matrix, settings.dim, random_state=settings.seed)
    return (left * values**settings.power).astype(np.float32)


def vectors_from_counts(
    ids: NDArray[np.int32], size: int, settings: CountSettings = COUNTS
) -> NDArray[np.float32]:
    """Vectors (V, dim) for the words of a corpus of ids below ``size``, see ``cooccurrence``."""
    counts = cooccurrence(ids, size, settings)
    if counts.nnz == 0:
        raise NlpkitError("no two known words stand near each other", hint="more text")
    return factorize(positive_pmi(counts, settings), settings)
