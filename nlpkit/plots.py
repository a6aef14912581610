"""PNG and SVG files by matplotlib, without a screen and without touching its global state."""

from __future__ import annotations

import os
from typing import Any

from nlpkit import textio
from nlpkit.errors import NlpkitError

FORMATS = (".png", ".svg", ".pdf")


def check_picture(path: str) -> None:
    """Refuse a name whose ending is no picture format, before the work is done."""
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


def save_figure(drawn: Any, path: str, dpi: int = 150) -> None:
    """Write a figure atomically, in the format its name asks for; the same data, the same bytes."""
    check_picture(path)
    from matplotlib import rc_context

    kind = os.path.splitext(path)[1][1:].lower()
    with rc_context({"svg.hashsalt": "nlpkit"}), textio.atomic_writer(path) as out:
        metadata = {"Date": None} if kind == "svg" else None
        drawn.savefig(out, format=kind, dpi=dpi, metadata=metadata)
