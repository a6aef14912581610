"""Alignments to look at: a heat map of characters, pictures, a page, and Pharaoh's format."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from nlpkit.plots import hover_cells, label, save_figure

_SHADES = " ░▒▓█"
_CELL = 2  # columns of a terminal for a source token
Rows = Sequence[Sequence[float]]  # for each target token, weights of the source tokens


def pharaoh(weights: Rows, ends: bool = True) -> str:
    """Pairs of source and target token, from 0, as Pharaoh and Moses write them.

    Each target token goes with the source token it looks at most. With ``ends`` the last token of
    each side is the mark of its end, which is left out.

    >>> pharaoh([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])
    '0-0 1-1'
    """
    rows = [row[:-1] for row in weights[:-1]] if ends else weights
    pairs = [
        (max(range(len(row)), key=row.__getitem__), place) for place, row in enumerate(rows) if row
    ]
    return " ".join(f"{source}-{target}" for source, target in sorted(pairs))


def width(text: str) -> int:
    """Columns that a text takes in a terminal.

    >>> width("añ"), width("東")
    (2, 2)
    """
    wide = (2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return sum(0 if unicodedata.combining(c) else w for c, w in zip(text, wide, strict=True))


def heat_map(source: Sequence[str], target: Sequence[str], weights: Rows) -> str:
    """A row for each target token, two cells for each source token, darker for more weight.

    >>> print(heat_map(["a", "b"], ["x"], [[1.0, 0.0]]))
      a b
    x ██
    """
    margin = max(map(width, target), default=0) + 1
    tall = max(map(len, source), default=0)
    lines = []
    for place in range(tall):  # source tokens stand upright, their ends at the bottom
        column = [
            token[place - tall + len(token)] if place >= tall - len(token) else " "
            for token in source
        ]
        lines.append(
            (" " * margin + "".join(c + " " * (_CELL - width(c)) for c in column)).rstrip()
        )
    for token, row in zip(target, weights, strict=True):
        shades = (_SHADES[round(value * (len(_SHADES) - 1))] * _CELL for value in row)
        lines.append((token + " " * (margin - width(token)) + "".join(shades)).rstrip())
    return "\n".join(lines)


def draw_alignment(source: Sequence[str], target: Sequence[str], weights: Rows, path: str) -> None:
    """The heat map as a picture or, for a name that ends in .html, a page."""
    from matplotlib.figure import Figure

    drawn = Figure(
        figsize=(1.5 + 0.35 * len(source), 1.5 + 0.3 * len(target)), layout="constrained"
    )
    axes = drawn.subplots()
    axes.imshow(weights, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for set_ticks, tokens, turn in (
        (axes.set_xticks, source, 90),
        (axes.set_yticks, target, 0),
    ):
        labels = list(map(label, tokens))
        set_ticks(range(len(tokens)), labels, rotation=turn, fontsize=9)
    axes.xaxis.tick_top()
    hover_cells(axes, target, source, weights)
    save_figure(drawn, path)
