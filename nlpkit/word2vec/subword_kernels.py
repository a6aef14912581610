"""What one thread does with a chunk of the corpus when words are made of their character n-grams.

A word vector is the mean of its own row and the rows of its n-grams, some fifteen rows. fastText
gathers them anew for every pair of words and adds the change of each pair to all of them. Here the
vectors of the words of a span, some hundred words of text, are gathered once, trained as if they
were plain rows (see ``blocks``), and what changed is added to all rows of each word at the end:
when each row moves by d, their mean moves by d. What a word learns in a span reaches the words that
share n-grams with it one span later; and a word that occurs ten times in a span costs as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.simd import LANES, load, multiply, multiply_add, splat, store, zeros
from nlpkit.word2vec.blocks import Workspace, cbow_block, reach, skipgram_block
from nlpkit.word2vec.kernels import Chunk, is_measured, next_noise, read_chunk
from nlpkit.word2vec.tiles import aligned_zeros

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

Ints = NDArray[np.int32]

_ONE = np.float32(1.0)


class SpanSpace(NamedTuple):
    """The words of one thread's span."""

    vectors: Floats  # (slots, width)
    before: Floats  # (slots, width) as they were gathered
    words: Ints  # (slots,) which word has a slot
    slot: Ints  # (vocabulary,) the slot of a word, or -1


def make_span_space(span: int, window: int, width: int, vocabulary: int) -> SpanSpace:
    """Room for the words of a span and of the windows that reach over its edges."""
    slots = min(span + 2 * window, vocabulary)
    return SpanSpace(
        vectors=aligned_zeros(slots, width),
        before=aligned_zeros(slots, width),
        words=np.zeros(slots, np.int32),
        slot=np.full(vocabulary, -1, np.int32),
    )


@kernel(fastmath=True)
def gather(
    input_rows: Floats, starts: NDArray[np.int64], rows: Ints, word: int, slot: int, at: SpanSpace
) -> None:
    """The vector of a word into its slot: the mean of ``rows[starts[word]:starts[word + 1]]``."""
    width = input_rows.shape[1]
    first, last = starts[word], starts[word + 1]
    part = splat(_ONE / np.float32(last - first))
    for d in range(0, width, LANES):
        total = zeros()
        for i in range(first, last):
            total = multiply_add(load(input_rows, rows[i], d), splat(_ONE), total)
        total = multiply(total, part)
        store(at.vectors, slot, d, total)
        store(at.before, slot, d, total)


@kernel(fastmath=True)
def scatter(
    input_rows: Floats, starts: NDArray[np.int64], rows: Ints, word: int, slot: int, at: SpanSpace
) -> None:
    """What a word has learned onto each of its rows."""
    width = input_rows.shape[1]
    minus = splat(np.float32(-1.0))
    for d in range(0, width, LANES):
        store(
            at.before,
            slot,
            d,
            multiply_add(load(at.before, slot, d), minus, load(at.vectors, slot, d)),
        )
    for i in range(starts[word], starts[word + 1]):
        row = rows[i]
        for d in range(0, width, LANES):
            change = load(at.before, slot, d)
            store(input_rows, row, d, multiply_add(change, splat(_ONE), load(input_rows, row, d)))


@kernel()
def _open_span(
    input_rows: Floats,
    starts: NDArray[np.int64],
    rows: Ints,
    left: int,
    right: int,
    own: int,
    at: SpanSpace,
    space: Workspace,
) -> int:
    """Give each of the words ``left:right`` a slot with its vector; returns how many there are."""
    used = 0
    for p in range(left, right):
        here = space.word[p] if space.word[p] < own else space.word[p] - own
        if at.slot[here] < 0:
            at.slot[here] = used
            at.words[used] = here
            gather(input_rows, starts, rows, here, used, at)
            used += 1
        space.row[p] = at.slot[here]
        space.parts[p] = starts[here + 1] - starts[here]
    return used


@kernel()
def subword_piece(
    chunk: Chunk,
    input_rows: Floats,
    output_rows: Floats,
    cbow: bool,
    span: int,
    starts: NDArray[np.int64],
    rows: Ints,
    at: SpanSpace,
    space: Workspace,
) -> tuple[float, int]:
    """Train on a chunk; returns the sum of the measured losses and their number."""
    state, n = read_chunk(chunk, space)
    loss, measured = 0.0, 0
    for begin in range(0, n, span):
        end = min(begin + span, n)
        left, right = reach(begin, end, chunk.how.window, space.low, space.high)
        used = _open_span(input_rows, starts, rows, left, right, chunk.own, at, space)
        for first in range(begin, end, chunk.block):
            state = next_noise(state, chunk, space)
            last, measure = min(first + chunk.block, end), is_measured(first, chunk)
            where = (at.vectors, output_rows, first, last, chunk.how, measure, space)
            if cbow:
                found, count = cbow_block(*where)
            else:
                found, count = skipgram_block(*where)
            loss += found
            measured += count
        for slot in range(used):
            scatter(input_rows, starts, rows, at.words[slot], slot, at)
            at.slot[at.words[slot]] = -1
    return loss, measured
