"""Vectors of documents: the engine that trains them, and the inference of those of new texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.registry import WORD2VEC
from nlpkit.vectors.folder import CONTEXT, read_context, read_folder
from nlpkit.vectors.settings import TextSettings
from nlpkit.word2vec.blocks import make_workspace
from nlpkit.word2vec.config import Arch, Word2VecConfig
from nlpkit.word2vec.cpu import BLOCK, CpuEngine, Worker, noise_per_block, steps_of
from nlpkit.word2vec.document_kernels import document_piece, infer_documents
from nlpkit.word2vec.kernels import Chunk
from nlpkit.word2vec.sampling import keep_limits, make_noise
from nlpkit.word2vec.store import IdStore
from nlpkit.word2vec.tiles import aligned_zeros, padded

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

TEXTS_AT_ONCE = 1024  # whose vectors are inferred before any is given out


class DocumentEngine(CpuEngine):
    """The CPU engine with an input row for each document, after those of the words."""

    def __init__(self, store: IdStore, config: Word2VecConfig, words_per_piece: int) -> None:
        assert store.documents is not None
        names, of_sentence = store.documents.names, store.documents.of_sentence
        super().__init__(store, config, words_per_piece, more_inputs=len(names))
        self.document_of = of_sentence + np.int32(self.vocabulary)
        starts = store.cuts(words_per_piece)[:-1]
        ends = np.add.reduceat(store.ids < 0, starts, dtype=np.int64)  # sentences of each chunk
        firsts = np.cumsum(ends) - ends
        self.first_sentence = dict(zip(starts.tolist(), firsts.tolist(), strict=True))

    kernel = document_piece

    def _run(self, chunk: Chunk, worker: Worker) -> tuple[float, int]:
        found: tuple[float, int] = document_piece(
            chunk,
            self.first_sentence[chunk.start],
            self.document_of,
            self.input,
            self.output,
            self.config.arch is Arch.CBOW,
            self.config.document_words,
            worker.space,
        )
        return found


class InferredVectors:
    """Turns new texts, as lists of words, into vectors of documents that a model has not seen.

    The words stay as they are; the vector of a text begins where all do and is trained for some
    epochs. A text has the same vector whatever stands beside it.
    """

    def __init__(self, path: str, settings: TextSettings) -> None:
        config = modeldir.load_config(path, kind=WORD2VEC)
        where = f"{Path(path) / modeldir.CONFIG}: settings"
        self.config = schema.read(Word2VecConfig, config.settings, where, others=True)
        if not self.config.documents:
            raise NlpkitError(
                f"{path} has learned no documents: no vectors of new ones can be inferred",
                hint="`method` sif or mean, or a model trained with `documents`",
            )
        self.settings, self.vectors = settings, read_folder(path)
        counts = self.vectors.words.counts
        if counts is None:
            raise NlpkitError(f"{path} does not say how often words were seen", hint=schema.AGAIN)
        self._known = len(self.vectors)
        width = padded(self.config.dim)
        self._input = aligned_zeros(self._known + TEXTS_AT_ONCE, width)
        self._output = aligned_zeros(self._known, width)
        columns = slice(self.config.dim)
        self._input[: self._known, columns] = self.vectors.matrix
        context = read_context(path)
        if context is None:
            raise NlpkitError(f"{path} has no {CONTEXT}", hint=schema.AGAIN)
        self._output[:, columns] = context
        self._keep = keep_limits(counts, self.config.sample)
        self._noise = make_noise(counts, self.config.ns_exponent)
        random = np.random.default_rng(settings.seed)
        self._start = (random.random(self.config.dim, dtype=np.float32) - 0.5) / self.config.dim

    def embed(self, texts: Sequence[Sequence[str]]) -> Floats:
        """A row for each text; zeros for one without a known word."""
        parts = [
            self._infer(texts[start : start + TEXTS_AT_ONCE])
            for start in range(0, len(texts), TEXTS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.config.dim), np.float32)

    def stream(self, texts: Iterable[Sequence[str]]) -> Iterator[Floats]:
        """Rows for texts as they come, some at a time."""
        waiting: list[Sequence[str]] = []
        for text in texts:
            waiting.append(text)
            if len(waiting) == TEXTS_AT_ONCE:
                yield self._infer(waiting)
                waiting = []
        if waiting:
            yield self._infer(waiting)

    def _infer(self, texts: Sequence[Sequence[str]]) -> Floats:
        config = self.config
        words = self.vectors.words
        words.expect({word for text in texts for word in text})
        found = [[row for row in map(words.find, text) if row is not None] for text in texts]
        lengths = np.array([len(text) for text in found], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths[lengths > 0])])
        ids = np.array([row for text in found for row in text], np.int32)
        ids[starts[1:] - 1] = ~ids[starts[1:] - 1]
        here = self._input[self._known :]
        here[:, : config.dim] = self._start
        space = make_workspace(
            BLOCK,
            noise_per_block(config),
            config.window,
            self._input.shape[1],
            int(lengths.max(initial=1)),
            slots=True,
            documents=True,
        )
        chunk = Chunk(
            ids,
            0,
            0,
            self.settings.seed,
            0,
            self._keep,
            self._noise,
            config.shrink_windows,
            BLOCK,
            steps_of(config, config.starting_lr, frozen=True),
            0,
            0,
        )
        infer_documents(
            chunk,
            starts,
            np.arange(self._known, self._known + len(starts), dtype=np.int32),
            self.settings.epochs,
            config.min_lr,
            self._input,
            self._output,
            config.arch is Arch.CBOW,
            space,
        )
        rows = np.zeros((len(texts), config.dim), np.float32)
        rows[lengths > 0] = here[: len(starts) - 1, : config.dim]
        return rows
