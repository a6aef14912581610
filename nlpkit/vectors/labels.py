"""Put labels beside points so that none covers another: greedy, the first words first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Where a label may stand, as shares of its width and height from the point to its middle: right,
# left, above, below, then the corners; then the same a little farther away.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_RINGS = (1.0, 2.0, 3.5, 5.0)


def place_labels(
    points: NDArray[np.float64],
    sizes: NDArray[np.float64],
    bounds: tuple[float, float, float, float],
    gap: float,
) -> list[tuple[float, float] | None]:
    """The middle of each label, or nothing where no place was free.

    ``points`` (N, 2) and label ``sizes`` (N, 2) are in the same unit, say pixels. A label keeps
    ``gap`` from its point, covers no other label and no other point, and stays within ``bounds``
    (left, bottom, right, top).

    >>> place_labels(np.array([[50.0, 50.0]]), np.array([[20.0, 10.0]]), (0, 0, 100, 100), 2)
    [(62.0, 50.0)]
    """
    left, bottom, right, top = bounds
    boxes = np.empty((0, 4))  # of the labels placed so far
    placed: list[tuple[float, float] | None] = []
    for (x, y), (width, height) in zip(points.tolist(), sizes.tolist(), strict=True):
        choice = None
        for ring in _RINGS:
            for side_x, side_y in _SIDES:
                middle_x = x + side_x * (width / 2 + gap * ring)
                middle_y = y + side_y * (height / 2 + gap * ring)
                box = np.array(
                    [
                        middle_x - width / 2,
                        middle_y - height / 2,
                        middle_x + width / 2,
                        middle_y + height / 2,
                    ]
                )
                inside = box[0] >= left and box[1] >= bottom and box[2] <= right and box[3] <= top
                if inside and not _covers(box, boxes, points):
                    choice = (middle_x, middle_y)
                    boxes = np.vstack([boxes, box])
                    break
            if choice is not None:
                break
        placed.append(choice)
    return placed


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
