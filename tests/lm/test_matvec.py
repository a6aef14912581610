"""The compiled products against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from nlpkit.kernels.matvec import NONE, RELU2, Stack, multiply


@pytest.mark.parametrize("shape", [(37, 100), (5, 16), (64, 96), (1, 33)])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("kind", [np.float32, np.int8])
def test_products_are_those_of_numpy(shape: tuple[int, int], rows: int, kind: type) -> None:
    random = np.random.default_rng(1)
    weight = random.integers(-127, 128, (1, *shape)).astype(kind)
    scale, bias = random.normal(size=(2, 1, shape[0])).astype(np.float32)
    x = random.normal(size=(rows, shape[1])).astype(np.float32)
    out = np.empty((rows, shape[0]), np.float32)
    expected = x @ weight[0].T.astype(np.float32) * scale[0] + bias[0]

    multiply(Stack(weight, scale, bias), 0, x, out, NONE, 1)
    assert np.abs(out - expected).max() < 2e-4 * np.abs(expected).max()
    multiply(Stack(weight, scale, bias), 0, x, out, RELU2, 1)
    squared = np.maximum(expected, 0) ** 2
    assert np.abs(out - squared).max() < 4e-4 * np.abs(expected).max() ** 2


def test_the_largest_whole_numbers_do_not_overflow() -> None:
    size = 3072
    weight = np.full((1, 4, size), 127, np.int8)
    x = np.full((1, size), 3.0, np.float32)
    out = np.empty((1, 4), np.float32)
    multiply(
        Stack(weight, np.ones((1, 4), np.float32), np.zeros((1, 4), np.float32)), 0, x, out, 0, 1
    )
    np.testing.assert_allclose(out, 127 * 3.0 * size, rtol=1e-3)
