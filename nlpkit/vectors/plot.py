"""Draw words in a plane: to a picture file by matplotlib, or roughly as text for a terminal."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.plots import check_picture, figure, save_figure
from nlpkit.vectors.labels import place_labels
from nlpkit.vectors.marks import COLOURS, group_numbers

_GAP = 4.0  # points between a dot and its label
_MARGIN = 2.0  # points between a label and the frame
_INK, _DOT, _FAINT = "#1f2430", "#2a78c2", "#b5bac4"


def draw(
    words: Sequence[str],
    points: NDArray[np.float64],
    path: str,
    *,
    title: str = "",
    axis_names: Sequence[str] = (),
    groups: dict[str, str] | None = None,
    relations: Sequence[tuple[str, str]] = (),
) -> int:
    """Write a ``.png``, ``.svg`` or ``.pdf``; returns how many labels found no room.

    Words come by importance: when it gets crowded the first ones keep their labels. The picture
    grows with the number of words. ``groups`` give words colours, ``relations`` become arrows.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    check_picture(path)
    side = float(np.clip(3 + 0.55 * np.sqrt(len(words)), 6, 24))
    drawn, axes = figure(side * 1.25, side)
    # nothing is outside the axes, so there is no layout to find, which takes long with many texts
    drawn.set_layout_engine("none")
    axes.set_position((0.06, 0.07, 0.92, 0.86) if axis_names or title else (0, 0, 1, 1))
    _mark(axes, words, points, groups or {}, relations)
    axes.set_title(title, parse_math=False)
    if axis_names:
        axes.set_xlabel(axis_names[0])
        axes.set_ylabel(axis_names[1])
        axes.set_xticks([])
        axes.set_yticks([])
    else:
        axes.set_axis_off()
    reach_x, reach_y = 1.1 * np.abs(points).max(axis=0, initial=0.01)
    axes.set_xlim(-reach_x, reach_x)
    axes.set_ylim(-reach_y, reach_y)
    texts = [
        axes.annotate(
            word,
            point,
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=9,
            color=_INK,
            ha="center",
            va="center_baseline",
            parse_math=False,  # a word with two $ is no formula
        )
        for word, point in zip(words, points.tolist(), strict=True)
    ]
    with warnings.catch_warnings():
        # a letter that the font lacks is drawn as a box, and not worth a line each
        warnings.simplefilter("ignore", UserWarning)
        renderer = FigureCanvasAgg(drawn).get_renderer()
        pixels_per_point = drawn.dpi / 72
        extents = [text.get_window_extent(renderer) for text in texts]
        sizes = np.array([[each.width, each.height] for each in extents]) / pixels_per_point
        anchors = axes.transData.transform(points) / pixels_per_point
        box = axes.get_window_extent().padded(-_MARGIN * pixels_per_point)
        bounds = tuple(np.array([box.x0, box.y0, box.x1, box.y1]) / pixels_per_point)
        legend = axes.get_legend()
        taken = [legend.get_window_extent(renderer).extents / pixels_per_point] if legend else []
        lines = anchors[_ends(words, relations)]
        placed = place_labels(anchors, sizes, bounds, _GAP, lines=lines, taken=taken)
        for text, anchor, place in zip(texts, anchors, placed, strict=True):
            if place is None:
                text.remove()
                continue
            offset = np.array(place) - anchor
            text.set_position(tuple(offset))
        _lead(axes, anchors, placed, sizes, pixels_per_point)
        save_figure(drawn, path)
    return sum(place is None for place in placed)


def _lead(
    axes: Any,
    anchors: NDArray[np.float64],
    placed: Sequence[tuple[float, float] | None],
    sizes: NDArray[np.float64],
    scale: float,
) -> None:
    """A thin line from a dot to its label where that does not stand beside it."""
    from matplotlib.collections import LineCollection

    lines = []
    for anchor, place, size in zip(anchors, placed, sizes, strict=True):
        if place is not None:
            end = np.clip(anchor, place - size / 2, place + size / 2)  # the near edge of the label
            if np.hypot(*(end - anchor)) > 2 * _GAP:
                lines.append(axes.transData.inverted().transform(np.array([anchor, end]) * scale))
    axes.add_collection(
        LineCollection(lines, colors=_FAINT, linewidths=0.6, zorder=0), autolim=False
    )


def _mark(
    axes: Any,
    words: Sequence[str],
    points: NDArray[np.float64],
    groups: dict[str, str],
    relations: Sequence[tuple[str, str]],
) -> None:
    """Dots in the colours of their groups, with a legend, and an arrow for each pair."""
    names, numbers = group_numbers(words, groups)
    for number, name in enumerate([*names, ""]):
        chosen = [i for i, group in enumerate(numbers) if group == (number if name else -1)]
        colour = COLOURS[number % len(COLOURS)] if name else (_FAINT if names else _DOT)
        where = points[chosen]
        axes.scatter(where[:, 0], where[:, 1], s=18, color=colour, linewidths=0, label=name or None)
    if names:
        axes.legend(loc="best", fontsize=8, framealpha=0.8)
    for start, end in points[_ends(words, relations)].tolist():
        arrow = {"arrowstyle": "->", "color": _INK, "alpha": 0.55, "shrinkA": 3, "shrinkB": 3}
        axes.annotate("", xy=end, xytext=start, arrowprops=arrow)


def _ends(words: Sequence[str], relations: Sequence[tuple[str, str]]) -> NDArray[np.int64]:
    """Rows (M, 2) of the words of each pair that is drawn."""
    rows = {word: row for row, word in enumerate(words)}
    known = [(rows[a], rows[b]) for a, b in relations if a in rows and b in rows]
    return np.array(known, dtype=np.int64).reshape(-1, 2)


def terminal_view(
    words: Sequence[str], points: NDArray[np.float64], *, width: int = 79, height: int = 24
) -> str:
    """A rough picture made of characters: ``•word`` where there is room, else ``·``.

    >>> print(terminal_view(["a", "b"], np.array([[-1.0, 1.0], [1.0, -1.0]]), width=9, height=2))
    •a
           b•
    """
    grid = [[" "] * width for _ in range(height)]
    columns = np.rint((points[:, 0] + 1) / 2 * (width - 1)).astype(int).tolist()
    rows = np.rint((1 - points[:, 1]) / 2 * (height - 1)).astype(int).tolist()
    for word, row, column in zip(words, rows, columns, strict=True):
        # to the right or to the left of its place; else one line or two farther up or down
        places = [
            (grid[near], start, text)
            for near in (row, row - 1, row + 1, row - 2, row + 2)
            if 0 <= near < height
            for start, text in ((column, f"•{word}"), (column - len(word), f"{word}•"))
            if start >= 0 and start + len(text) <= width
        ]
        for line, start, text in places:
            # one cell more on both sides keeps two labels apart
            if not "".join(line[max(start - 1, 0) : start + len(text) + 1]).strip():
                line[start : start + len(text)] = text
                break
        else:
            if grid[row][column] == " ":
                grid[row][column] = "·"
    return "\n".join("".join(line).rstrip() for line in grid)
