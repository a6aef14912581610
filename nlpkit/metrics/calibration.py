"""Whether a model is as sure as it is right: decisions in bins by their probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 10


class Bin(NamedTuple):
    """Decisions of like confidence: how many, how sure on average, how often right."""

    decisions: int
    confidence: float
    accuracy: float


def calibration(sure: NDArray[Any], right: NDArray[np.bool_]) -> list[Bin]:
    """Decisions by their probability, in bins of equal width, those without any left out.

    >>> calibration(np.array([0.91, 0.97, 0.55]), np.array([True, False, True]))[-1].decisions
    2
    """
    places = np.minimum((sure * BINS).astype(int), BINS - 1)
    return [
        Bin(int(chosen.sum()), float(sure[chosen].mean()), float(right[chosen].mean()))
        for chosen in (places == place for place in range(BINS))
        if chosen.any()
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """The mean gap between how sure and how right, weighted by number (ECE).

    >>> calibration_error([Bin(1, 0.5, 1.0), Bin(3, 0.9, 0.9)])
    0.125
    """
    total = sum(part.decisions for part in bins)
    gaps = sum(part.decisions * abs(part.confidence - part.accuracy) for part in bins)
    return gaps / total if total else 0.0
