"""Matrices of fastText's quantised models (``.ftz``): a row is a few bytes, each the number of a
centroid of one part of the vector (product quantisation, Jégou et al. 2011).

    bool with_norms; int64 rows, columns; int32 codes; codes x uint8; quantiser
    with norms: rows x uint8; quantiser of one dimension
    a quantiser: int32 dim, parts, part, last_part; dim x 256 x float32
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nlpkit.memory import check_memory

if TYPE_CHECKING:
    from nlpkit.vectors.fasttext import Reader

CENTROIDS = 256


def read_quantised(reader: Reader) -> NDArray[np.float32]:
    """The matrix that the codes stand for, (rows, columns)."""
    (with_norms,) = reader.numbers("<?")
    rows, columns = reader.numbers("<qq")
    (size,) = reader.numbers("<i")
    if rows < 0 or columns < 1 or size < 0 or (rows and size % rows):
        raise reader.contradiction()
    codes = reader.codes(size).reshape(rows, -1 if rows else 0)  # (rows, parts)
    parts = _read_centroids(reader, columns, codes.shape[1])
    check_memory(rows * columns * 4, f"{rows:,} vectors of {columns:,} dimensions")
    matrix = np.empty((rows, columns), np.float32)
    start = 0
    for part, centroids in enumerate(parts):
        matrix[:, start : start + centroids.shape[1]] = centroids[codes[:, part]]
        start += centroids.shape[1]
    if with_norms:
        norm_codes = reader.codes(rows)
        (norms,) = _read_centroids(reader, 1, 1)
        matrix *= norms[norm_codes]
    return matrix


def _read_centroids(reader: Reader, columns: int, n_parts: int) -> list[NDArray[np.float32]]:
    """For each part of a vector its centroids (256, part)."""
    dim, parts, part, last = reader.numbers("<4i")
    wrong = dim != columns or parts < 1 or part < 1 or not 1 <= last <= part
    if wrong or parts != n_parts or part * (parts - 1) + last != dim:
        raise reader.contradiction()
    numbers = reader.floats(dim * CENTROIDS)
    edge = (parts - 1) * part * CENTROIDS
    found = list(numbers[:edge].reshape(parts - 1, CENTROIDS, part))
    return [*found, numbers[edge:].reshape(CENTROIDS, last)]
