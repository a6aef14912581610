"""Sequences into arrays: Keras' padding, masks, one-hot, stable hashing, bags of words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.text.arrays import (
    SparseRows,
    bag_of_words,
    hashing,
    one_hot,
    pad_sequences,
    sequence_mask,
    stable_hash,
)

Side = Literal["pre", "post"]
ROWS = [[1], [2, 3], [4, 5, 6], [], [7, 8, 9, 10]]

# what Keras documents for pad_sequences, written out: short rows are filled, long ones cut
PADDED: dict[tuple[int | None, Side, Side], list[list[int]]] = {
    (None, "pre", "pre"): [
        *[[0, 0, 0, 1], [0, 0, 2, 3], [0, 4, 5, 6], [0, 0, 0, 0], [7, 8, 9, 10]],
    ],
    (None, "post", "pre"): [
        *[[1, 0, 0, 0], [2, 3, 0, 0], [4, 5, 6, 0], [0, 0, 0, 0], [7, 8, 9, 10]],
    ],
    (2, "pre", "pre"): [[0, 1], [2, 3], [5, 6], [0, 0], [9, 10]],
    (2, "pre", "post"): [[0, 1], [2, 3], [4, 5], [0, 0], [7, 8]],
    (2, "post", "pre"): [[1, 0], [2, 3], [5, 6], [0, 0], [9, 10]],
    (2, "post", "post"): [[1, 0], [2, 3], [4, 5], [0, 0], [7, 8]],
    (3, "pre", "pre"): [[0, 0, 1], [0, 2, 3], [4, 5, 6], [0, 0, 0], [8, 9, 10]],
    (3, "pre", "post"): [[0, 0, 1], [0, 2, 3], [4, 5, 6], [0, 0, 0], [7, 8, 9]],
    (3, "post", "pre"): [[1, 0, 0], [2, 3, 0], [4, 5, 6], [0, 0, 0], [8, 9, 10]],
    (3, "post", "post"): [[1, 0, 0], [2, 3, 0], [4, 5, 6], [0, 0, 0], [7, 8, 9]],
}


@pytest.mark.parametrize(("maxlen", "padding", "truncating"), PADDED)
def test_padding_and_cutting_as_keras_documents_it(
    maxlen: int | None, padding: Side, truncating: Side
) -> None:
    rows = pad_sequences(ROWS, maxlen, padding=padding, truncating=truncating)
    assert rows.tolist() == PADDED[maxlen, padding, truncating]
    assert rows.dtype == np.int32


def test_the_front_is_the_default_for_both_as_in_keras() -> None:
    assert pad_sequences(ROWS, 2).tolist() == PADDED[2, "pre", "pre"]


def test_another_value_and_another_type() -> None:
    rows = pad_sequences([[1], [2, 3]], value=-1, dtype="int64")
    assert rows.tolist() == [[-1, 1], [2, 3]]
    assert rows.dtype == np.int64


def test_no_rows_and_no_ids() -> None:
    assert pad_sequences([]).shape == (0, 0)
    assert pad_sequences([], 3).shape == (0, 3)
    assert pad_sequences([[], []]).shape == (2, 0)
    assert pad_sequences([[1, 2]], 0).shape == (1, 0)


@pytest.mark.parametrize("index", [2**31, -(2**31) - 1, 10**30])
def test_numbers_that_do_not_fit_are_an_error(index: int) -> None:
    with pytest.raises(NlpkitError, match=f"does not fit in int32: {index}"):
        pad_sequences([[1, index]])
    with pytest.raises(NlpkitError, match=f"does not fit in int32: {index}"):
        pad_sequences([[1]], value=index)


rows_of_ids = st.lists(st.lists(st.integers(1, 99), max_size=6), max_size=5)
sides: st.SearchStrategy[Side] = st.sampled_from(["pre", "post"])


@given(rows_of_ids, st.integers(1, 8), sides, sides)
@settings(max_examples=100, deadline=None)
def test_the_mask_marks_exactly_what_was_kept(
    rows: list[list[int]], maxlen: int, padding: Side, truncating: Side
) -> None:
    padded = pad_sequences(rows, maxlen, padding=padding, truncating=truncating)
    mask = sequence_mask([len(row) for row in rows], maxlen, padding=padding)
    assert mask.shape == padded.shape
    assert mask.dtype == np.bool_
    assert ((padded != 0) == mask).all()
    for row, kept, here in zip(rows, padded, mask, strict=True):
        expected = row[:maxlen] if truncating == "post" else row[-maxlen:]
        assert kept[here].tolist() == expected


def test_masks_at_both_sides() -> None:
    assert sequence_mask([0, 2, 9], 3, padding="post").astype(int).tolist() == [
        *[[0, 0, 0], [1, 1, 0], [1, 1, 1]],
    ]
    assert sequence_mask([0, 2, 9], 3).astype(int).tolist() == [[0, 0, 0], [0, 1, 1], [1, 1, 1]]


def test_one_hot_of_any_shape() -> None:
    assert one_hot([], 3).shape == (0, 3)
    assert (one_hot(range(4), 4) == np.eye(4)).all()
    ids = np.array([[0, 2], [1, 1]])
    rows = one_hot(ids, 3)
    assert rows.shape == (2, 2, 3)
    assert rows.dtype == np.uint8
    assert (rows.argmax(axis=-1) == ids).all()
    assert (rows.sum(axis=-1) == 1).all()


@pytest.mark.parametrize("bad", [-1, 3, 10**12])
def test_ids_out_of_range_are_named(bad: int) -> None:
    with pytest.raises(NlpkitError, match=rf"id {bad} is outside 0\.\.2"):
        one_hot([0, bad], 3)
    with pytest.raises(NlpkitError, match=rf"id {bad} is outside 0\.\.2"):
        bag_of_words([[0], [1, bad]], 3)


def test_hashes_are_these_numbers_on_every_machine() -> None:
    assert [stable_hash(token) for token in ["", "food", "naïve", "東京"]] == [
        13020603013274838756,
        10146740415574393807,
        15874322196465251006,
        17306041243353289198,
    ]
    assert hashing("cold food horrible service".split(), 50) == [42, 8, 33, 2]
    assert stable_hash("\ud800") != stable_hash("\ud801"), "half a pair from JSON is a token, too"


@given(st.lists(st.text()), st.integers(1, 1000))
@settings(max_examples=100, deadline=None)
def test_buckets_go_from_one_up_and_zero_stays_free(tokens: list[str], buckets: int) -> None:
    found = hashing(tokens, buckets)
    assert len(found) == len(tokens)
    assert all(1 <= bucket <= buckets for bucket in found)
    assert found == [hashing([token], buckets)[0] for token in tokens]


def test_no_buckets_are_an_error() -> None:
    with pytest.raises(NlpkitError, match="cannot hash into 0 buckets"):
        hashing(["a"], 0)


# --- bags of words ------------------------------------------------------------------------------

BAGS = [[1, 1, 2], [2, 3, 3, 3], [], [0]]
SIZE = 5


def counted(rows: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array([[row.count(column) for column in range(SIZE)] for row in map(list, rows)])


def test_binary_and_count() -> None:
    counts = counted(BAGS)
    assert (bag_of_words(BAGS, SIZE).to_dense() == counts).all()
    assert (bag_of_words(BAGS, SIZE, "binary").to_dense() == (counts > 0)).all()


def test_freq_is_the_share_of_the_text() -> None:
    counts = counted(BAGS)
    expected = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    assert np.allclose(bag_of_words(BAGS, SIZE, "freq").to_dense(), expected)


def test_tfidf_by_hand() -> None:
    rows = bag_of_words(BAGS, SIZE, "tfidf").to_dense()
    expected = np.zeros((4, SIZE))
    for i, row in enumerate(BAGS):
        for j in set(row):
            texts_with = sum(j in other for other in BAGS)
            expected[i, j] = (1 + math.log(row.count(j))) * math.log(1 + 4 / (1 + texts_with))
    assert np.allclose(rows, expected)
    assert rows[0, 1] == pytest.approx((1 + math.log(2)) * math.log(3))


def test_bags_of_nothing() -> None:
    for weighting in ("binary", "count", "freq", "tfidf"):
        assert bag_of_words([], 3, weighting).to_dense().shape == (0, 3)
        assert not bag_of_words([[], []], 3, weighting).to_dense().any()


@given(st.lists(st.lists(st.integers(0, SIZE - 1), max_size=6), max_size=5))
@settings(max_examples=50, deadline=None)
def test_a_bag_counts_each_id(rows: list[list[int]]) -> None:
    dense = bag_of_words(rows, SIZE).to_dense()
    assert dense.shape == (len(rows), SIZE)
    if rows:
        assert (dense == counted(rows)).all()


def test_sparse_rows_load_in_scipy(tmp_path: Path) -> None:
    bags = bag_of_words(BAGS, SIZE, "tfidf")
    path = str(tmp_path / "bags.npz")
    textio.write_array(path, **bags.arrays())
    loaded = scipy.sparse.load_npz(path)
    assert loaded.format == "csr"
    assert loaded.shape == (4, SIZE)
    assert np.allclose(loaded.toarray(), bags.to_dense())


def test_rows_of_a_sparse_matrix_end_where_indptr_says() -> None:
    sparse = SparseRows(
        np.array([5.0, 7.0]), np.array([1, 0], dtype=np.int32), np.array([0, 1, 1, 2]), (3, 2)
    )
    assert sparse.to_dense().tolist() == [[0, 5], [0, 0], [7, 0]]
