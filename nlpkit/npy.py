"""Arrays of a model in ``.npy`` files, mapped into memory, read with suspicion.

Of numpy's format this is the part that nlpkit writes: little-endian numbers of one type, row after
row. The header is matched and not evaluated, and the file must be as long as it says.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.schema import AGAIN

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '<([fi][48])', 'fortran_order': False, "
    rb"'shape': \(([0-9]{1,18}),(?: ([0-9]{1,18}))?\), \} *\n"
)
_NUMBERS_AT_ONCE = 1 << 22


def read_array(file: Path, dtype: str, dimensions: int) -> NDArray[Any]:
    """An array of a type (such as ``f4``) with one or two dimensions, none of them empty.

    It is mapped and read-only.
    """
    array = map_array(file)
    if array.dtype != np.dtype(dtype) or array.ndim != dimensions or 0 in array.shape:
        raise _damaged(file, f"it holds {array.dtype} of shape {array.shape}")
    return array


def map_array(file: Path) -> NDArray[Any]:
    """An array of any type that nlpkit writes; nothing but its header has been read."""
    if not file.is_file():
        raise NlpkitError(f"{file.parent} has no {file.name}", hint=AGAIN)
    try:
        with open(file, "rb") as handle:
            start = handle.read(len(_MAGIC) + 2)
            header = handle.read(int.from_bytes(start[len(_MAGIC) :], "little"))
        size = file.stat().st_size
    except OSError as error:
        raise NlpkitError(f"cannot read {file}: {error.strerror}") from None
    match = _HEADER.fullmatch(header)
    if match is None or not start.startswith(_MAGIC):
        raise _damaged(file, "it does not begin as an array that nlpkit writes")
    dtype = np.dtype(f"<{match[1].decode()}")
    shape = tuple(int(number) for number in match.groups()[1:] if number is not None)
    offset = len(start) + len(header)
    if offset + math.prod(shape) * dtype.itemsize != size:
        raise _damaged(file, f"{size} bytes do not hold {dtype} of shape {shape}")
    if 0 in shape:
        return np.zeros(shape, dtype)  # nothing that could be mapped
    return np.memmap(file, dtype, "r", offset, shape).view(np.ndarray)


def check_finite(array: NDArray[Any], what: str) -> None:
    """Refuse NaN and infinity, block by block."""
    flat = array.reshape(-1)
    if flat.dtype.kind != "f":
        return
    for start in range(0, len(flat), _NUMBERS_AT_ONCE):
        block = flat[start : start + _NUMBERS_AT_ONCE]
        # both ends are NaN where any number is, and this is quicker than to look at each
        if not (np.isfinite(block.min()) and np.isfinite(block.max())):
            raise NlpkitError(f"{what} holds NaN or infinity", hint=AGAIN)


def _damaged(file: Path, why: str) -> NlpkitError:
    return NlpkitError(f"{file} is damaged: {why}", hint=AGAIN)
