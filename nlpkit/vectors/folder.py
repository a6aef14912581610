"""Vectors as a model folder: ``vocab.tsv`` for the words and ``vectors.npy`` to be memory-mapped.

The folder that ``word2vec train`` writes is of kind "word2vec"; what is converted or computed from
other vectors is of kind "vectors". Both are read alike. Counts are 0 where nobody counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.words import StoredWords

KIND = "vectors"
KINDS = (KIND, "word2vec")
VOCAB = "vocab.tsv"
MATRIX = "vectors.npy"


def read_folder(path: str) -> Vectors:
    """Open a folder; nothing but the word list is read until a question needs it."""
    config = modeldir.load_config(path)
    if config.kind not in KINDS:
        raise NlpkitError(f"{path} is a {config.kind} model, not word vectors")
    folder = Path(path)
    for file in (VOCAB, MATRIX):
        if not (folder / file).is_file():
            raise NlpkitError(f"{path} has no {file}", hint="train or convert the vectors again")
    try:
        mapped = np.load(folder / MATRIX, mmap_mode="r", allow_pickle=False)
        matrix = mapped.view(np.ndarray)
    except (ValueError, OSError, EOFError) as error:
        raise _damaged(folder / MATRIX, str(error)) from None
    words = StoredWords((folder / VOCAB).read_bytes(), str(folder / VOCAB))
    if matrix.ndim != 2 or matrix.dtype != np.float32:
        raise _damaged(folder / MATRIX, f"{matrix.dtype} of shape {matrix.shape}")
    if len(matrix) != len(words):
        raise _damaged(folder / MATRIX, f"{len(matrix)} rows for {len(words)} words")
    return Vectors(words, matrix)


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
