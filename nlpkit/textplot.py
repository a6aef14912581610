"""Small plots made of characters, for terminals: braille dots, two by four to a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # by column, then row from the top
_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """A curve on one line, scaled from its lowest to its highest value.

    >>> sparkline([3, 2, 1, 1])
    '█▅▁▁'
    """
    values = [value for value in values if math.isfinite(value)]
    if not values:
        return ""
    if len(values) > width:
        values = [values[int(i * len(values) / width)] for i in range(width)]
    low, high = min(values), max(values)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in values)


def labelled_sparkline(values: Sequence[float], digits: int = 4) -> str:
    """A curve on one line between its first and its last value.

    >>> labelled_sparkline([3, 2, 1, 1.5], 1)
    '3.0 █▅▁▃ 1.5'
    """
    if not values:
        return ""
    return f"{values[0]:.{digits}f} {sparkline(values)} {values[-1]:.{digits}f}"


def plot(
    xs: Sequence[float], ys: Sequence[float], *, width: int = 60, height: int = 12, label: str = ""
) -> str:
    """Points as lines of text, with the range of each axis; NaN and infinity are left out.

    >>> print(plot([0, 1, 2, 3], [0, 1, 2, 3], width=2, height=1))
    3 ┤⡠⠊
      └──
       0  3
    """
    points = [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(x) and math.isfinite(y)]
    if not points:
        return "(nothing to plot)"
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)
    cells = [[0] * width for _ in range(height)]
    for x, y in points:
        column = _scale(x, left, right, 2 * width - 1)
        row = 4 * height - 1 - _scale(y, low, high, 4 * height - 1)
        cells[row // 4][column // 2] |= _DOTS[column % 2][row % 4]
    lines = ["".join(chr(0x2800 + cell) if cell else " " for cell in row) for row in cells]
    marks = [f"{high:.4g}", *[""] * (height - 2), f"{low:.4g}"] if height > 1 else [f"{high:.4g}"]
    margin = max(map(len, marks))
    drawn = [f"{mark:>{margin}} ┤{line}".rstrip() for mark, line in zip(marks, lines, strict=True)]
    start, end = f"{left:.4g}", f"{right:.4g}"
    gap = max(width - len(start) - len(end), 2)
    bottom = [" " * margin + " └" + "─" * width, " " * (margin + 2) + start + " " * gap + end]
    return "\n".join(([label] if label else []) + drawn + bottom)


def _scale(value: float, low: float, high: float, steps: int) -> int:
    return round((value - low) / (high - low) * steps) if high > low else steps // 2
