"""Hashed features: which get a row, what unknown ones say, and how their scores are kept small."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.nn.sparse import SparseAdagrad
from nlpkit.tasks.tag import hashed_features
from nlpkit.tasks.tag.hashed_features import (
    AFFIX_LENGTHS,
    N_HASHES,
    feature_hashes,
    find_rows,
    known_features,
)
from nlpkit.tasks.tag.model import LinearTable


def test_all_features_get_a_row_in_order_with_how_often_they_occur() -> None:
    hashes = np.array([[7, 3], [7, 5]])
    known, counts = known_features(hashes, np.array([10, 1]), width=4)
    assert known.tolist() == [3, 5, 7]
    assert counts.tolist() == [10, 1, 11]


def test_where_there_is_no_room_the_rare_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashed_features, "TABLE_CELLS", 8)
    known, _ = known_features(np.array([[7, 3], [7, 5]]), np.array([10, 1]), width=4)
    assert known.tolist() == [3, 7]


def test_a_feature_that_is_not_known_says_nothing() -> None:
    table = LinearTable(np.array([[3, 7]]), np.array([1]), width=2).eval()
    with torch.no_grad():
        table.table.weight[1:] = torch.tensor([[1.0, 2.0], [10.0, 20.0]])
    rows = find_rows(table.known.numpy(), np.array([[3, 7], [3, 5], [0, 99]]))
    said = table(torch.from_numpy(rows))
    assert said.tolist() == [[11.0, 22.0], [1.0, 2.0], [0.0, 0.0]]


@pytest.mark.parametrize(("penalty", "best"), [(0.0, 1.0), (2.0, 0.5), (6.0, 0.25)])
def test_a_penalty_moves_the_minimum_to_where_it_should_be(penalty: float, best: float) -> None:
    table = torch.nn.Embedding(2, 1, sparse=True)
    untouched = table.weight[0].item()
    optimizer = SparseAdagrad(table.parameters(), 0.5, torch.tensor([9.0, penalty]))
    for _ in range(300):  # of (w - 1)^2 + penalty / 2 w^2
        optimizer.zero_grad()
        (table(torch.tensor([1])) - 1).square().sum().backward()
        optimizer.step()
    assert table.weight[1].item() == pytest.approx(best, abs=1e-3)
    assert table.weight[0].item() == untouched


WORDS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6)


@given(WORDS)
def test_a_word_has_the_same_features_in_any_company(words: list[str]) -> None:
    together = feature_hashes(words)
    assert together.shape == (len(words), N_HASHES)
    for word, row in zip(words, together, strict=True):
        assert feature_hashes([word])[0].tolist() == row.tolist()


@given(WORDS)
def test_two_features_are_one_when_what_they_stand_for_is(words: list[str]) -> None:
    hashes = feature_hashes(words)
    lowered = [word.lower() for word in words]
    for number, length in enumerate(AFFIX_LENGTHS):
        for column, part in (
            (1 + number, slice(length)),
            (1 + len(AFFIX_LENGTHS) + number, slice(-length, None)),
        ):
            meant = {
                word[part]: value for word, value in zip(lowered, hashes[:, column], strict=True)
            }
            assert [meant[word[part]] for word in lowered] == hashes[:, column].tolist()
            assert len(set(meant.values())) == len(meant)
    assert len(set(hashes[:, -2].tolist())) == len(set(words))
    assert len(set(hashes[:, -3].tolist())) == len(set(lowered))


def test_prefix_suffix_and_word_of_the_same_letters_are_different_features() -> None:
    row = feature_hashes(["a"])[0].tolist()
    shape, prefix, suffix, lowered, written, kind = (row[i] for i in (0, 1, 5, 9, 10, 11))
    assert len({shape, prefix, suffix, lowered, written, kind}) == 6
