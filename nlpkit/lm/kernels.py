"""One more token of a GPT as one compiled function, for a CPU.

A token of a small model is hundreds of tiny operations: called one by one from Python, the calls
take longer than the arithmetic. A token of a large model is a matter of reading its weights once,
at the full speed of memory. Both come down to the same loops, written out here: embed, and for each
layer normalise, multiply, attend, multiply, activate, multiply. The products are in ``products``.

B is the batch, C the width, H heads of size D, T the block size, L layers, V ids.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from nlpkit.lm.products import LARGE, NONE, Stack, compiled, multiply, one_input, settle
from nlpkit.simd import LANES, load, multiply_add, splat, store, zeros

_EPSILON = np.float32(1e-5)


class Weights(NamedTuple):
    """Everything a step reads; what a model does not have is of size 0."""

    embedding: Any  # (V, C)
    previous: Any  # (P, V, C): of the tokens 1, 2, ... places before
    position: Any  # (T, C)
    turns: Any  # (T, D / 2), complex: the rotation of each position
    norms: Any  # (2 L + 1, 2, C): gains and biases, the last layer's norm at the end
    gains: Any  # (L, D): of normalised queries and keys
    qkv: Stack  # (L, 3 C, C)
    output: Stack  # (L, C, C)
    up: Stack  # (L, 4 C, C)
    down: Stack  # (L, C, 4 C)
    head: Stack  # (1, V, C)
    screen: Stack  # the head again with 8-bit weights, or of size 0
    doubt: Any  # (V,): by how much the screen can be wrong, for an input of length 1


@compiled
def step(
    weights: Any,  # Weights
    keys: Any,  # (L, B, H, T, D)
    values: Any,
    ids: Any,  # (B,)
    last_ids: Any,  # (B, P): those before, the newest at the end
    pads: Any,  # (B,): positions on the left that are no tokens
    here: int,  # the new position
    embedding_norm: bool,
    activation: int,
    likeliest: int,
    threads: int,
) -> Any:
    """Logits (B, V) of what follows the new ids; their keys and values go into the cache.

    If ``likeliest`` is not 0, it is enough that those of so many likeliest ids are right.
    """
    x = _embed(weights, ids, last_ids, pads, here)  # (B, C)
    h = np.empty_like(x)
    if embedding_norm:
        _normalize(x, x)
    added = np.empty_like(x)
    qkv = np.empty((len(x), weights.qkv.weight.shape[1]), np.float32)
    wide = np.empty((len(x), weights.up.weight.shape[1]), np.float32)
    for layer in range(len(keys)):
        _normalize(x, h)
        _scale(h, weights.norms[2 * layer])
        multiply(weights.qkv, layer, h, qkv, NONE, threads)
        _attend(weights, layer, qkv, keys[layer], values[layer], pads, here, h, threads)
        multiply(weights.output, layer, h, added, NONE, threads)
        x += added
        _normalize(x, h)
        _scale(h, weights.norms[2 * layer + 1])
        multiply(weights.up, layer, h, wide, activation, threads)
        multiply(weights.down, layer, wide, added, NONE, threads)
        x += added
    _normalize(x, x)
    _scale(x, weights.norms[-1])
    logits = np.empty((len(x), weights.head.weight.shape[1]), np.float32)
    if likeliest and weights.screen.weight.size:
        multiply(weights.screen, 0, x, logits, NONE, threads)
        for b in range(len(x)):
            settle(weights.head, weights.doubt, x[b], logits[b], likeliest, threads)
    else:
        multiply(weights.head, 0, x, logits, NONE, threads)
    return logits


@compiled
def _embed(weights: Any, ids: Any, last_ids: Any, pads: Any, here: int) -> Any:
    x = np.empty((len(ids), weights.embedding.shape[1]), np.float32)
    for b in range(len(ids)):
        since = here - pads[b]  # tokens of this row before the new one
        x[b] = weights.embedding[ids[b]]
        if len(weights.position):
            x[b] += weights.position[since]
        for distance in range(1, min(len(weights.previous), since) + 1):
            x[b] += weights.previous[distance - 1, last_ids[b, -distance]]
    return x


@compiled
def _normalize(x: Any, out: Any) -> None:
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
def _scale(x: Any, norm: Any) -> None:
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            x[b, i] = x[b, i] * norm[0, i] + norm[1, i]


# --- attention ----------------------------------------------------------------------------------


@compiled
def _attend(
    weights: Any,
    layer: int,
    qkv: Any,  # (B, 3 C)
    keys: Any,  # (B, H, T, D)
    values: Any,
    pads: Any,
    here: int,
    out: Any,  # (B, C)
    threads: int,
) -> None:
    """What each head of each row finds: softmax(q K^T / sqrt(D)) V."""
    heads, size = keys.shape[1], keys.shape[3]
    vectors = qkv.reshape(len(qkv), 3 * heads, size)
    mixed = out.reshape(len(qkv), heads, size)
    for b in range(len(qkv)):
        if len(weights.gains):
            turned = vectors[b, : 2 * heads]
            _normalize(turned, turned)
            turned *= weights.gains[layer]
        if len(weights.turns):
            _rotate(vectors[b, : 2 * heads], weights.turns[here])
        keys[b, :, here] = vectors[b, heads : 2 * heads]
        values[b, :, here] = vectors[b, 2 * heads :]
    if threads > 1 and 8 * out.size * here >= LARGE:
        _heads_together(vectors, keys, values, pads, here + 1, mixed, threads)
    else:
        _heads(vectors, keys, values, pads, here + 1, mixed, 0, len(qkv) * heads)


@numba.njit(parallel=True, fastmath=True, cache=True, nogil=True)
def _heads_together(
    vectors: Any, keys: Any, values: Any, pads: Any, end: int, mixed: Any, threads: int
) -> None:
    count = len(keys) * keys.shape[1]
    for part in numba.prange(threads):
        first, last = part * count // threads, (part + 1) * count // threads
        _heads(vectors, keys, values, pads, end, mixed, first, last)


@compiled
def _heads(
    vectors: Any, keys: Any, values: Any, pads: Any, end: int, mixed: Any, first: int, last: int
) -> None:
    """Heads from ``first`` to ``last``, those of all rows counted on."""
    heads = keys.shape[1]
    scores = np.empty(end, np.float32)
    for n in range(first, last):
        b, h = n // heads, n % heads
        q, out = vectors[b, h : h + 1], mixed[b, h : h + 1]
        _mix(q, keys[b, h], values[b, h], pads[b], end, scores, out)


@compiled
def _rotate(vectors: Any, turns: Any) -> None:
    """Pairs of numbers as complex ones, each multiplied by its turn."""
    for n in range(vectors.shape[0]):
        for pair in range(len(turns)):
            x, y = vectors[n, 2 * pair], vectors[n, 2 * pair + 1]
            cosine, sine = turns[pair].real, turns[pair].imag
            vectors[n, 2 * pair] = x * cosine - y * sine
            vectors[n, 2 * pair + 1] = x * sine + y * cosine


@compiled
def _mix(q: Any, keys: Any, values: Any, first: int, end: int, scores: Any, out: Any) -> None:
    """One head: the values of positions ``first`` to ``end``, weighted by the softmax.

    ``q`` and ``out`` are of one row (1, D).
    """
    one_input(keys, q, first, end, scores)
    shrink = np.float32(1 / math.sqrt(q.shape[1]))
    highest = np.float32(-3e38)
    for s in range(first, end):
        highest = max(highest, scores[s])
    total = np.float32(0)
    for s in range(first, end):
        scores[s] = math.exp((scores[s] - highest) * shrink)
        total += scores[s]
    share = splat(np.float32(1) / total)
    whole = q.shape[1] - q.shape[1] % LANES
    for i in range(0, whole, LANES):
        sums = zeros()
        for s in range(first, end):
            sums = multiply_add(load(values, s, i), splat(scores[s]), sums)
        store(out, 0, i, multiply_add(sums, share, zeros()))
    for i in range(whole, q.shape[1]):
        out[0, i] = 0
        for s in range(first, end):
            out[0, i] += values[s, i] * scores[s] / total
