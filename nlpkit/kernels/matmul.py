"""Matrix products for one vector or many, of matrices that are packed for it, compiled for a CPU.

Panels of a matrix stand one behind the other: the weights of so many outputs that they fill two
registers, for the first input, then for the second, and so on. A product goes through a panel,
multiplies what it reads by the inputs of up to eight vectors, and keeps all sums in registers; in
the end nothing has to be added up across a register. Weights are float32, or 8-bit integers with a
scale for each output, those of two inputs side by side.

R vectors, L layers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.integers import STEP, add_pairs, join, no_sums, store_integers
from nlpkit.kernels.matvec import (
    LARGE,
    Stack,
    activate,
    by_weights,
    compiled,
    highest_magnitude,
    largest_input,
)
from nlpkit.kernels.simd import LANES, load, multiply_add, prefetch, splat, store, zeros

_FLOATS = 2 * LANES  # outputs of a panel, in float32
_BYTES = STEP  # and in 8 bits
_AHEAD = 32  # lines of a panel: how far in advance memory is asked for


class Packed(NamedTuple):
    """The matrices of one kind, of all layers."""

    weight: Any  # (L, panels, in, outputs of a panel) float32; int8 (..., in / 2, twice as many)
    scale: Any  # (L, out): what an output is to be multiplied by
    bias: Any  # (L, out)


def pack(stack: Stack) -> Packed:
    """Matrices (L, out, in) in panels; what is missing of the last panel is 0.

    >>> packed = pack(Stack(np.ones((1, 40, 3), np.int8), np.ones((1, 40)), np.zeros((1, 40))))
    >>> packed.weight.shape
    (1, 2, 2, 64)
    """
    weight = stack.weight
    layers, outputs, inputs = weight.shape
    pair, width = (2, _BYTES) if weight.dtype == np.int8 else (1, _FLOATS)
    panels = -(-outputs // width)
    filled = np.zeros((layers, panels * width, -(-inputs // pair) * pair), weight.dtype)
    filled[:, :outputs, :inputs] = weight
    cut = filled.reshape(layers, panels, width, -1, pair).transpose(0, 1, 3, 2, 4)
    return Packed(
        np.ascontiguousarray(cut).reshape(layers, panels, -1, width * pair), stack.scale, stack.bias
    )


@compiled
def multiply(packed: Any, layer: int, x: Any, out: Any, activation: int, threads: int) -> None:
    """out (R, out) = x (R, in) times the transposed matrix of a layer, plus its bias, activated."""
    weight, scale, bias = packed.weight[layer], packed.scale[layer], packed.bias[layer]
    if threads > 1 and weight.size >= LARGE:
        _multiply_together(weight, scale, bias, x, out, activation, threads)
    else:
        _panels(weight, scale, bias, x, out, activation, 0, len(weight))


@kernel(parallel=True, fastmath=True)
def _multiply_together(
    weight: Any, scale: Any, bias: Any, x: Any, out: Any, activation: int, threads: int
) -> None:
    count = len(weight)
    for part in numba.prange(threads):
        first, end = part * count // threads, (part + 1) * count // threads
        _panels(weight, scale, bias, x, out, activation, first, end)


@compiled
def _panels(
    weight: Any, scale: Any, bias: Any, x: Any, out: Any, activation: int, first: int, end: int
) -> None:
    """The part of a product that the panels from ``first`` to ``end`` make."""
    _products(weight, scale, x, first, end, out)
    width = _BYTES if weight.itemsize == 1 else _FLOATS
    start, stop = first * width, min(end * width, out.shape[1])
    for r in range(len(x)):
        for o in range(start, stop):
            out[r, o] += bias[o]
        activate(out[r, start:stop], activation)


@compiled
def _floats(weight: Any, scale: Any, x: Any, first: int, end: int, out: Any) -> None:
    sums = np.empty((8, _FLOATS), np.float32)
    for p in range(first, end):
        panel, start = weight[p], p * _FLOATS
        width = min(_FLOATS, out.shape[1] - start)
        r = 0
        while r < len(x):
            left = len(x) - r
            if left == 1:
                _one_vector(panel, x, r, sums)
            elif left <= 5:
                _four_vectors(panel, x, r, sums)
                left = min(left, 4)
            else:
                _eight_vectors(panel, x, r, sums)
                left = min(left, 8)
            for n in range(r, r + left):
                for o in range(width):
                    out[n, start + o] = sums[n - r, o]
            r += left


@compiled
def _one_vector(panel: Any, x: Any, r: int, sums: Any) -> None:
    """Four inputs at once, so that no sum waits for the one before."""
    a0, a1, a2, a3 = zeros(), zeros(), zeros(), zeros()
    b0, b1, b2, b3 = zeros(), zeros(), zeros(), zeros()
    size = len(panel)
    whole = size - size % 4
    for i in range(0, whole, 4):
        v = splat(x[r, i])
        a0, b0 = multiply_add(load(panel, i, 0), v, a0), multiply_add(load(panel, i, LANES), v, b0)
        v, n = splat(x[r, i + 1]), i + 1
        a1, b1 = multiply_add(load(panel, n, 0), v, a1), multiply_add(load(panel, n, LANES), v, b1)
        v, n = splat(x[r, i + 2]), i + 2
        a2, b2 = multiply_add(load(panel, n, 0), v, a2), multiply_add(load(panel, n, LANES), v, b2)
        v, n = splat(x[r, i + 3]), i + 3
        a3, b3 = multiply_add(load(panel, n, 0), v, a3), multiply_add(load(panel, n, LANES), v, b3)
        for n in range(i + _AHEAD, i + _AHEAD + 4):
            prefetch(panel, n, 0)
            prefetch(panel, n, LANES)
    for i in range(whole, size):
        v = splat(x[r, i])
        a0, b0 = multiply_add(load(panel, i, 0), v, a0), multiply_add(load(panel, i, LANES), v, b0)
    one = splat(np.float32(1))
    a0, a2 = multiply_add(a0, one, a1), multiply_add(a2, one, a3)
    b0, b2 = multiply_add(b0, one, b1), multiply_add(b2, one, b3)
    store(sums, 0, 0, multiply_add(a0, one, a2))
    store(sums, 0, LANES, multiply_add(b0, one, b2))


@compiled
def _four_vectors(panel: Any, x: Any, r: int, sums: Any) -> None:
    """Where fewer are left the last is worked on again, which does no harm."""
    last = len(x) - 1
    r1, r2, r3 = min(r + 1, last), min(r + 2, last), min(r + 3, last)
    a0 = a1 = a2 = a3 = zeros()
    b0 = b1 = b2 = b3 = zeros()
    for i in range(len(panel)):
        w, u = load(panel, i, 0), load(panel, i, LANES)
        v = splat(x[r, i])
        a0, b0 = multiply_add(w, v, a0), multiply_add(u, v, b0)
        v = splat(x[r1, i])
        a1, b1 = multiply_add(w, v, a1), multiply_add(u, v, b1)
        v = splat(x[r2, i])
        a2, b2 = multiply_add(w, v, a2), multiply_add(u, v, b2)
        v = splat(x[r3, i])
        a3, b3 = multiply_add(w, v, a3), multiply_add(u, v, b3)
        prefetch(panel, i + _AHEAD, 0)
        prefetch(panel, i + _AHEAD, LANES)
    store(sums, 0, 0, a0)
    store(sums, 0, LANES, b0)
    store(sums, 1, 0, a1)
    store(sums, 1, LANES, b1)
    store(sums, 2, 0, a2)
    store(sums, 2, LANES, b2)
    store(sums, 3, 0, a3)
    store(sums, 3, LANES, b3)


@compiled
def _eight_vectors(panel: Any, x: Any, r: int, sums: Any) -> None:
    last = len(x) - 1
    r1, r2, r3, r4 = min(r + 1, last), min(r + 2, last), min(r + 3, last), min(r + 4, last)
    r5, r6, r7 = min(r + 5, last), min(r + 6, last), min(r + 7, last)
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = zeros()
    b0 = b1 = b2 = b3 = b4 = b5 = b6 = b7 = zeros()
    far = r == 0
    for i in range(len(panel)):
        w, u = load(panel, i, 0), load(panel, i, LANES)
        v = splat(x[r, i])
        a0, b0 = multiply_add(w, v, a0), multiply_add(u, v, b0)
        v = splat(x[r1, i])
        a1, b1 = multiply_add(w, v, a1), multiply_add(u, v, b1)
        v = splat(x[r2, i])
        a2, b2 = multiply_add(w, v, a2), multiply_add(u, v, b2)
        v = splat(x[r3, i])
        a3, b3 = multiply_add(w, v, a3), multiply_add(u, v, b3)
        v = splat(x[r4, i])
        a4, b4 = multiply_add(w, v, a4), multiply_add(u, v, b4)
        v = splat(x[r5, i])
        a5, b5 = multiply_add(w, v, a5), multiply_add(u, v, b5)
        v = splat(x[r6, i])
        a6, b6 = multiply_add(w, v, a6), multiply_add(u, v, b6)
        v = splat(x[r7, i])
        a7, b7 = multiply_add(w, v, a7), multiply_add(u, v, b7)
        if far:
            prefetch(panel, i + _AHEAD, 0)
            prefetch(panel, i + _AHEAD, LANES)
    store(sums, 0, 0, a0)
    store(sums, 0, LANES, b0)
    store(sums, 1, 0, a1)
    store(sums, 1, LANES, b1)
    store(sums, 2, 0, a2)
    store(sums, 2, LANES, b2)
    store(sums, 3, 0, a3)
    store(sums, 3, LANES, b3)
    store(sums, 4, 0, a4)
    store(sums, 4, LANES, b4)
    store(sums, 5, 0, a5)
    store(sums, 5, LANES, b5)
    store(sums, 6, 0, a6)
    store(sums, 6, LANES, b6)
    store(sums, 7, 0, a7)
    store(sums, 7, LANES, b7)


@compiled
def round_inputs(x: Any) -> Any:
    """Vectors (R, in) as whole numbers (R, in or one more), as large as sums allow, and units."""
    size = x.shape[1]
    largest = np.float32(largest_input(size))
    inputs = np.zeros((len(x), size + size % 2), np.int16)
    units = np.empty(len(x), np.float32)
    for r in range(len(x)):
        highest = max(np.float32(1e-30), highest_magnitude(x, r))
        units[r] = highest / largest
        per = largest / highest
        for i in range(size):
            inputs[r, i] = np.int16(np.rint(x[r, i] * per))
    return inputs, units


@compiled
def _integers(weight: Any, scale: Any, x: Any, first: int, end: int, out: Any) -> None:
    inputs, units = round_inputs(x)
    sums = np.empty((8, _BYTES), np.int32)
    for p in range(first, end):
        panel, start = weight[p], p * _BYTES
        width = min(_BYTES, out.shape[1] - start)
        r = 0
        while r < len(x):
            left = len(x) - r
            if left == 1:
                _one_rounded(panel, inputs, r, sums)
            elif left <= 5:
                _four_rounded(panel, inputs, r, sums)
                left = min(left, 4)
            else:
                _eight_rounded(panel, inputs, r, sums)
                left = min(left, 8)
            for n in range(r, r + left):
                for o in range(width):
                    out[n, start + o] = sums[n - r, o] * (units[n] * scale[start + o])
            r += left


@compiled
def _one_rounded(panel: Any, x: Any, r: int, sums: Any) -> None:
    a0, a1, a2, a3 = no_sums(), no_sums(), no_sums(), no_sums()
    b0, b1, b2, b3 = no_sums(), no_sums(), no_sums(), no_sums()
    size = len(panel)
    whole = size - size % 4
    for i in range(0, whole, 4):
        a0, b0 = add_pairs(a0, panel, i, 0, x, r, 2 * i), add_pairs(b0, panel, i, STEP, x, r, 2 * i)
        n, at = i + 1, 2 * i + 2
        a1, b1 = add_pairs(a1, panel, n, 0, x, r, at), add_pairs(b1, panel, n, STEP, x, r, at)
        n, at = i + 2, 2 * i + 4
        a2, b2 = add_pairs(a2, panel, n, 0, x, r, at), add_pairs(b2, panel, n, STEP, x, r, at)
        n, at = i + 3, 2 * i + 6
        a3, b3 = add_pairs(a3, panel, n, 0, x, r, at), add_pairs(b3, panel, n, STEP, x, r, at)
        for n in range(i + _AHEAD, i + _AHEAD + 4):
            prefetch(panel, n, 0)
    for i in range(whole, size):
        a0, b0 = add_pairs(a0, panel, i, 0, x, r, 2 * i), add_pairs(b0, panel, i, STEP, x, r, 2 * i)
    store_integers(sums, 0, 0, join(join(a0, a1), join(a2, a3)))
    store_integers(sums, 0, STEP // 2, join(join(b0, b1), join(b2, b3)))


@compiled
def _four_rounded(panel: Any, x: Any, r: int, sums: Any) -> None:
    last = len(x) - 1
    r1, r2, r3 = min(r + 1, last), min(r + 2, last), min(r + 3, last)
    a0 = a1 = a2 = a3 = no_sums()
    b0 = b1 = b2 = b3 = no_sums()
    for i in range(len(panel)):
        at = 2 * i
        a0, b0 = add_pairs(a0, panel, i, 0, x, r, at), add_pairs(b0, panel, i, STEP, x, r, at)
        a1, b1 = add_pairs(a1, panel, i, 0, x, r1, at), add_pairs(b1, panel, i, STEP, x, r1, at)
        a2, b2 = add_pairs(a2, panel, i, 0, x, r2, at), add_pairs(b2, panel, i, STEP, x, r2, at)
        a3, b3 = add_pairs(a3, panel, i, 0, x, r3, at), add_pairs(b3, panel, i, STEP, x, r3, at)
        prefetch(panel, i + _AHEAD, 0)
    store_integers(sums, 0, 0, a0)
    store_integers(sums, 0, STEP // 2, b0)
    store_integers(sums, 1, 0, a1)
    store_integers(sums, 1, STEP // 2, b1)
    store_integers(sums, 2, 0, a2)
    store_integers(sums, 2, STEP // 2, b2)
    store_integers(sums, 3, 0, a3)
    store_integers(sums, 3, STEP // 2, b3)


@compiled
def _eight_rounded(panel: Any, x: Any, r: int, sums: Any) -> None:
    last = len(x) - 1
    r1, r2, r3, r4 = min(r + 1, last), min(r + 2, last), min(r + 3, last), min(r + 4, last)
    r5, r6, r7 = min(r + 5, last), min(r + 6, last), min(r + 7, last)
    none = no_sums()
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = none
    b0 = b1 = b2 = b3 = b4 = b5 = b6 = b7 = none
    far = r == 0
    for i in range(len(panel)):
        at = 2 * i
        a0, b0 = add_pairs(a0, panel, i, 0, x, r, at), add_pairs(b0, panel, i, STEP, x, r, at)
        a1, b1 = add_pairs(a1, panel, i, 0, x, r1, at), add_pairs(b1, panel, i, STEP, x, r1, at)
        a2, b2 = add_pairs(a2, panel, i, 0, x, r2, at), add_pairs(b2, panel, i, STEP, x, r2, at)
        a3, b3 = add_pairs(a3, panel, i, 0, x, r3, at), add_pairs(b3, panel, i, STEP, x, r3, at)
        a4, b4 = add_pairs(a4, panel, i, 0, x, r4, at), add_pairs(b4, panel, i, STEP, x, r4, at)
        a5, b5 = add_pairs(a5, panel, i, 0, x, r5, at), add_pairs(b5, panel, i, STEP, x, r5, at)
        a6, b6 = add_pairs(a6, panel, i, 0, x, r6, at), add_pairs(b6, panel, i, STEP, x, r6, at)
        a7, b7 = add_pairs(a7, panel, i, 0, x, r7, at), add_pairs(b7, panel, i, STEP, x, r7, at)
        if far:
            prefetch(panel, i + _AHEAD, 0)
    store_integers(sums, 0, 0, a0)
    store_integers(sums, 0, STEP // 2, b0)
    store_integers(sums, 1, 0, a1)
    store_integers(sums, 1, STEP // 2, b1)
    store_integers(sums, 2, 0, a2)
    store_integers(sums, 2, STEP // 2, b2)
    store_integers(sums, 3, 0, a3)
    store_integers(sums, 3, STEP // 2, b3)
    store_integers(sums, 4, 0, a4)
    store_integers(sums, 4, STEP // 2, b4)
    store_integers(sums, 5, 0, a5)
    store_integers(sums, 5, STEP // 2, b5)
    store_integers(sums, 6, 0, a6)
    store_integers(sums, 6, STEP // 2, b6)
    store_integers(sums, 7, 0, a7)
    store_integers(sums, 7, STEP // 2, b7)


_products = by_weights(_integers, _floats)
