"""Put labels beside points so that none covers another: greedy, the first words first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

# Where a label may stand, as shares of its width and height from the point to its middle: right,
# left, above, below, then the corners; then the same a little farther away.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_RINGS = (1.0, 2.0, 3.5, 5.0)


_STEP = 4.0  # between points that stand for a line, less than a label is high


def place_labels(
    points: NDArray[np.float64],
    sizes: NDArray[np.float64],
    bounds: tuple[float, float, float, float],
    gap: float,
    *,
    lines: NDArray[np.float64] | None = None,
    taken: Sequence[tuple[float, float, float, float]] = (),
) -> list[tuple[float, float] | None]:
    """The middle of each label, or nothing where no place was free.

    ``points`` (N, 2) and label ``sizes`` (N, 2) are in the same unit, say pixels. A label keeps
    ``gap`` from its point, covers no other label and no other point, stays within ``bounds`` (left,
    bottom, right, top) and out of the boxes that are ``taken``. It covers none of the ``lines``
    (M, 2, 2), from point to point, either, unless there is no room beside them.

    >>> place_labels(np.array([[50.0, 50.0]]), np.array([[20.0, 10.0]]), (0, 0, 100, 100), 2)
    [(62.0, 50.0)]
    """
    left, bottom, right, top = bounds
    boxes = np.array(taken, dtype=float).reshape(-1, 4)  # and of the labels placed so far
    avoided = [points]
    if lines is not None and len(lines):
        avoided.insert(0, np.vstack([points, *(_along(start, end) for start, end in lines)]))
    placed: list[tuple[float, float] | None] = []
    for point, size in zip(points, sizes, strict=True):
        choice = None
        for marks, middle in itertools.product(avoided, _middles(point, size, gap)):
            box = np.concatenate([middle - size / 2, middle + size / 2])
            inside = box[0] >= left and box[1] >= bottom and box[2] <= right and box[3] <= top
            if inside and not _covers(box, boxes, marks):
                choice = (float(middle[0]), float(middle[1]))
                boxes = np.vstack([boxes, box])
                break
        placed.append(choice)
    return placed


def _middles(
    point: NDArray[np.float64], size: NDArray[np.float64], gap: float
) -> Iterator[NDArray[np.float64]]:
    """Where the middle of a label may be, the best place first."""
    for ring in _RINGS:
        for side in _SIDES:
            yield point + np.array(side) * (size / 2 + gap * ring)


def _along(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points on a line, close to each other, without its ends."""
    count = int(np.hypot(*(end - start)) / _STEP)
    return start + (end - start) * np.linspace(0, 1, count + 2)[1:-1, None]


def _covers(
    box: NDArray[np.float64], boxes: NDArray[np.float64], points: NDArray[np.float64]
) -> bool:
    on_label = (
        (boxes[:, 0] < box[2])
        & (boxes[:, 2] > box[0])
        & (boxes[:, 1] < box[3])
        & (boxes[:, 3] > box[1])
    )
    on_point = (points > box[:2]).all(axis=1) & (points < box[2:]).all(axis=1)
    return bool(on_label.any() or on_point.any())
