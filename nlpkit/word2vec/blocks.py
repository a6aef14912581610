"""Negative sampling, a block of neighbouring words at a time.

word2vec takes one pair of words after the other: a true pair (x, y), and for it a few noise words
n, and steps along the gradient of

    log sigmoid(x . y)  +  sum over n of log sigmoid(-x . n)

Here a block of some 32 centre words is one step. All its pairs use the same noise words, more of
them (``noise``) but each counting less (``share``), so that their sum is the same on average. That
changes no expected gradient, and it changes the work: a context word that lies in six windows meets
each noise word once, with weight six, instead of six times; every row comes from memory once a
block; and what is left are products of small matrices (see ``tiles``).

A block knows its words by their position p in the chunk of text that is being read: ``word[p]``,
and the window ``low[p]:high[p]`` around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel
from nlpkit.word2vec.tiles import (
    ROWS,
    add_products,
    add_row,
    add_up,
    aligned_zeros,
    clear,
    copy_row,
    noise_steps,
    paired_scores,
    scores,
    softplus,
    true_steps,
    window_sum,
)

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

Ints = NDArray[np.int32]

_ONE = np.float32(1.0)
_SPARE = 16  # tiles and vectors may reach this far over the edge of a block


class Steps(NamedTuple):
    """How a block learns."""

    window: int
    mean: bool  # CBOW: of the words of a window, else their sum
    frozen: bool  # words stay as they are: their documents alone learn
    share: np.float32  # what each noise word counts
    lr: np.float32


class Workspace(NamedTuple):
    """The local copies and sums of one thread's block."""

    inputs: Floats  # (rows, width) the words of all windows
    outputs: Floats  # (noise + centres, width) noise first
    pairs: Floats  # (noise + centres, rows) scores, then what each pair changes
    hidden: Floats  # (centres, width) CBOW: the windows' means
    errors: Floats  # (centres, width) CBOW: what the means should change by
    sums: Floats  # (rows + 1, width) CBOW: sums of the words up to each, then of what changes them
    change: Floats  # (4, width)
    word: Ints  # (words,) the subsampled chunk of the corpus that is being read
    row: Ints  # (words,) which input row each of its words is; the same array as `word`, or slots
    low: Ints  # (words,) its windows
    high: Ints  # (words,)
    document: Ints  # (words,) which input row the document of each word is; or (0,) without any
    parts: Ints  # (words,) how many rows a vector is the mean of, its weight in CBOW; or (0,)
    noise: Ints  # (noise,)
    covers: Ints  # (rows,) skip-gram: in how many windows a word lies
    weights: Floats  # (1, rows) how much one noise word counts
    row_of: Ints  # (rows,) which input row each document of a block is


def make_workspace(
    centres: int,
    noise: int,
    window: int,
    width: int,
    words: int,
    *,
    slots: bool = False,
    documents: bool = False,
    parts: bool = False,
) -> Workspace:
    """Room for blocks of that size, and for the tiles that reach over their edges.

    With ``slots`` the input rows of words are not their own numbers; with ``documents`` each word
    has one; with ``parts`` words are made of several rows each.
    """
    rows = centres + 2 * window + 2 * _SPARE
    outputs = noise + centres + 2 * ROWS
    word = np.zeros(words, dtype=np.int32)
    return Workspace(
        inputs=aligned_zeros(rows, width),
        outputs=aligned_zeros(outputs, width),
        pairs=aligned_zeros(outputs, rows),
        hidden=aligned_zeros(centres + 2 * ROWS, width),
        errors=aligned_zeros(centres + 2 * ROWS, width),
        sums=aligned_zeros(rows + 1, width),
        change=aligned_zeros(ROWS, width),
        word=word,
        row=np.zeros(words, dtype=np.int32) if slots else word,
        low=np.zeros(words, dtype=np.int32),
        high=np.zeros(words, dtype=np.int32),
        document=np.zeros(words if documents else 0, dtype=np.int32),
        parts=np.zeros(words if parts else 0, dtype=np.int32),
        noise=np.zeros(noise, dtype=np.int32),
        covers=np.zeros(rows, dtype=np.int32),
        weights=aligned_zeros(1, rows),
        row_of=np.zeros(rows, dtype=np.int32),
    )


