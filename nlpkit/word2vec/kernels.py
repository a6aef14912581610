"""What one thread does with a chunk of the corpus, for negative sampling.

A chunk is read from the ids, subsampled and cut into windows; then it is trained block by block.
All chance in a chunk comes from the seed and the chunk's number, so that a run can stop between
two chunks and go on later as if it had not.

Of the rows of the ``hot`` most frequent words a thread may have copies, which begin ``own`` rows
further on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel
from nlpkit.word2vec.blocks import Steps, Workspace, cbow_block, skipgram_block
from nlpkit.word2vec.sampling import Noise, draw_noise, read_windows, seeded

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

# The loss is measured in every 16th block: exactly there, and for next to nothing overall.
MEASURE_EVERY = 16


class Chunk(NamedTuple):
    """A part of the corpus, and all that decides what is learned from it."""

    ids: NDArray[np.int32]
    start: int
    stop: int
    seed: int
    number: int
    keep: NDArray[np.uint32]  # (vocabulary,) see ``keep_limits``
    noise: Noise
    shrink: bool
    block: int  # centre words that are one step
    how: Steps
    hot: int
    own: int


@kernel()
def _to_copies(rows: NDArray[np.int32], hot: int, own: int) -> None:
    """Rows of hot words become those of a thread's copies."""
    if hot:
        for i in range(len(rows)):
            if rows[i] < hot:
                rows[i] += own


@kernel()
def read_chunk(chunk: Chunk, space: Workspace) -> tuple[np.uint64, int]:
    """Words and windows into the workspace; returns the state of chance and how many words."""
    state, n = read_windows(
        seeded(chunk.seed, chunk.number),
        chunk.ids,
        chunk.start,
        chunk.stop,
        chunk.keep,
        chunk.how.window,
        chunk.shrink,
        space.word,
        space.low,
        space.high,
        space.document,
    )
    space.row[:n] = space.word[:n]
    _to_copies(space.word[:n], chunk.hot, chunk.own)
    return state, n


@kernel(forceinline=True)
def next_noise(state: np.uint64, chunk: Chunk, space: Workspace) -> np.uint64:
    """Noise words for the next block."""
    state = draw_noise(state, chunk.noise.limits, chunk.noise.guide, space.noise)
    _to_copies(space.noise, chunk.hot, chunk.own)
    return state


@kernel(forceinline=True)
def is_measured(first: int, chunk: Chunk) -> bool:
    """Whether the loss of the block that begins at this word is wanted."""
    return (first // chunk.block) % MEASURE_EVERY == 0


@kernel()
def skipgram_piece(
    chunk: Chunk, input_rows: Floats, output_rows: Floats, space: Workspace
) -> tuple[float, int]:
    """Train on a chunk; returns the sum of the measured losses and their number."""
    state, n = read_chunk(chunk, space)
    loss, measured = 0.0, 0
    for first in range(0, n, chunk.block):
        state = next_noise(state, chunk, space)
        last, measure = min(first + chunk.block, n), is_measured(first, chunk)
        found, count = skipgram_block(
            input_rows, output_rows, first, last, chunk.how, measure, space
        )
        loss += found
        measured += count
    return loss, measured


@kernel()
def cbow_piece(
    chunk: Chunk, input_rows: Floats, output_rows: Floats, space: Workspace
) -> tuple[float, int]:
    """The same for CBOW."""
    state, n = read_chunk(chunk, space)
    loss, measured = 0.0, 0
    for first in range(0, n, chunk.block):
        state = next_noise(state, chunk, space)
        last, measure = min(first + chunk.block, n), is_measured(first, chunk)
        found, count = cbow_block(input_rows, output_rows, first, last, chunk.how, measure, space)
        loss += found
        measured += count
    return loss, measured
