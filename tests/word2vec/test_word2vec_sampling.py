"""Chance obeys its formulas: keeping words, windows, noise; and codes are as short as can be."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.word2vec.huffman import build_tree
from nlpkit.word2vec.sampling import (
    draw_noise,
    keep_limits,
    keep_probabilities,
    make_noise,
    noise_probabilities,
    read_windows,
    seeded,
)

COUNTS = np.array([5000, 2000, 900, 500, 300, 100, 20, 3])


def chi_squared(observed: np.ndarray, expected: np.ndarray) -> float:
    """Standard deviations by which chi squared is off: it is near normal for this many draws."""
    statistic = ((observed - expected) ** 2 / expected).sum()
    freedom = len(expected) - 1
    return float((statistic - freedom) / math.sqrt(2 * freedom))


def stored(sentences: list[list[int]]) -> np.ndarray:
    return np.array(
        [w if i < len(s) - 1 else ~w for s in sentences for i, w in enumerate(s)], np.int32
    )


def windows_of(
    sentences: list[list[int]], keep: np.ndarray, window: int, *, shrink: bool, seed: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ids = stored(sentences)
    word, low, high = (np.zeros(len(ids), dtype=np.int32) for _ in range(3))
    _, n = read_windows(
        np.uint64(seeded(seed, 0)),
        ids,
        0,
        len(ids),
        keep,
        window,
        shrink,
        word,
        low,
        high,
        word[:0],
    )
    return word[:n], low[:n], high[:n]


def test_words_are_kept_as_often_as_the_formula_says() -> None:
    sample = 0.02
    sentences = [[w for w in range(len(COUNTS)) for _ in range(40_000)]]
    word, _, _ = windows_of(sentences, keep_limits(COUNTS, sample), 5, shrink=True)
    kept = np.bincount(word, minlength=len(COUNTS)) / 40_000
    share = COUNTS / COUNTS.sum()
    formula = np.minimum((np.sqrt(share / sample) + 1) * sample / share, 1)
    np.testing.assert_allclose(keep_probabilities(COUNTS, sample), formula)
    deviation = np.sqrt(formula * (1 - formula) / 40_000)
    assert (np.abs(kept - formula) <= 4 * deviation + 1e-9).all()
    assert formula[0] < 0.4
    assert (formula[-3:] == 1).all()


def test_sample_zero_keeps_everything() -> None:
    sentences = [[0, 1, 0, 2] * 50]
    word, _, _ = windows_of(sentences, keep_limits(COUNTS, 0), 5, shrink=True)
    assert word.tolist() == sentences[0]


def test_window_sizes_are_uniform_and_stay_in_their_sentence() -> None:
    keep = keep_limits(COUNTS, 0)
    sentences = [[0] * 50 for _ in range(4000)]
    _, low, high = windows_of(sentences, keep, 5, shrink=True)
    place = np.arange(len(low))
    inside = (place % 50 >= 5) & (place % 50 < 45)
    sizes = (place - low)[inside]
    assert ((high - place - 1)[inside] == sizes).all()
    observed = np.bincount(sizes, minlength=6)[1:]
    assert chi_squared(observed, np.full(5, len(sizes) / 5)) < 4
    assert (low // 50 == place // 50).all()
    assert ((high - 1) // 50 == place // 50).all()


def test_windows_without_shrinking_are_full() -> None:
    word, low, high = windows_of([[1, 2, 3, 4], [5, 6]], keep_limits(COUNTS, 0), 2, shrink=False)
    assert word.tolist() == [1, 2, 3, 4, 5, 6]
    assert low.tolist() == [0, 0, 0, 1, 4, 4]
    assert high.tolist() == [3, 4, 4, 4, 6, 6]


def test_a_sentence_of_one_word_is_left_out() -> None:
    word, low, high = windows_of([[1], [2, 3], [4]], keep_limits(COUNTS, 0), 2, shrink=False)
    assert word.tolist() == [2, 3]
    assert low.tolist() == [0, 0]
    assert high.tolist() == [2, 2]


@pytest.mark.parametrize("exponent", [0.75, 0.0, 1.0, -0.5])
@pytest.mark.parametrize("shared", [1, 16])
def test_noise_follows_count_to_the_exponent(exponent: float, shared: int) -> None:
    counts = np.concatenate([COUNTS, [0]])
    noise = make_noise(counts, exponent)
    drawn = np.zeros(len(counts), dtype=np.int64)
    state = np.uint64(seeded(1, 1))
    block = np.zeros(shared, dtype=np.int32)
    draws = 100_000 // shared
    for _ in range(draws):
        state = np.uint64(draw_noise(state, noise.limits, noise.guide, block))
        drawn += np.bincount(block, minlength=len(counts))
    weights = COUNTS.astype(float) ** exponent
    expected = weights / weights.sum()
    np.testing.assert_allclose(noise_probabilities(counts, exponent)[:-1], expected)
    assert drawn[-1] == 0  # never seen, never noise
    # Draws from slices vary less than independent ones, so only the upper side is tested.
    assert chi_squared(drawn[:-1], expected * draws * shared) < 4


def test_noise_is_right_for_a_large_vocabulary() -> None:
    counts = (1e7 / np.arange(1, 200_001)).astype(np.int64)
    noise = make_noise(counts, 0.75)
    expected = noise_probabilities(counts, 0.75)
    np.testing.assert_allclose(np.diff(noise.limits, prepend=0) / 2**32, expected, atol=3e-10)
    block = np.zeros(64, dtype=np.int32)
    state, total = np.uint64(seeded(2, 2)), np.zeros(20)
    for _ in range(5000):
        state = np.uint64(draw_noise(state, noise.limits, noise.guide, block))
        total += np.bincount(block // 10_000, minlength=20)
    assert chi_squared(total, expected.reshape(20, -1).sum(axis=1) * 64 * 5000) < 4


def shortest_total(counts: list[int]) -> int:
    """Sum of count * code length of a best code, by the textbook heap."""
    heap = list(counts)
    heapq.heapify(heap)
    total = 0
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        total += joined
        heapq.heappush(heap, joined)
    return total


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40))
@settings(deadline=None)
def test_huffman_codes_are_shortest_and_no_code_begins_another(counts: list[int]) -> None:
    tree = build_tree(np.array(counts))
    codes = [tree.codes[a:b].tolist() for a, b in zip(tree.starts, tree.starts[1:], strict=False)]
    assert sum(n * len(code) for n, code in zip(counts, codes, strict=True)) == shortest_total(
        counts
    )
    for i, code in enumerate(codes):
        assert all(other[: len(code)] != code for j, other in enumerate(codes) if j != i)
    # Words with a common beginning of their codes pass the same nodes.
    for word, code in enumerate(codes):
        nodes = tree.nodes[tree.starts[word] : tree.starts[word + 1]].tolist()
        assert len(set(nodes)) == len(code)
        assert not code or nodes[0] == len(counts) - 2
