"""Words as rows of bytes, as a character convolution reads them (Peters et al., 2018).

A word is its UTF-8 bytes between a begin and an end mark, filled up to one length. Row entries are
1 + byte, so that 0 is no character at all: the rows of padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, FILL = range(256, 261)
N_CHARACTERS = 262  # with 0, which pads
MARKS = 2  # begin and end, of a word and of a sentence


def word_rows(words: Sequence[str], longest: int) -> NDArray[np.int16]:
    """The rows of words, (U, longest); what a row has no room for is cut from the word's end.

    >>> word_rows(["é"], 5).tolist()
    [[259, 196, 170, 260, 261]]
    """
    rows = np.full((len(words), longest), FILL, np.int16)
    rows[:, 0] = BEGIN_WORD
    for row, word in zip(rows, words, strict=True):
        data = word.encode("utf-8", "replace")[: longest - MARKS]
        row[1 : len(data) + 1] = np.frombuffer(data, np.uint8)
        row[len(data) + 1] = END_WORD
    return rows + np.int16(1)


def boundary_rows(longest: int) -> NDArray[np.int16]:
    """The rows of the begin and the end of a sentence, (2, longest).

    >>> boundary_rows(4).tolist()
    [[259, 257, 260, 261], [259, 258, 260, 261]]
    """
    rows = np.full((2, longest), FILL, np.int16)
    rows[:, 0], rows[:, 2] = BEGIN_WORD, END_WORD
    rows[:, 1] = BEGIN_SENTENCE, END_SENTENCE
    return rows + np.int16(1)
