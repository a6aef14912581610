"""Vectors as a model folder: ``vocab.tsv`` for the words and ``vectors.npy`` to be memory-mapped.

``norms.npy``, the lengths of the vectors, may be there too: it saves one pass over the matrix.
Documents that were learned beside the words are vectors of their own, ``FOLDER/documents``.
The folder that ``word2vec train`` writes is of kind "word2vec"; what is converted or computed from
other vectors is of kind "vectors". Both are read alike. Counts are 0 where nobody counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.manifest import SMALL
from nlpkit.npy import check_finite, read_array
from nlpkit.registry import VECTORS, WORD2VEC
from nlpkit.text.vocab import dump_entry, dump_words, read_words
from nlpkit.vectors.ngrams import NgramVectors, TrainedRows
from nlpkit.vectors.settings import parse_lengths
from nlpkit.vectors.store import Vectors, row_norms
from nlpkit.vectors.words import StoredWords

Floats = NDArray[np.float32]

VOCAB = "vocab.tsv"
MATRIX = "vectors.npy"
NORMS = "norms.npy"
CONTEXT = "context.npy"  # the words as predictions
DOCUMENTS, DOCUMENT_NAMES = "documents.npy", "documents.txt"
NGRAMS, BUCKETS, OWN = "ngrams.npy", "ngram-buckets.npy", "own.npy"


@dataclass(frozen=True)
class NgramSettings:
    """What ``config.json`` says of n-grams."""

    subwords: str
    buckets: int
    arch: str = "skipgram"

    RANGES: ClassVar[schema.Ranges] = {"buckets": (1, 2**31 - 1)}

    def lengths(self) -> tuple[int, int]:
        """The shortest and the longest n-gram."""
        return parse_lengths(self.subwords)


def read_folder(path: str) -> Vectors:
    """Open a folder; nothing but the word list is read until a question needs it."""
    config = modeldir.load_config(path)
    if config.kind == f"{WORD2VEC}-{modeldir.CHECKPOINT}":
        return _read_checkpoint(Path(path), config)
    if config.kind not in (VECTORS, WORD2VEC):
        from nlpkit.vectors.tables import read_table

        return read_table(Path(path), config.kind)
    folder = Path(path)
    words, matrix = _read_words(folder)
    if config.kind == WORD2VEC:
        _check_settings(config, matrix.shape[1], folder)
    if matrix.nbytes <= SMALL:
        check_finite(matrix, str(folder / MATRIX))
    norms = None
    if (folder / NORMS).is_file():
        norms = read_array(folder / NORMS, "f4", dimensions=1)
        if len(norms) != len(words):
            raise _damaged(folder / NORMS, f"{len(norms)} lengths for {len(words)} words")
    return Vectors(words, matrix, norms=norms, subwords=_read_ngrams(folder, config, matrix.shape))


def _read_words(folder: Path) -> tuple[StoredWords, Floats]:
    matrix = read_array(folder / MATRIX, "f4", dimensions=2)
    words = StoredWords(modeldir.read_bytes(folder / VOCAB), str(folder / VOCAB))
    if len(matrix) != len(words):
        raise _damaged(folder / MATRIX, f"{len(matrix)} rows for {len(words)} words")
    return words, matrix


def _read_checkpoint(folder: Path, config: modeldir.ModelConfig) -> Vectors:
    """The words of a training of word2vec that has not ended."""
    if config.settings.get("subwords") or config.settings.get("documents"):
        what = "n-grams" if config.settings.get("subwords") else "documents"
        raise NlpkitError(
            f"{folder} is a checkpoint with {what}, of which no vectors are made before the end",
            hint="its training again with `resume`",
        )
    words, matrix = _read_words(folder)
    check_finite(matrix, str(folder / MATRIX))
    epochs = [config.metrics.get("epoch"), config.settings.get("epochs")]
    known = all(isinstance(number, int) for number in epochs)
    modeldir.note_unfinished(folder, f"in epoch {epochs[0]} of {epochs[1]}" if known else None)
    return Vectors(words, matrix)


def _read_ngrams(
    folder: Path, config: modeldir.ModelConfig, shape: tuple[int, ...]
) -> NgramVectors | None:
    """The n-grams of a folder, if it has any: which buckets have rows, and the rows."""
    if not (folder / NGRAMS).is_file():
        return None
    table = read_array(folder / NGRAMS, "f4", dimensions=2)
    kept = read_array(folder / BUCKETS, "i8", dimensions=1)
    own = read_array(folder / OWN, "f4", dimensions=2)
    where = f"{folder / modeldir.CONFIG}: settings"
    given = schema.read(NgramSettings, config.settings, where, others=True)
    shortest, longest = given.lengths()
    wrong = len(kept) != len(table) or table.shape[1] != shape[1] or own.shape != shape
    if wrong or (len(kept) and not (kept[0] >= 0 and kept[-1] < given.buckets)):
        raise _damaged(folder / NGRAMS, f"{table.shape} rows for {len(kept)} buckets")
    if (np.diff(kept) <= 0).any():
        raise _damaged(folder / BUCKETS, "its numbers do not rise")
    context = None
    if (folder / CONTEXT).is_file():
        context = read_array(folder / CONTEXT, "f4", dimensions=2)
        if context.shape != shape:
            raise _damaged(folder / CONTEXT, f"{context.shape} numbers, not {shape}")
    for file, rows in ((NGRAMS, table), (OWN, own)):
        if rows.nbytes <= SMALL:
            check_finite(rows, str(folder / file))
    trained = TrainedRows(own, context, given.arch == "cbow")
    return NgramVectors(table, given.buckets, shortest, longest, kept=kept, trained=trained)


def write_ngrams(folder: Path, subwords: NgramVectors, own: Floats) -> None:
    """The n-grams beside the vectors; rows of zeros need no room."""
    kept = subwords.kept
    rows = np.flatnonzero(subwords.table.any(axis=1))
    buckets = rows if kept is None else np.asarray(kept)[rows]
    modeldir.write_array(folder / BUCKETS, buckets.astype(np.int64))
    modeldir.write_array(folder / NGRAMS, np.ascontiguousarray(subwords.table[rows]))
    modeldir.write_array(folder / OWN, np.ascontiguousarray(own))


def _check_settings(config: modeldir.ModelConfig, dim: int, folder: Path) -> None:
    from nlpkit.word2vec.config import Word2VecConfig

    where = f"{folder / modeldir.CONFIG}: settings"
    settings = schema.read(Word2VecConfig, config.settings, where, others=True)
    if settings.dim != dim:
        schema.refuse(f"{where}.dim", settings.dim, f"the {dim} of {MATRIX}")


def _damaged(file: Path, why: str) -> NlpkitError:
    return NlpkitError(f"{file} is damaged: {why}", hint="train or convert the vectors again")


def read_context(path: str) -> Floats | None:
    """The output matrix of a word2vec folder, or nothing where vectors come without one."""
    file = Path(path) / CONTEXT
    if not file.is_file():
        return None
    context = read_array(file, "f4", dimensions=2)
    shape = read_array(file.with_name(MATRIX), "f4", dimensions=2).shape
    if context.shape != shape:
        raise NlpkitError(f"{file} is {context.shape}, {MATRIX} {shape}", hint=schema.AGAIN)
    check_finite(context, str(file))
    return context


def read_documents(path: str) -> Vectors:
    """The documents of a word2vec folder as vectors, their ids in place of words."""
    config = modeldir.load_config(path, kind=WORD2VEC)
    folder = Path(path)
    if not (folder / DOCUMENTS).is_file():
        raise NlpkitError(f"{path} has learned no documents", hint="word2vec train `documents`")
    matrix = read_array(folder / DOCUMENTS, "f4", dimensions=2)
    _check_settings(config, matrix.shape[1], folder)
    check_finite(matrix, str(folder / DOCUMENTS))
    names = read_words(folder / DOCUMENT_NAMES)
    if len(names) != len(matrix) or len(set(names)) != len(names):
        raise _damaged(folder / DOCUMENTS, f"{len(matrix)} rows for {len(names)} ids")
    return Vectors(names, matrix)


def write_documents(folder: Path, documents: Vectors) -> None:
    """The documents beside the words."""
    modeldir.write_text(folder / DOCUMENT_NAMES, dump_words(documents.words))
    modeldir.write_array(folder / DOCUMENTS, np.ascontiguousarray(documents.matrix))


def write_folder(
    vectors: Vectors, path: str, *, settings: dict[str, Any] | None = None, force: bool = False
) -> None:
    """Write a folder of kind "vectors"; ``settings`` says how they came about."""
    settings = dict(settings or {})
    ngrams = vectors.subwords if isinstance(vectors.subwords, NgramVectors) else None
    trained = None if ngrams is None else ngrams.trained
    if ngrams is not None and trained is not None:
        settings["subwords"] = f"{ngrams.shortest}-{ngrams.longest}"
        settings["buckets"] = ngrams.buckets
        settings["arch"] = "cbow" if trained.cbow else "skipgram"
    config = modeldir.ModelConfig(kind=VECTORS, settings=settings)
    with modeldir.create(path, config, force=force) as folder:
        counts = vectors.words.counts
        numbers = [0] * len(vectors) if counts is None else counts.tolist()
        modeldir.write_text(folder / VOCAB, "".join(map(dump_entry, vectors.words, numbers)))
        modeldir.write_array(folder / MATRIX, np.ascontiguousarray(vectors.matrix))
        modeldir.write_array(folder / NORMS, row_norms(vectors.matrix))
        if ngrams is not None and trained is not None:
            write_ngrams(folder, ngrams, trained.own)
            if trained.context is not None:
                modeldir.write_array(folder / CONTEXT, np.ascontiguousarray(trained.context))
