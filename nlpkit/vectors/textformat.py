"""Vectors as text: word2vec's text format, fastText's ``.vec`` and GloVe's.

A row is a word and ``dim`` numbers with single spaces between; word2vec and fastText put a line
``words dim`` before the rows, GloVe does not. A row is cut from the right, so that a word may
hold spaces. Numbers are written with nine significant digits, which bring a float32 back exactly.

Small files are read in plain Python. Large ones go in blocks to several threads that run
``textkernel``, and only the rows it does not understand come back here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from nlpkit import textio
from nlpkit.errors import NlpkitError, plural
from nlpkit.parallel import available_cores, ordered_map
from nlpkit.vectors.source import Source
from nlpkit.vectors.store import Vectors

BLOCK_BYTES = 1 << 22
KERNEL_FROM_BYTES = 1 << 24  # below this size the kernel's import takes longer than it saves
_BYTES_TO_JUDGE_BY = 1 << 22
_LINES_TO_JUDGE_BY = 1000
_TEXT_BYTES = bytes([9, 10, 13, *range(32, 127), *range(128, 256)])
_ROWS_AT_ONCE = 2000


@dataclass(frozen=True)
class Header:
    """The line ``words dim`` and where the rows after it start."""

    words: int
    dim: int
    end: int


def read_header(source: Source) -> Header | None:
    """The first line when it is exactly two whole numbers.

    >>> read_header(Source("x", b"2 3\\nthe 1 2 3\\n"))
    Header(words=2, dim=3, end=4)
    """
    line = source.data[:100].split(b"\n", 1)[0]
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    words, dim = map(int, fields)
    if words == 0 or dim == 0:
        raise NlpkitError(f"{source.name}: the header says {words} words of {dim} numbers")
    return Header(words, dim, len(line) + 1)


def looks_like_rows(source: Source, start: int, dim: int) -> bool:
    """Whether text follows at ``start``: a row of ``dim`` numbers, or at least nothing but text.

    A broken row shall be reported as one, and not make its file pass for a binary one. Of float32
    numbers nearly every row has bytes that no text has.
    """
    longest = start + textio.longest_line()
    end = source.data.find(b"\n", start, longest)
    if _is_row(source.data[start : longest if end < 0 else end], dim):
        return True
    return not source.data[start : start + _BYTES_TO_JUDGE_BY].translate(None, _TEXT_BYTES)


def guess_dim(source: Source) -> int | None:
    """The numbers in a row of a file without header: what most of the first rows have.

    A word with a space makes its row look one longer; with equal votes the shorter row wins.
    """
    sample = source.data[:_BYTES_TO_JUDGE_BY]
    lines = sample.split(b"\n")
    whole = lines if len(sample) == len(source.data) else lines[:-1]
    rows = [line for line in whole[:_LINES_TO_JUDGE_BY] if line.strip()]
    votes = Counter(len(row.rstrip(b"\r ").split(b" ")) - 1 for row in rows)
    if not votes:
        return None
    dim = min(votes, key=lambda length: (-votes[length], length))
    return dim if dim > 0 and any(_is_row(row, dim) for row in rows[:10]) else None


def _is_row(row: bytes, dim: int) -> bool:
    try:
        parse_row(row, dim)
    except ValueError:
        return False
    return True


def parse_row(line: bytes, dim: int) -> tuple[bytes, list[float]]:
    """A word and its numbers; a ValueError says what is wrong with the row.

    >>> parse_row(b"new york 0.5 -1e-3 ", 2)
    (b'new york', [0.5, -0.001])
    """
    fields = line.rstrip(b"\r").rstrip(b" ").rsplit(b" ", dim)
    if len(fields) <= dim:
        raise ValueError(f"expected a word and {dim} numbers, found {len(fields) - 1} numbers")
    if not fields[0]:
        raise ValueError("the word is missing")
    numbers = []
    for field in fields[1:]:
        try:
            numbers.append(float(field))
        except ValueError:
            raise ValueError(f"{field[:40]!r} is not a number") from None
    return fields[0], numbers


def read_text(source: Source) -> Vectors:
    """Read a text file of any of the three kinds."""
    header = read_header(source)
    start = 0 if header is None else header.end
    dim = guess_dim(source) if header is None else header.dim
    if dim is None:
        raise NlpkitError(f"{source.name}: its lines are not a word and numbers")
    smallest = 2 * dim + 2  # bytes of a row: a letter, then a space and a digit dim times, newline
    if header is not None and header.words * smallest > len(source.data) - start + 1:
        raise NlpkitError(
            f"{source.name}: the header promises {plural(header.words, 'word')} of "
            f"{dim:,} numbers, which do not fit in {len(source.data):,} bytes",
            hint="fetch the file again",
        )
    blocks = list(_blocks(source, start))
    n_rows = sum(block.n_rows for block in blocks)
    if header is not None and n_rows != header.words:
        raise NlpkitError(
            f"{source.name}: the header promises {plural(header.words, 'word')}, "
            f"the file has {n_rows:,}",
            hint="fetch the file again, or correct its first line",
        )
    if n_rows * dim > len(source.data):
        raise NlpkitError(f"{source.name}: most lines have fewer than {dim} numbers")
    matrix = np.empty((n_rows, dim), np.float32)  # (V, D)
    parse: Callable[[NDArray[np.uint8], NDArray[np.float32]], NDArray[np.int64]] | None = None
    if len(source.data) >= KERNEL_FROM_BYTES:
        from nlpkit.kernels.numbers import parse_rows as parse

    def read_block(block: _RowBlock) -> list[str]:
        data = block.bytes(source)
        rows = matrix[block.first_row : block.first_row + block.n_rows]
        edges = _line_edges(data) if parse is None else parse(np.frombuffer(data, np.uint8), rows)
        return _finish_rows(source, block, data, rows, edges)

    with ThreadPoolExecutor(available_cores()) as pool:
        words = [word for block in pool.map(read_block, blocks) for word in block]
    return Vectors.from_rows(words, matrix, name=source.name)


@dataclass(frozen=True)
class _RowBlock:
    """Whole lines of the file."""

    start: int
    stop: int
    first_row: int
    n_rows: int
    first_line: int  # counted from 1, for messages

    def bytes(self, source: Source) -> bytes:
        data = source.data[self.start : self.stop]
        return data if data.endswith(b"\n") else data + b"\n"


def _blocks(source: Source, start: int) -> Iterator[_RowBlock]:
    end = len(source.data)
    while end > start:  # empty lines at the end say nothing
        tail = source.data[max(start, end - BLOCK_BYTES) : end]
        kept = len(tail.rstrip(b"\r\n"))
        end -= len(tail) - kept
        if kept:
            break
    longest = textio.longest_line()
    line = 1 if start == 0 else 2
    first_row = 0
    while start < end:
        stop = min(start + min(BLOCK_BYTES, longest), end)
        if stop < end:
            cut = source.data.rfind(b"\n", start, stop)
            if cut < 0:  # one line fills the block
                cut = source.data.find(b"\n", stop, start + longest + 1)
                if cut < 0 and end - start > longest:
                    textio.refuse_long(source.name, line + first_row, longest)
            stop = end if cut < 0 else cut + 1
        n_rows = source.data[start:stop].count(b"\n") + (stop == end)
        yield _RowBlock(start, stop, first_row, n_rows, line + first_row)
        first_row += n_rows
        start = stop


def _line_edges(data: bytes) -> NDArray[np.int64]:
    """What ``textkernel.parse_rows`` returns when it understands nothing."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    starts = np.concatenate([[0], ends[:-1]])
    return np.stack([starts, np.full_like(starts, -1), ends], axis=1)


