"""Statistics of an evaluation: scipy's, and the edges that it does not know."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from nlpkit.metrics.intervals import (
    mcnemar,
    paired_bootstrap,
    pearson,
    spearman,
    spearman_interval,
    wilson_interval,
)

PAIRS = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=30)


@given(PAIRS)
def test_correlations_with_ties_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    left, right = np.array(pairs, float).T
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert math.isnan(pearson(left, right))
        return
    assert pearson(left, right) == pytest.approx(stats.pearsonr(left, right)[0], abs=1e-9)
    assert spearman(left, right) == pytest.approx(stats.spearmanr(left, right)[0], abs=1e-9)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_a_binomial_test(left: int, right: int) -> None:
    expected = stats.binomtest(left, left + right).pvalue if left + right else 1.0
    assert mcnemar(left, right) == pytest.approx(expected)


def test_mcnemar_of_thousands_of_disagreements_is_a_number() -> None:
    assert mcnemar(5000, 5000) == 1
    assert mcnemar(4000, 6000) == pytest.approx(0, abs=1e-50)


@given(st.integers(0, 200), st.integers(0, 200))
def test_wilson_interval_is_scipys(right: int, wrong: int) -> None:
    if right + wrong == 0:
        assert wilson_interval(0, 0) == (0, 1)
        return
    expected = stats.binomtest(right, right + wrong).proportion_ci(method="wilson")
    assert wilson_interval(right, right + wrong) == pytest.approx(tuple(expected), abs=1e-6)


def test_spearman_interval_holds_the_truth_about_95_times_in_100() -> None:
    generator = np.random.default_rng(0)
    truth = 6 / math.pi * math.asin(0.5 / 2)  # Spearman's of a normal pair with Pearson's 0.5
    hits = 0
    for _ in range(400):
        x = generator.standard_normal(60)
        y = 0.5 * x + math.sqrt(0.75) * generator.standard_normal(60)
        low, high = spearman_interval(spearman(x, y), 60)
        hits += low <= truth <= high
    assert 0.92 <= hits / 400 <= 0.98


def test_spearman_interval_at_its_limits() -> None:
    assert spearman_interval(1.0, 10) == (1.0, 1.0)
    assert spearman_interval(0.5, 3) == (-1.0, 1.0)
    assert spearman_interval(math.nan, 30) == (-1.0, 1.0)


def test_paired_bootstrap_tells_better_from_equal_and_is_seeded() -> None:
    generator = np.random.default_rng(1)
    gold = generator.standard_normal(200)
    good, bad = gold + generator.standard_normal(200), generator.standard_normal(200)
    result = paired_bootstrap(spearman, gold, good, bad, samples=200)
    assert result.low > 0
    assert result.p < 0.05
    assert result == paired_bootstrap(spearman, gold, good, bad, samples=200)
    same = paired_bootstrap(spearman, gold, good, good, samples=200)
    assert (same.difference, same.p) == (0, 1)
