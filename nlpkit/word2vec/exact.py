"""Hierarchical softmax and the full softmax, a centre word at a time.

Both give a true probability of the centre word y for an input x. The full softmax is

    p(y | x) = exp(x . y) / sum over all words v of exp(x . v)

and costs a product with every word of the vocabulary. The hierarchical one walks a Huffman tree
whose inner nodes n have vectors, p(y | x) = product over the path of sigmoid(+- x . n).

In both, a few inputs (the words of a window for skip-gram, their mean for CBOW) meet a list of
output rows, so they share all but the step from scores to gradients.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel
from nlpkit.word2vec.blocks import Steps, Workspace, change_rows
from nlpkit.word2vec.huffman import HuffmanTree
from nlpkit.word2vec.kernels import Chunk, read_chunk
from nlpkit.word2vec.tiles import ROWS, add_products, add_row, clear, copy_row, scores, sigmoid

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

_ONE = np.float32(1.0)


@kernel(fastmath=True, error_model="numpy")
def _softmax_steps(pairs: Floats, outputs: int, inputs: int, centre: int, lr: np.float32) -> float:
    """Turn each column of scores into ``lr * (1 if it is the centre else 0 - p)``."""
    loss = 0.0
    for i in range(inputs):
        highest = pairs[0, i]
        for k in range(outputs):
            highest = max(highest, pairs[k, i])
        total = np.float32(0.0)
        for k in range(outputs):
            pairs[k, i] = math.exp(pairs[k, i] - highest)
            total += pairs[k, i]
        loss += math.log(total) - math.log(max(pairs[centre, i], np.float32(1e-30)))
        for k in range(outputs):
            pairs[k, i] *= -lr / total
        pairs[centre, i] += lr
    return loss


@kernel(fastmath=True, error_model="numpy")
def _tree_steps(pairs: Floats, codes: NDArray[np.uint8], inputs: int, lr: np.float32) -> float:
    """Going left (code 0) has probability sigmoid(score)."""
    loss = 0.0
    for k in range(len(codes)):
        sign = _ONE - np.float32(2 * codes[k])
        for i in range(inputs):
            wrong = sigmoid(-sign * pairs[k, i])
            loss -= math.log(_ONE - wrong)
            pairs[k, i] = sign * lr * wrong
    return loss


@kernel(fastmath=True, error_model="numpy")
def centre_step(
    input_rows: Floats,
    output_rows: Floats,
    tree: HuffmanTree,
    full: bool,
    cbow: bool,
    p: int,
    how: Steps,
    space: Workspace,
) -> tuple[float, int]:
    """One step for the centre at position p; returns the loss and how many predictions it is of.

    ``space.noise`` holds the numbers of all words for the full softmax.
    """
    inputs, outputs, pairs, change = space.inputs, space.outputs, space.pairs, space.change
    width = inputs.shape[1]
    word, low, high = space.word, space.low, space.high
    centre = word[p]
    targets = space.noise if full else tree.nodes[tree.starts[centre] : tree.starts[centre + 1]]

    for k in range(len(targets)):
        copy_row(outputs, k, output_rows, targets[k], width)
    n = 0
    if cbow:
        n = 1
        clear(inputs, 0, width)
        weight = _ONE / np.float32(high[p] - low[p] - 1) if how.mean else _ONE
        for q in range(low[p], high[p]):
            if q != p:
                add_row(inputs, 0, weight, input_rows, word[q], width)
    else:
        for q in range(low[p], high[p]):
            if q != p:
                copy_row(inputs, n, input_rows, word[q], width)
                n += 1

    scores(outputs, 0, len(targets), inputs, 0, n, width, pairs)
    if full:
        loss = _softmax_steps(pairs, len(targets), n, centre, how.lr)
    else:
        codes = tree.codes[tree.starts[centre] : tree.starts[centre + 1]]
        loss = _tree_steps(pairs, codes, n, how.lr)

    i = 0
    for q in range(low[p], high[p]):
        if q == p:
            continue
        # CBOW has one input, and each word of the window gets its whole change (see cbow_block).
        if i % ROWS == 0 and i < n:
            clear(change, 0, width)
            add_products(change, 0, pairs, i, outputs, 0, len(targets), width)
        add_row(input_rows, word[q], _ONE, change, 0 if cbow else i % ROWS, width)
        i += 1
    change_rows(output_rows, targets, pairs.T, 0, inputs, n, change)
    return loss, n


@kernel()
def exact_piece(
    chunk: Chunk,
    input_rows: Floats,
    output_rows: Floats,
    tree: HuffmanTree,
    full: bool,
    cbow: bool,
    space: Workspace,
) -> tuple[float, int]:
    """Train on a chunk; returns the sum of the losses and their number."""
    _, n = read_chunk(chunk, space)
    loss, measured = 0.0, 0
    for p in range(n):
        found, count = centre_step(input_rows, output_rows, tree, full, cbow, p, chunk.how, space)
        loss += found
        measured += count
    return loss, measured
