"""Zstandard: a stream of bytes that notices when it has been cut short, and one to write to.

The reader of the ``zstandard`` library takes a missing end for the end, which would turn half a
file into a whole one without a word.
"""

from __future__ import annotations

import io
from typing import IO, BinaryIO, cast

# A few bytes can stand for very many: little is read at a time so that memory stays bounded.
READ_SIZE = 1024


def open_zstd(file: BinaryIO) -> BinaryIO:
    """What a file holds; frames one behind the other are one stream, as for ``gzip``."""
    return cast(BinaryIO, io.BufferedReader(_Frames(file), buffer_size=1 << 16))


def zstd_writer(out: IO[bytes]) -> IO[bytes]:
    """A stream that compresses into ``out``, which stays open when it is closed."""
    import zstandard

    return cast(IO[bytes], zstandard.ZstdCompressor().stream_writer(out, closefd=False))


class _Frames(io.RawIOBase):
    def __init__(self, file: BinaryIO) -> None:
        import zstandard

        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._error = zstandard.ZstdError
        self._file = file
        self._frame = self._new_frame()
        self._inside = False  # whether a frame has begun and not ended
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        while not self._ready:
            packed = self._frame.unused_data or self._file.read(READ_SIZE)
            if not packed:
                if self._inside:
                    raise EOFError("the file ends before its last frame does")
                return 0
            if self._frame.eof:
                self._frame = self._new_frame()
            try:
                self._ready = memoryview(self._frame.decompress(packed))
            except self._error as error:
                raise OSError(str(error)) from None
            self._inside = not self._frame.eof
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()
