"""Paragraph vectors (Le and Mikolov 2014): what one thread does with a chunk of a corpus whose
lines are documents.

PV-DBOW lets the vector of a document predict each of its words, as skip-gram lets a word predict
its neighbours. PV-DM adds the vector of the document to the window of CBOW (see ``cbow_block``).
The rows of documents stand after those of the words in the input matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel
from nlpkit.word2vec.blocks import (
    Steps,
    Workspace,
    cbow_block,
    change_rows,
    gather,
    skipgram_block,
)
from nlpkit.word2vec.kernels import Chunk, is_measured, next_noise, read_chunk
from nlpkit.word2vec.tiles import noise_steps, scores, softplus, true_steps

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

Ints = NDArray[np.int32]


@kernel(fastmath=True, error_model="numpy")
def dbow_block(
    input_rows: Floats,
    output_rows: Floats,
    first: int,
    last: int,
    how: Steps,
    measure: bool,
    space: Workspace,
) -> tuple[float, int]:
    """Each document predicts its words. Returns the summed loss and words, if asked.

    A block holds the words of few documents, so that all scores are one small product: of noise
    and words with documents. What is no pair counts 0. Frozen outputs do not learn.
    """
    inputs, outputs, pairs, change = space.inputs, space.outputs, space.pairs, space.change
    noise, word, document, length = space.noise, space.word, space.document, space.covers
    width, centres, n_noise = inputs.shape[1], last - first, len(space.noise)

    rows = 0
    for p in range(first, last):
        if p == first or document[p] != document[p - 1]:
            space.row_of[rows] = document[p]
            length[rows] = 0
            rows += 1
        length[rows - 1] += 1
    gather(input_rows, output_rows, space.row_of[:rows], word[first:last], space)
    scores(outputs, 0, n_noise + centres, inputs, 0, rows, width, pairs)

    # From scores to steps: as often as a document has words in the block for noise, but not for
    # those that are the noise word; once for a word and its document.
    loss = 0.0
    for k in range(n_noise):
        row = -1
        for p in range(first, last):
            if p == first or document[p] != document[p - 1]:
                row += 1
                space.weights[0, row] = how.share * length[row]
            if word[p] == noise[k]:
                space.weights[0, row] -= how.share
        if measure:
            for i in range(rows):
                loss += space.weights[0, i] * softplus(pairs[k, i])
        noise_steps(pairs, k, rows, space.weights, 0, how.lr)
    row = -1
    for c in range(centres):
        if c == 0 or document[first + c] != document[first + c - 1]:
            row += 1
        if measure:
            loss += softplus(-pairs[n_noise + c, row])
        true_steps(pairs, n_noise + c, 0, rows, row, row + 1, -1, how.lr)

    change_rows(input_rows, space.row_of[:rows], pairs, 0, outputs, n_noise + centres, change)
    if not how.frozen:
        change_rows(output_rows, noise, pairs.T, 0, inputs, rows, change)
        change_rows(output_rows, word[first:last], pairs.T, n_noise, inputs, rows, change)
    return loss, centres if measure else 0


@kernel()
def document_piece(
    chunk: Chunk,
    sentence: int,
    document_of: Ints,
    input_rows: Floats,
    output_rows: Floats,
    dm: bool,
    words: bool,
    space: Workspace,
) -> tuple[float, int]:
    """Train on a chunk; returns the sum of the measured losses and their number.

    By PV-DM or by PV-DBOW, which may train ``words`` by skip-gram beside. The first sentence of the
    chunk is number ``sentence``; ``document_of`` has the input row of each sentence's document.
    """
    state, n = read_chunk(chunk, space)
    for p in range(n):
        space.document[p] = document_of[sentence + space.document[p]]
    loss, measured = 0.0, 0
    for first in range(0, n, chunk.block):
        state = next_noise(state, chunk, space)
        last, measure = min(first + chunk.block, n), is_measured(first, chunk)
        where = (input_rows, output_rows, first, last, chunk.how)
        if dm:
            found, count = cbow_block(*where, measure, space)
        else:
            if words:
                skipgram_block(*where, False, space)
            found, count = dbow_block(*where, measure, space)
        loss += found
        measured += count
    return loss, measured


@kernel()
def infer_documents(
    chunk: Chunk,
    starts: NDArray[np.int64],
    document_of: Ints,
    epochs: int,
    min_lr: float,
    input_rows: Floats,
    output_rows: Floats,
    dm: bool,
    space: Workspace,
) -> None:
    """Train the rows of new documents alone: one after the other, each from the same seed, so that
    a text has one vector whatever stands beside it."""
    given = chunk.how
    for d in range(len(starts) - 1):
        for epoch in range(epochs):
            rate = np.float32(given.lr + (min_lr - given.lr) * epoch / epochs)
            how = Steps(given.window, given.mean, True, given.share, rate)
            one = Chunk(
                chunk.ids, starts[d], starts[d + 1], chunk.seed, epoch, chunk.keep, chunk.noise,
                chunk.shrink, chunk.block, how, 0, 0,
            )  # fmt: skip
            document_piece(one, d, document_of, input_rows, output_rows, dm, False, space)
