"""Files for the TensorFlow Embedding Projector: ``vectors.tsv`` and ``metadata.tsv``.

``vectors.tsv`` has no header. ``metadata.tsv`` has one only when it has more than one column;
here that is when the words have counts. A word's tabs and line ends are written as ``\\t``,
``\\n`` and ``\\r``, because the format has no way to quote them.
"""

from __future__ import annotations

from pathlib import Path

from nlpkit import textio
from nlpkit.vectors.store import Vectors

VECTORS = "vectors.tsv"
METADATA = "metadata.tsv"
_ESCAPES = str.maketrans({"\t": r"\t", "\n": r"\n", "\r": r"\r"})


def metadata(vectors: Vectors, rows: int) -> str:
    """The text of ``metadata.tsv`` for the first ``rows`` words.

    >>> import numpy as np
    >>> metadata(Vectors(["a", "b\\tc"], np.eye(2, dtype=np.float32)), 2)
    'a\\nb\\\\tc\\n'
    """
    words = [word.translate(_ESCAPES) for word in vectors.words[:rows]]
    counts = vectors.words.counts
    if counts is None:
        return "".join(f"{word}\n" for word in words)
    pairs = zip(words, counts[:rows].tolist(), strict=True)
    return "word\tcount\n" + "".join(f"{word}\t{count}\n" for word, count in pairs)


def write_projector(vectors: Vectors, folder: str, rows: int | None = None) -> None:
    """Write both files into a folder, which is made if need be; ``rows`` limits the words."""
    rows = len(vectors) if rows is None else min(rows, len(vectors))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    row_format = "\t".join(["%.9g"] * vectors.dim) + "\n"
    with textio.atomic_writer(str(target / VECTORS)) as out:
        for row in vectors.matrix[:rows]:
            out.write((row_format % tuple(row.tolist())).encode())
    textio.write_text(str(target / METADATA), metadata(vectors, rows))
