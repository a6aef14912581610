"""Logistic regression over the features of a bag, which a bow of two labels is averaged with.

Both see the same features. The bow starts from naive Bayes, learns in small steps and soon stops,
the regression goes to the minimum of its own loss; they err on different texts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

STRENGTH = 10.0  # C: how much the loss of all texts counts beside half the squared weights
ITERATIONS = 60
CORRECTIONS = 5  # of L-BFGS: it keeps two vectors as long as the weights for each


class Linear(NamedTuple):
    """Log-odds of the second label: the bias and what each feature adds."""

    weights: NDArray[np.float32]  # (F,)
    bias: float


def fit_linear(
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    weights: NDArray[np.float32],
    second: NDArray[np.float32],
    n_features: int,
) -> Linear:
    """Learn from texts i, which have the features ``rows[starts[i]:starts[i + 1]]``.

    ``second`` (N,) is 1 for texts of the second label. A feature counts by its inverse document
    frequency, so that what stands everywhere has to pay for its weight.

    >>> good = np.array([1, 0], np.float32)
    >>> found = fit_linear(np.array([0, 1]), np.array([0, 1, 2]), np.ones(2, np.float32), good, 2)
    >>> found.weights[0] > 0 > found.weights[1]
    np.True_
    """
    from scipy.optimize import minimize
    from scipy.sparse import csr_matrix

    n_texts = len(starts) - 1
    inverse = 1 + np.log((1 + n_texts) / (1 + np.bincount(rows, minlength=n_features)))
    table = csr_matrix((weights * inverse[rows], rows, starts), (n_texts, n_features))
    turned = table.T.tocsr()  # (F, N)
    signs = 2.0 * second - 1

    def loss_and_gradient(found: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        w, bias = found[:-1], found[-1]
        margins = signs * (table @ w + bias)
        loss = np.logaddexp(0, -margins).sum() + w @ w / (2 * STRENGTH)
        slopes = -signs / (1 + np.exp(np.clip(margins, -500, 500)))
        return loss, np.append(turned @ slopes + w / STRENGTH, slopes.sum())

    options = {"maxiter": ITERATIONS, "maxcor": CORRECTIONS}
    found = minimize(
        loss_and_gradient, np.zeros(n_features + 1), jac=True, method="L-BFGS-B", options=options
    ).x
    return Linear((found[:-1] * inverse).astype(np.float32), float(found[-1]))
