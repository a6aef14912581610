"""The batcher: every sequence once in an epoch, so many tokens, the same from a seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.training.batches import Batches, Ragged, plan

LENGTHS = st.lists(st.integers(0, 60), min_size=1, max_size=80)


def texts(lengths: list[int]) -> list[list[int]]:
    return [[row + 1] * length for row, length in enumerate(lengths)]


@settings(deadline=None, max_examples=60)
@given(LENGTHS, st.integers(1, 300), st.integers(0, 5), st.none() | st.integers(1, 9))
def test_an_epoch_has_every_sequence_once_in_batches_of_so_many_tokens(
    lengths: list[int], tokens: int, seed: int, most_rows: int | None
) -> None:
    batches = Batches(texts(lengths), tokens=tokens, seed=seed, most_rows=most_rows)
    for epoch in range(3):
        numbers = range(epoch * batches.per_epoch, (epoch + 1) * batches.per_epoch)
        rows = np.concatenate([batches.rows(number) for number in numbers])
        assert sorted(rows.tolist()) == list(range(len(lengths)))
        for number in numbers:
            batch = batches[number]
            (padded,) = batch.columns
            assert len(batch.rows) == 1 or padded.ids.size <= tokens
            assert most_rows is None or len(batch.rows) <= most_rows
            assert padded.lengths.tolist() == [lengths[row] for row in batch.rows]
            assert (padded.ids == (batch.rows + 1)[:, None] * padded.mask).all()


def test_batches_are_the_same_whatever_came_before() -> None:
    data = texts(np.random.default_rng(1).integers(1, 30, 100).tolist())
    one, other = (Batches(data, tokens=64, seed=4) for _ in range(2))
    in_order = [one.rows(number).tolist() for number in range(3 * one.per_epoch)]
    assert [other.rows(n).tolist() for n in reversed(range(len(in_order)))] == in_order[::-1]
    first, second = in_order[: one.per_epoch], in_order[one.per_epoch : 2 * one.per_epoch]
    assert sorted(map(len, first)) == sorted(map(len, second))
    assert {frozenset(rows) for rows in first} != {frozenset(rows) for rows in second}
    assert [Batches(data, tokens=64, seed=5).rows(0).tolist()] != in_order[:1]


def test_pairs_fit_by_their_longer_side_and_little_is_padding() -> None:
    generator = np.random.default_rng(1)
    sources = generator.integers(1, 40, 2000)
    targets = np.maximum(1, sources + generator.integers(-5, 6, 2000))
    batches = Batches(texts(sources.tolist()), texts(targets.tolist()), tokens=1000, seed=1, fill=9)
    padded = tokens = 0
    for number in range(batches.per_epoch):
        batch = batches[number]
        for column, lengths in zip(batch.columns, (sources, targets), strict=True):
            assert column.lengths.tolist() == lengths[batch.rows].tolist()
            assert column.ids.size <= 1000
            assert (column.ids[~column.mask] == 9).all()
            padded += column.ids.size
            tokens += int(column.mask.sum())
    assert tokens / padded > 0.9


def test_without_a_generator_the_longest_come_first() -> None:
    rows = plan([3, 9, 2, 3, 1, 9], 18)
    assert [chosen.tolist() for chosen in rows] == [[1, 5], [0, 3, 2, 4]]
    assert plan([], 18) == []
    assert [len(chosen) for chosen in plan([1] * 5, 18, most_rows=2)] == [2, 2, 1]


def test_columns_of_unlike_size_are_refused() -> None:
    with pytest.raises(ValueError):
        Batches([[1]], [[1], [2]], tokens=4, seed=1)


def test_tensors_share_ids_and_mask() -> None:
    padded = Ragged([[1, 2], [3]]).pad([1, 0], fill=-1)
    idx, mask = padded.tensors()
    assert idx.tolist() == [[3, -1], [1, 2]]
    assert mask.tolist() == [[True, False], [True, True]]
