"""Unit length, merging and PCA against their definitions."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from nlpkit.errors import NlpkitError
from nlpkit.vectors.settings import MergeMethod
from nlpkit.vectors.store import Vectors, unit_rows
from nlpkit.vectors.transform import merge, normalize, pca
from nlpkit.vectors.words import ListedWords


def random_vectors(words: list[str], dim: int, seed: int) -> Vectors:
    matrix = np.random.default_rng(seed).standard_normal((len(words), dim)).astype(np.float32)
    return Vectors(ListedWords(words, np.arange(len(words), 0, -1)), matrix)


def test_normalized_vectors_have_length_one_and_the_same_neighbours() -> None:
    vectors = random_vectors([f"w{i}" for i in range(30)], 4, 0)
    unit = normalize(vectors)
    np.testing.assert_allclose(unit.norms, 1, rtol=1e-6)
    before, after = (each.nearest_to(each.matrix, 5) for each in (vectors, unit))
    assert [[n.word for n in row] for row in before] == [[n.word for n in row] for row in after]


def test_merging_keeps_shared_words_in_the_order_of_the_first() -> None:
    left = random_vectors(["a", "b", "c", "d"], 3, 1)
    right = random_vectors(["d", "x", "b"], 3, 2)
    merged = merge([left, right])
    assert list(merged.words) == ["b", "d"]
    assert merged.words.counts.tolist() == [3, 1]
    expected = np.hstack([unit_rows(left.matrix[[1, 3]]), unit_rows(right.matrix[[2, 0]])])
    np.testing.assert_array_equal(merged.matrix, expected)
    mean = merge([left, right], MergeMethod.AVERAGE)
    np.testing.assert_allclose(mean.matrix, (expected[:, :3] + expected[:, 3:]) / 2, rtol=1e-6)


def test_merging_what_does_not_fit_is_refused() -> None:
    left, other = random_vectors(["a"], 3, 1), random_vectors(["b"], 3, 1)
    with pytest.raises(NlpkitError, match="no word in common"):
        merge([left, other])
    with pytest.raises(NlpkitError, match="vectors of 3, 2 numbers have no mean"):
        merge([left, random_vectors(["a"], 2, 1)], MergeMethod.AVERAGE)


def test_pca_is_that_of_scikit_learn_up_to_sign() -> None:
    vectors = random_vectors([f"w{i}" for i in range(40)], 6, 3)
    ours = pca(vectors, 3).matrix
    theirs = PCA(3, svd_solver="full").fit_transform(vectors.matrix.astype(np.float64))
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-5)


@pytest.mark.parametrize("dim", [0, 7])
def test_pca_refuses_impossible_sizes(dim: int) -> None:
    with pytest.raises(NlpkitError, match="dimensions"):
        pca(random_vectors(["a", "b"], 6, 0), dim)
