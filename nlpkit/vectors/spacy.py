"""Vectors of a spaCy pipeline: the folder that ``nlp.to_disk`` or ``nlp.vocab.to_disk`` wrote.

    vocab/
      strings.json  every string that spaCy knows, as a list
      key2row       MessagePack: the row of each key, which is the hash of a string
      vectors       the rows, as numpy saves them
      vectors.cfg   JSON, with the kind of table ("mode")

Strings and rows are joined by MurmurHash64A with seed 1, worked out here for all strings. spaCy
gives numbers of their own to some three hundred names of tags (NOUN, ORTH); as words these are
left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.vectors.store import Vectors

ROWS, KEYS, STRINGS, SETTINGS = "vectors", "key2row", "strings.json", "vectors.cfg"
_MULTIPLIER, _SHIFT, _SEED = 0xC6A4A7935BD1E995, 47, 1
_MASK = (1 << 64) - 1


def find(path: str) -> Path | None:
    """The folder with the vectors, if a path is a pipeline of spaCy's or its vocabulary."""
    for folder in (Path(path), Path(path) / "vocab"):
        if (folder / KEYS).is_file() and (folder / ROWS).is_file():
            return folder
    return None


def read(folder: Path) -> Vectors:
    """The words that have a vector, in the order of their rows."""
    if (folder / SETTINGS).is_file():
        settings = modeldir.read_json(folder / SETTINGS)
        mode = settings.get("mode", "default") if isinstance(settings, dict) else settings
        if mode != "default":
            raise NlpkitError(
                f"{folder}: spaCy's {mode} vectors are hashed and have no words",
                hint="a pipeline with plain vectors, such as en_core_web_md",
            )
    rows = _unpack_map(modeldir.read_bytes(folder / KEYS), folder / KEYS)
    strings = modeldir.read_json(folder / STRINGS)
    if not isinstance(strings, list) or not all(isinstance(one, str) for one in strings):
        raise NlpkitError(f"{folder / STRINGS} is no list of strings")
    try:
        matrix = np.load(folder / ROWS, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise NlpkitError(f"{folder / ROWS} is damaged: {error}") from None
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise NlpkitError(f"{folder / ROWS} is no table of numbers")
    placed = [(rows[key], word) for word in dict.fromkeys(strings) if (key := hash64(word)) in rows]
    if not placed:
        raise NlpkitError(f"{folder} has no word with a vector", hint="a pipeline such as md or lg")
    placed.sort(key=lambda pair: pair[0])
    numbers = np.array([row for row, _ in placed])
    if numbers.min() < 0 or numbers.max() >= len(matrix):
        raise NlpkitError(f"{folder / KEYS} names rows that {ROWS} does not have")
    return Vectors([word for _, word in placed], np.asarray(matrix[numbers], np.float32))


def hash64(text: str) -> int:
    """MurmurHash64A of the UTF-8 of a text, which is spaCy's key of a string.

    >>> hash64("coffee")
    3197928453018144401
    """
    data = text.encode("utf-8", "surrogatepass")
    size = len(data)
    found = _SEED ^ (size * _MULTIPLIER & _MASK)
    whole = size - size % 8
    for start in range(0, whole, 8):
        block = int.from_bytes(data[start : start + 8], "little") * _MULTIPLIER & _MASK
        block = (block ^ block >> _SHIFT) * _MULTIPLIER & _MASK
        found = (found ^ block) * _MULTIPLIER & _MASK
    if size > whole:
        found = (found ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    found = (found ^ found >> _SHIFT) * _MULTIPLIER & _MASK
    return found ^ found >> _SHIFT


def _unpack_map(data: bytes, file: Path) -> dict[int, int]:
    """A map of integers out of MessagePack."""
    try:
        size, at = _size_of_map(data)
        if size > len(data):  # each entry takes two bytes at least
            raise ValueError("it is cut")
        found = {}
        for _ in range(size):
            key, at = _integer(data, at)
            row, at = _integer(data, at)
            found[key] = row
    except (IndexError, ValueError) as error:
        raise NlpkitError(f"{file} is damaged: {error}") from None
    return found


def _size_of_map(data: bytes) -> tuple[int, int]:
    first = data[0]
    if first & 0xF0 == 0x80:
        return first & 0x0F, 1
    width = {0xDE: 2, 0xDF: 4}.get(first)
    if width is None:
        raise ValueError("it is no map")
    return int.from_bytes(data[1 : 1 + width], "big"), 1 + width


# the first byte of an integer: how many bytes follow, and whether they have a sign
_WIDTHS: dict[int, tuple[int, bool]] = {
    **{0xCC + power: (1 << power, False) for power in range(4)},
    **{0xD0 + power: (1 << power, True) for power in range(4)},
}


def _integer(data: bytes, at: int) -> tuple[int, int]:
    first: Any = data[at]
    if first < 0x80:
        return first, at + 1
    if first >= 0xE0:
        return first - 0x100, at + 1
    if first not in _WIDTHS:
        raise ValueError("an entry is no number")
    width, signed = _WIDTHS[first]
    end = at + 1 + width
    if end > len(data):
        raise ValueError("it is cut")
    return int.from_bytes(data[at + 1 : end], "big", signed=signed), end
