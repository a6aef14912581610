"""Vectors as a model folder: ``vocab.tsv`` for the words and ``vectors.npy`` to be memory-mapped.

``norms.npy``, the lengths of the vectors, may be there too: it saves one pass over the matrix.
The folder that ``word2vec train`` writes is of kind "word2vec"; what is converted or computed from
other vectors is of kind "vectors". Both are read alike. Counts are 0 where nobody counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.vectors.store import Vectors, row_norms
from nlpkit.vectors.words import StoredWords

if TYPE_CHECKING:
    from numpy.typing import NDArray

KIND = "vectors"
KINDS = (KIND, "word2vec")
VOCAB = "vocab.tsv"
MATRIX = "vectors.npy"
NORMS = "norms.npy"


def read_folder(path: str) -> Vectors:
    """Open a folder; nothing but the word list is read until a question needs it."""
    config = modeldir.load_config(path)
    if config.kind not in KINDS:
        raise NlpkitError(f"{path} is a {config.kind} model, not word vectors")
    folder = Path(path)
    for file in (VOCAB, MATRIX):
        if not (folder / file).is_file():
            raise NlpkitError(f"{path} has no {file}", hint="train or convert the vectors again")
    matrix = _load_array(folder / MATRIX, dimensions=2)
    words = StoredWords((folder / VOCAB).read_bytes(), str(folder / VOCAB))
    if len(matrix) != len(words):
        raise _damaged(folder / MATRIX, f"{len(matrix)} rows for {len(words)} words")
    norms = None
    if (folder / NORMS).is_file():
        norms = _load_array(folder / NORMS, dimensions=1)
        if len(norms) != len(words):
            raise _damaged(folder / NORMS, f"{len(norms)} lengths for {len(words)} words")
    return Vectors(words, matrix, norms=norms)


def _load_array(file: Path, dimensions: int) -> NDArray[np.float32]:
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (ValueError, OSError, EOFError) as error:
        raise _damaged(file, str(error)) from None
    if array.ndim != dimensions or array.dtype != np.float32:
        raise _damaged(file, f"{array.dtype} of shape {array.shape}")
    return array


def _damaged(file: Path, why: str) -> NlpkitError:
    return NlpkitError(f"{file} is damaged: {why}", hint="train or convert the vectors again")


def write_folder(
    vectors: Vectors, path: str, *, settings: dict[str, Any] | None = None, force: bool = False
) -> None:
    """Write a folder of kind "vectors"; ``settings`` says how they came about."""
    config = modeldir.ModelConfig(kind=KIND, settings=settings or {})
    with modeldir.create(path, config, force=force) as folder:
        counts = vectors.words.counts
        numbers = [0] * len(vectors) if counts is None else counts.tolist()
        lines = [f"{word}\t{n}\n" for word, n in zip(vectors.words, numbers, strict=True)]
        (folder / VOCAB).write_text("".join(lines), encoding="utf-8", newline="\n")
        np.save(folder / MATRIX, np.ascontiguousarray(vectors.matrix), allow_pickle=False)
        np.save(folder / NORMS, row_norms(vectors.matrix), allow_pickle=False)
