"""The CPU engine: which kernel trains a chunk of the corpus, and with which tables."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.word2vec.blocks import Steps, Workspace, make_workspace
from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig
from nlpkit.word2vec.exact import exact_piece
from nlpkit.word2vec.huffman import HuffmanTree, build_tree
from nlpkit.word2vec.kernels import Chunk, cbow_piece, skipgram_piece
from nlpkit.word2vec.sampling import keep_limits, make_noise, noise_probabilities
from nlpkit.word2vec.store import LONGEST_SENTENCE, IdStore
from nlpkit.word2vec.tiles import ROWS, aligned_zeros, padded

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

# Centre words to a block. Longer blocks read fewer rows, but all steps of a block start from the
# same point, and at some length that begins to cost quality.
BLOCK = 32
# Noise words that a block shares, for each one that is asked for: sharing saves most of the work
# and costs some variety, and this many give it back. CBOW, which takes one step for a window where
# skip-gram takes one for each word of it, needs more; with the document in its window it does not.
# Rounded up to whole tiles.
SHARED_NOISE = {Arch.SKIPGRAM: 3, Arch.CBOW: 6}
# Most frequent words whose rows every thread has copies of while it trains a chunk: where several
# write to the same rows all the time, the processor spends its time on carrying them to and fro.
HOT_WORDS = 256


@dataclass(frozen=True)
class Worker:
    """What belongs to one thread."""

    space: Workspace
    own: int  # where its copies of the hot rows begin, in both matrices
    before: Floats  # (2, hot, width) inputs and outputs as they were copied
    span: Any = None  # room for words that are made of n-grams


class CpuEngine:
    """Both matrices in memory, and a function that trains on one chunk. Threads may call it at
    once, each as a worker of its own: they write to the same rows without locks (Hogwild), and
    lose an update now and then, which does no harm. Of hot rows they change copies, and what has
    changed is added to the rows when a chunk is done."""

    def __init__(
        self,
        store: IdStore,
        config: Word2VecConfig,
        words_per_piece: int,
        *,
        more_inputs: int = 0,  # rows after those of the words
    ) -> None:
        self.config = config
        self.ids = store.ids.view()
        self.ids.flags.writeable = False  # one type, and one compiled kernel, for all stores
        self.longest_piece = words_per_piece + LONGEST_SENTENCE
        self.width = padded(config.dim)
        self.vocabulary = len(store.words)
        several = config.workers > 1 and config.loss is Loss.NS
        self.hot = min(HOT_WORDS, self.vocabulary // 100) if several else 0
        copies = config.workers * self.hot
        self.inputs = self.vocabulary + more_inputs
        self.input = aligned_zeros(self.inputs + (0 if more_inputs else copies), self.width)
        self.output = aligned_zeros(self.vocabulary + copies, self.width)
        # of inputs that are shared by words in other ways, threads have no copies
        self.copied = (self.output,) if more_inputs else (self.input, self.output)
        self._workers = 0
        self._lock = threading.Lock()
        self.keep = keep_limits(store.counts, config.sample)
        self.noise = make_noise(store.counts, config.ns_exponent)
        self.tree = _NO_TREE
        if config.loss is Loss.HS:
            self.tree = build_tree(store.counts)
            self.outputs_per_block = self.tree.longest
        elif config.loss is Loss.SOFTMAX:
            self.outputs_per_block = len(store.words)
        else:
            self.outputs_per_block = noise_per_block(config)

    def matrices(self) -> tuple[Floats, Floats]:
        """The rows of inputs, and of what is predicted: (inputs or vocabulary, dim)."""
        columns = slice(self.config.dim)
        return self.input[: self.inputs, columns], self.output[: self.vocabulary, columns]

    def set_rows(self, rows: slice, inputs: Floats) -> None:
        """Start from these vectors."""
        self.input[rows, : self.config.dim] = inputs

    def set_outputs(self, rows: slice, outputs: Floats) -> None:
        """Start from these predictions."""
        self.output[rows, : self.config.dim] = outputs

    def make_worker(self) -> Worker:
        """What one thread needs."""
        space = make_workspace(
            BLOCK if self.config.loss is Loss.NS else 1,
            self.outputs_per_block,
            self.config.window,
            self.width,
            self.longest_piece,
            slots=self.inputs > self.vocabulary,
            documents=self.config.documents,
            parts=self.config.subwords is not None,
        )
        if self.config.loss is Loss.SOFTMAX:
            space.noise[:] = np.arange(len(space.noise), dtype=np.int32)
        own = self.vocabulary + self._workers % self.config.workers * self.hot
        self._workers += 1
        return Worker(space, own, np.empty((2, self.hot, self.width), np.float32))

    def train_piece(
        self, number: int, start: int, stop: int, lr: float, worker: Worker
    ) -> tuple[float, int]:
        """Train on ``ids[start:stop]``; returns the sum of measured losses and their number."""
        # Kernels check no bounds: refuse what is no chunk of the corpus.
        if not 0 <= start <= stop <= len(self.ids) or stop - start > self.longest_piece:
            raise IndexError(f"ids {start}:{stop} are no chunk")
        config = self.config
        chunk = Chunk(
            self.ids,
            start,
            stop,
            config.seed,
            number,
            self.keep,
            self.noise,
            config.shrink_windows,
            BLOCK,
            steps_of(config, lr),
            self.hot,
            worker.own,
        )
        self._copy_hot(worker)
        found = self._run(chunk, worker)
        self._merge_hot(worker)
        return found

    @property
    def kernel(self) -> Any:
        """What trains a chunk."""
        if self.config.loss is not Loss.NS:
            return exact_piece
        return cbow_piece if self.config.arch is Arch.CBOW else skipgram_piece

    def _run(self, chunk: Chunk, worker: Worker) -> tuple[float, int]:
        how: tuple[Any, ...] = ()
        if self.config.loss is not Loss.NS:
            how = self.tree, self.config.loss is Loss.SOFTMAX, self.config.arch is Arch.CBOW
        found: tuple[float, int] = self.kernel(chunk, self.input, self.output, *how, worker.space)
        return found

    def _copy_hot(self, worker: Worker) -> None:
        own = slice(worker.own, worker.own + self.hot)
        for matrix, before in zip(self.copied, worker.before, strict=False):
            before[:] = matrix[: self.hot]
            matrix[own] = before

    def _merge_hot(self, worker: Worker) -> None:
        own = slice(worker.own, worker.own + self.hot)
        # two threads go in the same direction twice as far; many at once would go too far
        share = np.float32(min(1, 2 / self.config.workers))
        with self._lock:
            for matrix, before in zip(self.copied, worker.before, strict=False):
                matrix[: self.hot] += share * (matrix[own] - before)

    def updates_per_row(
        self, counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How often the text updates each input and each output row, about."""
        kept = counts * (self.keep / np.float64(2**32 - 1))  # (vocabulary,)
        if self.config.loss is Loss.HS:
            lengths = np.diff(self.tree.starts)
            outputs = np.zeros(len(self.output))
            np.add.at(outputs, self.tree.nodes, np.repeat(kept, lengths))
        elif self.config.loss is Loss.SOFTMAX:
            outputs = np.full(len(kept), kept.sum())
        else:
            share = noise_probabilities(counts, self.config.ns_exponent)
            outputs = kept + share * kept.sum() * self.outputs_per_block / BLOCK
        return self.input_updates(kept), outputs[: len(self.output)]

    def input_updates(self, kept: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for input rows, by how often each word occurs; others are met by few."""
        return np.concatenate([kept, np.zeros(self.inputs - self.vocabulary)])

    def compile(self) -> None:
        """Compile or load the kernel, by training on nothing."""
        self.train_piece(0, 0, 0, 0.0, self.make_worker())


_NO_TREE = HuffmanTree(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))


def noise_per_block(config: Word2VecConfig) -> int:
    """Noise words that a block shares, in whole tiles.

    >>> noise_per_block(Word2VecConfig(negative=5))
    16
    >>> noise_per_block(Word2VecConfig(negative=5, arch=Arch.CBOW))
    32
    >>> noise_per_block(Word2VecConfig(negative=5, arch=Arch.CBOW, documents=True))
    16
    """
    shared = SHARED_NOISE[Arch.SKIPGRAM if config.documents else config.arch]
    return -(-config.negative * shared // ROWS) * ROWS


def steps_of(config: Word2VecConfig, lr: float, *, frozen: bool = False) -> Steps:
    """How blocks learn at this rate."""
    share = np.float32(config.negative / noise_per_block(config))
    return Steps(config.window, config.cbow_mean, frozen, share, np.float32(lr))
