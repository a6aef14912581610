"""Words as points in a plane or in space: the principal axes, or t-SNE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nlpkit.vectors.settings import PLOT, Projection
from nlpkit.vectors.store import unit_rows
from nlpkit.vectors.transform import principal_axes

if TYPE_CHECKING:
    from numpy.typing import NDArray


def project(
    matrix: NDArray[np.float32],
    method: Projection = PLOT.method,
    *,
    seed: int = PLOT.seed,
    dimensions: int = 2,
) -> NDArray[np.float64]:
    """Points (N, 2) for vectors (N, D), within -1..1 all ways; only angles between vectors count.

    >>> project(np.eye(3, dtype=np.float32)).shape
    (3, 2)
    """
    units = unit_rows(np.asarray(matrix))
    if method is Projection.TSNE and len(units) > 3:
        from sklearn.manifold import TSNE
        from threadpoolctl import (  # type: ignore[import-untyped]  # comes with scikit-learn
            threadpool_limits,
        )

        # a neighbourhood of 30 words, or fewer where there are not that many
        perplexity = min(30.0, (len(units) - 1) / 3)
        model = TSNE(dimensions, perplexity=perplexity, init="pca", random_state=seed)
        with threadpool_limits(1):  # threads would add up in any order, and no two runs agree
            points = model.fit_transform(units).astype(np.float64)
    else:
        mean, axes = principal_axes(units, dimensions)
        points = np.zeros((len(units), dimensions))
        points[:, : axes.shape[1]] = (units - mean) @ axes
    points -= (points.max(axis=0) + points.min(axis=0)) / 2
    extent = np.abs(points).max()
    return points / extent if extent else points


def variance_shares(matrix: NDArray[np.float32], dimensions: int = 2) -> list[float]:
    """How much of the variance of unit vectors lies along each of the principal axes.

    >>> variance_shares(np.array([[1, 0], [-1, 0]], dtype=np.float32))
    [1.0, 0.0]
    """
    units = unit_rows(np.asarray(matrix))
    mean, axes = principal_axes(units, dimensions)
    centred = units - mean
    total = float((centred**2).sum()) or 1.0
    shares = ((centred @ axes) ** 2).sum(axis=0) / total
    return [round(float(share), 6) for share in shares] + [0.0] * (dimensions - axes.shape[1])
