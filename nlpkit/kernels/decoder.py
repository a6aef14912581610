"""One more token of each hypothesis of an encoder-decoder as one compiled function, for a CPU.

As in ``transformer``, the many small operations of a token are written out as loops. A layer of the
decoder attends to what was written, then to the source, whose keys and values were made once and
are shared by all hypotheses of a sentence.

N sentences with K hypotheses each are R = N K rows; C is the width, H heads of size D, T tokens of
the longest target, S of the longest source, L layers, V ids.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.matmul import Packed, multiply
from nlpkit.kernels.matvec import NONE, compiled, exp, highest
from nlpkit.kernels.simd import LANES, load, multiply_add, splat, store, store_sums, zeros
from nlpkit.kernels.transformer import (
    copy,
    enter,
    leave,
    mix,
    normalize,
    rotate,
    scale,
    soften,
    stretch,
)

_CHUNK = 256  # scores whose highest is looked for at once


class DecoderWeights(NamedTuple):
    """Everything a step reads; what a model does not have is of size 0."""

    embedding: Any  # (V, C), scaled
    position: Any  # (T, C)
    rotations: Any  # (T, D / 2), complex: the rotation of each position
    norms: Any  # (3 L + 1, 2, C): gains and biases; of pre-norm one more stands at the end
    gains: Any  # (L, 2, D): of normalised queries and keys, towards the target and the source
    qkv: Packed  # (L, 3 C, C)
    output: Packed  # (L, C, C)
    query: Packed  # (L, C, C): towards the source
    found: Packed  # (L, C, C): what was found there
    up: Packed  # (L, 4 C, C)
    down: Packed  # (L, C, 4 C)


class Source(NamedTuple):
    """What the encoder made of the sentences."""

    keys: Any  # (N, L, H, S, D)
    values: Any
    lengths: Any  # (N,): tokens that are no padding, from the left
    alive: Any  # which of the sentences are being written


@compiled
def advance(
    weights: Any,  # DecoderWeights
    keys: Any,  # (L, R, H, T, D)
    values: Any,
    origin: Any,  # (R, T): in which row of the cache the keys of each place so far are
    place: int,  # where the new tokens stand; their keys go into their own row
    source: Any,  # Source
    ids: Any,  # (R,)
    post: bool,  # whether norms stand after each sum
    activation: int,
    threads: int,
) -> Any:
    """What the head scores (R, C) after one more id; keys and values go into the cache."""
    if place >= keys.shape[3]:
        raise IndexError("a token is beyond the longest target")
    x = np.empty((len(ids), weights.embedding.shape[1]), np.float32)
    for r in range(len(ids)):
        if ids[r] < 0 or ids[r] >= len(weights.embedding):
            raise IndexError("an id is not in the vocabulary")
        for i in range(x.shape[1]):
            x[r, i] = weights.embedding[ids[r], i]
            if len(weights.position):
                x[r, i] += weights.position[place, i]
    h, added = np.empty_like(x), np.empty_like(x)
    qkv = np.empty((len(x), weights.qkv.bias.shape[1]), np.float32)
    wide = np.empty((len(x), weights.up.bias.shape[1]), np.float32)
    for layer in range(len(keys)):
        norms = weights.norms[3 * layer : 3 * layer + 3]
        enter(x, h, norms[0], post)
        multiply(weights.qkv, layer, h, qkv, NONE, threads)
        _attend_target(weights, layer, qkv, keys[layer], values[layer], origin, place, h)
        multiply(weights.output, layer, h, added, NONE, threads)
        leave(x, added, norms[0], post)
        enter(x, h, norms[1], post)
        multiply(weights.query, layer, h, added, NONE, threads)
        _attend_source(weights, layer, added, source, h)
        multiply(weights.found, layer, h, added, NONE, threads)
        leave(x, added, norms[1], post)
        enter(x, h, norms[2], post)
        multiply(weights.up, layer, h, wide, activation, threads)
        multiply(weights.down, layer, wide, added, NONE, threads)
        leave(x, added, norms[2], post)
    if not post:
        normalize(x, x)
        scale(x, weights.norms[-1])
    return x


@compiled
def _attend_target(
    weights: Any, layer: int, qkv: Any, keys: Any, values: Any, origin: Any, place: int, out: Any
) -> None:
    """What each head finds in what was written: keys (R, H, T, D), qkv (R, 3 C), out (R, C)."""
    heads, room, size = keys.shape[1:]
    vectors = qkv.reshape(len(qkv), 3 * heads, size)
    mixed = out.reshape(len(qkv), heads, size)
    flat_keys, flat_values = keys.reshape(-1, size), values.reshape(-1, size)
    lines, scores = np.empty(place + 1, np.int64), np.empty(place + 8, np.float32)
    for r in range(len(qkv)):
        if len(weights.gains):
            queries_and_keys = vectors[r, : 2 * heads]
            normalize(queries_and_keys, queries_and_keys)
            stretch(queries_and_keys, weights.gains[layer, 0])
        if len(weights.rotations):
            rotate(vectors[r, : 2 * heads], weights.rotations[place])
        copy(vectors[r, heads : 2 * heads], keys[r, :, place])
        copy(vectors[r, 2 * heads :], values[r, :, place])
    for r in range(len(qkv)):
        for h in range(heads):
            for s in range(place):
                lines[s] = (origin[r, s] * heads + h) * room + s
            lines[place] = (r * heads + h) * room + place
            _mix_lines(vectors[r, h : h + 1], flat_keys, flat_values, lines, scores, mixed[r, h])


@compiled
def _mix_lines(q: Any, keys: Any, values: Any, lines: Any, scores: Any, out: Any) -> None:
    """As ``mix``, for keys and values in some lines of arrays (..., D); q (1, D), out (D,)."""
    size, last = q.shape[1], len(lines) - 1
    whole = size - size % LANES
    sums = np.empty((2, 4), np.float32)
    for s in range(0, len(lines), 8):
        l0, l1, l2 = lines[s], lines[min(s + 1, last)], lines[min(s + 2, last)]
        l3, l4, l5 = lines[min(s + 3, last)], lines[min(s + 4, last)], lines[min(s + 5, last)]
        l6, l7 = lines[min(s + 6, last)], lines[min(s + 7, last)]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zeros()
        for i in range(0, whole, LANES):
            v = load(q, 0, i)
            s0, s1 = multiply_add(load(keys, l0, i), v, s0), multiply_add(load(keys, l1, i), v, s1)
            s2, s3 = multiply_add(load(keys, l2, i), v, s2), multiply_add(load(keys, l3, i), v, s3)
            s4, s5 = multiply_add(load(keys, l4, i), v, s4), multiply_add(load(keys, l5, i), v, s5)
            s6, s7 = multiply_add(load(keys, l6, i), v, s6), multiply_add(load(keys, l7, i), v, s7)
        store_sums(sums, 0, 0, s0, s1, s2, s3, s4, s5, s6, s7)
        for n in range(min(8, len(lines) - s)):
            scores[s + n] = sums[n // 4, n % 4]
            for i in range(whole, size):
                scores[s + n] += keys[lines[s + n], i] * q[0, i]
    share = soften(scores, 0, len(lines), size)
    found = out.reshape(1, size)
    for i in range(0, whole, LANES):
        mixed = zeros()
        for s in range(len(lines)):
            mixed = multiply_add(load(values, lines[s], i), splat(scores[s]), mixed)
        store(found, 0, i, multiply_add(mixed, splat(share), zeros()))
    for i in range(whole, size):
        out[i] = 0
        for s in range(len(lines)):
            out[i] += values[lines[s], i] * scores[s] * share


@compiled
def _attend_source(weights: Any, layer: int, queries: Any, source: Any, out: Any) -> None:
    """What each head finds in the source: queries and out (R, C)."""
    heads, size = source.keys.shape[2], source.keys.shape[4]
    vectors = queries.reshape(len(queries), heads, size)
    mixed = out.reshape(len(queries), heads, size)
    beams = len(queries) // len(source.alive)
    scores = np.empty(source.keys.shape[3], np.float32)
    for r in range(len(queries)):
        if len(weights.gains):
            normalize(vectors[r], vectors[r])
            stretch(vectors[r], weights.gains[layer, 1])
        n = source.alive[r // beams]
        for h in range(heads):
            keys, values = source.keys[n, layer, h], source.values[n, layer, h]
            q, found = vectors[r, h : h + 1], mixed[r, h : h + 1]
            mix(q, keys, values, 0, source.lengths[n], scores, found)


@compiled
def choose_rows(old: Any, new: Any, rows: Any, length: int) -> None:
    """Keys or values (L, R, H, T, D) of other rows, as far as they are filled."""
    for layer in range(len(new)):
        for r in range(len(rows)):
            for h in range(new.shape[2]):
                copy(old[layer, rows[r], h, :length], new[layer, r, h])


@compiled
def log_sums(scores: Any) -> Any:
    """The logarithm of the sum of exp(score) for each row (R,)."""
    found = np.empty(len(scores), np.float32)
    for r in range(len(scores)):
        most = highest(scores, r, 0, scores.shape[1])
        total = np.float32(0)
        for i in range(scores.shape[1]):
            total += exp(scores[r, i] - most)
        found[r] = most + math.log(total)
    return found


@kernel(fastmath={"nnan", "nsz", "reassoc"})  # scores may be infinite
def best_ids(scores: Any, count: int) -> Any:
    """The highest scores of each row (R, count), the highest first, and their ids.

    Of a chunk of scores only the highest is looked at, unless it is among the best so far. Of equal
    scores the first comes first.
    """
    ids = np.zeros((len(scores), count), np.int64)
    values = np.full((len(scores), count), np.float32(-np.inf))
    size = scores.shape[1]
    for r in range(len(scores)):
        for start in range(0, size, _CHUNK):
            end = min(start + _CHUNK, size)
            if highest(scores, r, start, end) <= values[r, count - 1]:
                continue
            for i in range(start, end):
                score = scores[r, i]
                if score <= values[r, count - 1]:
                    continue
                place = count - 1
                while place > 0 and values[r, place - 1] < score:
                    values[r, place], ids[r, place] = values[r, place - 1], ids[r, place - 1]
                    place -= 1
                values[r, place], ids[r, place] = score, i
    return values, ids
