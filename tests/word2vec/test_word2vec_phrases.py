"""Phrases against the formula, worked out with a Counter."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from nlpkit.kernels.wordcount import LINE_END
from nlpkit.word2vec.phrases import join_phrases


def random_ids(n: int) -> np.ndarray:
    random = np.random.default_rng(0)
    ids = random.zipf(1.3, size=n).clip(max=60).astype(np.int32) - 1
    ids[random.random(n) < 0.1] = LINE_END
    ids[-1] = LINE_END
    return ids


def joined_by_hand(
    ids: list[int], counts: dict[int, int], threshold: float, min_count: int
) -> list[str]:
    pairs = Counter((a, b) for a, b in pairwise(ids) if LINE_END not in (a, b))
    total = sum(counts.values())

    def belongs(a: int, b: int) -> bool:
        if min(counts[a], counts[b]) < min_count:
            return False
        return (pairs[a, b] - min_count) * total / (counts[a] * counts[b]) > threshold

    result, i = [], 0
    while i < len(ids):
        a = ids[i]
        b = ids[i + 1] if i + 1 < len(ids) else LINE_END
        if LINE_END not in (a, b) and belongs(a, b):
            result.append(f"{a}_{b}")
            i += 2
        else:
            result.append(str(a))
            i += 1
    return result


@pytest.mark.parametrize("threshold", [0.5, 1.0])
def test_joins_the_pairs_the_formula_names(threshold: float) -> None:
    ids = random_ids(5000)
    original = ids.tolist()
    counts = np.bincount(ids[ids >= 0], minlength=60)
    names = [str(i) for i in range(60)]
    length, words, new_counts = join_phrases(ids, names, counts, threshold=threshold, min_count=3)
    found = [words[i] if i >= 0 else str(LINE_END) for i in ids[:length].tolist()]
    expected = joined_by_hand(original, dict(enumerate(counts.tolist())), threshold, 3)
    assert found == expected
    assert any("_" in word for word in found)
    recount = Counter(word for word in found if word != str(LINE_END))
    assert {w: c for w, c in zip(words, new_counts.tolist(), strict=True) if c} == recount


def test_a_full_table_forgets_rare_pairs_only() -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 300, size=4000).astype(np.int32)
    ids[::8], ids[1::8] = 300, 301
    counts = np.bincount(ids, minlength=302)
    names = [str(i) for i in range(302)]
    _, words, _ = join_phrases(ids, names, counts, threshold=2.0, min_count=50, most_pairs=1 << 10)
    assert words[302:] == ["300_301"]