@kernel()
def reach(first: int, last: int, window: int, low: Ints, high: Ints) -> tuple[int, int]:
    """The positions that lie in a window of the centres ``first:last``."""
    start, stop = low[first], high[last - 1]
    for p in range(first, min(last, first + window)):
        start = min(start, low[p])
    for p in range(max(first, last - window), last):
        stop = max(stop, high[p])
    return start, stop


@kernel()
def _centres_near(
    position: int, first: int, last: int, window: int, low: Ints, high: Ints
) -> tuple[int, int]:
    """The centres, counted from ``first``, that may have a row of this tile in their windows."""
    left = max(first, position - window)
    right = min(last, position + ROWS + window)
    while left < right and high[left] <= position:
        left += 1
    while left < right and low[right - 1] >= position + ROWS:
        right -= 1
    return left - first, right - first


@kernel(forceinline=True)
def gather(
    input_rows: Floats, output_rows: Floats, inputs: Ints, targets: Ints, space: Workspace
) -> None:
    """Copies of all rows that a block needs: of ``inputs``; of noise, then of ``targets``."""
    width, noise = space.inputs.shape[1], space.noise
    for i in range(len(inputs)):
        copy_row(space.inputs, i, input_rows, inputs[i], width)
    for k in range(len(noise)):
        copy_row(space.outputs, k, output_rows, noise[k], width)
    for c in range(len(targets)):
        copy_row(space.outputs, len(noise) + c, output_rows, targets[c], width)


@kernel(fastmath=True)
def change_rows(
    matrix: Floats, rows: Ints, weights: Floats, j: int, sources: Floats, count: int, change: Floats
) -> None:
    """``matrix[rows[k]] += weights[:count, j + k] @ sources[:count]`` for each k."""
    width = change.shape[1]
    for k in range(0, len(rows), ROWS):
        clear(change, 0, width)
        add_products(change, 0, weights, j + k, sources, 0, count, width)
        for r in range(min(ROWS, len(rows) - k)):
            add_row(matrix, rows[k + r], _ONE, change, r, width)


@kernel(fastmath=True, error_model="numpy", forceinline=True)
def _true_pairs(
    first: int, last: int, start: int, how: Steps, measure: bool, space: Workspace
) -> tuple[float, int]:
    """Scores of centres with their windows to ``lr * (1 - sigmoid(score))``; what is no pair gets
    0, as far as tiles will look. Counts ``covers``, too. Returns the loss and the pairs."""
    pairs, covers, n_noise = space.pairs, space.covers, len(space.noise)
    low, high = space.low, space.high
    loss, n_pairs = 0.0, 0
    for c in range(last - first):
        left, right, here = low[first + c] - start, high[first + c] - start, first + c - start
        if measure:
            for i in range(left, right):
                if i != here:
                    loss += softplus(-pairs[n_noise + c, i])
        seen, unseen = max(0, here - how.window - ROWS), here + how.window + 2 * ROWS
        true_steps(pairs, n_noise + c, seen, unseen, left, right, here, how.lr)
        covers[left] += 1
        covers[right] -= 1
        n_pairs += right - left - 1
    return loss, n_pairs


@kernel(fastmath=True, error_model="numpy", forceinline=True)
def _noise_pairs(
    first: int, last: int, start: int, rows: int, how: Steps, measure: bool, space: Workspace
) -> float:
    """Scores of noise to ``-lr * sigmoid(score)``, as often as a row has pairs. A noise word that
    happens to be a centre is no noise for the centre's own window. Returns the loss."""
    pairs, covers, weights = space.pairs, space.covers, space.weights
    word, low, high = space.word, space.low, space.high
    loss = 0.0
    for k in range(len(space.noise)):
        for i in range(rows):
            weights[0, i] = how.share * covers[i]
        for p in range(first, last):
            if word[p] == space.noise[k]:
                for i in range(low[p] - start, high[p] - start):
                    if i != p - start:
                        weights[0, i] -= how.share
        if measure:
            for i in range(rows):
                loss += weights[0, i] * softplus(pairs[k, i])
        noise_steps(pairs, k, rows, weights, 0, how.lr)
    return loss


