"""Read the numbers of a text vector file at the speed of memory: a compiled scan over its bytes.

The scan understands the ordinary row only: a word without spaces, then ``dim`` plain decimal
numbers, single spaces between. Any other row (a word with a space, twenty digits, ``nan``) is
left for ``textformat.parse_row``, which says what a row means; so nothing is decided here.

A decimal number whose digits fit in 53 bits, times or divided by a power of ten up to 10**22, is
exact in one float64 operation. That covers what every tool writes, and the result equals
``float32(float(text))`` to the last bit.

Importing this module imports numba: only a large file is worth it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel

_POWERS_OF_TEN = np.array([10.0**n for n in range(23)])
_MOST_DIGITS = 18  # so that digits add up in an int64 without overflow
_LARGEST_EXACT = 1 << 53

_NEWLINE, _RETURN, _SPACE, _PLUS, _MINUS, _POINT = 10, 13, 32, 43, 45, 46
_ZERO, _LOWER_E, _UPPER_E = 48, 101, 69


@kernel()
def _parse_number(  # pragma: no cover
    text: NDArray[np.uint8], i: int, powers: NDArray[np.float64]
) -> tuple[int, float]:
    """The number at ``text[i]`` and where it ends; a position of -1 when it is not a plain one."""
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    mantissa = np.int64(0)
    digits = 0
    exponent = 0
    while _ZERO <= text[i] <= _ZERO + 9:
        mantissa = mantissa * 10 + (text[i] - _ZERO)
        digits += 1
        i += 1
    if text[i] == _POINT:
        i += 1
        start = i
        while _ZERO <= text[i] <= _ZERO + 9:
            mantissa = mantissa * 10 + (text[i] - _ZERO)
            i += 1
        exponent = start - i
        digits += i - start
    if digits == 0 or digits > _MOST_DIGITS or mantissa > _LARGEST_EXACT:
        return -1, 0.0
    if text[i] == _LOWER_E or text[i] == _UPPER_E:
        i += 1
        minus = text[i] == _MINUS
        if minus or text[i] == _PLUS:
            i += 1
        start = i
        scale = np.int64(0)
        while _ZERO <= text[i] <= _ZERO + 9 and i < start + 4:
            scale = scale * 10 + (text[i] - _ZERO)
            i += 1
        if i == start:
            return -1, 0.0
        exponent += -scale if minus else scale
    if exponent < -22 or exponent > 22:
        return -1, 0.0
    number = np.float64(mantissa)
    number = number / powers[-exponent] if exponent < 0 else number * powers[exponent]
    return i, -number if negative else number


@kernel()
def _parse_rows(  # pragma: no cover
    text: NDArray[np.uint8],
    matrix: NDArray[np.float32],
    edges: NDArray[np.int64],
    powers: NDArray[np.float64],
) -> None:
    n_rows, dim = matrix.shape
    i = 0
    for row in range(n_rows):
        if i >= len(text):
            raise ValueError("fewer lines than rows")
        edges[row, 0] = i
        start = i
        while text[i] != _SPACE and text[i] != _NEWLINE:
            i += 1
        edges[row, 1] = i
        plain = i > start
        column = 0
        while plain and column < dim:
            if text[i] != _SPACE:
                plain = False
                break
            end, number = _parse_number(text, i + 1, powers)
            value = np.float32(number)
            if end < 0 or not np.isfinite(value):
                plain = False
                break
            matrix[row, column] = value
            column += 1
            i = end
        if plain:
            while text[i] == _SPACE:
                i += 1
            if text[i] == _RETURN:
                i += 1
            plain = text[i] == _NEWLINE
        if not plain:
            edges[row, 1] = -1
        while text[i] != _NEWLINE:
            i += 1
        i += 1
        edges[row, 2] = i


def parse_rows(text: NDArray[np.uint8], matrix: NDArray[np.float32]) -> NDArray[np.int64]:
    """Fill ``matrix`` (rows, dim) from as many lines of ``text``, each ended by a newline.

    Returns for each row where it starts, where its word ends (-1 when the row was not understood
    and is left to the caller) and where the next row starts.

    >>> matrix = np.zeros((2, 2), np.float32)
    >>> text = np.frombuffer(b"the 1 2.5\\nnew york 3 4\\n", np.uint8)
    >>> parse_rows(text, matrix).tolist(), matrix[0].tolist()
    ([[0, 3, 10], [10, -1, 23]], [1.0, 2.5])
    """
    if text.dtype != np.uint8 or matrix.dtype != np.float32:
        raise TypeError(f"bytes and float32 numbers, not {text.dtype} and {matrix.dtype}")
    if not len(text) or text[-1] != _NEWLINE:
        raise ValueError("the last line must end with a newline")  # at which every loop stops
    edges = np.empty((len(matrix), 3), np.int64)
    _parse_rows(text, matrix, edges, _POWERS_OF_TEN)
    return edges
