"""Evaluations: sections, coverage, protocol, and comparisons of two sets."""

import numpy as np
import pytest
from scipy import stats

from nlpkit.errors import NlpkitError
from nlpkit.vectors.analogies import compare_analogies, evaluate_analogies, read_questions
from nlpkit.vectors.settings import EvaluationSettings
from nlpkit.vectors.similarities import compare_similarity, evaluate_similarity, read_pairs
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.transform import folded

LINES = [
    ": family",
    "man king woman queen",
    "man woman king queen",
    "Man Woman King Apple",
    "",
    ": fruit",
    "apple pear man nobody",
]


def family() -> Vectors:
    rows = {
        "man": [1, 0, 0, 0.2],
        "Man": [0, 0, 0, 1],
        "woman": [0, 1, 0, 0.2],
        "king": [1, 0, 1, 0.1],
        "queen": [0, 1, 1, 0.1],
        "apple": [0.1, 0.1, 0, 1],
        "pear": [0.1, 0.2, 0, 1],
    }
    return Vectors(list(rows), np.array(list(rows.values()), np.float32))


def test_scores_by_section_and_in_total() -> None:
    report = evaluate_analogies(family(), read_questions(LINES, "q"))
    found = [(s.section, s.correct, s.answered, s.questions) for s in report.sections]
    assert found == [("family", 2, 3, 3), ("fruit", 0, 0, 1)]
    assert (report.total.correct, report.total.answered, report.total.questions) == (2, 3, 4)
    assert report.total.accuracy == pytest.approx(2 / 3)
    low, high = report.total.interval
    assert low < 2 / 3 < high
    assert report.sections[1].accuracy == 0
    assert "3cosadd" in report.protocol
    assert "case folded" in report.protocol


def test_case_can_be_kept_and_words_restricted() -> None:
    questions = read_questions(LINES, "q")
    kept = evaluate_analogies(family(), questions, EvaluationSettings(fold_case=False))
    assert kept.total.answered == 2
    with pytest.raises(NlpkitError, match="none of the 4 questions has all four words"):
        evaluate_analogies(family(), questions, EvaluationSettings(restrict=4))


def test_folding_takes_the_most_frequent_spelling() -> None:
    vectors = folded(family(), 5, True)
    assert list(vectors.words) == ["man", "woman", "king", "queen"]
    assert vectors.matrix[0].tolist() == family().matrix[0].tolist()


def test_two_sets_are_compared_on_the_questions_both_answer() -> None:
    questions = read_questions(LINES, "q")
    good = evaluate_analogies(family(), questions)
    shuffled = family()
    shuffled.matrix = shuffled.matrix[[6, 1, 5, 0, 2, 4, 3]]
    family_only, comparison = compare_analogies(good, evaluate_analogies(shuffled, questions))
    assert (family_only.section, comparison.section) == ("family", "total")
    assert comparison.shared == 3
    assert comparison.first_accuracy > comparison.second_accuracy
    assert comparison.only_first == 2
    assert comparison.p == 0.5


@pytest.mark.parametrize(
    ("lines", "message"),
    [(["a b c"], "line 1: expected four words, found 3"), ([": empty"], "no questions")],
)
def test_bad_questions_are_named(lines: list[str], message: str) -> None:
    with pytest.raises(NlpkitError, match=message):
        read_questions(lines, "q")


PAIRS = ["# made up", "Word 1,Word 2,Human (mean)", "man,woman,8", "Man,apple,1", "king,queen,9"]


def test_similarity_is_the_correlation_over_known_pairs() -> None:
    pairs = read_pairs([*PAIRS, "man,nobody,3", "apple,pear,9"], "p")
    report = evaluate_similarity(family(), pairs)
    assert (report.known, report.pairs) == (4, 5)
    known = np.isfinite(report.cosines)
    gold = np.array([8, 1, 9, 9])
    expected = stats.spearmanr(gold, report.cosines[known])[0]
    assert report.spearman == pytest.approx(expected)
    assert report.pearson == pytest.approx(stats.pearsonr(gold, report.cosines[known])[0])
    comparison = compare_similarity(pairs, report, report)
    assert comparison.shared == 4
    assert comparison.bootstrap.difference == 0


@pytest.mark.parametrize("separator", ["\t", ",", " ", ";"])
def test_pairs_may_be_separated_in_several_ways(separator: str) -> None:
    lines = [separator.join(["old", "new", "A", "1.58", "7"])]
    assert read_pairs(lines, "p")[0].score == 1.58


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a\tb\t1", "a\tb\tc"], "line 2: expected two words and a score"),
        (["# nothing"], "no word pairs"),
        (['{"word1": "a", "word2": "b", "score": 1' + "0" * 400 + "}"], "line 1: no pair of words"),
        (['{"word1": "a", "word2": "b", "score": 1e999}'], "line 1"),
    ],
)
def test_bad_pairs_are_named(lines: list[str], message: str) -> None:
    with pytest.raises(NlpkitError, match=message):
        read_pairs(lines, "p")


def test_too_few_known_pairs_are_refused() -> None:
    with pytest.raises(NlpkitError, match="only 1 of 1 pairs"):
        evaluate_similarity(family(), read_pairs(["man\twoman\t1"], "p"))
