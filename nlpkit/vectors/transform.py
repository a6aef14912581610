"""New vectors out of old ones: unit length, several sets in one, fewer dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.vectors.settings import MergeMethod
from nlpkit.vectors.store import Vectors, unit_rows
from nlpkit.vectors.words import ListedWords

_BLOCK_ROWS = 1 << 14


def restrict(vectors: Vectors, n: int) -> Vectors:
    """The ``n`` most frequent words.

    >>> list(restrict(Vectors(["a", "b"], np.eye(2, dtype=np.float32)), 1).words)
    ['a']
    """
    counts = vectors.words.counts
    words = ListedWords(vectors.words[:n], None if counts is None else counts[:n])
    return Vectors(words, vectors.matrix[:n])


def folded(vectors: Vectors, restrict: int | None, fold_case: bool) -> Vectors:
    """The most frequent words; with folded case each form is its most frequent spelling.

    >>> matrix = np.array([[1.0], [2.0], [3.0]], np.float32)
    >>> list(folded(Vectors(["Paris", "paris", "the"], matrix), None, True).words)
    ['paris', 'the']
    """
    size = len(vectors) if restrict is None else min(restrict, len(vectors))
    rows: dict[str, int] = {}
    for row, word in enumerate(vectors.words[:size]):
        rows.setdefault(word.casefold() if fold_case else word, row)
    matrix = vectors.matrix[:size] if len(rows) == size else vectors.matrix[list(rows.values())]
    return Vectors(list(rows), matrix, subwords=vectors.subwords)


def normalize(vectors: Vectors) -> Vectors:
    """Every vector scaled to length 1, so that a dot product is a cosine.

    >>> normalize(Vectors(["a"], np.array([[3, 4]], np.float32))).norms.tolist()
    [1.0]
    """
    return Vectors(vectors.words, unit_rows(np.asarray(vectors.matrix)))


def merge(sets: Sequence[Vectors], method: MergeMethod = MergeMethod.CONCATENATE) -> Vectors:
    """One set of the words that all sets share, in the order and with the counts of the first.

    Each vector is scaled to length 1 before, so that every set has the same say.

    >>> left = Vectors(["a", "b"], np.array([[2, 0], [0, 1]], np.float32))
    >>> right = Vectors(["c", "a"], np.array([[1], [-5]], np.float32))
    >>> merged = merge([left, right])
    >>> list(merged.words), merged.matrix.tolist()
    (['a'], [[1.0, 0.0, -1.0]])
    """
    first = sets[0]
    rows = [[each.words.find(word) for each in sets] for word in first.words]
    shared = np.array([row for row in rows if None not in row], np.int64)
    if not len(shared):
        raise NlpkitError("the sets of vectors have no word in common")
    parts = [unit_rows(each.matrix[shared[:, i]]) for i, each in enumerate(sets)]
    if method is MergeMethod.CONCATENATE:
        matrix = np.concatenate(parts, axis=1)
    elif len({each.dim for each in sets}) > 1:
        dims = ", ".join(str(each.dim) for each in sets)
        raise NlpkitError(f"vectors of {dims} numbers have no mean", hint="`method` concatenate")
    else:
        matrix = np.mean(parts, axis=0, dtype=np.float32)
    counts = first.words.counts
    words = [first.words[row] for row in shared[:, 0].tolist()]
    return Vectors(ListedWords(words, None if counts is None else counts[shared[:, 0]]), matrix)


def principal_axes(matrix: NDArray[np.float32], dim: int) -> tuple[NDArray[np.float32], ...]:
    """The mean (D,) and the ``dim`` directions (D, dim) in which the rows differ most.

    The sign of a direction is free; its largest entry is made positive, so that the same data
    gives the same result on every machine.
    """
    mean = matrix.mean(axis=0, dtype=np.float64)
    scatter = np.zeros((matrix.shape[1], matrix.shape[1]))
    for start in range(0, len(matrix), _BLOCK_ROWS):
        centred = matrix[start : start + _BLOCK_ROWS] - mean
        scatter += centred.T @ centred
    _, axes = np.linalg.eigh(scatter)  # by rising variance
    axes = axes[:, ::-1][:, :dim]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return mean.astype(np.float32), (axes * np.sign(largest)).astype(np.float32)


def pca(vectors: Vectors, dim: int) -> Vectors:
    """Centred vectors projected on their ``dim`` principal axes.

    >>> line = Vectors(["a", "b", "c"], np.array([[0, 0], [1, 1], [2, 2]], np.float32))
    >>> pca(line, 1).matrix.round(3).ravel()
    array([-1.414,  0.   ,  1.414], dtype=float32)
    """
    if not 1 <= dim <= vectors.dim:
        raise NlpkitError(f"cannot make {dim} dimensions of {vectors.dim}", hint="a smaller `dim`")
    mean, axes = principal_axes(vectors.matrix, dim)
    projected = (vectors.matrix - mean) @ axes
    return Vectors(vectors.words, projected.astype(np.float32, copy=False))
