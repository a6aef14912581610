"""Words made of character n-grams (Bojanowski et al. 2017): which rows each word has, and the
engine that trains them.

The rows of a model with V words are the V rows of the words themselves and then one for each
bucket that an n-gram of the vocabulary falls into. Buckets that no n-gram uses have no row here;
they are zeros when fastText's format wants them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nlpkit.vectors.ngrams import NgramVectors, TrainedRows, bucket_rows, word_vectors
from nlpkit.word2vec.config import Arch, Word2VecConfig
from nlpkit.word2vec.cpu import CpuEngine, Worker
from nlpkit.word2vec.kernels import Chunk
from nlpkit.word2vec.store import IdStore
from nlpkit.word2vec.subword_kernels import make_span_space, subword_piece

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

# Words of text whose vectors are gathered once. Longer spans gather less; but what a word learns
# reaches the words that share n-grams with it a span later, all from the same point.
SPAN = 128
_WORDS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class NgramTable:
    """The input rows of each word: its own, then those of its n-grams.

    >>> table = NgramTable.build(["as", "ass"], 3, 3, 1000)
    >>> table.rows_of(0).tolist(), table.rows_of(1).tolist(), len(table.buckets)
    ([0, 2, 4], [1, 2, 5, 3], 4)
    """

    starts: NDArray[np.int64]  # (V + 1,)
    rows: NDArray[np.int32]
    buckets: NDArray[np.int64]  # (K,) of the rows after the words', rising
    shortest: int
    longest: int
    n_buckets: int

    @classmethod
    def build(
        cls,
        words: Sequence[str],
        shortest: int,
        longest: int,
        n_buckets: int,
        also: NDArray[np.int64] | None = None,
    ) -> NgramTable:
        """The table of a vocabulary; buckets in ``also`` get a row even if no word uses them."""
        found, edges = [], [np.zeros(1, np.int64)]
        for start in range(0, len(words), _WORDS_AT_ONCE):
            block = words[start : start + _WORDS_AT_ONCE]
            some, ends = bucket_rows(block, n_buckets, shortest, longest)
            found.append(some)
            edges.append(edges[-1][-1] + ends[1:])
        all_buckets, ends = np.concatenate(found), np.concatenate(edges)
        kept = np.unique(all_buckets if also is None else np.concatenate([all_buckets, also]))
        places = np.searchsorted(kept, all_buckets) + len(words)
        owners = np.repeat(np.arange(len(words)), np.diff(ends))
        rows = np.empty(len(words) + len(places), np.int32)
        starts = ends + np.arange(len(ends))
        rows[starts[:-1]] = np.arange(len(words))
        rows[np.arange(len(places)) + owners + 1] = places
        return cls(starts, rows, kept, shortest, longest, n_buckets)

    def rows_of(self, word: int) -> NDArray[np.int32]:
        """The rows of the word with this number."""
        return self.rows[self.starts[word] : self.starts[word + 1]]

    def __len__(self) -> int:
        """How many rows there are for n-grams."""
        return len(self.buckets)


class SubwordEngine(CpuEngine):
    """The CPU engine with words made of n-grams: more input rows, and its own kernel."""

    def __init__(
        self, store: IdStore, config: Word2VecConfig, words_per_piece: int, table: NgramTable
    ) -> None:
        super().__init__(store, config, words_per_piece, more_inputs=len(table))
        self.table = table

    def make_worker(self) -> Worker:
        """What one thread needs."""
        at = make_span_space(SPAN, self.config.window, self.width, self.vocabulary)
        return replace(super().make_worker(), span=at)

    def input_updates(self, kept: NDArray[np.float64]) -> NDArray[np.float64]:
        """A row is updated with each word that it is part of."""
        updates = np.zeros(self.inputs)
        np.add.at(updates, self.table.rows, np.repeat(kept, np.diff(self.table.starts)))
        return updates

    kernel = subword_piece

    def _run(self, chunk: Chunk, worker: Worker) -> tuple[float, int]:
        found: tuple[float, int] = subword_piece(
            chunk,
            self.input,
            self.output,
            self.config.arch is Arch.CBOW,
            SPAN,
            self.table.starts,
            self.table.rows,
            worker.span,
            worker.space,
        )
        return found


def compose(
    words: Sequence[str], inputs: Floats, context: Floats | None, table: NgramTable, cbow: bool
) -> tuple[Floats, NgramVectors]:
    """From trained rows (V + K, D) the word vectors (V, D), and what unknown words need."""
    own = inputs[: len(words)]
    subwords = NgramVectors(
        inputs[len(words) :],
        table.n_buckets,
        table.shortest,
        table.longest,
        kept=table.buckets,
        trained=TrainedRows(own, context, cbow),
    )
    return word_vectors(words, own, subwords), subwords
