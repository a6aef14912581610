"""Files for the TensorFlow Embedding Projector: ``vectors.tsv`` and ``metadata.tsv``.

``vectors.tsv`` has no header. ``metadata.tsv`` has one only when it has more than one column;
here that is when the words have counts. A word's tabs and line ends are written as ``\\t``,
``\\n`` and ``\\r``, because the format has no way to quote them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from nlpkit import folders, textio
from nlpkit.errors import NlpkitError
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


def check_place(folder: str) -> None:
    """Refuse a folder that cannot be written, or made, before the vectors are read."""
    if os.path.isdir(folder):
        for name in (VECTORS, METADATA):
            textio.check_writable(os.path.join(folder, name))
        return
    made = Path(folder).absolute()
    while not os.path.lexists(made.parent):
        made = made.parent
    in_the_way = os.path.lexists(made) and not made.is_symlink()
    if in_the_way or not made.parent.is_dir():
        raise NlpkitError(f"cannot write {folder}: a file is in the way", hint="another name")
    folders.check_place(made)


def write_projector(vectors: Vectors, folder: str, rows: int | None = None) -> None:
    """Write both files into a folder, which is made if need be; ``rows`` limits the words."""
    rows = len(vectors) if rows is None else min(rows, len(vectors))
    check_place(folder)
    row_format = "\t".join(["%.9g"] * vectors.dim) + "\n"
    with contextlib.ExitStack() as stack:
        target = Path(folder)
        if not target.is_dir():
            target.absolute().parent.mkdir(parents=True, exist_ok=True)
            target = stack.enter_context(folders.atomic_folder(folder))
        # both are written before one of them gets its name
        about = stack.enter_context(textio.atomic_writer(str(target / METADATA)))
        numbers = stack.enter_context(textio.atomic_writer(str(target / VECTORS)))
        about.write(metadata(vectors, rows).encode())
        for row in vectors.matrix[:rows]:
            numbers.write((row_format % tuple(row.tolist())).encode())
