"""word2vec on disk: the model folder, and the checkpoint that a run can be resumed from.

Both hold ``vocab.tsv``, ``vectors.npy`` (the words as inputs) and ``context.npy`` (as outputs). A
checkpoint also holds the corpus as ids, so that a run on text from a pipe can be resumed too. It
belongs to one run: another text or another setting is refused.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import modeldir
from nlpkit.errors import NlpkitError, UsageError, plural
from nlpkit.kernels.compiling import FIRST_TIME
from nlpkit.registry import WORD2VEC
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.vocab import Vocab, dump_words
from nlpkit.textio import TextBlock
from nlpkit.textplot import labelled_sparkline
from nlpkit.training.run import Progress, Run
from nlpkit.vectors.folder import (
    BUCKETS,
    CONTEXT,
    DOCUMENT_NAMES,
    MATRIX,
    NORMS,
    VOCAB,
    read_context,
    write_documents,
    write_ngrams,
)
from nlpkit.vectors.formats import format_of_name, load, save
from nlpkit.vectors.ngrams import NgramVectors
from nlpkit.vectors.settings import VectorFormat
from nlpkit.vectors.store import Vectors, row_norms
from nlpkit.vectors.words import ListedWords
from nlpkit.word2vec.config import Arch, Word2VecConfig
from nlpkit.word2vec.engines import EngineName
from nlpkit.word2vec.state import TrainState, WordProgress
from nlpkit.word2vec.store import IdStore, read_corpus, read_sentences
from nlpkit.word2vec.train import Word2VecTrainer

if TYPE_CHECKING:
    from nlpkit.word2vec.subwords import NgramTable

CHECKPOINT_KIND = f"{WORD2VEC}-checkpoint"
IDS = "ids.npy"
OF_SENTENCE = "sentence-documents.npy"
MOST_RECORDS = 200  # of the curve that is kept
_ROWS = 1 << 14  # hashed at a time


class Word2Vec(Vectors):
    """Vectors fresh from training: their folder holds the context vectors and the curve, too."""

    def __init__(
        self,
        store: IdStore,
        state: TrainState,
        config: modeldir.ModelConfig,
        curve: list[dict[str, Any]],
        ngrams: NgramTable | None = None,
        *,
        outputs_alone: bool = False,  # whether words were learned as predictions only
    ) -> None:
        words = len(store.words)
        matrix, subwords = state.output if outputs_alone else state.input[:words], None
        self.documents: Vectors | None = None
        if store.documents is not None:
            self.documents = Vectors(ListedWords(store.documents.names), state.input[words:])
        if ngrams is not None:
            from nlpkit.word2vec.subwords import compose

            cbow = config.settings.get("arch") == Arch.CBOW.value
            matrix, subwords = compose(store.words, state.input, state.output, ngrams, cbow)
        super().__init__(ListedWords(store.words, store.counts), matrix, subwords=subwords)
        self.store, self.context = store, state.output
        self.config, self.curve = config, curve

    def save(
        self,
        path: str | os.PathLike[str],
        format: VectorFormat | str | None = None,
        *,
        force: bool = False,
    ) -> None:
        """Write the model folder; of a file in another format, the words and vectors alone."""
        name = os.fspath(path)
        if format is not None or format_of_name(name) is not VectorFormat.FOLDER:
            chosen = None if format is None else VectorFormat(format)
            if chosen is not VectorFormat.FOLDER:
                save(self, name, chosen, settings=self.config.settings, force=force)
                return
        with modeldir.create(path, self.config, force=force) as folder:
            _write_state(folder, self.store, self.curve, self.matrix, self.context)
            if isinstance(self.subwords, NgramVectors) and self.subwords.trained is not None:
                write_ngrams(folder, self.subwords, self.subwords.trained.own)
            if self.documents is not None:
                write_documents(folder, self.documents)
            matrix = np.load(folder / MATRIX, mmap_mode="r")
            modeldir.write_array(folder / NORMS, row_norms(matrix))


def _write_state(
    folder: Path,
    store: IdStore,
    curve: list[dict[str, Any]],
    inputs: NDArray[np.float32],
    outputs: NDArray[np.float32],
) -> None:
    """What the folders of a model and of a checkpoint have in common."""
    vocab = Vocab(store.words, store.counts.tolist())
    modeldir.write_text(folder / VOCAB, vocab.dumps())
    modeldir.write_array(folder / MATRIX, inputs)
    modeldir.write_array(folder / CONTEXT, outputs)
    modeldir.write_metrics(folder, curve)


@dataclass
class Word2VecRun(Run):
    """A training run: what it reads, its state, and what it has recorded."""

    unit = "words"
    noisy_loss = False

    store: IdStore
    config: Word2VecConfig
    words_trainer: Word2VecTrainer
    text_hash: str
    tokens: dict[str, Any]  # how text became tokens
    records: list[dict[str, Any]]
    sources: dict[str, str | None] = field(default_factory=dict)  # files it began with
    ids_file: tuple[int, ...] | None = None  # the file of ids in the last checkpoint of this run

    def result(self) -> Word2Vec:
        """The vectors as they are now."""
        if self.records:
            losses, speed = [r["loss"] for r in self.records], self.records[-1]["words_per_second"]
            self.outcome = f"{speed:,} words/s  loss {labelled_sparkline(losses)}; "
        config = self._config(WORD2VEC, {})
        state, ngrams = self.words_trainer.state(), self.words_trainer.ngrams
        alone = self.config.words_are_outputs
        return Word2Vec(self.store, state, config, self.records, ngrams, outputs_alone=alone)

    def save_model(self, model: Any, path: str | os.PathLike[str], force: bool) -> None:
        """A folder, whatever the name ends with."""
        model.save(path, VectorFormat.FOLDER, force=force)

    def steps(self) -> Generator[WordProgress, None, None]:
        """Train to the end of the last epoch; some of the records are kept, for the curve."""
        for progress in self.words_trainer.train():
            if progress.due or progress.fraction * MOST_RECORDS >= len(self.records):
                self.records.append(
                    {
                        "step": progress.step,
                        "epoch": progress.epoch,
                        "words": progress.words,
                        "loss": progress.loss,
                        "lr": progress.learning_rate,
                        "words_per_second": round(progress.speed),
                    }
                )
            yield progress

    def where(self, progress: Progress) -> str:
        """How far the run is, in words."""
        assert isinstance(progress, WordProgress)
        return f"epoch {progress.epoch}/{progress.epochs}  lr {progress.learning_rate:.4f}"

    @property
    def finished(self) -> bool:
        """Whether the last epoch has ended."""
        return self.words_trainer.finished

    def __post_init__(self) -> None:
        config, trainer = self.config, self.words_trainer
        by = (
            f"{plural(config.workers, 'thread')}"
            if trainer.engine == "numba"
            else f"torch on {trainer.device}"
        )
        self.summary = (
            f"{plural(self.store.text_words, 'word')}, {len(self.store.words):,} in the "
            f"vocabulary; {self._what()} with {config.loss.value}, {config.dim} dimensions, {by}"
        )
        if not trainer.is_compiled:
            self.summary += f"\n{FIRST_TIME}"

    def _what(self) -> str:
        if self.store.documents is None:
            return self.config.arch.value
        method = "PV-DBOW" if self.config.arch is Arch.SKIPGRAM else "PV-DM"
        return f"{plural(len(self.store.documents.names), 'document')} by {method}"

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write the state; the corpus is written once and then linked from one to the next."""
        state = self.words_trainer.state()
        position = {
            "pieces_done": state.chunks_done,
            "loss_sum": state.loss_sum,
            "loss_count": state.loss_count,
            "text_words": self.store.text_words,
            "ids_hash": self.ids_hash,
            "engine": self.words_trainer.engine,
        }
        extra = {**self.sources, "position": position}
        with modeldir.create(path, self._config(CHECKPOINT_KIND, extra), force=True) as folder:
            _write_state(folder, self.store, self.records, state.input, state.output)
            if self.words_trainer.ngrams is not None:
                modeldir.write_array(folder / BUCKETS, self.words_trainer.ngrams.buckets)
            if self.store.documents is not None:
                modeldir.write_text(folder / DOCUMENT_NAMES, dump_words(self.store.documents.names))
                modeldir.write_array(folder / OF_SENTENCE, self.store.documents.of_sentence)
            self._write_ids(folder / IDS, Path(path) / IDS)

    def _write_ids(self, file: Path, earlier: Path) -> None:
        """Link what this very run has written, and nothing else: or write the ids."""
        if self.ids_file is not None:
            with contextlib.suppress(OSError):  # gone, or a disk without links
                if identity(earlier) == self.ids_file:
                    os.link(earlier, file)
                    return
        modeldir.write_array(file, self.store.ids)
        self.ids_file = identity(file)

    @functools.cached_property
    def ids_hash(self) -> str:
        """A fingerprint of the corpus as ids."""
        return hash_rows(self.store.ids)

    def _config(self, kind: str, extra: dict[str, Any]) -> modeldir.ModelConfig:
        return modeldir.ModelConfig(
            kind=kind,
            settings={**self.config.to_settings(), **self.tokens, **extra},
            seed=self.config.seed,
            data_hash=self.text_hash,
            metrics=self.records[-1] if self.records else {},
        )


