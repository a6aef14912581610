"""Sources read by the encoder of an encoder-decoder, as one compiled function for a CPU.

Sentences stand one behind the other without padding: R tokens, of which each sees those of its own
sentence. What the decoder will look at, keys and values of each of its layers, is made here too.

C is the width, H heads of size D, L layers, S tokens of the longest sentence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nlpkit.kernels.matmul import Packed, multiply
from nlpkit.kernels.matvec import NONE, compiled
from nlpkit.kernels.transformer import copy, enter, leave, mix, normalize, rotate, scale, stretch


class EncoderWeights(NamedTuple):
    """Everything that is read; what a model does not have is of size 0."""

    embedding: Any  # (V, C), scaled
    position: Any  # (S, C)
    rotations: Any  # (S, D / 2), complex: the rotation of each position
    norms: Any  # (2 L + 1, 2, C): gains and biases; of pre-norm one more stands at the end
    gains: Any  # (L, D): of normalised queries and keys
    qkv: Packed  # (L, 3 C, C)
    output: Packed  # (L, C, C)
    up: Packed  # (L, 4 C, C)
    down: Packed  # (L, C, 4 C)
    memory: Packed  # (layers of the decoder, 2 C, C): keys above values
    memory_gains: Any  # (layers of the decoder, D)


@compiled
def read_sources(
    weights: Any,  # EncoderWeights
    ids: Any,  # (R,)
    starts: Any,  # (N + 1,): where each sentence begins, and the end of the last
    states: Any,  # (N, S, C), to be filled
    keys: Any,  # (N, layers of the decoder, H, S, D), to be filled
    values: Any,
    post: bool,  # whether norms stand after each sum
    activation: int,
    threads: int,
) -> None:
    """Fill in what the encoder makes of sources, and what the decoder looks at."""
    x = _embed(weights, ids, starts)  # (R, C)
    heads = keys.shape[2]
    h, added = np.empty_like(x), np.empty_like(x)
    qkv = np.empty((len(x), weights.qkv.bias.shape[1]), np.float32)
    wide = np.empty((len(x), weights.up.bias.shape[1]), np.float32)
    for layer in range(len(weights.qkv.weight)):
        norms = weights.norms[2 * layer : 2 * layer + 2]
        enter(x, h, norms[0], post)
        multiply(weights.qkv, layer, h, qkv, NONE, threads)
        _attend(weights, layer, qkv, starts, heads, h)
        multiply(weights.output, layer, h, added, NONE, threads)
        leave(x, added, norms[0], post)
        enter(x, h, norms[1], post)
        multiply(weights.up, layer, h, wide, activation, threads)
        multiply(weights.down, layer, wide, added, NONE, threads)
        leave(x, added, norms[1], post)
    if not post:
        normalize(x, x)
        scale(x, weights.norms[-1])
    for n in range(len(states)):
        copy(x[starts[n] : starts[n + 1]], states[n])
    both = np.empty((len(x), weights.memory.bias.shape[1]), np.float32)
    for layer in range(len(weights.memory.weight)):
        multiply(weights.memory, layer, x, both, NONE, threads)
        vectors = both.reshape(len(x), 2 * heads, keys.shape[4])
        for n in range(len(states)):
            for r in range(starts[n], starts[n + 1]):
                if len(weights.memory_gains):
                    normalize(vectors[r, :heads], vectors[r, :heads])
                    stretch(vectors[r, :heads], weights.memory_gains[layer])
                copy(vectors[r, :heads], keys[n, layer, :, r - starts[n]])
                copy(vectors[r, heads:], values[n, layer, :, r - starts[n]])


@compiled
def _embed(weights: Any, ids: Any, starts: Any) -> Any:
    x = np.empty((len(ids), weights.embedding.shape[1]), np.float32)
    for n in range(len(starts) - 1):
        for r in range(starts[n], starts[n + 1]):
            if ids[r] < 0 or ids[r] >= len(weights.embedding):
                raise IndexError("an id is not in the vocabulary")
            for i in range(x.shape[1]):
                x[r, i] = weights.embedding[ids[r], i]
                if len(weights.position):
                    x[r, i] += weights.position[r - starts[n], i]
    return x


@compiled
def _attend(weights: Any, layer: int, qkv: Any, starts: Any, heads: int, out: Any) -> None:
    """What each head of each token finds in its sentence: qkv (R, 3 C), out (R, C)."""
    size = out.shape[1] // heads
    vectors = qkv.reshape(len(qkv), 3 * heads, size)
    mixed = out.reshape(len(qkv), heads, size)
    longest = 0
    for n in range(len(starts) - 1):
        longest = max(longest, starts[n + 1] - starts[n])
    keys = np.empty((heads, longest, size), np.float32)
    values = np.empty_like(keys)
    scores = np.empty(longest, np.float32)
    for n in range(len(starts) - 1):
        first, end = starts[n], starts[n + 1]
        for r in range(first, end):
            if len(weights.gains):
                queries_and_keys = vectors[r, : 2 * heads]
                normalize(queries_and_keys, queries_and_keys)
                stretch(queries_and_keys, weights.gains[layer])
            if len(weights.rotations):
                rotate(vectors[r, : 2 * heads], weights.rotations[r - first])
            copy(vectors[r, heads : 2 * heads], keys[:, r - first])
            copy(vectors[r, 2 * heads :], values[:, r - first])
        for r in range(first, end):
            for h in range(heads):
                q, found = vectors[r, h : h + 1], mixed[r, h : h + 1]
                mix(q, keys[h], values[h], 0, end - first, scores, found)
