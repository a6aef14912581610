"""Which engine is faster here: a short timed trial of the CPU kernels and of torch on a device.

A GPU does batches of matrix products fast and small steps slowly, and word2vec is small steps:
which is faster depends on both chips, so both are asked. What the trial trains is thrown away.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any, NamedTuple

from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.engines import EngineName, make_engine, words_per_chunk
from nlpkit.word2vec.store import IdStore

TRIAL_SECONDS = 1.0  # of each engine, after what it does once


class Choice(NamedTuple):
    """An engine, where it runs, and why, if there was a choice."""

    engine: EngineName
    device: str
    why: str = ""


def choose_engine(store: IdStore, config: Word2VecConfig, device: str) -> Choice:
    """The faster of the CPU kernels and torch on ``device``; what only the former can do is theirs.

    >>> choose_engine(store, Word2VecConfig(), "cuda").why  # doctest: +SKIP
    'trial: kernels on the CPU 2,500,000 words/s, torch on cuda 900,000 words/s'
    """
    if config.subwords is not None or config.documents or config.deterministic:
        return Choice("numba", "cpu")
    one = replace(config, threads=1)
    by_kernels = _speed(store, one, "numba", "cpu") * config.workers
    by_torch = _speed(store, one, "torch", device)
    why = (
        f"trial: kernels on the CPU {by_kernels:,.0f} words/s, "
        f"torch on {device} {by_torch:,.0f} words/s"
    )
    if by_torch > by_kernels:
        return Choice("torch", device, why)
    return Choice("numba", "cpu", why)


def _speed(store: IdStore, config: Word2VecConfig, name: EngineName, device: str) -> float:
    """Words a second of one thread, for a second or an epoch, whichever is shorter."""
    size = words_per_chunk(store)
    engine: Any = make_engine(store, config, size, device, name, None)
    cuts = store.cuts(size).tolist()
    engine.compile()
    worker = engine.make_worker()
    engine.train_piece(0, cuts[0], cuts[1], config.starting_lr, worker)
    begun, words = time.perf_counter(), 0
    for number, (start, stop) in enumerate(itertools.pairwise(cuts), 1):
        engine.train_piece(number, start, stop, config.starting_lr, worker)
        words += stop - start
        if time.perf_counter() - begun > TRIAL_SECONDS:
            break
    return words / (time.perf_counter() - begun)
