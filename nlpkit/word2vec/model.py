"""word2vec on disk: the model folder, and the checkpoint that a run can be resumed from.

Both hold ``vocab.tsv``, ``vectors.npy`` (the words as inputs) and ``context.npy`` (as outputs). A
checkpoint also holds the corpus as ids, so that a run on text from a pipe can be resumed too. It
belongs to one run: another text or another setting is refused.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tokenize
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nlpkit import modeldir
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.kernels.compiling import FIRST_TIME
from nlpkit.npy import check_finite, read_array
from nlpkit.registry import WORD2VEC
from nlpkit.schema import AGAIN
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.vocab import Vocab
from nlpkit.textio import Block
from nlpkit.textplot import labelled_sparkline
from nlpkit.training.run import Progress, Run
from nlpkit.vectors.folder import BUCKETS, CONTEXT, MATRIX, NORMS, VOCAB, write_ngrams
from nlpkit.vectors.formats import format_of_name, load, save
from nlpkit.vectors.ngrams import NgramVectors
from nlpkit.vectors.settings import Format
from nlpkit.vectors.store import Vectors, row_norms
from nlpkit.vectors.words import ListedWords
from nlpkit.word2vec.config import Arch, Word2VecConfig
from nlpkit.word2vec.store import IdStore, read_corpus, read_sentences
from nlpkit.word2vec.train import EngineName, Trainer, TrainState, WordProgress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nlpkit.word2vec.subwords import NgramTable

CHECKPOINT_KIND = f"{WORD2VEC}-checkpoint"
IDS = "ids.npy"
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
    ) -> None:
        matrix, subwords = state.input, None
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
        format: Format | str | None = None,
        *,
        force: bool = False,
    ) -> None:
        """Write the model folder; of a file in another format, the words and vectors alone."""
        name = os.fspath(path)
        if format is not None or format_of_name(name) is not Format.FOLDER:
            chosen = None if format is None else Format(format)
            if chosen is not Format.FOLDER:
                save(self, name, chosen, settings=self.config.settings, force=force)
                return
        with modeldir.create(path, self.config, force=force) as folder:
            _write_state(folder, self.store, self.curve, self.matrix, self.context)
            if isinstance(self.subwords, NgramVectors) and self.subwords.trained is not None:
                write_ngrams(folder, self.subwords, self.subwords.trained.own)
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
    words_trainer: Trainer
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
        return Word2Vec(self.store, state, config, self.records, ngrams)

    def save_model(self, model: Any, path: str | os.PathLike[str], force: bool) -> None:
        """A folder, whatever the name ends with."""
        model.save(path, Format.FOLDER, force=force)

    def steps(self) -> Generator[WordProgress, None, None]:
        """Train to the end of the last epoch; some of the records are kept, for the curve."""
        for progress in self.words_trainer.train():
            if progress.due or progress.fraction * MOST_RECORDS >= len(self.records):
                self.records.append(
                    {
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
            f"{config.workers} threads"
            if trainer.engine == "numba"
            else f"torch on {trainer.device}"
        )
        self.summary = (
            f"{self.store.text_words:,} words, {len(self.store.words):,} in the vocabulary; "
            f"{config.arch.value} with {config.loss.value}, {config.dim} dimensions, {by}"
        )
        if not trainer.is_compiled:
            self.summary += f"\n{FIRST_TIME}"

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write the state; the corpus is written once and then linked from one to the next."""
        state = self.words_trainer.state()
        position = {
            "pieces_done": state.pieces_done,
            "loss_sum": state.loss_sum,
            "loss_count": state.loss_count,
            "text_words": self.store.text_words,
            "ids_hash": self.ids_hash,
        }
        extra = {**self.sources, "position": position}
        with modeldir.create(path, self._config(CHECKPOINT_KIND, extra), force=True) as folder:
            _write_state(folder, self.store, self.records, state.input, state.output)
            if self.words_trainer.ngrams is not None:
                modeldir.write_array(folder / BUCKETS, self.words_trainer.ngrams.buckets)
            self._write_ids(folder / IDS, Path(path) / IDS)

    def _write_ids(self, file: Path, earlier: Path) -> None:
        """Link what this very run has written, and nothing else: or write the ids."""
        if self.ids_file is not None:
            with contextlib.suppress(OSError):  # gone, or a disk without links
                if _identity(earlier) == self.ids_file:
                    os.link(earlier, file)
                    return
        modeldir.write_array(file, self.store.ids)
        self.ids_file = _identity(file)

    @functools.cached_property
    def ids_hash(self) -> str:
        """A fingerprint of the corpus as ids."""
        return _hash(self.store.ids)

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
) -> Word2VecRun:
    """A new run on a text; ``vocab`` and ``init`` are the files it begins with."""
    start = {} if init is None else _start_from(init, config)
    trainer = Trainer(store, config, device=device, engine=engine, **start)
    how = {name: getattr(tokens, name) for name in TOKEN_SETTINGS}
    return Word2VecRun(store, config, trainer, data_hash, how, [], {"vocab": vocab, "init": init})