def _finish_rows(
    source: Source,
    block: _RowBlock,
    data: bytes,
    rows: NDArray[np.float32],
    edges: NDArray[np.int64],
) -> list[str]:
    """Decode the words, and read in Python the rows that are still unread."""
    words = []
    for row, (start, word_end, end) in enumerate(edges.tolist()):
        where = f"line {block.first_line + row}"
        if word_end >= 0:
            word = data[start:word_end]
        else:
            try:
                word, numbers = parse_row(data[start : end - 1], rows.shape[1])
            except ValueError as error:
                raise NlpkitError(f"{source.name}: {where}: {error}") from None
            with np.errstate(over="ignore"):  # becomes infinite, which is refused by name later
                rows[row] = numbers
        words.append(source.decode(word, where))
    return words


# --- writing ------------------------------------------------------------------------------------


def write_text(vectors: Vectors, out: IO[bytes], *, header: bool) -> None:
    """Write rows, after the line ``words dim`` when ``header``; several processes format them."""
    if header:
        out.write(f"{len(vectors)} {vectors.dim}\n".encode())
    starts = range(0, len(vectors), _ROWS_AT_ONCE)
    jobs = available_cores() if vectors.matrix.size > 1 << 21 else 1

    def make() -> Callable[[int], bytes]:
        row_format = "%s" + " %.9g" * vectors.dim + "\n"

        def format_rows(start: int) -> bytes:
            stop = min(start + _ROWS_AT_ONCE, len(vectors))
            numbers = vectors.matrix[start:stop].tolist()
            lines = [
                row_format % (word, *row)
                for word, row in zip(vectors.words[start:stop], numbers, strict=True)
            ]
            return "".join(lines).encode()

        return format_rows

    for text in ordered_map(make, starts, jobs):
        out.write(text)
