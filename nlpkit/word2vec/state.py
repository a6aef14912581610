"""Where a training stands: what it tells after each round, and what it takes to go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nlpkit.errors import NlpkitError
from nlpkit.training.run import Progress

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

ROWS_AT_ONCE = 4096  # that are looked at, or made


@dataclass(frozen=True, kw_only=True)
class WordProgress(Progress):
    """Where training stands; a step is a chunk, and ``due`` is when an epoch has ended."""

    epoch: int  # from 1
    epochs: int
    words: int  # trained on, over all epochs


@dataclass(frozen=True)
class TrainState:
    """All that is needed to go on."""

    input: Floats  # (vocabulary, dim) the word vectors; with n-grams, the rows of these after them
    output: Floats  # (vocabulary, dim) of the words as predictions, or of the tree's nodes
    chunks_done: int = 0
    loss_sum: float = 0.0  # of the epoch under way
    loss_count: int = 0

    def check(self, inputs: int, outputs: int, dim: int, chunks: int) -> None:
        """Refuse a state that is not one of so many rows and so many chunks in all."""
        for matrix, rows in ((self.input, inputs), (self.output, outputs)):
            shape = (rows, dim)
            if matrix.shape != shape or matrix.dtype != np.float32:
                raise NlpkitError(
                    f"the checkpoint has {matrix.dtype} vectors of shape {matrix.shape}, "
                    f"the corpus needs {shape}",
                    hint="the text and the settings the run was started with",
                )
            for start in range(0, len(matrix), ROWS_AT_ONCE):
                if not np.isfinite(matrix[start : start + ROWS_AT_ONCE]).all():
                    raise NlpkitError("the checkpoint has vectors that are not finite")
        for name, value, most in (
            ("pieces_done", self.chunks_done, chunks),
            ("loss_count", self.loss_count, 2**63),
        ):
            if type(value) is not int or not 0 <= value <= most:
                raise NlpkitError(f"the checkpoint has {name} {value!r}, not 0 to {most}")
        if type(self.loss_sum) not in (int, float) or not np.isfinite(self.loss_sum):
            raise NlpkitError(f"the checkpoint has loss_sum {self.loss_sum!r}, not a number")