def begin_text(
    blocks: Iterable[Block] | Iterable[Sequence[str]],
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


def resume_run(
    path: str | os.PathLike[str],
    config: Word2VecConfig,
    tokens: TokenSettings,
    blocks: Iterable[Block] | None,
    *,
    named: bool,
    vocab: str | None,
    init: str | None,
    device: str,
    engine: EngineName | None,
) -> Word2VecRun:
    """Go on from a checkpoint; a text that is there must be the one of the run.

    Unless it was ``named``, an empty text is none.
    """
    found = None if blocks is None else modeldir.data_hash(block.data for block in blocks)
    if not named and found == modeldir.data_hash([]):
        found = None
    how = {name: getattr(tokens, name) for name in TOKEN_SETTINGS}
    sources = {"vocab": vocab, "init": init}
    return load_checkpoint(
        path, config, how, sources, data_hash=found, device=device, engine=engine
    )


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


def load_checkpoint(
    path: str | os.PathLike[str],
    config: Word2VecConfig,
    tokens: dict[str, Any],
    sources: dict[str, str | None],
    *,
    data_hash: str | None = None,
    device: str,
    engine: EngineName | None = None,
) -> Word2VecRun:
    """A run that goes on exactly where it stopped (on one thread; more are never exact).

    All settings must be those of the run but for ``threads``, and so must the hash of the text, if
    there is one.
    """
    if not modeldir.is_model(path):
        raise NlpkitError(f"no checkpoint at {path}", hint="train without `resume`")
    saved = modeldir.load_config(path, kind=CHECKPOINT_KIND)
    folder = Path(path)
    position = saved.settings.pop("position", None)
    now = {**config.to_settings(), **tokens, **sources}
    for name in sorted((saved.settings.keys() | now.keys()) - {"threads"}):
        before = saved.settings.get(name)
        if before != now.get(name):
            raise NlpkitError(
                f"{path} was made with {name} {before}, not {now.get(name)}",
                hint="the flags of the first run, or start again without `resume`",
            )
    if data_hash is not None and data_hash != saved.data_hash:
        raise NlpkitError(f"{path} was made from other text", hint="the text of the first run")
    if not isinstance(position, dict) or "ids_hash" not in position:
        raise NlpkitError(f"{path} is of another version of nlpkit", hint="train without `resume`")
    try:
        vocab = Vocab.load(str(folder / VOCAB))
        ids = _load_rows(folder / IDS)
        ids_file = _identity(folder / IDS)
        counts = np.array(vocab.counts, dtype=np.int64)
        store = IdStore(ids, vocab.tokens, counts, int(position["text_words"]))
        state = TrainState(
            _load_rows(folder / MATRIX),
            _load_rows(folder / CONTEXT),
            position["pieces_done"],
            position["loss_sum"],
            position["loss_count"],
        )
        buckets = None
        if config.subwords is not None:
            buckets = _load_rows(folder / BUCKETS)
            if buckets.ndim != 1 or buckets.dtype != np.int64 or (np.diff(buckets) <= 0).any():
                raise NlpkitError(f"{BUCKETS} has been changed")
        trainer = Trainer(
            store, config, device=device, engine=engine, resume=state, buckets=buckets
        )
        if _hash(ids) != position["ids_hash"]:
            raise NlpkitError(f"{IDS} has been changed")
    except (OSError, ValueError, KeyError, TypeError, OverflowError, NlpkitError) as error:
        reason = error.message if isinstance(error, NlpkitError) else error
        raise NlpkitError(f"{path} is damaged: {reason}", hint="train without `resume`") from None
    records = modeldir.read_metrics(path)
    return Word2VecRun(store, config, trainer, saved.data_hash, tokens, records, sources, ids_file)


def read_context(path: str) -> NDArray[np.float32] | None:
    """The output matrix of a word2vec folder, or nothing where vectors come without one."""
    file = Path(path) / CONTEXT
    if not file.is_file():
        return None
    context = read_array(file, "f4", dimensions=2)
    shape = read_array(file.with_name(MATRIX), "f4", dimensions=2).shape
    if context.shape != shape:
        raise NlpkitError(f"{file} is {context.shape}, {MATRIX} {shape}", hint=AGAIN)
    check_finite(context, str(file))
    return context


def _load_rows(path: Path) -> NDArray[Any]:
    """An array on disk, memory-mapped, so that a false header cannot ask for memory."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (EOFError, SyntaxError, tokenize.TokenError) as error:  # headers are read as Python
        raise ValueError(f"{path.name}: {error}") from None
    return array


def _hash(array: NDArray[Any]) -> str:
    return modeldir.data_hash(rows.data.cast("B") for rows in _parts(array))


def _parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for start in range(0, len(array), _ROWS):
        yield np.ascontiguousarray(array[start : start + _ROWS])


def _identity(file: Path) -> tuple[int, ...]:
    """Tells a file from any other, and from itself with other content."""
    status = file.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
