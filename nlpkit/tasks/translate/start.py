"""Where embeddings start: words that stand in the same pairs of sentences begin near each other.

From counts alone: how often two ids, of whichever side, stand in one pair; positive pointwise
mutual information of these counts; the strongest directions of that matrix (Levy and Goldberg,
2014). It takes seconds, and a transformer learns in minutes what takes it long otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_MOST = 12_000  # ids: a matrix of their pairs takes half a gigabyte
_AT_ONCE = 2_000  # pairs of sentences that are counted together


def embed_pairs(
    rows: Sequence[Sequence[int]], size: int, dim: int, seed: int = 1
) -> NDArray[np.float32] | None:
    """A vector for each id (size, dim), of mean square 1 / dim; nothing if there are too many ids.

    ``rows`` are the ids of both sides of each pair, numbered together.

    >>> vectors = embed_pairs([[0, 2], [0, 2], [1, 3], [1, 3]], 4, 2)
    >>> bool(vectors[0] @ vectors[2] > 0.1 > vectors[0] @ vectors[3])
    True
    """
    if size > _MOST or dim > size:
        return None
    counts = np.zeros(size * size, np.float32)
    for start in range(0, len(rows), _AT_ONCE):
        both = []
        for row in rows[start : start + _AT_ONCE]:
            ids = np.unique(np.asarray(row, np.int64))
            both.append((ids[:, None] * size + ids).ravel())
        found, times = np.unique(np.concatenate(both), return_counts=True)
        counts[found] += times
    matrix = counts.reshape(size, size)
    alone = matrix.diagonal().copy()  # how many pairs have an id
    expected = np.outer(alone, alone) / max(1, len(rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        matrix = np.log(matrix / expected)
    matrix = np.nan_to_num(np.maximum(matrix, 0.0), nan=0.0, posinf=0.0)
    return _strongest(matrix, dim, seed)


def _strongest(matrix: NDArray[np.float32], dim: int, seed: int) -> NDArray[np.float32]:
    """The strongest directions of a symmetric matrix, by random projection (Halko et al., 2011).

    Only those in which ids that stand together have the same sign: products of two vectors are then
    like the numbers of the matrix.
    """
    generator = np.random.default_rng(seed)
    sketch = generator.standard_normal((len(matrix), min(len(matrix), dim + dim // 4 + 8))).astype(
        "f4"
    )
    for _ in range(3):
        sketch, _ = np.linalg.qr(matrix @ sketch)
    values, turned = np.linalg.eigh(sketch.T @ matrix @ sketch)
    strongest = np.argsort(-values)[:dim]
    vectors = sketch @ turned[:, strongest] * np.sqrt(np.maximum(values[strongest], 0.0))
    # an id that is in no pair, and what is too rare to tell, keeps a small random vector
    scale = np.sqrt(np.mean(np.square(vectors))) or 1.0
    vectors = vectors / scale + 0.1 * generator.standard_normal(vectors.shape)
    return np.asarray(vectors * dim**-0.5, np.float32)
