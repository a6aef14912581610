"""The part of a text that one of several processes reads.

Plain text is cut by bytes, at line ends, so that parts are equal whatever the files are; what
cannot be cut (compressed files, JSON lines, CSV) goes to the processes in turn, file by file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.text.records import TEXT_KEYS, Reading, detect, read_records
from nlpkit.textio import BLOCK_SIZE, COMPRESSED, TextBlock


class Part(NamedTuple):
    """Bytes of a file: the lines that begin there."""

    path: str
    start: int
    stop: int | None  # None is the whole file, in any format


def plan_parts(paths: Sequence[str], rank: int, count: int, reading: Reading) -> list[Part]:
    """What process ``rank`` of ``count`` reads; a process without text is an error."""
    if textio.STDIN in paths:
        raise NlpkitError("several processes cannot share standard input", hint="name files")
    cut = [path for path in paths if _can_be_cut(path, reading)]
    whole = [path for path in paths if path not in cut]
    sizes = [os.path.getsize(path) for path in cut]
    low, high = (sum(sizes) * part // count for part in (rank, rank + 1))
    found = [Part(path, 0, None) for path in whole[rank::count]]
    before = 0
    for path, size in zip(cut, sizes, strict=True):
        start, stop = max(low - before, 0), min(high - before, size)
        if start < stop:
            found.append(Part(path, start, stop))
        before += size
    if not found:
        raise NlpkitError(
            f"process {rank} of {count} has nothing to read: {len(paths)} files cannot be cut",
            hint="plain text, as many files as processes, or fewer processes",
        )
    return found


def _can_be_cut(path: str, reading: Reading) -> bool:
    if path.endswith(COMPRESSED) or not os.path.isfile(path):
        return False
    if reading.encoding.lower().replace("-", "") != "utf8" or reading.input not in ("auto", "text"):
        return False
    if reading.input == "text":
        return True
    with textio.open_binary(path) as file:
        first = TextBlock(file.read(1 << 16), path, 1)
    return detect(path, first, reading) == "text"


def read_parts(
    parts: Sequence[Part], reading: Reading, keys: tuple[str, ...] = TEXT_KEYS
) -> Iterator[TextBlock]:
    """The blocks of all parts; ``keys`` is what to read of records."""
    for part in parts:
        if part.stop is None:
            yield from read_records([part.path], reading, keys)
        else:
            yield from _read_part(part.path, part.start, part.stop)


def _read_part(path: str, start: int, stop: int) -> Iterator[TextBlock]:
    """Lines that begin in ``start:stop``; the last one may end later."""
    name = path if start == 0 else f"{path} (from byte {start:,})"
    line = 1
    with textio.open_binary(path) as file:
        if start:
            file.seek(start - 1)
            file.readline()  # its beginning is another's
        while file.tell() < stop:
            data = file.read(min(BLOCK_SIZE, stop - file.tell()))
            if not data:
                return
            if not data.endswith(b"\n"):
                data += file.readline()
            yield TextBlock(data, name, line)
            line += data.count(b"\n")
