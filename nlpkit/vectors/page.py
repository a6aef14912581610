"""A self-contained interactive page: words in space to turn, zoom, search and hover over.

The page is ``plot.html`` with the data put in as JSON. It asks nothing of the network.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from nlpkit.vectors.marks import COLOURS, group_numbers
from nlpkit.vectors.store import Neighbour

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TITLE = "{{title}}"
_DATA = "{{data}}"


def embed_json(value: object) -> str:
    """JSON that may stand inside a script element: no ``<`` that could end it.

    >>> embed_json(["</script>"])
    '["\\\\u003c/script>"]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def page(
    words: Sequence[str],
    points: NDArray[np.float64],
    neighbours: Sequence[Sequence[Neighbour]],
    title: str,
    *,
    layouts: dict[str, NDArray[np.float64]] | None = None,
    groups: dict[str, str] | None = None,
    relations: Sequence[tuple[str, str]] = (),
) -> str:
    """The page as text. Words come by importance; ``neighbours`` are shown for the word hovered.

    ``layouts`` are points (N, 2) or (N, 3) by name to switch between; those of three dimensions can
    be turned. ``groups`` give words colours, ``relations`` become arrows.

    Neighbours need not be in the plot: names of all words are stored once, the plotted first.
    """
    names_of_groups, numbers = group_numbers(words, groups or {})
    shown = set(words)
    names = dict.fromkeys(words)
    names.update(dict.fromkeys(near.word for row in neighbours for near in row))
    index = {word: position for position, word in enumerate(names)}
    data = {
        "names": list(names),
        "points": points.round(5).tolist(),
        "neighbours": [[[index[n.word], round(n.score, 3)] for n in row] for row in neighbours],
        "layouts": {
            name: where.round(5).tolist() for name, where in (layouts or {"plane": points}).items()
        },
        "groups": names_of_groups,
        "group": numbers,
        "colours": COLOURS,
        "relations": [[index[a], index[b]] for a, b in relations if {a, b} <= shown],
    }
    template = resources.files("nlpkit.vectors").joinpath("plot.html").read_text(encoding="utf-8")
    before, after = template.split(_DATA)
    return before.replace(_TITLE, html.escape(title)) + embed_json(data) + after
