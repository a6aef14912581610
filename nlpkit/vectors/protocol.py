"""The rules of an evaluation: letter case, and how many words take part.

Numbers of this kind depend on such rules, so every report carries them, and how much of the test
file it covers.
"""

from __future__ import annotations

from nlpkit.vectors.store import Vectors


def folded(vectors: Vectors, restrict: int | None, fold_case: bool) -> Vectors:
    """The most frequent words; with folded case each form is its most frequent spelling.

    >>> import numpy as np
    >>> matrix = np.array([[1.0], [2.0], [3.0]], np.float32)
    >>> list(folded(Vectors(["Paris", "paris", "the"], matrix), None, True).words)
    ['paris', 'the']
    """
    size = len(vectors) if restrict is None else min(restrict, len(vectors))
    rows: dict[str, int] = {}
    for row, word in enumerate(vectors.words[:size]):
        rows.setdefault(word.casefold() if fold_case else word, row)
    matrix = vectors.matrix[:size] if len(rows) == size else vectors.matrix[list(rows.values())]
    return Vectors(list(rows), matrix, subwords=vectors.subwords)
