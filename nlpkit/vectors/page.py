"""A self-contained interactive page: words in space to turn, zoom, search and hover over.

The page is ``plot.html`` with the data put in as JSON. It asks nothing of the network.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from nlpkit.vectors.marks import COLOURS, group_numbers
from nlpkit.vectors.store import Neighbour, unit_rows

_TITLE = "{{title}}"
_DATA = "{{data}}"
MOST_NUMBERS = 8_000_000  # of vectors in a page


def embed_json(value: object) -> str:
    """JSON that may stand inside a script element: no ``<`` that could end it.

    >>> embed_json(["</script>"])
    '["\\\\u003c/script>"]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def packed(matrix: NDArray[np.float32]) -> dict[str, object] | None:
    """Directions as bytes in base 64, exact enough for cosines; None if there are too many.

    >>> packed(np.array([[2.0, 0.0]], np.float32))
    {'dim': 2, 'bytes': 'fwA='}
    """
    if matrix.size > MOST_NUMBERS:
        return None
    units = unit_rows(np.asarray(matrix))
    # the largest number of a row is 127: only angles matter, so rows may differ in scale
    largest = np.maximum(np.abs(units).max(axis=1, keepdims=True), 1e-12)
    data = np.rint(units / largest * 127).astype(np.int8).tobytes()
    return {"dim": matrix.shape[1], "bytes": base64.b64encode(data).decode()}


def page(
    words: Sequence[str],
    points: NDArray[np.float64],
    neighbours: Sequence[Sequence[Neighbour]],
    title: str,
    *,
    layouts: dict[str, NDArray[np.float64]] | None = None,
    groups: dict[str, str] | None = None,
    relations: Sequence[tuple[str, str]] = (),
    matrix: NDArray[np.float32] | None = None,
) -> str:
    """The page as text. Words come by importance; ``neighbours`` are shown for the word hovered.

    ``layouts`` are points (N, 2) or (N, 3) by name to switch between; those of three dimensions can
    be turned. ``groups`` give words colours, ``relations`` become arrows. With ``matrix``, the
    vectors of the words, analogies can be asked for in the page.

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
        "vectors": None if matrix is None else packed(matrix),
    }
    template = resources.files("nlpkit.vectors").joinpath("plot.html").read_text(encoding="utf-8")
    before, after = template.split(_DATA)
    return before.replace(_TITLE, html.escape(title)) + embed_json(data) + after
