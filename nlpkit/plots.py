"""PNG and SVG files by matplotlib, without a screen and without touching its global state.

Every figure can be an HTML page as well, which shows notes on its marks under the pointer.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from typing import Any

from nlpkit import textio
from nlpkit.errors import NlpkitError

PAGE = ".html"
FORMATS = (".png", ".svg", ".pdf", PAGE)


def check_picture(path: str | None) -> None:
    """Refuse a name whose ending is no picture format, before the work is done; None is none."""
    if path is None:
        return
    if not path.lower().endswith(FORMATS):
        raise NlpkitError(
            f"cannot draw to {path}", hint=f"a name that ends in {', '.join(FORMATS)}"
        )
    textio.check_writable(path)


def figure(width: float = 7.0, height: float = 5.0) -> tuple[Any, Any]:
    """A new figure and its axes."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn, drawn.subplots()


def panels(widths: Sequence[float], height: float) -> tuple[Any, list[Any]]:
    """A new figure with axes of these widths side by side."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(sum(widths), height), layout="constrained")
    grid = drawn.subplots(1, len(widths), squeeze=False, width_ratios=list(widths))
    return drawn, list(grid[0])


def label(text: str) -> str:
    """A text from a file as matplotlib can draw it: no formula, no control characters.

    >>> label("$1 and $2\\x1b")
    '\\\\$1 and \\\\$2\\\\x1b'
    """
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return shown.replace("$", "\\$")


def hover(marks: Any, notes: Sequence[str]) -> None:
    """What a page shows under the pointer at each mark: dots, cells of a mesh, or bars."""
    if isinstance(marks, tuple):
        for bar, note in zip(marks, notes, strict=True):
            bar.hover_notes = [note]
    else:
        marks.hover_notes = notes


def hover_points(axes: Any, points: Sequence[tuple[float, float]], notes: Sequence[str]) -> None:
    """The same for the points of a line, at which there is nothing else to see."""
    hover(axes.scatter(*zip(*points, strict=True), s=30, alpha=0.0), notes)


def hover_cells(
    axes: Any, rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]
) -> None:
    """The same for the cells of an image, which is one mark: row, column and value of each."""
    if not rows or not columns:
        return
    sides = ([place - 0.5 for place in range(len(side) + 1)] for side in (columns, rows))
    cells = axes.pcolormesh(*sides, [[0.0] * len(columns)] * len(rows), alpha=0.0)
    notes = [
        f"{row} → {column}: {value if isinstance(value, int) else format(value, '.3f')}"
        for row, shown in zip(rows, values, strict=True)
        for column, value in zip(columns, shown, strict=True)
    ]
    hover(cells, notes)


def save_figure(drawn: Any, path: str, dpi: int = 150) -> None:
    """Write a figure atomically, in the format its name asks for; the same data, the same bytes."""
    check_picture(path)
    from matplotlib import rc_context

    kind = os.path.splitext(path)[1].lower()
    with warnings.catch_warnings(), rc_context({"svg.hashsalt": "nlpkit"}):
        # a letter that the font lacks is drawn as a box, and not worth a line each
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        if kind == PAGE:
            textio.write_text(path, _page(drawn, os.path.basename(path)))
            return
        with textio.atomic_writer(path) as out:
            metadata = {"Date": None} if kind == ".svg" else None
            drawn.savefig(out, format=kind[1:], dpi=dpi, metadata=metadata)


def _page(drawn: Any, name: str) -> str:
    from matplotlib import rc_context

    from nlpkit.hoverpage import figure_page

    notes = {}
    for number, artist in enumerate(drawn.findobj(lambda one: hasattr(one, "hover_notes"))):
        artist.set_gid(f"noted-{number}")
        notes[f"noted-{number}"] = artist.hover_notes
    with rc_context({"svg.fonttype": "none"}), io.StringIO() as out:
        drawn.savefig(out, format="svg", metadata={"Date": None})
        return figure_page(name, out.getvalue(), notes)


def plot_losses(axes: Any, curves: dict[str, list[dict[str, Any]]]) -> None:
    """Training curves of one or several models: the losses by step, one axis for all.

    A curve is the records of a training, each with a step or an epoch and losses.
    """
    shown = 0
    unit = "record"
    for curve, (name, records) in enumerate(curves.items()):
        for key, label in (("loss", "training"), ("heldout_loss", "held out")):
            points = [
                (record.get("step", record.get("epoch", number)), record[key])
                for number, record in enumerate(records)
                if isinstance(record.get(key), int | float)
            ]
            if len(points) > 1:
                unit = next((one for one in ("step", "epoch") if one in records[0]), unit)
                title = f"{name}, {label}" if len(curves) > 1 else label
                style = "-" if key == "loss" else "--"
                colour = f"C{curve if len(curves) > 1 else shown}"  # the two of a model are alike
                axes.plot(*zip(*points, strict=True), style, color=colour, label=title)
                hover_points(axes, points, [f"{title}, {unit} {x}: {y:.4f}" for x, y in points])
                shown += 1
    if not shown:
        names = ", ".join(curves)
        raise NlpkitError(f"no training curve in {names}", hint="a model that nlpkit has trained")
    axes.set_xlabel(unit)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("loss")
    axes.grid(alpha=0.3)
    axes.legend()
