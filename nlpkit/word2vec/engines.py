"""Which engine trains what, and the n-grams that it may need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.vectors.settings import parse_lengths
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.store import IdStore

if TYPE_CHECKING:
    from nlpkit.vectors.ngrams import NgramVectors
    from nlpkit.word2vec.subwords import NgramTable

EngineName = Literal["numba", "torch"]

# Small enough for the learning rate to fall smoothly and for threads to end together.
MOST_WORDS_PER_CHUNK = 20_000
LEAST_WORDS_PER_CHUNK = 1_000
CHUNKS_PER_EPOCH = 100  # of a small corpus


def words_per_chunk(store: IdStore) -> int:
    """How many words are handed to a thread at once."""
    wanted = max(len(store) // CHUNKS_PER_EPOCH, LEAST_WORDS_PER_CHUNK)
    return min(wanted, MOST_WORDS_PER_CHUNK)


def ngram_table(
    store: IdStore,
    config: Word2VecConfig,
    buckets: NDArray[np.int64] | None,
    init: NgramVectors | None,
) -> NgramTable | None:
    """Which rows each word has, if words are made of n-grams; ``buckets`` have a row anyway."""
    if config.subwords is None:
        return None
    from nlpkit.word2vec.subwords import NgramTable

    shortest, longest = parse_lengths(config.subwords)
    if init is not None:
        if (init.shortest, init.longest, init.buckets) != (shortest, longest, config.buckets):
            raise NlpkitError(
                f"the model to start from has n-grams {init.shortest}-{init.longest} "
                f"in {init.buckets} buckets",
                hint=f"`subwords` {init.shortest}-{init.longest}, `buckets` {init.buckets}",
            )
        used = np.flatnonzero(init.table.any(axis=1))
        buckets = used if init.kept is None else np.asarray(init.kept, np.int64)[used]
    return NgramTable.build(store.words, shortest, longest, config.buckets, buckets)


def make_engine(
    store: IdStore,
    config: Word2VecConfig,
    chunk: int,
    device: str,
    engine: EngineName,
    ngrams: NgramTable | None,
) -> Any:
    """The engine of that name for what is to be trained; some are for the CPU only."""
    if engine == "numba":
        if device != "cpu":
            raise NlpkitError(f"the numba kernels run on the CPU, not on {device}")
        if ngrams is not None:
            from nlpkit.word2vec.subwords import SubwordEngine

            return SubwordEngine(store, config, chunk, ngrams)
        if config.documents:
            from nlpkit.word2vec.document_engine import DocumentEngine

            return DocumentEngine(store, config, chunk)
        from nlpkit.word2vec.cpu import CpuEngine

        return CpuEngine(store, config, chunk)
    if ngrams is not None:
        raise NlpkitError("n-grams are trained on the CPU", hint="`device` cpu, `engine` numba")
    if config.documents:
        raise NlpkitError("documents are trained on the CPU", hint="`device` cpu, `engine` numba")
    from nlpkit.word2vec.torch_engine import TorchEngine

    return TorchEngine(store, config, chunk, device)
