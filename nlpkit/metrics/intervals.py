"""The few statistics an evaluation needs: intervals, correlations, paired tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

Z_95 = 1.959964  # 95 % of a normal distribution is within this many standard deviations


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share; unlike share +- error it never leaves 0..1.

    >>> [round(edge, 3) for edge in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    from scipy.stats import binomtest

    if trials == 0:
        return 0.0, 1.0
    low, high = binomtest(successes, trials).proportion_ci(method="wilson")
    return float(low), float(high)


def pearson(left: Numbers, right: Numbers) -> float:
    """Linear correlation; NaN when either side is constant.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    1.0
    """
    left, right = left - left.mean(), right - right.mean()
    scale = math.sqrt(float(left @ left) * float(right @ right))
    return max(-1.0, min(1.0, float(left @ right) / scale)) if scale else math.nan


def spearman(left: Numbers, right: Numbers) -> float:
    """Correlation of ranks; equal values share the mean of theirs.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0]))
    1.0
    """
    from scipy.stats import rankdata

    return pearson(rankdata(left), rankdata(right))


def spearman_interval(correlation: float, n: int) -> tuple[float, float]:
    """The 95 % interval by Fisher's z with Bonett and Wright's (2000) error for ranks.

    >>> [round(edge, 3) for edge in spearman_interval(0.5, 100)]
    [0.326, 0.641]
    """
    if n <= 3 or math.isnan(correlation):
        return -1.0, 1.0  # nothing is known
    if abs(correlation) == 1:
        return correlation, correlation
    error = math.sqrt((1 + correlation**2 / 2) / (n - 3))
    z = math.atanh(correlation)
    return math.tanh(z - Z_95 * error), math.tanh(z + Z_95 * error)


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p: how likely so uneven a split of the disagreements is by a fair coin.

    >>> round(mcnemar(1, 9), 6)
    0.021484
    """
    from scipy.stats import binomtest

    total = only_first + only_second
    return float(binomtest(only_first, total).pvalue) if total else 1.0


class BootstrapResult(NamedTuple):
    """A difference, its 95 % interval, and how surprising it would be between equals."""

    difference: float
    low: float
    high: float
    p: float


def paired_bootstrap(
    statistic: Callable[[Numbers, Numbers], float],
    gold: Numbers,
    first: Numbers,
    second: Numbers,
    *,
    seed: int = 1,
    samples: int = 2000,
) -> BootstrapResult:
    """``statistic(gold, first) - statistic(gold, second)`` over resampled items.

    The p value is twice the share of samples on the other side of zero, at least 1 in ``samples``.
    """
    generator = np.random.default_rng(seed)
    differences = np.empty(samples)
    for index in range(samples):
        items = generator.integers(0, len(gold), len(gold))
        differences[index] = statistic(gold[items], first[items]) - statistic(
            gold[items], second[items]
        )
    differences = differences[np.isfinite(differences)]
    observed = statistic(gold, first) - statistic(gold, second)
    if not len(differences):
        return BootstrapResult(observed, math.nan, math.nan, math.nan)
    low, high = np.percentile(differences, [2.5, 97.5])
    beyond = min(np.mean(differences <= 0), np.mean(differences >= 0))
    p = min(1.0, max(2 * float(beyond), 1 / samples))
    return BootstrapResult(observed, float(low), float(high), p)
