"""A self-contained interactive page: words in a plane to pan, zoom, search and hover over.

The page is ``plot.html`` with the data put in as JSON. It asks nothing of the network.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

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
) -> str:
    """The page as text. Words come by importance; ``neighbours`` are shown for the word hovered.

    Neighbours need not be in the plot: names of all words are stored once, the plotted first.
    """
    names = dict.fromkeys(words)
    names.update(dict.fromkeys(near.word for row in neighbours for near in row))
    index = {word: position for position, word in enumerate(names)}
    data = {
        "names": list(names),
        "points": points.round(5).tolist(),
        "neighbours": [[[index[n.word], round(n.score, 3)] for n in row] for row in neighbours],
    }
    template = resources.files("nlpkit.vectors").joinpath("plot.html").read_text(encoding="utf-8")
    before, after = template.split(_DATA)
    return before.replace(_TITLE, html.escape(title)) + embed_json(data) + after
