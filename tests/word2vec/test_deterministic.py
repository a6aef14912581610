"""Threads that repeat themselves: equal bytes, exact resume, and how copies are merged."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import TokenSettings
from nlpkit.word2vec import replicas
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.model import Word2VecRun, begin
from nlpkit.word2vec.replicas import merge_rows, merge_weights
from nlpkit.word2vec.resume import load_checkpoint
from nlpkit.word2vec.store import build_store

GROUPS = [[f"sea{i}" for i in range(20)], [f"hill{i}" for i in range(20)]]


def run_of(**changes: object) -> Word2VecRun:
    random = np.random.default_rng(2)
    lines = [" ".join(random.choice(GROUPS[i % 2], 8)) for i in range(1500)]
    settings = {"dim": 12, "min_count": 1, "deterministic": True, "threads": 3, "epochs": 3}
    config = Word2VecConfig(**{**settings, **changes})  # type: ignore[arg-type]
    return begin(build_store(["\n".join(lines).encode()], config), "h", config, TokenSettings())


def state_of(run: Word2VecRun) -> list[bytes]:
    state = run.words_trainer.state()
    return [state.input.tobytes(), state.output.tobytes(), repr(state.loss_sum).encode()]


KINDS: list[dict[str, object]] = [
    {},
    {"arch": "cbow"},
    {"loss": "hs"},
    {"loss": "softmax"},
    {"subwords": "3-4", "buckets": 500},
    {"documents": True},
]


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_threads_give_the_same_bytes_every_time(changes: dict[str, object]) -> None:
    runs = [run_of(**changes) for _ in range(2)]
    for run in runs:
        run.fit()
    assert state_of(runs[0]) == state_of(runs[1])
    other = run_of(**changes, threads=2)
    other.fit()
    assert state_of(other) != state_of(runs[0]), "it depends on the number of threads"


def test_words_of_a_kind_are_neighbours() -> None:
    run = run_of(epochs=10)
    run.fit()
    matrix = run.result().matrix
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    nearest = (unit @ unit.T - 2 * np.eye(40)).argmax(axis=1)
    words = run.store.words
    assert all(words[i][:3] == words[j][:3] for i, j in enumerate(nearest))


def test_an_interrupted_run_goes_on_exactly(tmp_path: Path) -> None:
    whole = run_of()
    whole.fit()
    first = run_of()
    steps = first.steps()
    for _ in range(3):
        next(steps)
    steps.close()
    assert not first.finished
    first.save_checkpoint(tmp_path / "c")
    given = Word2VecConfig(**{**first.config.to_settings(), "threads": None})
    again = load_checkpoint(tmp_path / "c", given, first.tokens, first.sources, device="cpu")
    again.fit()
    assert state_of(again) == state_of(whole)
    other = Word2VecConfig(**{**first.config.to_settings(), "threads": 2})
    with pytest.raises(NlpkitError, match="with threads 3, not 2"):
        load_checkpoint(tmp_path / "c", other, first.tokens, first.sources, device="cpu")


def test_merging_adds_up_changes_by_weight() -> None:
    random = np.random.default_rng(1)
    copies = random.normal(size=(4, 5, 16)).astype(np.float32)
    weights = np.array([1, 0.5, 1 / 3, 0, 1], np.float32)
    base = copies[0].copy()
    expected = base + weights[:, None] * (copies[1:] - base).sum(axis=0)
    with ThreadPoolExecutor(2) as pool:
        for cut in ((0, 2), (2, 5)):
            pool.submit(merge_rows, copies, weights, *cut).result()
    for copy in copies:
        np.testing.assert_allclose(copy, expected, atol=1e-5)


def test_frequent_rows_are_averaged_and_rare_ones_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "STEP", 0.5)
    weights = merge_weights(np.array([0.0, 1.0, 2.0, 100.0]), 4)
    assert weights[0] == pytest.approx(1, abs=1e-4)
    assert weights[1] == pytest.approx((1 - 0.5**4) / (4 * 0.5))
    assert weights[3] == pytest.approx(1 / 4)
    assert (np.diff(weights) < 0).all()
