"""What one thread does with a chunk of the corpus, for negative sampling.

A chunk is read from the ids, subsampled and cut into windows; then it is trained block by block.
All chance in a chunk comes from the seed and the chunk's number, so that a run can stop between
two chunks and go on later as if it had not.

Of the rows of the ``hot`` most frequent words a thread may have copies, which begin ``own`` rows
further on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nlpkit.kernels.compiling import kernel
from nlpkit.word2vec.blocks import Workspace, cbow_block, skipgram_block
from nlpkit.word2vec.sampling import Noise, draw_noise, read_windows, seeded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nlpkit.word2vec.tiles import Floats

# The loss is measured in every 16th block: exactly there, and for next to nothing overall.
MEASURE_EVERY = 16


@kernel()
def to_copies(rows: NDArray[np.int32], hot: int, own: int) -> None:
    """Rows of hot words become those of a thread's copies."""
    if hot:
        for i in range(len(rows)):
            if rows[i] < hot:
                rows[i] += own


@kernel()
def skipgram_piece(
    ids: NDArray[np.int32],
    start: int,
    stop: int,
    seed: int,
    number: int,
    input_rows: Floats,
    output_rows: Floats,
    keep: NDArray[np.uint32],
    noise: Noise,
    window: int,
    shrink: bool,
    block: int,
    lr: np.float32,
    share: np.float32,
    space: Workspace,
    hot: int,
    own: int,
) -> tuple[float, int]:
    """Train on ``ids[start:stop]``; returns the sum of the measured losses and their number."""
    state, n = read_windows(
        seeded(seed, number),
        ids,
        start,
        stop,
        keep,
        window,
        shrink,
        space.word,
        space.low,
        space.high,
    )
    to_copies(space.word[:n], hot, own)
    loss = 0.0
    measured = 0
    for first in range(0, n, block):
        state = draw_noise(state, noise.limits, noise.guide, space.noise)
        to_copies(space.noise, hot, own)
        measure = (first // block) % MEASURE_EVERY == 0
        block_loss, pairs = skipgram_block(
            input_rows, output_rows, first, min(first + block, n), window, lr, share, measure, space
        )
        if measure:
            loss += block_loss
            measured += pairs
    return loss, measured


@kernel()
def cbow_piece(
    ids: NDArray[np.int32],
    start: int,
    stop: int,
    seed: int,
    number: int,
    input_rows: Floats,
    output_rows: Floats,
    keep: NDArray[np.uint32],
    noise: Noise,
    window: int,
    shrink: bool,
    mean: bool,
    block: int,
    lr: np.float32,
    share: np.float32,
    space: Workspace,
    hot: int,
    own: int,
) -> tuple[float, int]:
    """The same for CBOW."""
    state, n = read_windows(
        seeded(seed, number),
        ids,
        start,
        stop,
        keep,
        window,
        shrink,
        space.word,
        space.low,
        space.high,
    )
    to_copies(space.word[:n], hot, own)
    loss = 0.0
    measured = 0
    for first in range(0, n, block):
        state = draw_noise(state, noise.limits, noise.guide, space.noise)
        to_copies(space.noise, hot, own)
        measure = (first // block) % MEASURE_EVERY == 0
        last = min(first + block, n)
        block_loss, centres = cbow_block(
            input_rows, output_rows, first, last, window, mean, lr, share, measure, False, space
        )
        if measure:
            loss += block_loss
            measured += centres
    return loss, measured
