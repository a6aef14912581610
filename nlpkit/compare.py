"""What a model thinks likelier in one sentence than in another: the words that could fill a blank.

    In Texas they like to buy _      against      In New York they like to buy _

A model gives the log-probability of every candidate in both; here they are ranked and drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nlpkit.errors import NlpkitError

BLANK = "_"
_NAMED = 5  # tokens that a picture names at one point


@dataclass(frozen=True)
class Compared:
    """A candidate and its log-probability in both sentences."""

    token: str
    first: float
    second: float

    @property
    def difference(self) -> float:
        """By how much it is likelier in the first, in nats."""
        return self.first - self.second


def split_blank(text: str, *, at_end: bool) -> tuple[str, str]:
    """What stands before and behind the blank, of which there is one.

    >>> split_blank("They like to buy _.", at_end=False)
    ('They like to buy ', '.')
    """
    count = text.count(BLANK)
    if count != 1:
        what = "no blank" if not count else f"{count} blanks"
        raise NlpkitError(f"{what} in {text!r}", hint=f"one {BLANK} where a word is to stand")
    before, after = text.split(BLANK)
    if at_end and after.strip():
        raise NlpkitError(
            f"the blank of {text!r} is not at the end",
            hint="this model reads from left to right: end with the blank",
        )
    return before, after


def compare(
    tokens: Sequence[str],
    first: np.ndarray,
    second: np.ndarray,
    count: int | None = 30,
) -> list[Compared]:
    """The ``count`` candidates that are likeliest in either sentence (None: all of them), those
    that the first one favours most at the top.

    >>> logs = np.log([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
    >>> [row.token for row in compare(["a", "b", "c"], logs[0], logs[1], count=2)]
    ['a', 'c']
    """
    best = np.maximum(first, second)
    chosen = np.argsort(-best, kind="stable")[: len(tokens) if count is None else count]
    rows = [Compared(tokens[i], float(first[i]), float(second[i])) for i in chosen.tolist()]
    return sorted(rows, key=lambda row: -row.difference)


def scatter_text(
    rows: Sequence[Compared], titles: tuple[str, str], width: int = 79, height: int = 24
) -> str:
    """The scatter plot for a terminal: to the right likelier in the first, up in the second."""
    from nlpkit.vectors.plot import terminal_view

    points = _points(rows)
    middle = (points.max(axis=0) + points.min(axis=0)) / 2 if len(points) else 0.0
    centred = (points - middle) / max(float(np.abs(points - middle).max(initial=0.0)), 1e-9)
    labels = [row.token.strip() or repr(row.token) for row in rows]
    drawn = terminal_view(labels, centred, width=width, height=height)
    return f"{drawn}\nto the right: likelier in {titles[0]!r}; up: in {titles[1]!r}"


def draw_scatter(rows: Sequence[Compared], titles: tuple[str, str], path: str) -> None:
    """The scatter plot as a picture, or as a page to hover over when the name ends in .html."""
    from nlpkit.plots import figure, hover, save_figure

    drawn, axes = figure(7, 7)
    points = _points(rows)
    dots = axes.scatter(points[:, 0], points[:, 1], s=12, color="#2a78c2")
    hover(
        dots,
        [
            f"{row.token!r}: {math.exp(row.first):.3%} and {math.exp(row.second):.3%}"
            for row in rows
        ],
    )
    low, high = points.min(), points.max()
    axes.plot([low, high], [low, high], color="#d9dce2", zorder=0)
    for label, point in _labels(rows, points):
        axes.annotate(
            label,
            point,
            fontsize=7,
            parse_math=False,
            xytext=(3, 2),
            textcoords="offset points",
        )
    axes.set_xlabel(f"log10 P: {titles[0]}", parse_math=False)
    axes.set_ylabel(f"log10 P: {titles[1]}", parse_math=False)
    save_figure(drawn, path)


def _labels(rows: Sequence[Compared], points: np.ndarray) -> list[tuple[str, list[float]]]:
    """What to write at which point; tokens at nearly the same one are named together.

    >>> rows = [Compared("a", -1.0, -2.0), Compared("b", -1.0, -2.0), Compared("c", -5.0, -2.0)]
    >>> [label for label, _ in _labels(rows, _points(rows))]
    ['a, b', 'c']
    """
    grid = max(float(np.ptp(points, axis=0).max()), 1e-9) / 60  # about the height of a letter
    together: dict[tuple[int, ...], list[int]] = {}
    for number, cell in enumerate(np.round(points / grid).astype(int).tolist()):
        together.setdefault(tuple(cell), []).append(number)
    found = []
    for numbers in together.values():
        names = [rows[number].token.strip() or repr(rows[number].token) for number in numbers]
        more = ", ..." if len(names) > _NAMED else ""
        found.append((", ".join(names[:_NAMED]) + more, points[numbers[0]].tolist()))
    return found


def _points(rows: Sequence[Compared]) -> np.ndarray:
    """Decimal logarithms of both probabilities (N, 2)."""
    return np.array([[row.first, row.second] for row in rows]).reshape(-1, 2) / math.log(10)