TOKEN_SETTINGS = ("tokenizer", "pattern", "lower")


def begin(
    store: IdStore,
    data_hash: str,
    config: Word2VecConfig,
    tokens: TokenSettings,
    *,
    vocab: str | None = None,
    init: str | None = None,
    device: str = "cpu",
    engine: EngineName | None = None,
    trial: bool = False,
) -> Word2VecRun:
    """A new run on a text; ``vocab`` and ``init`` are the files it begins with.

    With ``trial`` the device is one that could be used: the faster engine is.
    """
    why = ""
    if trial and engine is None and device != "cpu":
        from nlpkit.word2vec.trial import choose_engine

        engine, device, why = choose_engine(store, config, device)
    if config.deterministic:
        config = replace(config, threads=config.workers)  # which belongs to the run
    start = {} if init is None else _start_from(init, config)
    trainer = Word2VecTrainer(store, config, device=device, engine=engine, **start)
    how = {name: getattr(tokens, name) for name in TOKEN_SETTINGS}
    run = Word2VecRun(store, config, trainer, data_hash, how, [], {"vocab": vocab, "init": init})
    run.summary += f"\n{why}" if why else ""
    return run


def begin_text(
    blocks: Iterable[TextBlock] | Iterable[Sequence[str]],
    config: Word2VecConfig,
    tokens: TokenSettings,
    *,
    vocab: str | None = None,
    errors: str = "strict",
    on_read: Callable[[int], None] = lambda size: None,
    sentences: bool = False,
    **more: Any,
) -> Word2VecRun:
    """Read a text, or ``sentences`` of tokens, and begin; ``more`` is what ``begin`` takes."""
    if vocab is not None and (config.phrases or config.max_vocab):
        raise UsageError("`vocab` says which words there are: no `phrases` or `max_vocab`")
    if sentences:
        store, text_hash = read_sentences(blocks, config, vocab=vocab)  # type: ignore[arg-type]
    else:
        store, text_hash = read_corpus(
            blocks,  # type: ignore[arg-type]
            config,
            tokens,
            vocab=vocab,
            errors=errors,
            on_read=on_read,
        )
    return begin(store, text_hash, config, tokens, vocab=vocab, **more)


def _start_from(init: str, config: Word2VecConfig) -> dict[str, Any]:
    """What a trainer is to begin with: vectors, and all else that the file or folder has."""
    vectors = load(init, trained=True)
    if config.subwords is None:
        return {"init": (list(vectors.words), vectors.matrix), "init_output": read_context(init)}
    ngrams = vectors.subwords
    if not isinstance(ngrams, NgramVectors) or ngrams.trained is None:
        raise NlpkitError(
            f"{init} has no n-grams to start from", hint="fastText's .bin, or no `subwords`"
        )
    own, context = ngrams.trained.own, ngrams.trained.context
    return {"init": (list(vectors.words), own), "init_output": context, "init_ngrams": ngrams}


def hash_rows(array: NDArray[Any]) -> str:
    """A fingerprint of an array, whose file may be larger than memory."""
    return modeldir.data_hash(rows.data.cast("B") for rows in _parts(array))


def _parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for start in range(0, len(array), _ROWS):
        yield np.ascontiguousarray(array[start : start + _ROWS])


def identity(file: Path) -> tuple[int, ...]:
    """Tells a file from any other, and from itself with other content."""
    status = file.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
