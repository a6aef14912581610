"""GloVe and its counting: against plain loops, on disk and in memory, stopped and resumed."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.vectors import cooccurrence, glove
from nlpkit.vectors.cooccurrence import PairCounter
from nlpkit.vectors.glove import GloveTrainer, Shards
from nlpkit.vectors.glove_run import GloveRun
from nlpkit.vectors.settings import CountSettings
from nlpkit.vectors.words import ListedWords

SMALL = CountSettings(method="glove", dim=8, window=4, epochs=6, x_max=10, threads=1, lr=0.1)


def ids_of(lines: list[list[int]]) -> np.ndarray:
    return np.array([id for line in lines for id in [*line[:-1], ~line[-1]]], np.int32)


def corpus(lines: int = 300) -> np.ndarray:
    """Words 0-4 keep together, and so do 5-9."""
    random = np.random.default_rng(2)
    return ids_of([(random.permutation(5) + 5 * (i % 2)).tolist() for i in range(lines)])


def counted(ids: np.ndarray, size: int = 10, chosen: CountSettings = SMALL) -> PairCounter:
    counter = PairCounter(size, chosen)
    counter.add(ids)
    return counter


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=9), max_size=12))
def test_runs_on_disk_count_as_a_plain_loop(lines: list[list[int]]) -> None:
    expected: Counter[tuple[int, int]] = Counter()
    for line in lines:
        for i, first in enumerate(line):
            for distance, second in enumerate(line[i + 1 : i + 5], 1):
                expected[min(first, second), max(first, second)] += 1 / distance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cooccurrence, "_FIRST_SLOTS", 32)
        patch.setattr(cooccurrence, "_ENTRIES_AT_ONCE", 3)
        counter = PairCounter(8, SMALL, memory_limit=1)
        counter.add(ids_of(lines))
        found = [
            ((int(a), int(b)), float(n))
            for part in counter.pairs()
            for a, b, n in zip(*part, strict=True)
        ]
    assert [pair for pair, _ in found] == sorted(expected)
    for pair, count in found:
        assert count == pytest.approx(expected[pair])


def test_shards_hold_both_directions_of_each_pair_once() -> None:
    shards = Shards(counted(corpus()), SMALL)
    records = np.concatenate([shards.read(shard) for shard in range(len(shards))])
    assert len(records) == shards.pairs == 2 * 5 * 4
    assert {(r["word"], r["near"]) for r in records} == {(r["near"], r["word"]) for r in records}
    weights = np.minimum(1, (np.exp(records["log"].astype(float)) / 10) ** 0.75)
    np.testing.assert_allclose(records["weight"], weights, rtol=1e-4)


def test_a_step_is_the_formula() -> None:
    """One pair, one step, by hand."""
    counter = counted(ids_of([[0, 1]] * 3), size=2)
    trainer = GloveTrainer(Shards(counter, SMALL), 2, SMALL)
    words, nears = (np.array(trainer.state()[name], float) for name in ("words", "nears"))
    pair = trainer._shards.read(0)[:1]
    a, b = words[pair["word"][0]], nears[pair["near"][0]]
    error = a @ b - np.log(3)
    assert np.isclose(a @ b, a[:8] @ b[:8] + a[8] + b[9])  # the biases
    scaled = (3 / 10) ** 0.75 * error
    step = 0.1 * scaled
    columns = [np.ascontiguousarray(pair[name]) for name in ("word", "near", "log", "weight")]
    order = np.zeros(1, np.int32)
    loss = glove._train(
        *columns, order, *trainer._rows, *trainer._squares, np.float32(0.1), SMALL.dim
    )
    assert loss == pytest.approx(0.5 * (3 / 10) ** 0.75 * error**2, rel=1e-4)
    moved = np.array(trainer._rows[0][pair["word"][0]], float)
    np.testing.assert_allclose(moved[:8], (a - step * b)[:8], atol=1e-5)
    squares = trainer._squares[0][pair["word"][0]]
    np.testing.assert_allclose(squares[:8], 1 + (step * b[:8]) ** 2, atol=1e-5)
    # biases learn at a rate of 1; what they are multiplied with stays 1
    other = np.array(trainer._rows[1][pair["near"][0]], float)
    assert [moved[8], other[9]] == pytest.approx([a[8] - scaled, b[9] - scaled], abs=1e-5)
    assert [moved[9], other[8]] == [1, 1]
    assert squares[8] == pytest.approx(1 + scaled**2, abs=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_words_that_keep_together_are_near(threads: int) -> None:
    chosen = CountSettings(**{**vars(SMALL), "threads": threads, "epochs": 30})
    # some lines have words of both groups: pairs that never meet are not learned from, and of pairs
    # that meet equally often biases say all
    mixed = ids_of([[i % 5, 5 + i // 5] for i in range(25)] * 2)
    ids = np.concatenate([corpus(), mixed])
    trainer = GloveTrainer(Shards(counted(ids), chosen), 10, chosen)
    losses = [record.loss for record in trainer.train()]
    assert losses[-1] < losses[0] / 2
    vectors = trainer.vectors()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    same = cosines[:5, :5][~np.eye(5, dtype=bool)].mean()
    assert same > cosines[:5, 5:].mean() + 0.2


def run_of(text: str = "hash", **changes: object) -> GloveRun:
    chosen = CountSettings(**{**vars(SMALL), **changes})
    words = ListedWords([f"w{i}" for i in range(10)], np.ones(10, np.int64))
    return GloveRun(corpus(), words, text, chosen)


def test_a_resumed_run_gives_the_same_bits(tmp_path: Path) -> None:
    whole, begun, again = run_of(), run_of(), run_of()
    assert [progress.step for progress in whole.steps()] == [1, 2, 3, 4, 5, 6]
    for _, _ in zip(range(2), begun.steps(), strict=False):
        pass
    begun.save_checkpoint(tmp_path / "c")
    again.load_checkpoint(tmp_path / "c")
    assert [progress.step for progress in again.steps()][-1] == 6
    assert again.finished
    np.testing.assert_array_equal(again.result().matrix, whole.result().matrix)
    with pytest.raises(NlpkitError, match="other text"):
        run_of("another").load_checkpoint(tmp_path / "c")
    with pytest.raises(NlpkitError, match=r"made with x_max 10, not 9"):
        run_of(x_max=9).load_checkpoint(tmp_path / "c")


def test_shards_on_disk_are_those_in_memory() -> None:
    some, others = (Shards(counted(corpus()), SMALL, memory_limit=n) for n in (1 << 30, 100))
    for shard in range(len(some)):
        np.testing.assert_array_equal(some.read(shard), others.read(shard))


def test_a_text_without_pairs_is_refused() -> None:
    with pytest.raises(NlpkitError, match="no two known words"):
        GloveTrainer(Shards(counted(ids_of([[0], [1]])), SMALL), 10, SMALL)
