"""One more token of a GPT as one compiled function, for a CPU.

A token of a small model is hundreds of tiny operations: called one by one from Python, the calls
take longer than the arithmetic. A token of a large model is a matter of reading its weights once,
at the full speed of memory. Both come down to the same loops, written out here: embed, and for each
layer normalise, multiply, attend, multiply, activate, multiply (``matvec``).

B is the batch, C the width, H heads of size D, T the block size, L layers, V ids. N tokens are new:
one of each row of the batch, or several of one row, each of which sees those before it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.matvec import LARGE, NONE, Stack, compiled, exp, multiply, one_input, settle
from nlpkit.kernels.simd import LANES, load, multiply_add, splat, store, zeros

_EPSILON = np.float32(1e-5)


class Weights(NamedTuple):
    """Everything a step reads; what a model does not have is of size 0."""

    embedding: Any  # (V, C)
    previous: Any  # (P, V, C): of the tokens 1, 2, ... places before
    position: Any  # (T, C)
    rotations: Any  # (T, D / 2), complex: the rotation of each position
    norms: Any  # (2 L + 1, 2, C): gains and biases, the last layer's norm at the end
    gains: Any  # (L, D): of normalised queries and keys
    qkv: Stack  # (L, 3 C, C)
    output: Stack  # (L, C, C)
    up: Stack  # (L, 4 C, C)
    down: Stack  # (L, C, 4 C)
    head: Stack  # (1, V, C)
    screen: Stack  # the head again with 8-bit weights, or of size 0
    doubt: Any  # (V,): by how much the screen can be wrong, for an input of length 1


class Where(NamedTuple):
    """Where new tokens stand in the cache."""

    rows: Any  # (N,): the row that each belongs to
    places: Any  # (N,): its position there
    pads: Any  # (B,): positions on the left of a row that are no tokens


@compiled
def step(
    weights: Any,  # Weights
    keys: Any,  # (L, B, H, T, D)
    values: Any,
    ids: Any,  # (N,)
    last_ids: Any,  # (N, P): those before, the newest at the end
    where: Any,  # Where
    embedding_norm: bool,
    activation: int,
    likeliest: int,
    threads: int,
) -> Any:
    """Logits (N, V) of what follows each new id; their keys and values go into the cache.

    If ``likeliest`` is not 0, it is enough that those of so many likeliest ids are right.
    """
    if np.max(where.places) >= keys.shape[3]:
        raise IndexError("a token is beyond the block size")
    x = _embed(weights, ids, last_ids, where.places - where.pads[where.rows])  # (N, C)
    h = np.empty_like(x)
    if embedding_norm:
        normalize(x, x)
    added = np.empty_like(x)
    qkv = np.empty((len(x), weights.qkv.weight.shape[1]), np.float32)
    wide = np.empty((len(x), weights.up.weight.shape[1]), np.float32)
    for layer in range(len(keys)):
        normalize(x, h)
        scale(h, weights.norms[2 * layer])
        multiply(weights.qkv, layer, h, qkv, NONE, threads)
        _attend(weights, layer, qkv, keys[layer], values[layer], where, h, threads)
        multiply(weights.output, layer, h, added, NONE, threads)
        x += added
        normalize(x, h)
        scale(h, weights.norms[2 * layer + 1])
        multiply(weights.up, layer, h, wide, activation, threads)
        multiply(weights.down, layer, wide, added, NONE, threads)
        x += added
    normalize(x, x)
    scale(x, weights.norms[-1])
    logits = np.empty((len(x), weights.head.weight.shape[1]), np.float32)
    if likeliest and weights.screen.weight.size:
        multiply(weights.screen, 0, x, logits, NONE, threads)
        for b in range(len(x)):
            settle(weights.head, weights.doubt, x[b], logits[b], likeliest, threads)
    else:
        multiply(weights.head, 0, x, logits, NONE, threads)
    return logits


@compiled
def _embed(weights: Any, ids: Any, last_ids: Any, since: Any) -> Any:
    """``since`` (N,) is how many tokens the text of each has before it."""
    x = np.empty((len(ids), weights.embedding.shape[1]), np.float32)
    for n in range(len(ids)):
        if ids[n] < 0 or ids[n] >= len(weights.embedding):
            raise IndexError("an id is not in the vocabulary")
        for i in range(x.shape[1]):
            x[n, i] = weights.embedding[ids[n], i]
            if len(weights.position):
                x[n, i] += weights.position[since[n], i]
        for distance in range(1, min(len(weights.previous), since[n]) + 1):
            for i in range(x.shape[1]):
                x[n, i] += weights.previous[distance - 1, last_ids[n, -distance], i]
    return x


# Assignments and sums of whole rows are loops: numba takes seconds to compile what it writes of
# arrays that do not fit.


@compiled
def copy(rows: Any, to: Any) -> None:
    for r in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            to[r, i] = rows[r, i]


@compiled
def stretch(rows: Any, gains: Any) -> None:
    for r in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            rows[r, i] *= gains[i]


@compiled
def normalize(x: Any, out: Any) -> None:
    """Every row brought to mean 0 and variance 1."""
    for b in range(x.shape[0]):
        mean = np.float32(0)
        for i in range(x.shape[1]):
            mean += x[b, i]
        mean /= x.shape[1]
        spread = np.float32(0)
        for i in range(x.shape[1]):
            spread += (x[b, i] - mean) ** 2
        shrink = np.float32(1 / math.sqrt(spread / x.shape[1] + _EPSILON))
        for i in range(x.shape[1]):
            out[b, i] = (x[b, i] - mean) * shrink


@compiled
def scale(x: Any, norm: Any) -> None:
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            x[b, i] = x[b, i] * norm[0, i] + norm[1, i]


@compiled
def enter(x: Any, h: Any, norm: Any, post: bool) -> None:
    """What a part of a layer is given: the stream, normalised if norms stand before."""
    if post:
        copy(x, h)
    else:
        normalize(x, h)
        scale(h, norm)


@compiled
def leave(x: Any, added: Any, norm: Any, post: bool) -> None:
    """What a part of a layer found is added to the stream."""
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            x[r, i] += added[r, i]
    if post:
        normalize(x, x)
        scale(x, norm)


# --- attention ----------------------------------------------------------------------------------


@compiled
def _attend(
    weights: Any,
    layer: int,
    qkv: Any,  # (N, 3 C)
    keys: Any,  # (B, H, T, D)
    values: Any,
    where: Any,
    out: Any,  # (N, C)
    threads: int,
) -> None:
    """What each head of each token finds: softmax(q K^T / sqrt(D)) V."""
    heads, size = keys.shape[1], keys.shape[3]
    vectors = qkv.reshape(len(qkv), 3 * heads, size)
    mixed = out.reshape(len(qkv), heads, size)
    for n in range(len(qkv)):
        row, here = where.rows[n], where.places[n]
        if len(weights.gains):
            queries_and_keys = vectors[n, : 2 * heads]
            normalize(queries_and_keys, queries_and_keys)
            stretch(queries_and_keys, weights.gains[layer])
        if len(weights.rotations):
            rotate(vectors[n, : 2 * heads], weights.rotations[here])
        copy(vectors[n, heads : 2 * heads], keys[row, :, here])
        copy(vectors[n, 2 * heads :], values[row, :, here])
    if threads > 1 and 8 * out.size * where.places[-1] >= LARGE:
        _heads_together(vectors, keys, values, where, mixed, threads)
    else:
        _heads(vectors, keys, values, where, mixed, 0, len(qkv) * heads)


@kernel(parallel=True, fastmath=True)
def _heads_together(
    vectors: Any, keys: Any, values: Any, where: Any, mixed: Any, threads: int
) -> None:
    count = len(vectors) * keys.shape[1]
    for part in numba.prange(threads):
        first, last = part * count // threads, (part + 1) * count // threads
        _heads(vectors, keys, values, where, mixed, first, last)


@compiled
def _heads(
    vectors: Any, keys: Any, values: Any, where: Any, mixed: Any, first: int, last: int
) -> None:
    """Heads from ``first`` to ``last``, those of all tokens counted on."""
    heads = keys.shape[1]
    scores = np.empty(keys.shape[2], np.float32)
    for number in range(first, last):
        n, h = number // heads, number % heads
        row, end = where.rows[n], where.places[n] + 1
        q, out = vectors[n, h : h + 1], mixed[n, h : h + 1]
        mix(q, keys[row, h], values[row, h], where.pads[row], end, scores, out)


@compiled
def rotate(vectors: Any, rotations: Any) -> None:
    """Pairs of numbers as complex ones, each multiplied by its turn."""
    for n in range(vectors.shape[0]):
        for pair in range(len(rotations)):
            x, y = vectors[n, 2 * pair], vectors[n, 2 * pair + 1]
            cosine, sine = rotations[pair].real, rotations[pair].imag
            vectors[n, 2 * pair] = x * cosine - y * sine
            vectors[n, 2 * pair + 1] = x * sine + y * cosine


@compiled
def soften(scores: Any, first: int, end: int, size: int) -> Any:
    """The softmax of scores of vectors of a ``size``, but for the factor that is returned."""
    shrink = np.float32(1 / math.sqrt(size))
    highest = np.float32(-3e38)
    for s in range(first, end):
        highest = max(highest, scores[s])
    total = np.float32(0)
    for s in range(first, end):
        scores[s] = exp((scores[s] - highest) * shrink)
        total += scores[s]
    return np.float32(1) / total


@compiled
def mix(q: Any, keys: Any, values: Any, first: int, end: int, scores: Any, out: Any) -> None:
    """One head: the values of positions ``first`` to ``end``, weighted by the softmax.

    ``q`` and ``out`` are of one row (1, D).
    """
    one_input(keys, q, first, end, scores)
    part = soften(scores, first, end, q.shape[1])
    share = splat(part)
    whole = q.shape[1] - q.shape[1] % LANES
    four = q.shape[1] - q.shape[1] % (4 * LANES)
    for i in range(0, four, 4 * LANES):  # more of a row at once: memory is read in its order
        s0, s1, s2, s3 = zeros(), zeros(), zeros(), zeros()
        for s in range(first, end):
            weight = splat(scores[s])
            s0 = multiply_add(load(values, s, i), weight, s0)
            s1 = multiply_add(load(values, s, i + LANES), weight, s1)
            s2 = multiply_add(load(values, s, i + 2 * LANES), weight, s2)
            s3 = multiply_add(load(values, s, i + 3 * LANES), weight, s3)
        store(out, 0, i, multiply_add(s0, share, zeros()))
        store(out, 0, i + LANES, multiply_add(s1, share, zeros()))
        store(out, 0, i + 2 * LANES, multiply_add(s2, share, zeros()))
        store(out, 0, i + 3 * LANES, multiply_add(s3, share, zeros()))
    two = whole - (whole - four) % (2 * LANES)
    for i in range(four, two, 2 * LANES):
        s0, s1 = zeros(), zeros()
        for s in range(first, end):
            weight = splat(scores[s])
            s0 = multiply_add(load(values, s, i), weight, s0)
            s1 = multiply_add(load(values, s, i + LANES), weight, s1)
        store(out, 0, i, multiply_add(s0, share, zeros()))
        store(out, 0, i + LANES, multiply_add(s1, share, zeros()))
    for i in range(two, whole, LANES):
        sums = zeros()
        for s in range(first, end):
            sums = multiply_add(load(values, s, i), splat(scores[s]), sums)
        store(out, 0, i, multiply_add(sums, share, zeros()))
    for i in range(whole, q.shape[1]):
        out[0, i] = 0
        for s in range(first, end):
            out[0, i] += values[s, i] * scores[s] * part