@kernel(fastmath=True, error_model="numpy")
def skipgram_block(
    input_rows: Floats,
    output_rows: Floats,
    first: int,
    last: int,
    how: Steps,
    measure: bool,
    space: Workspace,
) -> tuple[float, int]:
    """Every word of a window predicts the centre. Returns the summed loss and pairs, if asked."""
    inputs, outputs, pairs, change = space.inputs, space.outputs, space.pairs, space.change
    noise, covers, low, high = space.noise, space.covers, space.low, space.high
    width = inputs.shape[1]
    start, stop = reach(first, last, how.window, low, high)
    rows, centres, n_noise = stop - start, last - first, len(noise)
    gather(input_rows, output_rows, space.row[start:stop], space.word[first:last], space)

    # Scores: noise with every row, a centre with the rows of its window.
    scores(outputs, 0, n_noise, inputs, 0, rows, width, pairs)
    for c in range(0, centres, 2):
        left, right = low[first + c], high[first + c]
        if c + 1 < centres:
            left, right = min(left, low[first + c + 1]), max(right, high[first + c + 1])
        k = n_noise + c
        scores(outputs, k, k + 2, inputs, left - start, right - start, width, pairs)

    # From scores to steps.
    covers[: rows + 1] = 0
    loss, n_pairs = _true_pairs(first, last, start, how, measure, space)
    for i in range(1, rows):
        covers[i] += covers[i - 1]
    covers[first - start : last - start] -= 1  # a word is no context of its own
    loss += _noise_pairs(first, last, start, rows, how, measure, space)

    # Both changes are computed from the copies, so neither sees the other's.
    for i in range(0, rows, ROWS):
        clear(change, 0, width)
        add_products(change, 0, pairs, i, outputs, 0, n_noise, width)
        left, right = _centres_near(start + i, first, last, how.window, low, high)
        add_products(change, 0, pairs, i, outputs, n_noise + left, n_noise + right, width)
        for r in range(min(ROWS, rows - i)):
            add_row(input_rows, space.row[start + i + r], _ONE, change, r, width)
    by_row = pairs.T
    change_rows(output_rows, noise, by_row, 0, inputs, rows, change)
    for c in range(0, centres, ROWS):
        clear(change, 0, width)
        tile = min(ROWS, centres - c)
        left, right = reach(first + c, first + c + tile, how.window, low, high)
        add_products(change, 0, by_row, n_noise + c, inputs, left - start, right - start, width)
        for r in range(tile):
            add_row(output_rows, space.word[first + c + r], _ONE, change, r, width)
    return loss, n_pairs if measure else 0


@kernel(fastmath=True)
def _weigh_by_parts(start: int, stop: int, space: Workspace) -> None:
    """Vectors that are means of rows become the sums of them: then the mean of a window is that of
    all rows of its words, as in fastText, and long words count more than "the" and "of"."""
    for p in range(start, stop):
        i, others = p - start, np.float32(space.parts[p] - 1)
        add_row(space.inputs, i, others, space.inputs, i, space.inputs.shape[1])


@kernel(fastmath=True, error_model="numpy", forceinline=True)
def _window_means(
    input_rows: Floats, first: int, last: int, start: int, stop: int, how: Steps, space: Workspace
) -> None:
    """The mean (or sum) of each window, with its document, to ``hidden``: the words up to its end
    less those up to its beginning, less the centre."""
    sums, hidden, low, high = space.sums, space.hidden, space.low, space.high
    parts, width, documents = space.parts, hidden.shape[1], len(space.document) > 0
    add_up(sums, space.inputs, stop - start, width)
    for p in range(first, last):
        size = high[p] - low[p] - 1 + documents
        if len(parts):
            size = parts[low[p] : high[p]].sum() - parts[p]
        weight = _ONE / np.float32(size) if how.mean else _ONE
        window_sum(hidden, p - first, weight, sums, low[p] - start, high[p] - start, p - start)
        if documents:
            add_row(hidden, p - first, weight, input_rows, space.document[p], width)


