"""Counting: co-occurrence against a plain loop, PPMI against its formula, topics come apart."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.vectors import counts as counting
from nlpkit.vectors.counts import cooccurrence, positive_pmi, vectors_from_counts
from nlpkit.vectors.settings import CountSettings, Weighting
from nlpkit.vectors.store import unit_rows

LINES = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=12), min_size=1, max_size=5)


def store(lines: list[list[int]]) -> np.ndarray:
    """Sentences as word2vec keeps them."""
    return np.array([id for line in lines for id in [*line[:-1], ~line[-1]]], np.int32)


@given(LINES, st.integers(1, 4), st.sampled_from(Weighting))
def test_cooccurrence_is_that_of_a_plain_loop(
    lines: list[list[int]], window: int, weighting: Weighting
) -> None:
    expected: Counter[tuple[int, int]] = Counter()
    for line in lines:
        for i, word in enumerate(line):
            for j in range(max(0, i - window), min(len(line), i + window + 1)):
                if i != j:
                    near = {
                        Weighting.LINEAR: (window - abs(i - j) + 1) / window,
                        Weighting.HARMONIC: 1 / abs(i - j),
                    }
                    expected[word, line[j]] += near.get(weighting, 1)
    settings = CountSettings(window=window, weighting=weighting)
    counts = cooccurrence(store(lines), 5, settings).toarray()
    for i in range(5):
        for j in range(5):
            assert counts[i, j] == pytest.approx(expected[i, j], rel=1e-5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_WORDS_AT_ONCE", 3)
        in_pieces = cooccurrence(store(lines), 5, settings).toarray()
    np.testing.assert_allclose(in_pieces, counts, rtol=1e-5)


def test_ppmi_follows_its_formula() -> None:
    from scipy.sparse import csr_matrix

    counts = np.random.default_rng(0).integers(0, 5, (6, 6)).astype(np.float32)
    counts += counts.T + np.eye(6, dtype=np.float32)
    settings = CountSettings(smoothing=0.75, shift=2.0)
    joint = counts / counts.sum()
    context = counts.sum(axis=0) ** 0.75
    chance = np.outer(counts.sum(axis=1) / counts.sum(), context / context.sum())
    with np.errstate(divide="ignore"):
        expected = np.maximum(np.log(joint / chance) - np.log(2), 0)
    np.testing.assert_allclose(
        positive_pmi(csr_matrix(counts), settings).toarray(), expected, atol=1e-5
    )


def test_words_of_one_topic_end_up_together() -> None:
    generator = np.random.default_rng(0)
    lines = []
    for _ in range(300):
        topic = generator.integers(2)
        lines.append(generator.integers(10 * topic, 10 * topic + 10, 8).tolist())
    ids = store(lines)
    settings = CountSettings(dim=3)
    matrix = vectors_from_counts(ids, 20, settings)
    np.testing.assert_array_equal(matrix, vectors_from_counts(ids, 20, settings))
    cosines = unit_rows(matrix) @ unit_rows(matrix).T
    assert cosines[:10, :10].mean() > cosines[:10, 10:].mean() + 0.5


def test_too_little_text_is_refused() -> None:
    with pytest.raises(NlpkitError, match="too few"):
        vectors_from_counts(store([[0, 1]]), 2)
    with pytest.raises(NlpkitError, match="no two known words"):
        vectors_from_counts(store([[0]]), 2)
