"""Questions in words: each against its definition written out for one question."""

import numpy as np
import pytest

from nlpkit.errors import NlpkitError
from nlpkit.vectors import query
from nlpkit.vectors.settings import AnalogyMethod, Metric
from nlpkit.vectors.store import Vectors, unit_rows


@pytest.fixture
def family() -> Vectors:
    rows = {
        "man": [1, 0, 0, 0.2],
        "woman": [0, 1, 0, 0.2],
        "king": [1, 0, 1, 0.1],
        "queen": [0, 1, 1, 0.1],
        "apple": [0.1, 0.1, 0, 1],
        "pear": [0.1, 0.2, 0, 1],
    }
    return Vectors(list(rows), np.array(list(rows.values()), np.float32))


def random_vectors(rows: int = 80, dim: int = 6) -> Vectors:
    matrix = np.random.default_rng(3).standard_normal((rows, dim)).astype(np.float32)
    return Vectors([f"w{i}" for i in range(rows)], matrix)


@pytest.mark.parametrize("method", list(AnalogyMethod))
def test_man_is_to_king_as_woman_is_to_queen(family: Vectors, method: AnalogyMethod) -> None:
    (answer,) = query.analogy(family, [("man", "king", "woman")], 2, method=method)
    assert answer[0].word == "queen"
    assert not {"man", "king", "woman"} & {near.word for near in answer}


@pytest.mark.parametrize("method", list(AnalogyMethod))
def test_analogy_scores_follow_the_formula(method: AnalogyMethod) -> None:
    vectors = random_vectors()
    units = unit_rows(vectors.matrix).astype(np.float64)
    a, b, c = units[4], units[7], units[9]
    if method is AnalogyMethod.COSADD:
        target = b - a + c
        scores = units @ target / np.linalg.norm(target)
    elif method is AnalogyMethod.COSMUL:
        shifted = (1 + units @ np.stack([a, b, c]).T) / 2
        scores = shifted[:, 1] * shifted[:, 2] / (shifted[:, 0] + 1e-3)
    else:
        difference = units - c
        lengths = np.maximum(np.linalg.norm(difference, axis=1), 1e-3)
        scores = difference @ (b - a) / lengths / np.linalg.norm(b - a)
    scores[[4, 7, 9]] = -np.inf
    (answer,) = query.analogy(vectors, [("w4", "w7", "w9")], 5, method=method)
    assert [near.row for near in answer] == np.argsort(-scores)[:5].tolist()
    np.testing.assert_allclose([n.score for n in answer], np.sort(scores)[::-1][:5], rtol=1e-5)


@pytest.mark.parametrize("method", list(AnalogyMethod))
def test_many_questions_get_the_answers_of_each(
    monkeypatch: pytest.MonkeyPatch, method: AnalogyMethod
) -> None:
    vectors = random_vectors()
    questions = [(f"w{i}", f"w{i + 1}", f"w{i + 2}") for i in range(20)]
    each = [query.analogy(vectors, [q], 3, method=method)[0] for q in questions]
    monkeypatch.setattr(query, "QUERIES_AT_ONCE", 7)
    together = query.analogy(vectors, questions, 3, method=method)
    assert [[n.word for n in row] for row in together] == [[n.word for n in row] for row in each]


def test_several_words_are_asked_for_by_their_mean(family: Vectors) -> None:
    (near,) = query.nearest(family, [(["king", "woman"], ["man"])], 1)
    assert near[0].word == "queen"
    units = unit_rows(family.matrix)
    target = units[2] + units[1] - units[0]
    expected = units[3] @ target / np.linalg.norm(target)
    assert near[0].score == pytest.approx(expected, abs=1e-6)


def test_dot_and_euclidean_means_keep_the_lengths(family: Vectors) -> None:
    (mean,) = query.mean_vectors(family, [(["man", "queen"], [])], Metric.EUCLIDEAN)
    np.testing.assert_allclose(mean, (family.matrix[0] + family.matrix[3]) / 2)


def test_a_question_without_words_is_refused(family: Vectors) -> None:
    with pytest.raises(NlpkitError, match="at least one word"):
        query.nearest(family, [([], [])])
    assert query.nearest(family, []) == []


@pytest.mark.parametrize(
    ("metric", "expected"),
    [(Metric.COSINE, 0.04 / 1.04), (Metric.DOT, 0.04), (Metric.EUCLIDEAN, 2**0.5)],
)
def test_similarity_by_each_metric(family: Vectors, metric: Metric, expected: float) -> None:
    assert query.similarity(family, "man", "woman", metric) == pytest.approx(expected, rel=1e-5)


def test_the_odd_one_out_comes_first(family: Vectors) -> None:
    ranking = query.odd_one_out(family, ["king", "queen", "apple", "woman"])
    assert ranking[0][0] == "apple"
    assert [score for _, score in ranking] == sorted(score for _, score in ranking)
    with pytest.raises(NlpkitError, match="three words"):
        query.odd_one_out(family, ["king", "queen"])


def test_expand_adds_near_words_once_and_none_that_are_there(family: Vectors) -> None:
    lines = [["an", "apple", "pear"], ["apple", "man"], []]
    assert query.expand(family, lines, 1, minimum=0.9) == [[], ["pear"], []]
    near = query.expand(family, [["queen"]], 2, minimum=-1)
    assert len(near[0]) == 2
