"""Compressed streams: gzip, bzip2, xz and Zstandard, told by an ending or by their first bytes."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import re
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, cast

from nlpkit.zstd import open_zstd, zstd_writer

ENDINGS = (".gz", ".bz2", ".xz", ".zst")
_FIRST_BYTES = {
    ".gz": re.compile(rb"\x1f\x8b\x08"),
    ".bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\x00"),
    ".zst": re.compile(rb"\x28\xb5\x2f\xfd"),
}
_LONGEST = 10  # bytes that tell all of them apart
_STARTS = (b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")


def ending(name: str) -> str:
    """The ending that says how a file is compressed, or "".

    >>> ending("tales.txt.gz"), ending("tales.txt")
    ('.gz', '')
    """
    return next((one for one in ENDINGS if name.endswith(one)), "")


def sniff(first: bytes) -> str:
    """The ending that fits the first bytes of a stream, or "" if they are not compressed.

    >>> sniff(gzip.compress(b"text")), sniff(b"text")
    ('.gz', '')
    """
    return next((one for one, start in _FIRST_BYTES.items() if start.match(first)), "")


def decompress(source: str | BinaryIO, kind: str) -> BinaryIO:
    """What a file or a stream stands for that is compressed as files with this ending are."""
    if kind == ".gz":
        return cast(BinaryIO, gzip.open(source, "rb"))
    if kind == ".bz2":
        return cast(BinaryIO, bz2.open(source, "rb"))
    if kind == ".xz":
        return cast(BinaryIO, lzma.open(source, "rb"))
    return open_zstd(open(source, "rb") if isinstance(source, str) else source)


def open_sniffed(stream: BinaryIO) -> BinaryIO:
    """A stream as it is, or decompressed if its first bytes say so.

    Plain text is answered as it comes: no more is read than it takes to rule compression out.
    """
    peek: Callable[[int], bytes] | None = getattr(stream, "peek", None)
    if peek is None:  # bytes in memory, or nothing that one could go back in
        if not stream.seekable():
            return stream
        start = stream.tell()
        kind = sniff(stream.read(_LONGEST))
        stream.seek(start)
        return decompress(stream, kind) if kind else stream
    first = peek(_LONGEST)[:_LONGEST]
    if 0 < len(first) < _LONGEST and any(_agree(start, first) for start in _STARTS):
        # a pipe that trickles: wait for the rest of the mark, and put it back in front
        first = stream.read(_LONGEST)
        stream = cast(BinaryIO, io.BufferedReader(_PutBack(first, stream)))
    kind = sniff(first)
    return decompress(stream, kind) if kind else stream


def _agree(one: bytes, other: bytes) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]


class _PutBack(io.RawIOBase):
    """A stream with bytes in front of it."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        self._first, self._stream = first, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self._first[: len(buffer)]
        if data:
            self._first = self._first[len(data) :]
        else:
            read: Callable[[int], bytes] = getattr(self._stream, "read1", self._stream.read)
            data = read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


@contextlib.contextmanager
def compressing(out: IO[bytes], kind: str) -> Iterator[IO[bytes]]:
    """A stream whose bytes go to ``out`` compressed; the same bytes in, the same bytes out."""
    opened: Any = {
        ".gz": lambda: gzip.GzipFile("", "wb", compresslevel=6, fileobj=out, mtime=0),
        ".bz2": lambda: bz2.BZ2File(out, "wb"),
        ".xz": lambda: lzma.LZMAFile(out, "wb"),  # noqa: SIM115 - opened below
        ".zst": lambda: zstd_writer(out),
    }[kind]
    with opened() as packed:
        yield packed
