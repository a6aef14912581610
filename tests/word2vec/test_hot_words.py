"""Copies of the rows of frequent words: one thread with them is one thread without them."""

from __future__ import annotations

import numpy as np
import pytest

from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig
from nlpkit.word2vec.cpu import CpuEngine
from nlpkit.word2vec.store import IdStore, build_store


def make_store() -> IdStore:
    generator = np.random.default_rng(1)
    numbers = np.minimum(generator.zipf(1.3, 20_000), 999)
    lines = numbers.reshape(-1, 20)
    text = "".join(" ".join(f"w{n}" for n in line) + "\n" for line in lines.tolist())
    return build_store([text.encode()], Word2VecConfig(min_count=1))


def engine_of(store: IdStore, threads: int, arch: Arch = Arch.SKIPGRAM) -> CpuEngine:
    config = Word2VecConfig(arch=arch, dim=12, min_count=1, threads=threads)
    engine = CpuEngine(store, config, 5000)
    rows = np.random.default_rng(2).normal(size=(len(store.words), 12)).astype(np.float32)
    engine.set_rows(slice(0, len(rows)), rows)
    engine.set_outputs(slice(0, len(rows)), rows[::-1])
    return engine


@pytest.mark.parametrize("arch", Arch)
def test_one_worker_alone_learns_the_same_with_copies_as_without(arch: Arch) -> None:
    store = make_store()
    plain, copying = engine_of(store, 1, arch), engine_of(store, 2, arch)
    assert plain.hot == 0
    assert copying.hot == len(store.words) // 100 > 3
    before = np.array(copying.matrices()[0])
    for engine in (plain, copying):
        worker = engine.make_worker()
        for number in range(2):
            engine.train_piece(number, 5000 * number, 5000 * (number + 1), 0.05, worker)
    for one, other in zip(plain.matrices(), copying.matrices(), strict=True):
        assert np.abs(one - other).max() < 1e-5
    assert np.abs(copying.matrices()[0] - before)[: copying.hot].max() > 0.01


def test_what_workers_learn_at_the_same_time_is_added_up() -> None:
    store = make_store()
    engine = engine_of(store, 2)
    first, second = engine.make_worker(), engine.make_worker()
    assert abs(first.own - second.own) == engine.hot
    before = np.array(engine.input[: engine.hot])
    for worker in (first, second):
        engine._copy_hot(worker)
        engine.input[worker.own] += 1
    for worker in (first, second):
        engine._merge_hot(worker)
    changed = engine.input[: engine.hot] - before
    assert changed[0].tolist() == pytest.approx([2] * engine.width)
    assert not changed[1:].any()


def test_many_workers_do_not_go_too_far() -> None:
    engine = engine_of(make_store(), 8)
    before = np.array(engine.input[0])
    workers = [engine.make_worker() for _ in range(8)]
    for worker in workers:
        engine._copy_hot(worker)
        engine.input[worker.own] += 1
    for worker in workers:
        engine._merge_hot(worker)
    assert (engine.input[0] - before).tolist() == pytest.approx([2] * engine.width)


def test_trees_and_full_softmax_have_no_copies() -> None:
    for loss in (Loss.HS, Loss.SOFTMAX):
        config = Word2VecConfig(loss=loss, dim=8, min_count=1, threads=4)
        assert CpuEngine(make_store(), config, 1000).hot == 0
