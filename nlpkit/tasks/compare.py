"""What a language model holds likelier in one text than in another: likelihoods side by side.

It takes the probabilities of all words in two places, from whatever model, chooses the words that
matter and gives them as rows, as a scatter plot (a picture or a page that asks nothing of the
network) and as text for a terminal. In the plot a word stands at its likelihood in the first text
(across) and in the second (up), both on logarithmic scales: what lies off the diagonal is what the
model has learned about the difference between the texts.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from nlpkit.vectors.page import embed_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SMALLEST = 1e-12  # probabilities below this are drawn as this
_INK, _FIRST, _SECOND = "#1f2430", "#2a78c2", "#c4541c"


@dataclass(frozen=True)
class Compared:
    """A word and how likely it is in each of the two texts."""

    word: str
    first: float
    second: float

    @property
    def difference(self) -> float:
        """By how much it is likelier in the first."""
        return self.first - self.second

    @property
    def log_ratio(self) -> float:
        """log2 of how many times likelier it is in the first."""
        return math.log2(max(self.first, _SMALLEST) / max(self.second, _SMALLEST))


def compare(
    words: Sequence[str],
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    count: int = 30,
) -> list[Compared]:
    """The ``count`` words that are likeliest in either text (0: all), by their difference.

    >>> rows = compare(["a", "b", "c"], np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.3, 0.6]), 2)
    >>> [(row.word, round(row.difference, 1)) for row in rows]
    [('a', 0.6), ('c', -0.5)]
    """
    likeliest = np.argsort(-np.maximum(first, second), kind="stable")
    chosen = likeliest[: count or None]
    rows = [Compared(words[i], float(first[i]), float(second[i])) for i in chosen.tolist()]
    return sorted(rows, key=lambda row: -row.difference)


def draw_comparison(rows: Sequence[Compared], titles: tuple[str, str], path: str) -> None:
    """A scatter plot as ``.png``, ``.svg`` or ``.pdf``."""
    import warnings

    from nlpkit.plots import figure, save_figure

    drawn, axes = figure(8.0, 7.5)
    low, high = _limits(rows)
    axes.plot([low, high], [low, high], color="#b9bec8", linewidth=0.8, zorder=1)
    colours = [_FIRST if row.difference > 0 else _SECOND for row in rows]
    across, up = ([max(value, _SMALLEST) for value in side] for side in _sides(rows))
    axes.scatter(across, up, s=10, color=colours, linewidths=0, zorder=2)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    axes.set_xlabel(titles[0], color=_FIRST, parse_math=False)
    axes.set_ylabel(titles[1], color=_SECOND, parse_math=False)
    for row, x, y in _labelled(rows, across, up):
        axes.annotate(
            row.word,
            (x, y),
            xytext=(3, 2),
            textcoords="offset points",
            fontsize=8,
            color=_INK,
            parse_math=False,  # a word with two $ is no formula
        )
    with warnings.catch_warnings():
        # a letter that the font lacks is drawn as a box, and not worth a line each
        warnings.simplefilter("ignore", UserWarning)
        save_figure(drawn, path)


def comparison_page(rows: Sequence[Compared], titles: tuple[str, str]) -> str:
    """A self-contained page: the plot to hover over and the table beside it."""
    low, high = _limits(rows)
    data = {
        "titles": list(titles),
        "limits": [math.log10(low), math.log10(high)],
        "rows": [[row.word, _log10(row.first), _log10(row.second)] for row in rows],
    }
    template = resources.files("nlpkit.tasks").joinpath("compare.html").read_text(encoding="utf-8")
    before, after = template.split("{{data}}")
    title = html.escape(f"{titles[0]} / {titles[1]}")
    return before.replace("{{title}}", title) + embed_json(data) + after


def terminal_comparison(
    rows: Sequence[Compared], titles: tuple[str, str], width: int = 79, height: int = 24
) -> str:
    """The plot as text: words where there is room, else dots.

    >>> rows = [Compared("tea", 0.5, 0.01), Compared("gin", 0.01, 0.5)]
    >>> print(terminal_comparison(rows, ("one", "two"), width=12, height=2))
    ↑ two
    •gin
            tea•
    → one
    """
    from nlpkit.vectors.plot import terminal_view

    points = np.array([[_log10(row.first), _log10(row.second)] for row in rows]).reshape(-1, 2)
    low, high = points.min(initial=0.0), points.max(initial=-99.0)
    placed = 2 * (points - low) / max(high - low, 1e-9) - 1  # both axes alike, from -1 to 1
    words = sorted(range(len(rows)), key=lambda i: -abs(rows[i].log_ratio))
    picture = terminal_view(
        [rows[i].word for i in words], placed[words], width=width, height=height
    )
    return f"↑ {titles[1]}\n{picture}\n→ {titles[0]}"


def _sides(rows: Sequence[Compared]) -> tuple[list[float], list[float]]:
    return [row.first for row in rows], [row.second for row in rows]


def _log10(probability: float) -> float:
    return round(math.log10(max(probability, _SMALLEST)), 5)


def _limits(rows: Sequence[Compared]) -> tuple[float, float]:
    """From where to where both axes go."""
    values = [max(value, _SMALLEST) for side in _sides(rows) for value in side] or [0.5]
    return min(values) / 1.5, min(1.0, max(values) * 2.0)


def _labelled(
    rows: Sequence[Compared], across: list[float], up: list[float]
) -> list[tuple[Compared, float, float]]:
    """Points whose labels keep off each other, those furthest from the diagonal first."""
    order = sorted(range(len(rows)), key=lambda i: -abs(rows[i].log_ratio))
    low, high = _limits(rows)
    scale = math.log(high / low) or 1.0
    taken: list[tuple[float, float]] = []
    found = []
    for i in order:
        x, y = (math.log(value / low) / scale for value in (across[i], up[i]))
        room = 0.012 * len(rows[i].word) + 0.02
        if all(abs(x - a) > room or abs(y - b) > 0.02 for a, b in taken):
            taken.append((x, y))
            found.append((rows[i], across[i], up[i]))
    return found
