"""Training: chunks of the corpus, handed to threads, epoch after epoch, at a decaying rate.

Pieces come in a new random order in each epoch: text that was collected source by source would
otherwise be learned source by source, and the last one best.

The order, the learning rate and all chance of a chunk depend on the seed and the number of the
chunk only. So the whole state of a run is the two matrices and how many chunks are done, and a run
on one thread that was interrupted and resumed gives the bits of one that was not. So does a
deterministic run on several, whose threads train copies of the matrices (see ``replicas``).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.memory import check_memory
from nlpkit.word2vec.config import Loss, Word2VecConfig
from nlpkit.word2vec.engines import EngineName, make_engine, ngram_table, words_per_chunk
from nlpkit.word2vec.state import ROWS_AT_ONCE, TrainState, WordProgress
from nlpkit.word2vec.store import IdStore

if TYPE_CHECKING:
    from nlpkit.vectors.ngrams import NgramVectors
    from nlpkit.word2vec.exchange import Exchange, Peers
    from nlpkit.word2vec.replicas import Replicas
    from nlpkit.word2vec.tiles import Floats

SECONDS_PER_ROUND = 0.5  # between two progress records


class Word2VecTrainer:
    """Trains word vectors; ``train()`` yields progress, and between two records it may be left.

    >>> from nlpkit.word2vec.store import build_store
    >>> config = Word2VecConfig(dim=8, min_count=1, epochs=2, threads=1)
    >>> trainer = Word2VecTrainer(build_store([b"a b c a b\\n" * 50], config), config)
    >>> [record.epoch for record in trainer.train() if record.due]
    [1, 2]
    >>> trainer.state().input.shape
    (3, 8)
    """

    def __init__(
        self,
        store: IdStore,
        config: Word2VecConfig,
        *,
        device: str = "cpu",
        engine: EngineName | None = None,
        init: tuple[Sequence[str], Floats] | None = None,
        init_output: Floats | None = None,
        init_ngrams: NgramVectors | None = None,
        resume: TrainState | None = None,
        buckets: NDArray[np.int64] | None = None,
    ) -> None:
        self.config = config
        self.ngrams = ngram_table(store, config, buckets, init_ngrams)
        store.check()
        chunk = words_per_chunk(store)
        self._cuts = store.cuts(chunk)
        engine = engine or ("numba" if device == "cpu" else "torch")
        self.engine, self.device = engine, device
        rows = len(store.words) + (0 if self.ngrams is None else len(self.ngrams))
        if config.documents:
            if store.documents is None:
                raise NlpkitError("the corpus has no documents")
            rows += len(store.documents.names)
        if device == "cpu":
            copies = config.workers + 1 if config.deterministic and config.workers > 1 else 1
            check_memory(
                (rows + len(store.words)) * config.dim * 4 * copies,
                f"training {rows:,} vectors of {config.dim:,} dimensions",
                hint="a lower `dim` or `max_vocab`, or a higher `min_count`",
            )
        self._workers = config.workers if engine == "numba" else 1
        self._engine: Any
        self._replicas: Replicas | None = None
        self._exchange: Exchange | None = None
        if config.deterministic and self._workers > 1:
            from nlpkit.word2vec.replicas import Replicas

            alone = replace(config, threads=1)
            self._replicas = Replicas(
                [
                    make_engine(store, alone, chunk, device, engine, self.ngrams)
                    for _ in range(self._workers)
                ],
                store.counts,
                len(store),
                chunk,
            )
            self._engine = self._replicas
        else:
            self._engine = make_engine(store, config, chunk, device, engine, self.ngrams)
        self._chunks_done = resume.chunks_done if resume else 0
        self._loss_sum = resume.loss_sum if resume else 0.0
        self._loss_count = resume.loss_count if resume else 0
        if resume is None:
            # outputs of a tree belong to its nodes, which are others for other counts
            trained = None if config.loss is Loss.HS else init_output
            random = np.random.default_rng(config.seed)
            self._start_afresh(store, random, init, trained)
            if self.ngrams is not None:
                self._start_ngrams(len(store.words), random, init_ngrams)
            if store.documents is not None and config.documents:
                self._start_documents(len(store.words), random, store.documents.with_words)
        else:
            chunks = config.epochs * (len(self._cuts) - 1)
            resume.check(rows, len(store.words), config.dim, chunks)
            self._engine.set_rows(slice(0, rows), resume.input)
            self._engine.set_outputs(slice(0, len(store.words)), resume.output)
        self._first_number = 0  # of the chunks: those of other processes have other chances
        self._order = np.zeros(0, dtype=np.int64)  # of the chunks in the epoch under way
        self._lock = threading.Lock()
        self._stopping = False

    def _start_afresh(
        self,
        store: IdStore,
        random: np.random.Generator,
        init: tuple[Sequence[str], Floats] | None,
        init_output: Floats | None,
    ) -> None:
        """Small random inputs, zero outputs; words that ``init`` knows start from its vectors."""
        dim = self.config.dim
        place: dict[str, int] = {}
        if init is not None:
            if init[1].shape[1] != dim:
                raise NlpkitError(
                    f"the vectors to start from have {init[1].shape[1]} dimensions, not {dim}",
                    hint=f"`dim` {init[1].shape[1]}",
                )
            place = {word: i for i, word in enumerate(init[0])}
        for start in range(0, len(store.words), ROWS_AT_ONCE):
            words = store.words[start : start + ROWS_AT_ONCE]
            rows = _small_rows(random, len(words), dim)
            outputs = np.zeros_like(rows)
            for i, word in enumerate(words):
                if init is not None and word in place:
                    rows[i] = init[1][place[word]]
                    if init_output is not None:
                        outputs[i] = init_output[place[word]]
            here = slice(start, start + len(words))
            self._engine.set_rows(here, rows)
            self._engine.set_outputs(here, outputs)

    def _start_ngrams(
        self, first: int, random: np.random.Generator, init: NgramVectors | None
    ) -> None:
        """The rows after those of the words: as ``init`` has them, else small and random."""
        assert self.ngrams is not None
        for start in range(0, len(self.ngrams), ROWS_AT_ONCE):
            buckets = self.ngrams.buckets[start : start + ROWS_AT_ONCE]
            rows = _small_rows(random, len(buckets), self.config.dim)
            if init is not None:
                places, there = init.places(buckets)
                rows[there] = init.table[places[there]]
            self._engine.set_rows(slice(first + start, first + start + len(buckets)), rows)

    def _start_documents(
        self, first: int, random: np.random.Generator, with_words: NDArray[np.bool_]
    ) -> None:
        """The rows after those of the words; a document without a known word has zeros."""
        for start in range(0, len(with_words), ROWS_AT_ONCE):
            here = with_words[start : start + ROWS_AT_ONCE]
            rows = _small_rows(random, len(here), self.config.dim) * here[:, None]
            self._engine.set_rows(slice(first + start, first + start + len(here)), rows)

    def state(self) -> TrainState:
        """The state after the last record; its matrices change when training goes on."""
        inputs, outputs = self._engine.matrices()
        return TrainState(inputs, outputs, self._chunks_done, self._loss_sum, self._loss_count)

    def join(self, peers: Peers, counts: NDArray[np.int64]) -> None:
        """Train together with other processes, each on a text of its own."""
        from nlpkit.word2vec.exchange import Exchange

        chunks = len(self._cuts) - 1
        self._first_number = peers.rank << 40
        self._exchange = Exchange(peers, self._engine, counts, int(self._cuts[-1]), chunks)

    @property
    def rounds_done(self) -> int:
        """Exchanges with other processes so far."""
        assert self._exchange is not None
        chunks, rounds = len(self._cuts) - 1, self._exchange.rounds
        epoch, rest = divmod(self._chunks_done, chunks)
        return epoch * rounds + -(-rest * rounds // chunks)

    def start_together(self, rounds_done: int) -> None:
        """Begin, or go on, where the first process is."""
        assert self._exchange is not None
        chunks, rounds = len(self._cuts) - 1, self._exchange.rounds
        epoch, rest = divmod(rounds_done, rounds)
        self._chunks_done = epoch * chunks + chunks * rest // rounds
        self._exchange.start()

    @property
    def is_compiled(self) -> bool:
        """Whether the kernel is ready, so that training begins at once."""
        if self.engine != "numba":
            return True
        from nlpkit.kernels.compiling import is_compiled

        return is_compiled(self._engine.kernel)

    def compile(self) -> None:
        """Get the kernel ready. Takes some seconds the first time on a machine."""
        self._engine.compile()

    def train(self) -> Iterator[WordProgress]:
        """Train to the end of the last epoch. An interrupt leaves a state that can be resumed."""
        self.compile()
        per_epoch = len(self._cuts) - 1
        workers = [self._engine.make_worker() for _ in range(self._workers)]
        words_total = self.config.epochs * int(self._cuts[-1])
        fraction_before = self._fraction(self._chunks_done)
        seconds = 0.0  # of training: what is done with a record takes its own time
        round_size = self._workers
        with ThreadPoolExecutor(self._workers) as pool:
            while self._chunks_done < self.config.epochs * per_epoch:
                if self._chunks_done % per_epoch == 0:
                    self._loss_sum, self._loss_count = 0.0, 0
                epoch = self._chunks_done // per_epoch + 1
                self._order = _shuffled(per_epoch, self.config.seed, epoch)
                if self._replicas is not None:  # a round ends where the copies are equal
                    round_size = self._replicas.round_size(round_size)
                until = min(self._chunks_done + round_size, epoch * per_epoch)
                if self._exchange is not None:
                    done = (epoch - 1) * per_epoch
                    until = done + self._exchange.stop_after(self._chunks_done - done, per_epoch)
                begun, round_size = time.perf_counter(), until - self._chunks_done
                if self._replicas is None:
                    self._run_round(pool, until, workers)
                else:
                    self._run_merged(pool, until, workers)
                if self._exchange is not None:
                    self._exchange.merge()
                if not np.isfinite(self._loss_sum):
                    raise NlpkitError(
                        f"the loss became {self._loss_sum} in epoch {epoch}",
                        hint="a lower `lr`, or `engine` numba, which bears higher ones",
                    )
                taken = time.perf_counter() - begun
                seconds += taken
                round_size = max(self._workers, int(round_size * SECONDS_PER_ROUND / taken))
                fraction = self._fraction(until)
                yield WordProgress(
                    step=until,
                    fraction=fraction,
                    loss=self._loss_sum / max(self._loss_count, 1),  # of this epoch so far
                    learning_rate=self._lr(until),
                    speed=(fraction - fraction_before) * words_total / seconds,
                    seconds=seconds,
                    due=until == epoch * per_epoch,
                    epoch=epoch,
                    epochs=self.config.epochs,
                    words=round(fraction * words_total),
                )

    @property
    def finished(self) -> bool:
        """Whether the last epoch has ended."""
        return self._chunks_done >= self.config.epochs * (len(self._cuts) - 1)

    def _run_round(self, pool: ThreadPoolExecutor, until: int, workers: list[Any]) -> None:
        """Train chunks up to a number; whatever happens, each chunk begun is finished."""
        self._stopping = False
        futures = [pool.submit(self._work, until, worker) for worker in workers]
        try:
            for future in futures:
                future.result()
        finally:
            self._stopping = True
            wait(futures)

    def _run_merged(self, pool: ThreadPoolExecutor, until: int, workers: list[Any]) -> None:
        """The same with a fixed share of chunks for each thread, and copies that are merged now
        and then; all sums are made in the order of the chunks."""
        assert self._replicas is not None
        period = self._replicas.period
        while self._chunks_done < until:
            numbers = range(self._chunks_done, min(self._chunks_done + period, until))
            shares = [numbers[i :: len(workers)] for i in range(len(workers))]
            futures = [
                pool.submit(self._train_all, mine, worker)
                for mine, worker in zip(shares, workers, strict=True)
            ]
            wait(futures)
            found: dict[int, tuple[float, int]] = {}
            for mine, future in zip(shares, futures, strict=True):
                found.update(zip(mine, future.result(), strict=True))
            self._replicas.merge(pool)
            for number in numbers:
                self._loss_sum += found[number][0]
                self._loss_count += found[number][1]
            self._chunks_done = numbers.stop

    def _train_all(self, numbers: range, worker: Any) -> list[tuple[float, int]]:
        return [self._train(number, worker) for number in numbers]

    def _train(self, number: int, worker: Any) -> tuple[float, int]:
        """Train the chunk of that number."""
        chunk = self._order[number % len(self._order)]
        start, stop = int(self._cuts[chunk]), int(self._cuts[chunk + 1])
        found: tuple[float, int] = self._engine.train_piece(
            number + self._first_number, start, stop, self._lr(number), worker
        )
        return found

    def _work(self, until: int, worker: Any) -> None:
        while True:
            with self._lock:
                number = self._chunks_done
                if number >= until or self._stopping:
                    return
                self._chunks_done += 1
            loss, count = self._train(number, worker)
            with self._lock:
                self._loss_sum += loss
                self._loss_count += count

    def _fraction(self, number: int) -> float:
        """How much of the run is over when that many chunks are done."""
        return min(number / (self.config.epochs * (len(self._cuts) - 1)), 1.0)

    def _lr(self, number: int) -> float:
        """Falls in a straight line over all epochs."""
        first, last = self.config.starting_lr, self.config.min_lr
        return first + (last - first) * self._fraction(number)


def pick_device(name: str) -> str:
    """The CPU kernels need no torch, and asking torch for a GPU costs two seconds: look first."""
    has_gpu = sys.platform == "darwin" or any(Path("/dev").glob("nvidia[0-9]*"))
    if name == "cpu" or (name == "auto" and not has_gpu):
        return "cpu"
    from nlpkit.device import pick_device as pick

    return str(pick(name))


def _small_rows(random: np.random.Generator, rows: int, dim: int) -> Floats:
    return (random.random((rows, dim), dtype=np.float32) - np.float32(0.5)) / np.float32(dim)


def _shuffled(chunks: int, seed: int, epoch: int) -> NDArray[np.int64]:
    return np.random.default_rng((seed, epoch)).permutation(chunks)
