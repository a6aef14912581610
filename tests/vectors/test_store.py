"""Nearest neighbours: blocks, batches, bans and metrics against a plain sort of all scores."""

import numpy as np
import pytest

from nlpkit.errors import NlpkitError
from nlpkit.vectors import search
from nlpkit.vectors.search import best_rows
from nlpkit.vectors.settings import Metric
from nlpkit.vectors.store import Vectors, unit_rows


def random_vectors(rows: int = 60, dim: int = 5, seed: int = 0) -> Vectors:
    matrix = np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)
    return Vectors([f"w{i}" for i in range(rows)], matrix)


def all_scores(vectors: Vectors, query: np.ndarray, metric: Metric) -> np.ndarray:
    matrix = vectors.matrix.astype(np.float64)
    if metric is Metric.EUCLIDEAN:
        return np.linalg.norm(matrix - query, axis=1)
    products = matrix @ query
    if metric is Metric.DOT:
        return products
    return products / np.linalg.norm(matrix, axis=1) / np.linalg.norm(query)


@pytest.mark.parametrize("metric", list(Metric))
def test_nearest_is_the_top_of_a_full_sort(metric: Metric) -> None:
    vectors = random_vectors()
    for near, row in zip(
        vectors.nearest_to(vectors.matrix[:20], 4, metric=metric), range(20), strict=True
    ):
        scores = all_scores(vectors, vectors.matrix[row], metric)
        best = np.argsort(scores if metric is Metric.EUCLIDEAN else -scores, kind="stable")[:4]
        assert [n.row for n in near] == best.tolist()
        np.testing.assert_allclose([n.score for n in near], scores[best], atol=1e-6)


def test_small_blocks_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = random_vectors(rows=500)
    whole = vectors.nearest_to(vectors.matrix, 7)
    monkeypatch.setattr(search, "_SCORES_AT_ONCE", 1)
    monkeypatch.setattr("nlpkit.vectors.store.QUERIES_AT_ONCE", 13)
    assert vectors.nearest_to(vectors.matrix, 7) == whole


def test_one_query_and_many_give_the_same_digits() -> None:
    vectors = random_vectors(rows=200, dim=3)
    together = vectors.nearest_to(vectors.matrix, 5)
    assert [vectors.nearest_to(row, 5)[0] for row in vectors.matrix] == together


def test_banned_rows_never_come_back_and_n_is_still_kept() -> None:
    vectors = random_vectors()
    near = vectors.nearest_to(vectors.matrix[:2], 5, banned=[[0, 1, 2], [1]])
    assert all(len(row) == 5 for row in near)
    assert not {0, 1, 2} & {n.row for n in near[0]}
    assert 1 not in {n.row for n in near[1]}


def test_restrict_looks_at_the_most_frequent_only() -> None:
    vectors = random_vectors()
    (near,) = vectors.nearest_to(vectors.matrix[50], 99, restrict=10)
    assert sorted(n.row for n in near) == list(range(10))


def test_asking_for_more_than_there_is_gives_all() -> None:
    vectors = random_vectors(rows=3)
    assert len(vectors.nearest_to(vectors.matrix[:1], 10)[0]) == 3
    assert vectors.nearest_to(vectors.matrix[:1], 0) == [[]]


def test_equal_scores_come_in_row_order() -> None:
    same = Vectors([f"w{i}" for i in range(300)], np.ones((300, 2), np.float32))
    assert [n.row for n in same.nearest_to(np.ones((1, 2), np.float32), 4)[0]] == [0, 1, 2, 3]


def test_best_rows_breaks_ties_by_row_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_SCORES_AT_ONCE", 4)
    scores = np.array([[1, 5, 5, 2, 5, 5, 0, 5]], np.float32)
    rows, _ = best_rows(lambda: lambda start, stop: scores[:, start:stop], 1, 8, keep=3)
    assert rows.tolist() == [[1, 2, 4]]


@pytest.mark.parametrize("metric", list(Metric))
def test_threads_find_the_same(monkeypatch: pytest.MonkeyPatch, metric: Metric) -> None:
    vectors = random_vectors(rows=300)
    alone = vectors.nearest_to(vectors.matrix, 7, metric=metric)
    monkeypatch.setattr(search, "_SCORES_WORTH_THREADS", 0)
    assert vectors.nearest_to(vectors.matrix, 7, metric=metric) == alone
    assert vectors.nearest_to(vectors.matrix, 7, restrict=1)[0][0].row == 0
    assert len(vectors.nearest_to(vectors.matrix, 299, metric=metric)[0]) == 299


def test_a_zero_vector_is_at_a_right_angle_to_everything() -> None:
    vectors = Vectors(["zero", "one"], np.array([[0, 0], [1, 0]], np.float32))
    assert [n.score for n in vectors.nearest_to(vectors.matrix[1], 2)[0]] == [1, 0]
    assert [n.score for n in vectors.nearest_to(vectors.matrix[0], 2)[0]] == [0, 0]
    assert unit_rows(vectors.matrix).tolist() == [[0, 0], [1, 0]]


def test_an_unknown_word_names_close_spellings() -> None:
    vectors = Vectors(["queen", "king"], np.eye(2, dtype=np.float32))
    with pytest.raises(NlpkitError, match=r"unknown word: 'quene'.*'queen'"):
        vectors.index("quene")
    with pytest.raises(NlpkitError, match="unknown word"):
        vectors.get("xyz")


def test_a_vector_that_is_not_finite_is_named() -> None:
    broken = Vectors(["fine", "bad"], np.array([[1, 2], [np.nan, 0]], np.float32))
    with pytest.raises(NlpkitError, match="'bad'"):
        broken.nearest_to(broken.matrix[:1], 1)


def test_from_rows_keeps_the_first_of_a_repeated_word() -> None:
    matrix = np.arange(8, dtype=np.float32).reshape(4, 2)
    counts = np.array([9, 8, 7, 6])
    vectors = Vectors.from_rows(["a", "b", "a", "c"], matrix, name="x", counts=counts)
    assert list(vectors.words) == ["a", "b", "c"]
    assert vectors.matrix.tolist() == [[0, 1], [2, 3], [6, 7]]
    assert vectors.words.counts.tolist() == [9, 8, 6]
    assert vectors.duplicates == 1
