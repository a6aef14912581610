"""Vectors as a model folder: ``vocab.tsv`` for the words and ``vectors.npy`` to be memory-mapped.

``norms.npy``, the lengths of the vectors, may be there too: it saves one pass over the matrix.
The folder that ``word2vec train`` writes is of kind "word2vec"; what is converted or computed from
other vectors is of kind "vectors". Both are read alike. Counts are 0 where nobody counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.manifest import SMALL
from nlpkit.npy import check_finite, read_array
from nlpkit.registry import VECTORS, WORD2VEC
from nlpkit.text.vocab import dump_entry
from nlpkit.vectors.store import Vectors, row_norms
from nlpkit.vectors.words import StoredWords

VOCAB = "vocab.tsv"
MATRIX = "vectors.npy"
NORMS = "norms.npy"


def read_folder(path: str) -> Vectors:
    """Open a folder; nothing but the word list is read until a question needs it."""
    config = modeldir.load_config(path)
    if config.kind not in (VECTORS, WORD2VEC):
        raise NlpkitError(f"{path} is a {schema.plain(config.kind)} model, not word vectors")
    folder = Path(path)
    matrix = read_array(folder / MATRIX, "f4", dimensions=2)
    if config.kind == WORD2VEC:
        _check_settings(config, matrix.shape[1], folder)
    if matrix.nbytes <= SMALL:
        check_finite(matrix, str(folder / MATRIX))
    words = StoredWords(modeldir.read_bytes(folder / VOCAB), str(folder / VOCAB))
    if len(matrix) != len(words):
        raise _damaged(folder / MATRIX, f"{len(matrix)} rows for {len(words)} words")
    norms = None
    if (folder / NORMS).is_file():
        norms = read_array(folder / NORMS, "f4", dimensions=1)
        if len(norms) != len(words):
            raise _damaged(folder / NORMS, f"{len(norms)} lengths for {len(words)} words")
    return Vectors(words, matrix, norms=norms)


def _check_settings(config: modeldir.ModelConfig, dim: int, folder: Path) -> None:
    from nlpkit.word2vec.config import Word2VecConfig

    where = f"{folder / modeldir.CONFIG}: settings"
    settings = schema.read(Word2VecConfig, config.settings, where, others=True)
    if settings.dim != dim:
        schema.refuse(f"{where}.dim", settings.dim, f"the {dim} of {MATRIX}")


def _damaged(file: Path, why: str) -> NlpkitError:
    return NlpkitError(f"{file} is damaged: {why}", hint="train or convert the vectors again")


def write_folder(
    vectors: Vectors, path: str, *, settings: dict[str, Any] | None = None, force: bool = False
) -> None:
    """Write a folder of kind "vectors"; ``settings`` says how they came about."""
    config = modeldir.ModelConfig(kind=VECTORS, settings=settings or {})
    with modeldir.create(path, config, force=force) as folder:
        counts = vectors.words.counts
        numbers = [0] * len(vectors) if counts is None else counts.tolist()
        modeldir.write_text(folder / VOCAB, "".join(map(dump_entry, vectors.words, numbers)))
        modeldir.write_array(folder / MATRIX, np.ascontiguousarray(vectors.matrix))
        modeldir.write_array(folder / NORMS, row_norms(vectors.matrix))
