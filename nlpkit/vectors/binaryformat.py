"""word2vec's binary format: a line ``words dim``, then for each word its bytes, a space and
``dim`` little-endian float32.

The original tool adds a newline after each vector and gensim does not, so a newline before a word
is not part of it. Vectors come back bit for bit.
"""

from __future__ import annotations

from typing import IO

import numpy as np

from nlpkit.errors import NlpkitError
from nlpkit.vectors.source import Source
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.textformat import Header

_LONGEST_WORD = 1 << 16  # bytes; without a space within this the file is something else
_ROWS_AT_ONCE = 4096


def read_binary(source: Source, header: Header) -> Vectors:
    """Read the entries after the header."""
    data = source.data
    row_bytes = 4 * header.dim
    smallest = row_bytes + 2  # a one-letter word and its space
    if header.words * smallest > len(data) - header.end:
        raise NlpkitError(
            f"{source.name}: the header promises {header.words:,} words of {header.dim:,} numbers, "
            f"which do not fit in {len(data):,} bytes",
            hint="fetch the file again",
        )
    words: list[str] = []
    matrix = np.empty((header.words, header.dim), np.float32)
    position = header.end
    for row in range(header.words):
        space = data.find(b" ", position, position + _LONGEST_WORD)
        if space < 0 or space + 1 + row_bytes > len(data):
            raise NlpkitError(
                f"{source.name}: cut short after {row:,} of {header.words:,} words",
                hint="fetch the file again",
            )
        word = data[position:space].lstrip(b"\n")
        if not word:
            raise NlpkitError(f"{source.name}: entry {row + 1:,} has no word")
        words.append(source.decode(word, f"entry {row + 1:,}"))
        matrix[row] = np.frombuffer(data, "<f4", header.dim, space + 1)
        position = space + 1 + row_bytes
    if data[position : position + 2].strip(b"\n"):
        raise NlpkitError(
            f"{source.name}: there is more after the {header.words:,} words the header promises",
            hint="fetch the file again",
        )
    return Vectors.from_rows(words, matrix, name=source.name)


def write_binary(vectors: Vectors, out: IO[bytes]) -> None:
    """Write as the original tool does, with a newline after each vector."""
    out.write(f"{len(vectors)} {vectors.dim}\n".encode())
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        block = vectors.matrix[start : start + _ROWS_AT_ONCE].astype("<f4")
        for word, row in zip(vectors.words[start : start + len(block)], block, strict=True):
            if " " in word:
                raise NlpkitError(
                    f"the binary format cannot hold a space, as in {word!r}", hint="a text format"
                )
            out.write(word.encode() + b" " + row.tobytes() + b"\n")
