"""Small matrix products that stay in registers: what training spends its time in.

A block of training is three products of the same kind (O output rows, X input rows, G one number
for each pair): the scores ``O X'``, the change of the inputs ``G' O``, the change of the outputs
``G X``. Done pair by pair, as word2vec is usually written, each row is fetched from memory for
each pair: two loads for one multiply-add. Done by tiles, 2 x 4 scores or 4 rows of a change at a
time, a loaded piece is used four or eight times, and the processor's multipliers are kept busy.

All matrices have rows of ``width`` floats, a multiple of 16: see ``padded``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from nlpkit.word2vec.simd import (
    LANES,
    load,
    multiply_add,
    splat,
    store,
    store_sums,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


@njit(nogil=True, fastmath=True, cache=True)
def scores(outputs: Floats, k: int, inputs: Floats, i: int, width: int, result: Floats) -> None:
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


@njit(nogil=True, fastmath=True, cache=True)
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


@njit(nogil=True, fastmath=True, cache=True)
def add_products(
    result: Floats,
    weights: Floats,
    j: int,
    rows: Floats,
    start: int,
    stop: int,
    width: int,
) -> None:
    """``result[0:4] += weights[start:stop, j:j+4].T @ rows[start:stop]``"""
    d = 0
    while d + 2 * LANES <= width:
        a0, a1 = load(result, 0, d), load(result, 1, d)
        a2, a3 = load(result, 2, d), load(result, 3, d)
        b0, b1 = load(result, 0, d + LANES), load(result, 1, d + LANES)
        b2, b3 = load(result, 2, d + LANES), load(result, 3, d + LANES)
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
        store(result, 0, d, a0)
        store(result, 1, d, a1)
        store(result, 2, d, a2)
        store(result, 3, d, a3)
        store(result, 0, d + LANES, b0)
        store(result, 1, d + LANES, b1)
        store(result, 2, d + LANES, b2)
        store(result, 3, d + LANES, b3)
        d += 2 * LANES
    if d < width:
        a0, a1 = load(result, 0, d), load(result, 1, d)
        a2, a3 = load(result, 2, d), load(result, 3, d)
        for k in range(start, stop):
            a = load(rows, k, d)
            a0 = multiply_add(splat(weights[k, j]), a, a0)
            a1 = multiply_add(splat(weights[k, j + 1]), a, a1)
            a2 = multiply_add(splat(weights[k, j + 2]), a, a2)
            a3 = multiply_add(splat(weights[k, j + 3]), a, a3)
        store(result, 0, d, a0)
        store(result, 1, d, a1)
        store(result, 2, d, a2)
        store(result, 3, d, a3)


@njit(nogil=True, fastmath=True, cache=True)
def clear(rows: Floats, width: int) -> None:
    """``rows[0:4] = 0``"""
    for d in range(0, width, LANES):
        for r in range(ROWS):
            store(rows, r, d, zeros())


@njit(nogil=True, fastmath=True, cache=True)
def copy_row(target: Floats, i: int, source: Floats, j: int, width: int) -> None:
    """``target[i] = source[j]``"""
    for d in range(0, width, LANES):
        store(target, i, d, load(source, j, d))


@njit(nogil=True, fastmath=True, cache=True)
def add_row(target: Floats, i: int, weight: np.float32, source: Floats, j: int, width: int) -> None:
    """``target[i] += weight * source[j]``"""
    for d in range(0, width, LANES):
        store(target, i, d, multiply_add(splat(weight), load(source, j, d), load(target, i, d)))


@njit(nogil=True, fastmath=True, cache=True, error_model="numpy")
def sigmoid(x: np.float32) -> np.float32:
    """``1 / (1 + exp(-x))`` to within 3e-6, without a branch or a table.

    It is ``(1 + tanh(x / 2)) / 2`` with Lambert's continued fraction for tanh,
    t / (1 + t^2 / (3 + t^2 / (5 + ...))), cut after nine terms and written as a quotient.
    """
    t = min(max(x * np.float32(0.5), np.float32(-6.0)), np.float32(6.0))
    s = t * t
    above = np.float32(34459425) + s * (
        np.float32(4729725) + s * (np.float32(135135) + s * (np.float32(990) + s))
    )
    below = np.float32(34459425) + s * (
        np.float32(16216200)
        + s * (np.float32(945945) + s * (np.float32(13860) + s * np.float32(45)))
    )
    return np.float32(0.5) + np.float32(0.5) * t * above / below
