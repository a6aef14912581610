"""Small matrix products that stay in registers: what training spends its time in.

A block of training is three products of the same kind (O output rows, X input rows, G one number
for each pair): the scores ``O X'``, the change of the inputs ``G' O``, the change of the outputs
``G X``. Done pair by pair, as word2vec is usually written, each row is fetched from memory for
each pair: two loads for one multiply-add. Done by tiles, 2 x 4 scores or 4 rows of a change at a
time, a loaded piece is used four or eight times, and the processor's multipliers are kept busy.

All matrices have rows of ``width`` floats, a multiple of 16: see ``padded``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.simd import (
    LANES,
    between,
    clamp,
    divide,
    load,
    multiply,
    multiply_add,
    splat,
    store,
    store_sums,
    zeros,
)

Floats = NDArray[np.float32]

ROWS = 4  # rows of a tile; block buffers have room for that many more than they use
_ALIGNMENT = 64  # bytes of a cache line: no load touches two
_WIDTH_STEP = 16


def padded(dim: int) -> int:
    """Floats of a row in memory: the rest after ``dim`` are zeros, and stay zeros.

    >>> padded(100)
    112
    """
    return -(-dim // _WIDTH_STEP) * _WIDTH_STEP


def aligned_zeros(rows: int, columns: int) -> Floats:
    """A zero matrix that begins at a cache line."""
    size = rows * columns * 4
    raw = np.zeros(size + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size].view(np.float32).reshape(rows, columns)


@kernel(fastmath=True, forceinline=True)
def _scores_tile(
    outputs: Floats, k: int, inputs: Floats, i: int, width: int, result: Floats
) -> None:
    """``result[k:k+2, i:i+4] = outputs[k:k+2] @ inputs[i:i+4].T``"""
    a0 = a1 = a2 = a3 = zeros()
    b0 = b1 = b2 = b3 = zeros()
    for d in range(0, width, LANES):
        a = load(outputs, k, d)
        b = load(outputs, k + 1, d)
        x = load(inputs, i, d)
        a0 = multiply_add(a, x, a0)
        b0 = multiply_add(b, x, b0)
        x = load(inputs, i + 1, d)
        a1 = multiply_add(a, x, a1)
        b1 = multiply_add(b, x, b1)
        x = load(inputs, i + 2, d)
        a2 = multiply_add(a, x, a2)
        b2 = multiply_add(b, x, b2)
        x = load(inputs, i + 3, d)
        a3 = multiply_add(a, x, a3)
        b3 = multiply_add(b, x, b3)
    store_sums(result, k, i, a0, a1, a2, a3, b0, b1, b2, b3)


@kernel(fastmath=True)
def scores(
    outputs: Floats,
    first: int,
    last: int,
    inputs: Floats,
    start: int,
    stop: int,
    width: int,
    result: Floats,
) -> None:
    """``result[first:last, start:stop] = outputs[first:last] @ inputs[start:stop].T``

    Rounded up to whole tiles: what lies beyond the edges is overwritten with nonsense.
    """
    for k in range(first, last, 2):
        for i in range(start, stop, ROWS):
            _scores_tile(outputs, k, inputs, i, width, result)


@kernel(fastmath=True)
def paired_scores(
    outputs: Floats, k: int, inputs: Floats, i: int, width: int, result: Floats, row: int
) -> None:
    """``result[row, i + j] = outputs[k + j] @ inputs[i + j]`` for j in 0..3; overwrites row + 1."""
    a0 = a1 = a2 = a3 = zeros()
    for d in range(0, width, LANES):
        a0 = multiply_add(load(outputs, k, d), load(inputs, i, d), a0)
        a1 = multiply_add(load(outputs, k + 1, d), load(inputs, i + 1, d), a1)
        a2 = multiply_add(load(outputs, k + 2, d), load(inputs, i + 2, d), a2)
        a3 = multiply_add(load(outputs, k + 3, d), load(inputs, i + 3, d), a3)
    store_sums(result, row, i, a0, a1, a2, a3, a0, a1, a2, a3)


@kernel(fastmath=True)
def add_products(
    result: Floats,
    row: int,
    weights: Floats,
    j: int,
    rows: Floats,
    start: int,
    stop: int,
    width: int,
) -> None:
    """``result[row:row+4] += weights[start:stop, j:j+4].T @ rows[start:stop]``"""
    d = 0
    while d + 2 * LANES <= width:
        a0, a1 = load(result, row, d), load(result, row + 1, d)
        a2, a3 = load(result, row + 2, d), load(result, row + 3, d)
        b0, b1 = load(result, row, d + LANES), load(result, row + 1, d + LANES)
        b2, b3 = load(result, row + 2, d + LANES), load(result, row + 3, d + LANES)
        for k in range(start, stop):
            a = load(rows, k, d)
            b = load(rows, k, d + LANES)
            weight = splat(weights[k, j])
            a0 = multiply_add(weight, a, a0)
            b0 = multiply_add(weight, b, b0)
            weight = splat(weights[k, j + 1])
            a1 = multiply_add(weight, a, a1)
            b1 = multiply_add(weight, b, b1)
            weight = splat(weights[k, j + 2])
            a2 = multiply_add(weight, a, a2)
            b2 = multiply_add(weight, b, b2)
            weight = splat(weights[k, j + 3])
            a3 = multiply_add(weight, a, a3)
            b3 = multiply_add(weight, b, b3)
        store(result, row, d, a0)
        store(result, row + 1, d, a1)
        store(result, row + 2, d, a2)
        store(result, row + 3, d, a3)
        store(result, row, d + LANES, b0)
        store(result, row + 1, d + LANES, b1)
        store(result, row + 2, d + LANES, b2)
        store(result, row + 3, d + LANES, b3)
        d += 2 * LANES
    if d < width:
        a0, a1 = load(result, row, d), load(result, row + 1, d)
        a2, a3 = load(result, row + 2, d), load(result, row + 3, d)
        for k in range(start, stop):
            a = load(rows, k, d)
            a0 = multiply_add(splat(weights[k, j]), a, a0)
            a1 = multiply_add(splat(weights[k, j + 1]), a, a1)
            a2 = multiply_add(splat(weights[k, j + 2]), a, a2)
            a3 = multiply_add(splat(weights[k, j + 3]), a, a3)
        store(result, row, d, a0)
        store(result, row + 1, d, a1)
        store(result, row + 2, d, a2)
        store(result, row + 3, d, a3)


@kernel(fastmath=True, forceinline=True)
def clear(rows: Floats, row: int, width: int) -> None:
    """``rows[row:row+4] = 0``"""
    for d in range(0, width, LANES):
        for r in range(ROWS):
            store(rows, row + r, d, zeros())


@kernel(fastmath=True, forceinline=True)
def copy_row(target: Floats, i: int, source: Floats, j: int, width: int) -> None:
    """``target[i] = source[j]``"""
    for d in range(0, width, LANES):
        store(target, i, d, load(source, j, d))


@kernel(fastmath=True, forceinline=True)
def add_row(target: Floats, i: int, weight: np.float32, source: Floats, j: int, width: int) -> None:
    """``target[i] += weight * source[j]``"""
    for d in range(0, width, LANES):
        store(target, i, d, multiply_add(splat(weight), load(source, j, d), load(target, i, d)))


@kernel(fastmath=True)
def add_up(sums: Floats, rows: Floats, count: int, width: int) -> None:
    """``sums[i] = sum of rows[:i]`` for i from 0 to ``count``."""
    for d in range(0, width, LANES):
        total = zeros()
        store(sums, 0, d, total)
        for i in range(count):
            total = multiply_add(splat(np.float32(1.0)), load(rows, i, d), total)
            store(sums, i + 1, d, total)


@kernel(fastmath=True, forceinline=True)
def window_sum(
    target: Floats, c: int, weight: np.float32, sums: Floats, left: int, right: int, here: int
) -> None:
    """``target[c] = weight * (rows[left:here] + rows[here + 1 : right])`` by their ``sums``."""
    for d in range(0, target.shape[1], LANES):
        minus = splat(np.float32(-1.0))
        before = multiply_add(minus, load(sums, left, d), load(sums, here, d))
        after = multiply_add(minus, load(sums, here + 1, d), load(sums, right, d))
        both = multiply_add(splat(np.float32(1.0)), before, after)
        store(target, c, d, multiply(splat(weight), both))


@kernel(fastmath=True, error_model="numpy")
def sigmoid(x: np.float32) -> np.float32:
    """``1 / (1 + exp(-x))``"""
    return np.float32(1.0) / (np.float32(1.0) + np.float32(math.exp(-x)))


@kernel(error_model="numpy")
def softplus(x: float) -> float:
    """``log(1 + exp(x))``, the loss of a score -x; finite for every score that is a number.

    >>> softplus(np.float32(200.0)), softplus(np.float32(-200.0)) < 1e-80
    (200.0, True)
    """
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@kernel(fastmath=True, forceinline=True)
def _sigmoids(x: Any) -> Any:
    """The same for a vector, to within 3e-6, without a branch or a table.

    It is ``(1 + tanh(x / 2)) / 2`` with Lambert's continued fraction for tanh,
    t / (1 + t^2 / (3 + t^2 / (5 + ...))), cut after nine terms and written as a quotient.
    """
    t = clamp(multiply(x, splat(np.float32(0.5))), splat(np.float32(6.0)))
    s = multiply(t, t)
    above = multiply_add(s, splat(np.float32(1.0)), splat(np.float32(990.0)))
    above = multiply_add(s, above, splat(np.float32(135135.0)))
    above = multiply_add(s, above, splat(np.float32(4729725.0)))
    above = multiply_add(s, above, splat(np.float32(34459425.0)))
    below = multiply_add(s, splat(np.float32(45.0)), splat(np.float32(13860.0)))
    below = multiply_add(s, below, splat(np.float32(945945.0)))
    below = multiply_add(s, below, splat(np.float32(16216200.0)))
    below = multiply_add(s, below, splat(np.float32(34459425.0)))
    half = splat(np.float32(0.5))
    return multiply_add(multiply(t, half), divide(above, below), half)


@kernel(fastmath=True)
def true_steps(
    pairs: Floats, k: int, start: int, stop: int, left: int, right: int, here: int, lr: np.float32
) -> None:
    """Scores in ``pairs[k, start:stop]`` to ``lr * (1 - sigmoid(score))`` from left to right, but 0
    outside and at ``here``."""
    for i in range(start, stop, LANES):
        none = multiply(between(here - i, here - i + 1), splat(np.float32(-1.0)))
        is_pair = multiply_add(none, splat(np.float32(1.0)), between(left - i, right - i))
        errors = _sigmoids(multiply(load(pairs, k, i), splat(np.float32(-1.0))))
        store(pairs, k, i, multiply(multiply(is_pair, splat(lr)), errors))


@kernel(fastmath=True)
def noise_steps(
    pairs: Floats, k: int, stop: int, weights: Floats, row: int, lr: np.float32
) -> None:
    """Scores in ``pairs[k, :stop]`` to ``-lr * weights[row] * sigmoid(score)``"""
    for i in range(0, stop, LANES):
        weight = multiply(load(weights, row, i), splat(-lr))
        store(pairs, k, i, multiply(weight, _sigmoids(load(pairs, k, i))))
