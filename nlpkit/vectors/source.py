"""A vector file as memory-mapped bytes, whatever it comes from.

A plain file is mapped as it is; a compressed one or a pipe is first copied to an unnamed
temporary file. Reading then costs memory for the vectors only, and the true size is known before
anything in the file is believed.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from nlpkit import textio
from nlpkit.errors import NlpkitError


@dataclass(frozen=True)
class Source:
    """A file's name for messages, its bytes, and what to do about words that are not UTF-8."""

    name: str
    data: mmap.mmap
    errors: str = "strict"

    def decode(self, word: bytes, where: str) -> str:
        """A word as text; ``where`` names its place for the message when it is not UTF-8."""
        try:
            return word.decode("utf-8", self.errors)
        except UnicodeDecodeError:
            raise NlpkitError(
                f"{self.name}: {where}: the word {word[:40]!r} is not valid UTF-8",
                hint="`errors` replace to put U+FFFD there",
            ) from None


@contextlib.contextmanager
def open_source(path: str, errors: str = "strict") -> Iterator[Source]:
    """Map a file (or ``-``) for as long as the block runs.

    >>> with open_source("vectors.txt") as source:  # doctest: +SKIP
    ...     source.data[:20]
    b'2 3\\nthe 0.1 0.2 0.3'
    """
    name = textio.source_name(path)
    with contextlib.ExitStack() as stack:
        if path == textio.STDIN or path.endswith(textio.COMPRESSED) or not os.path.isfile(path):
            with textio.temporary_files():
                copy = stack.enter_context(tempfile.TemporaryFile())
                for chunk in textio.read_chunks(path):
                    copy.write(chunk)
                copy.flush()
            handle = copy.fileno()
        else:
            handle = stack.enter_context(textio.open_binary(path)).fileno()
        if os.fstat(handle).st_size == 0:
            raise NlpkitError(f"{name} is empty", hint="a file with word vectors")
        data = stack.enter_context(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
        yield Source(name, data, errors)