@kernel(fastmath=True, forceinline=True)
def _change_windows(
    input_rows: Floats, first: int, last: int, start: int, stop: int, space: Workspace
) -> None:
    """Add the errors of the windows to all words in them: each begins to count at the beginning of
    its window, ends at the end, and leaves out the centre."""
    sums, errors, low, high = space.sums, space.errors, space.low, space.high
    width = errors.shape[1]
    for i in range(0, stop - start + 1, ROWS):
        clear(sums, i, width)
    for p in range(first, last):
        add_row(sums, low[p] - start, _ONE, errors, p - first, width)
        add_row(sums, high[p] - start, -_ONE, errors, p - first, width)
    for i in range(stop - start):
        if i > 0:
            add_row(sums, i, _ONE, sums, i - 1, width)
        add_row(input_rows, space.row[start + i], _ONE, sums, i, width)
        if first <= start + i < last:
            add_row(input_rows, space.row[start + i], -_ONE, errors, start + i - first, width)


@kernel(fastmath=True, error_model="numpy", forceinline=True)
def _means_against_noise(
    first: int, last: int, how: Steps, measure: bool, space: Workspace
) -> float:
    """All noise words with all windows: steps in ``pairs``, begins ``errors``; returns the loss."""
    pairs, weights, errors = space.pairs, space.weights, space.errors
    noise, word = space.noise, space.word
    width, centres, n_noise = errors.shape[1], last - first, len(noise)
    scores(space.outputs, 0, n_noise, space.hidden, 0, centres, width, pairs)
    loss = 0.0
    for k in range(n_noise):
        for c in range(centres):
            weights[0, c] = how.share if word[first + c] != noise[k] else np.float32(0.0)
        if measure:
            for c in range(centres):
                loss += weights[0, c] * softplus(pairs[k, c])
        noise_steps(pairs, k, centres, weights, 0, how.lr)
    for c in range(0, centres, ROWS):
        clear(errors, c, width)
        add_products(errors, c, pairs, c, space.outputs, 0, n_noise, width)
    return loss


@kernel(fastmath=True, error_model="numpy")
def cbow_block(
    input_rows: Floats,
    output_rows: Floats,
    first: int,
    last: int,
    how: Steps,
    measure: bool,
    space: Workspace,
) -> tuple[float, int]:
    """The mean (or sum) of a window predicts the centre. Returns the loss and centres, if asked.

    Where words have documents, these belong to the window: that is PV-DM. When the words are
    frozen, the documents alone learn.

    With the mean h of C words as input, the gradient of each word is 1/C of the gradient e of h.
    Following word2vec.c, each word gets the whole of e: then h moves by e, as the one word of a
    skip-gram pair would. It is C times the exact step, and it learns far more in an epoch.
    """
    outputs, pairs, change = space.outputs, space.pairs, space.change
    hidden, errors, word, low, high = space.hidden, space.errors, space.word, space.low, space.high
    width, centres, n_noise = change.shape[1], last - first, len(space.noise)
    start, stop = reach(first, last, how.window, low, high)
    gather(input_rows, output_rows, space.row[start:stop], word[first:last], space)
    if how.mean and len(space.parts):
        _weigh_by_parts(start, stop, space)
    _window_means(input_rows, first, last, start, stop, how, space)

    loss = _means_against_noise(first, last, how, measure, space)
    if not how.frozen:
        change_rows(output_rows, space.noise, pairs.T, 0, hidden, centres, change)

    # The centres: each with its own window only. Their scores take the place of the noise's.
    for c in range(0, centres, ROWS):
        paired_scores(outputs, n_noise + c, hidden, c, width, pairs, 0)
    if measure:
        for c in range(centres):
            loss += softplus(-pairs[0, c])
    true_steps(pairs, 0, 0, centres, 0, centres, -1, how.lr)
    for c in range(centres):
        add_row(errors, c, pairs[0, c], outputs, n_noise + c, width)
        if not how.frozen:
            add_row(output_rows, word[first + c], pairs[0, c], hidden, c, width)
        if len(space.document):
            add_row(input_rows, space.document[first + c], _ONE, errors, c, width)
    if not how.frozen:
        _change_windows(input_rows, first, last, start, stop, space)
    return loss, centres if measure else 0
