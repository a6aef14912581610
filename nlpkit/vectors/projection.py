"""Words as points in a plane or in space: the principal axes, t-SNE, or UMAP where installed."""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.vectors.settings import PLOT, Projection
from nlpkit.vectors.store import unit_rows
from nlpkit.vectors.transform import principal_axes

MOST_TRIED = 300  # words for which a page has every method, asked for or not


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
        points = _tsne(units, seed, dimensions)
    elif method is Projection.UMAP and len(units) > dimensions + 2:
        points = _umap(units, seed, dimensions)
    else:
        mean, axes = principal_axes(units, dimensions)
        points = np.zeros((len(units), dimensions))
        points[:, : axes.shape[1]] = (units - mean) @ axes
    points -= (points.max(axis=0) + points.min(axis=0)) / 2
    extent = np.abs(points).max()
    return points / extent if extent else points


def _tsne(units: NDArray[np.float32], seed: int, dimensions: int) -> NDArray[np.float64]:
    from sklearn.manifold import TSNE
    from threadpoolctl import (  # type: ignore[import-untyped]  # comes with scikit-learn
        threadpool_limits,
    )

    # a neighbourhood of 30 words, or fewer where there are not that many
    perplexity = min(30.0, (len(units) - 1) / 3)
    axes = min(units.shape)  # the first positions are along so many principal axes
    start = "pca" if axes >= dimensions else "random"
    model = TSNE(dimensions, perplexity=perplexity, init=start, random_state=seed)
    with threadpool_limits(1):  # threads would add up in any order, and no two runs agree
        return np.asarray(model.fit_transform(units), np.float64)


def _umap(units: NDArray[np.float32], seed: int, dimensions: int) -> NDArray[np.float64]:
    check_installed(Projection.UMAP)
    import warnings

    umap = importlib.import_module("umap")  # a guest, not a dependency
    near = min(15, len(units) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that a seed means one thread
        model = umap.UMAP(n_components=dimensions, n_neighbors=near, random_state=seed)
        return np.asarray(model.fit_transform(units), np.float64)


def has_umap() -> bool:
    """Whether UMAP is installed, without loading it."""
    return importlib.util.find_spec("umap") is not None


def check_installed(method: Projection) -> None:
    """Refuse UMAP where it is not installed."""
    if method is Projection.UMAP and not has_umap():
        raise NlpkitError("UMAP is not installed", hint="pip install umap-learn, or `method` tsne")


NAMES = {Projection.PCA: "PCA", Projection.TSNE: "t-SNE", Projection.UMAP: "UMAP"}


def page_layouts(
    matrix: NDArray[np.float32], method: Projection, seed: int
) -> dict[str, NDArray[np.float64]]:
    """What a page switches between: the method asked for first, then the others by name.

    Each has three dimensions to turn and two. Of many words only PCA, which takes no time, is made
    besides what was asked for.

    >>> list(page_layouts(np.eye(4, 5, dtype=np.float32), Projection.PCA, 1))
    ['PCA 3-D', 'PCA 2-D', 't-SNE 3-D', 't-SNE 2-D']
    """
    methods = dict.fromkeys([method, Projection.PCA])
    if len(matrix) <= MOST_TRIED:
        methods[Projection.TSNE] = None
        if has_umap():
            methods[Projection.UMAP] = None
    return {
        f"{NAMES[one]} {dimensions}-D": project(matrix, one, seed=seed, dimensions=dimensions)
        for one in methods
        for dimensions in (3, 2)
        if dimensions == 2 or len(matrix) > 3
    }


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
