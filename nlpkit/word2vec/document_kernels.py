"""Paragraph vectors (Le and Mikolov 2014): what one thread does with a chunk of a corpus whose
lines are documents.

PV-DBOW lets the vector of a document predict each of its words, as skip-gram lets a word predict
its neighbours. PV-DM adds the vector of the document to the window of CBOW (see ``cbow_block``).
The rows of documents stand after those of the words in the input matrix.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nlpkit.kernels.compiling import kernel
from nlpkit.word2vec.blocks import Workspace, cbow_block, skipgram_block
from nlpkit.word2vec.kernels import MEASURE_EVERY, to_copies
from nlpkit.word2vec.sampling import Noise, draw_noise, draw_window, seeded
from nlpkit.word2vec.tiles import (
    ROWS,
    add_products,
    add_row,
    clear,
    copy_row,
    noise_steps,
    scores,
    sigmoid,
    true_steps,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nlpkit.word2vec.tiles import Floats

    Ints = NDArray[np.int32]

_ONE = np.float32(1.0)


@kernel()
def read_documents(
    state: np.uint64,
    ids: Ints,
    start: int,
    stop: int,
    sentence: int,
    document_of: Ints,
    keep: NDArray[np.uint32],
    window: int,
    shrink: bool,
    space: Workspace,
) -> tuple[np.uint64, int]:
    """Thin out the sentences of ``ids[start:stop]``; each word left gets its window and document.

    The first of them is number ``sentence``; ``document_of`` has the input row of each sentence's
    document. Unlike in ``read_windows`` a sentence of one word stays: its document predicts it.
    """
    n = 0
    first = 0  # of the sentence
    for position in range(start, stop):
        here = ids[position]
        is_last = here < 0
        if is_last:
            here = ~here
        state, half = draw_window(state, keep[here], window, shrink)
        if half:
            space.word[n] = space.row[n] = here
            space.document[n] = document_of[sentence]
            space.low[n] = max(first, n - half)
            space.high[n] = n + half + 1
            n += 1
        if is_last:
            for p in range(max(first, n - window), n):
                space.high[p] = min(space.high[p], n)
            first = n
            sentence += 1
    return state, n


@kernel(fastmath=True, error_model="numpy")
def dbow_block(
    input_rows: Floats,
    output_rows: Floats,
    first: int,
    last: int,
    lr: np.float32,
    share: np.float32,
    measure: bool,
    frozen: bool,
    space: Workspace,
) -> tuple[float, int]:
    """Each document predicts its words. Returns the summed loss (if asked) and words.

    A block holds the words of few documents, so that all scores are one small product: of noise
    and words with documents. What is no pair counts 0. ``frozen`` outputs do not learn.
    """
    inputs, outputs, pairs, change = space.inputs, space.outputs, space.pairs, space.change
    noise, word, document, length = space.noise, space.word, space.document, space.covers
    width, centres, n_noise = inputs.shape[1], last - first, len(space.noise)

    rows = 0
    for p in range(first, last):
        if p == first or document[p] != document[p - 1]:
            copy_row(inputs, rows, input_rows, document[p], width)
            length[rows] = 0
            rows += 1
        length[rows - 1] += 1
    for k in range(n_noise):
        copy_row(outputs, k, output_rows, noise[k], width)
    for c in range(centres):
        copy_row(outputs, n_noise + c, output_rows, word[first + c], width)
    scores(outputs, 0, n_noise + centres, inputs, 0, rows, width, pairs)

    # From scores to steps: as often as a document has words in the block for noise, but not for
    # those that are the noise word; once for a word and its document.
    loss = 0.0
    for k in range(n_noise):
        row = -1
        for p in range(first, last):
            if p == first or document[p] != document[p - 1]:
                row += 1
                space.weights[0, row] = share * length[row]
            if word[p] == noise[k]:
                space.weights[0, row] -= share
        if measure:
            for i in range(rows):
                loss -= space.weights[0, i] * math.log(sigmoid(-pairs[k, i]))
        noise_steps(pairs, k, rows, space.weights, 0, lr)
    row = -1
    for c in range(centres):
        if c == 0 or document[first + c] != document[first + c - 1]:
            row += 1
        if measure:
            loss -= math.log(sigmoid(pairs[n_noise + c, row]))
        true_steps(pairs, n_noise + c, 0, rows, row, row + 1, -1, lr)

    last_row = first
    for i in range(0, rows, ROWS):
        clear(change, 0, width)
        add_products(change, 0, pairs, i, outputs, 0, n_noise + centres, width)
        for r in range(min(ROWS, rows - i)):
            add_row(input_rows, document[last_row], _ONE, change, r, width)
            last_row += length[i + r]
    by_row = pairs.T
    for k in range(0, 0 if frozen else n_noise + centres, ROWS):
        clear(change, 0, width)
        add_products(change, 0, by_row, k, inputs, 0, rows, width)
        for r in range(min(ROWS, n_noise + centres - k)):
            target = noise[k + r] if k + r < n_noise else word[first + k + r - n_noise]
            add_row(output_rows, target, _ONE, change, r, width)
    return loss, centres


@kernel()
def document_piece(
    ids: Ints,
    start: int,
    stop: int,
    sentence: int,
    document_of: Ints,
    seed: int,
    number: int,
    input_rows: Floats,
    output_rows: Floats,
    keep: NDArray[np.uint32],
    noise: Noise,
    window: int,
    shrink: bool,
    dm: bool,
    mean: bool,
    words: bool,
    frozen: bool,
    block: int,
    lr: np.float32,
    share: np.float32,
    space: Workspace,
    hot: int,
    own: int,
) -> tuple[float, int]:
    """Train on ``ids[start:stop]``; returns the sum of the measured losses and their number.

    By PV-DM or by PV-DBOW, which may train ``words`` by skip-gram beside. Of the outputs of the
    ``hot`` most frequent words a thread has copies, ``own`` rows further on.
    """
    state, n = read_documents(
        seeded(seed, number), ids, start, stop, sentence, document_of, keep, window, shrink, space
    )
    to_copies(space.word[:n], hot, own)
    loss = 0.0
    measured = 0
    for first in range(0, n, block):
        state = draw_noise(state, noise.limits, noise.guide, space.noise)
        to_copies(space.noise, hot, own)
        last = min(first + block, n)
        measure = (first // block) % MEASURE_EVERY == 0
        where = (input_rows, output_rows, first, last)
        if dm:
            found, count = cbow_block(*where, window, mean, lr, share, measure, frozen, space)
        else:
            if words:
                skipgram_block(*where, window, lr, share, False, space)
            found, count = dbow_block(*where, lr, share, measure, frozen, space)
        if measure:
            loss += found
            measured += count
    return loss, measured


@kernel()
def infer_documents(
    ids: Ints,
    starts: NDArray[np.int64],
    document_of: Ints,
    seed: int,
    epochs: int,
    input_rows: Floats,
    output_rows: Floats,
    keep: NDArray[np.uint32],
    noise: Noise,
    window: int,
    shrink: bool,
    dm: bool,
    mean: bool,
    block: int,
    lr: float,
    min_lr: float,
    share: np.float32,
    space: Workspace,
) -> None:
    """Train the rows of new documents alone: one after the other, each from the same seed, so that
    a text has one vector whatever stands beside it."""
    for d in range(len(starts) - 1):
        for epoch in range(epochs):
            rate = np.float32(lr + (min_lr - lr) * epoch / epochs)
            document_piece(
                ids, starts[d], starts[d + 1], d, document_of, seed, epoch, input_rows,
                output_rows, keep, noise, window, shrink, dm, mean, False, True, block, rate,
                share, space, 0, 0,
            )  # fmt: skip
