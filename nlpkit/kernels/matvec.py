"""Matrix-vector products (GEMV) of a GPT for the vectors of one token, compiled for a CPU.

Each number of a matrix is used once or a few times, so what counts is to read it at the full speed
of memory. Weights are float32, or 8-bit integers with a scale for each row.

B is the batch, L layers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import overload

from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.integers import STEP, add_products, no_sums, total
from nlpkit.kernels.simd import (
    LANES,
    larger,
    largest,
    load,
    magnitude,
    multiply_add,
    prefetch,
    store_sums,
    zeros,
)

NONE, RELU2, GELU, GELU_TANH, RELU, SILU = range(6)  # the activation applied to a result
AHEAD = 8  # rows: how far in advance memory is asked for
LARGE = 1 << 18  # weights from which on several threads are quicker than one

compiled = kernel(fastmath=True)


def by_weights(integers: Any, floats: Any) -> Any:
    """A kernel for weights, its first argument, of 8 bits, or one for float32.

    A condition in a kernel would have both compiled for either.
    """

    def choose(weight: Any, *more: Any) -> None:
        (integers if weight.dtype == np.int8 else floats)(weight, *more)

    overload(choose)(
        lambda weight, *more: (
            (lambda weight, *more: integers(weight, *more))
            if weight.dtype == numba.int8
            else (lambda weight, *more: floats(weight, *more))
        )
    )
    return choose


class Stack(NamedTuple):
    """The matrices of one kind, of all layers."""

    weight: Any  # (L, out, in) float32 or int8
    scale: Any  # (L, out): what a row is to be multiplied by
    bias: Any  # (L, out)


@compiled
def multiply(stack: Any, layer: int, x: Any, out: Any, activation: int, threads: int) -> None:
    """out (B, out) = x (B, in) times the transposed matrix of a layer, plus its bias, activated."""
    weight, scale, bias = stack.weight[layer], stack.scale[layer], stack.bias[layer]
    if threads > 1 and weight.size >= LARGE:
        _multiply_together(weight, scale, bias, x, out, activation, threads)
    else:
        _rows(weight, scale, bias, x, out, activation, 0, len(weight))


@kernel(parallel=True, fastmath=True)
def _multiply_together(
    weight: Any, scale: Any, bias: Any, x: Any, out: Any, activation: int, threads: int
) -> None:
    count = len(weight)
    for part in numba.prange(threads):
        first, end = part * count // threads, (part + 1) * count // threads
        _rows(weight, scale, bias, x, out, activation, first, end)


@compiled
def _rows(
    weight: Any, scale: Any, bias: Any, x: Any, out: Any, activation: int, first: int, end: int
) -> None:
    """The part of a product that the rows from ``first`` to ``end`` make."""
    _products(weight, x, first, end, out)
    for b in range(x.shape[0]):
        for o in range(first, end):
            out[b, o] = out[b, o] * scale[o] + bias[o]
        activate(out[b, first:end], activation)


@compiled
def _floats(weight: Any, x: Any, first: int, end: int, out: Any) -> None:
    if len(x) == 1:
        one_input(weight, x, first, end, out[0])
    else:
        _many_inputs(weight, x, first, end, out)


@compiled
def largest_input(size: int) -> int:
    """The whole number that the largest of so many inputs becomes, so that no sum overflows."""
    return min(32767, (2**31 - 1) // (127 * size))


@compiled
def _whole_numbers(weight: Any, x: Any, first: int, end: int, out: Any) -> None:
    """With 8-bit weights: the inputs become whole numbers too, as large as their sum allows.

    Four rows at once, far from each other: memory is read fastest in several streams.
    """
    size = x.shape[1]
    largest = np.float32(largest_input(size))
    inputs = np.empty(x.shape, np.int16)
    units = np.empty(len(x), np.float32)
    for b in range(len(x)):
        highest = np.float32(1e-30)
        for i in range(size):
            highest = max(highest, abs(x[b, i]))
        units[b] = highest / largest
        for i in range(size):
            inputs[b, i] = np.int16(np.rint(x[b, i] / units[b]))
    far = weight.size >= LARGE
    last, quarter = end - 1, (end - first + 3) // 4
    for o in range(first, first + quarter):
        o1, o2, o3 = min(o + quarter, last), min(o + 2 * quarter, last), min(o + 3 * quarter, last)
        for b in range(len(x)):
            s0, s1, s2, s3 = no_sums(), no_sums(), no_sums(), no_sums()
            for i in range(0, size - STEP + 1, STEP):
                s0 = add_products(s0, weight, o, inputs, b, i)
                s1 = add_products(s1, weight, o1, inputs, b, i)
                s2 = add_products(s2, weight, o2, inputs, b, i)
                s3 = add_products(s3, weight, o3, inputs, b, i)
                if far:
                    prefetch(weight, o + 4, i)
                    prefetch(weight, o1 + 4, i)
                    prefetch(weight, o2 + 4, i)
                    prefetch(weight, o3 + 4, i)
            t0, t1, t2, t3 = total(s0), total(s1), total(s2), total(s3)
            for i in range(size - size % STEP, size):
                t0 += np.int32(weight[o, i]) * inputs[b, i]
                t1 += np.int32(weight[o1, i]) * inputs[b, i]
                t2 += np.int32(weight[o2, i]) * inputs[b, i]
                t3 += np.int32(weight[o3, i]) * inputs[b, i]
            out[b, o], out[b, o1] = t0 * units[b], t1 * units[b]
            out[b, o2], out[b, o3] = t2 * units[b], t3 * units[b]


@compiled
def one_input(weight: Any, x: Any, first: int, end: int, out: Any) -> None:
    """Eight rows at once: memory is read fastest in several streams, asked for in advance.

    Where fewer are left the last is worked on again, which does no harm and needs no other loop.
    """
    size, last = weight.shape[1], end - 1
    whole = size - size % LANES
    far = weight.size >= LARGE
    sums = np.empty((2, 4), np.float32)
    for o in range(first, end, 8):
        o1, o2, o3 = min(o + 1, last), min(o + 2, last), min(o + 3, last)
        o4, o5, o6, o7 = min(o + 4, last), min(o + 5, last), min(o + 6, last), min(o + 7, last)
        s0, s1, s2, s3 = zeros(), zeros(), zeros(), zeros()
        s4, s5, s6, s7 = zeros(), zeros(), zeros(), zeros()
        for i in range(0, whole, LANES):
            v = load(x, 0, i)
            s0 = multiply_add(load(weight, o, i), v, s0)
            s1 = multiply_add(load(weight, o1, i), v, s1)
            s2 = multiply_add(load(weight, o2, i), v, s2)
            s3 = multiply_add(load(weight, o3, i), v, s3)
            s4 = multiply_add(load(weight, o4, i), v, s4)
            s5 = multiply_add(load(weight, o5, i), v, s5)
            s6 = multiply_add(load(weight, o6, i), v, s6)
            s7 = multiply_add(load(weight, o7, i), v, s7)
            if far:
                for ahead in range(AHEAD, AHEAD + 8):
                    prefetch(weight, o + ahead, i)
        store_sums(sums, 0, 0, s0, s1, s2, s3, s4, s5, s6, s7)
        for row in range(o, min(o + 8, end)):
            out[row] = sums[(row - o) // 4, (row - o) % 4]
            for i in range(whole, size):
                out[row] += weight[row, i] * x[0, i]


@compiled
def _many_inputs(weight: Any, x: Any, first: int, end: int, out: Any) -> None:
    """Four rows with four inputs at once: each number that is read is used four times."""
    size, last, last_input = weight.shape[1], end - 1, len(x) - 1
    whole = size - size % LANES
    far = weight.size >= LARGE
    rounds = (len(x) + 3) // 4
    sums = np.empty((4, 4), np.float32)
    for o in range(first, end, 4):
        o1, o2, o3 = min(o + 1, last), min(o + 2, last), min(o + 3, last)
        for b in range(0, len(x), 4):
            b1, b2, b3 = min(b + 1, last_input), min(b + 2, last_input), min(b + 3, last_input)
            # every round asks for its share of the four rows to come: memory is never idle
            ask, stop = o + AHEAD + b // rounds, o + AHEAD + (b + 4) // rounds if far else 0
            s00, s01, s02, s03 = zeros(), zeros(), zeros(), zeros()
            s10, s11, s12, s13 = zeros(), zeros(), zeros(), zeros()
            s20, s21, s22, s23 = zeros(), zeros(), zeros(), zeros()
            s30, s31, s32, s33 = zeros(), zeros(), zeros(), zeros()
            for i in range(0, whole, LANES):
                x0, x1, x2, x3 = load(x, b, i), load(x, b1, i), load(x, b2, i), load(x, b3, i)
                w = load(weight, o, i)
                s00, s01 = multiply_add(w, x0, s00), multiply_add(w, x1, s01)
                s02, s03 = multiply_add(w, x2, s02), multiply_add(w, x3, s03)
                w = load(weight, o1, i)
                s10, s11 = multiply_add(w, x0, s10), multiply_add(w, x1, s11)
                s12, s13 = multiply_add(w, x2, s12), multiply_add(w, x3, s13)
                w = load(weight, o2, i)
                s20, s21 = multiply_add(w, x0, s20), multiply_add(w, x1, s21)
                s22, s23 = multiply_add(w, x2, s22), multiply_add(w, x3, s23)
                w = load(weight, o3, i)
                s30, s31 = multiply_add(w, x0, s30), multiply_add(w, x1, s31)
                s32, s33 = multiply_add(w, x2, s32), multiply_add(w, x3, s33)
                for row in range(ask, stop):
                    prefetch(weight, row, i)
            store_sums(sums, 0, 0, s00, s01, s02, s03, s10, s11, s12, s13)
            store_sums(sums, 2, 0, s20, s21, s22, s23, s30, s31, s32, s33)
            for row in range(o, min(o + 4, end)):
                for n in range(b, min(b + 4, len(x))):
                    out[n, row] = sums[row - o, n - b]
                    for i in range(whole, size):
                        out[n, row] += weight[row, i] * x[n, i]


_products = by_weights(_whole_numbers, _floats)


@kernel(parallel=True, fastmath=True)
def settle(head: Any, doubt: Any, x: Any, logits: Any, likeliest: int, threads: int) -> None:
    """Make the highest logits exact, given some of which each is wrong by ``doubt`` at most.

    What may be among the highest is what could reach the least of them if all that is in doubt went
    its way. The rest of the weights, which are most of what there is to read, is left alone.
    For the least of the highest the tops of parts are looked at: as many tops are at least as high.
    """
    weight, bias, count = head.weight[0], head.bias[0], len(logits)
    length = np.float32(0)
    for i in range(len(x)):
        length += x[i] * x[i]
    length = np.float32(math.sqrt(length))
    size = max(1, count // (16 * likeliest))
    tops = np.full(count // size, np.float32(-3e38))
    for n in range(len(tops)):
        for o in range(n * size, (n + 1) * size):
            tops[n] = max(tops[n], logits[o] - length * doubt[o])
    least = np.partition(tops, len(tops) - likeliest)[len(tops) - likeliest]
    for part in numba.prange(threads):
        for o in range(part * count // threads, (part + 1) * count // threads):
            if logits[o] + length * doubt[o] >= least:
                exact = np.float32(0)
                for i in range(len(x)):
                    exact += weight[o, i] * x[i]
                logits[o] = exact + bias[o]


@kernel(fastmath=True, error_model="numpy")  # a division that may raise is no vector operation
def activate(x: Any, activation: int) -> None:
    """In place; a loop for each kind, since a choice inside one would keep it from being fast."""
    one, half = np.float32(1), np.float32(0.5)
    if activation == RELU2:
        for i in range(len(x)):
            x[i] = max(x[i], np.float32(0)) ** 2
    elif activation == GELU:
        for i in range(len(x)):
            x[i] *= half * (one + _erf(x[i] * np.float32(0.5**0.5)))
    elif activation == GELU_TANH:
        for i in range(len(x)):
            inner = np.float32(0.7978845608) * (x[i] + np.float32(0.044715) * x[i] ** 3)
            # (1 + tanh) / 2 by way of exp, which is quicker
            x[i] -= x[i] / (math.exp(min(2 * inner, np.float32(80))) + one)
    elif activation == RELU:
        for i in range(len(x)):
            x[i] = max(x[i], np.float32(0))
    elif activation == SILU:
        for i in range(len(x)):
            x[i] /= one + exp(-x[i])


@kernel(fastmath=True, inline="always")
def _erf(x: Any) -> Any:
    """The error function to 3e-7 (Abramowitz and Stegun 7.1.28), without a call inside a loop."""
    z = abs(x)
    p = np.float32(0.0002765672) + np.float32(0.0000430638) * z
    p = np.float32(0.0092705272) + z * (np.float32(0.0001520143) + z * p)
    p = np.float32(1) + z * (np.float32(0.0705230784) + z * (np.float32(0.0422820123) + z * p))
    p = np.float32(1) / p
    p *= p
    p *= p
    p *= p
    p *= p
    return math.copysign(np.float32(1) - p, x)


@kernel(fastmath=True, inline="always")
def exp(x: Any) -> Any:
    """exp(x) for x between -30 and 30, which larger ones become: exp(x / 64)^64, by Taylor.

    To 1e-5 of its value, without a call inside a loop.
    """
    y = min(max(x, np.float32(-30)), np.float32(30)) * np.float32(1 / 64)
    p = np.float32(1) + y * np.float32(1 / 6)
    p = np.float32(1) + y * np.float32(1 / 5) * p
    p = np.float32(1) + y * np.float32(1 / 4) * p
    p = np.float32(1) + y * np.float32(1 / 3) * p
    p = np.float32(1) + y * np.float32(1 / 2) * p
    p = np.float32(1) + y * p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    return p


@kernel(fastmath={"nnan", "nsz", "reassoc"})  # numbers may be infinite
def highest(x: Any, r: int, start: int, end: int) -> Any:
    """The largest of ``x[r, start:end]``, which is not empty: several at once, as a loop is not."""
    found = x[r, start]
    whole = end - (end - start) % LANES
    if whole > start:
        most = load(x, r, start)
        for i in range(start + LANES, whole, LANES):
            most = larger(most, load(x, r, i))
        found = largest(most)
    for i in range(whole, end):
        found = max(found, x[r, i])
    return found


@kernel(fastmath=True)
def highest_magnitude(x: Any, r: int) -> Any:
    """The largest absolute value of ``x[r]``."""
    size = x.shape[1]
    whole, most = size - size % LANES, zeros()
    for i in range(0, whole, LANES):
        most = larger(most, magnitude(load(x, r, i)))
    found = largest(most)
    for i in range(whole, size):
        found = max(found, abs(x[r, i]))
    return found
