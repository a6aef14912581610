"""Text in and out: the one place that knows what ``-``, ``.gz``, UTF-8 and an atomic file mean.

Reading goes by *blocks*: about 256 kB of UTF-8 bytes that end at a line end. A block is cheap
to hand to another process, and reading by blocks keeps memory constant however long the input is.
A line that is longer than ``NLPKIT_MAX_LINE`` bytes (64 MiB unless set) is an error: a small
archive can hold gigabytes without a line end.
A line ends at ``\\n`` or ``\\r\\n`` and nowhere else: U+2028, NEL and form feed are part of a line.

Writing a file goes to a temporary neighbour that is renamed when all is well, so a reader never
sees half a file and a failed run leaves the old one untouched.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import lzma
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, NoReturn, cast

from nlpkit import compression
from nlpkit.errors import NlpkitError
from nlpkit.faults import step

BLOCK_SIZE = 1 << 18
STDIN = "-"
LONGEST_LINE = 1 << 26
LONGEST_LINE_VARIABLE = "NLPKIT_MAX_LINE"
COMPRESSED = compression.ENDINGS
_BOM = codecs.BOM_UTF8


@dataclass(frozen=True)
class TextBlock:
    """Whole lines of one source as UTF-8 bytes; the last one of a source may lack its end."""

    data: bytes
    source: str
    first_line: int  # counted from 1

    def text(self, errors: str = "strict") -> str:
        """Decode, or say which file, line and byte is not UTF-8."""
        try:
            return self.data.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            line = self.first_line + self.data.count(b"\n", 0, error.start)
            column = error.start - self.data.rfind(b"\n", 0, error.start)
            _refuse_bytes(self.source, line, column, self.data[error.start], "UTF-8")

    def lines(self, errors: str = "strict") -> list[str]:
        """The block's lines without their ends.

        >>> TextBlock(b"one\\r\\ntwo\\x0cstill two\\n", "-", 1).lines()
        ['one', 'two\\x0cstill two']
        """
        return split_lines(self.text(errors))


def _refuse_bytes(source: str, line: int, column: int, byte: int, encoding: str) -> NoReturn:
    raise NlpkitError(
        f"{source}: line {line}, byte {column}: 0x{byte:02x} is not valid {encoding}",
        hint="`encoding` latin-1 if the text is in another encoding, "
        "or `errors` replace to put U+FFFD there",
    )


def split_lines(text: str) -> list[str]:
    r"""Lines without ends, at ``\n`` and ``\r\n`` only; the last line may lack its end."""
    if not text:
        return []
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def source_name(path: str) -> str:
    """How a source is called in messages."""
    return "standard input" if path == STDIN else path


def open_binary(path: str) -> BinaryIO:
    """Open a path (or ``-``) for reading bytes, decompressing by its ending or first bytes."""
    if path == STDIN:
        if sys.stdin is None:
            raise NlpkitError("standard input is closed", hint="pipe text in or name a file")
        return compression.open_sniffed(cast(BinaryIO, sys.stdin.buffer))
    if os.path.isdir(path):
        raise NlpkitError(f"{path} is a directory", hint=f"{path}/*.txt for the files in it")
    try:
        if kind := compression.ending(path):
            return compression.decompress(path, kind)
        return compression.open_sniffed(open(path, "rb"))
    except FileNotFoundError:
        raise NlpkitError(f"no such file: {path}", hint=_where_to_look(path)) from None
    except OSError as error:
        raise NlpkitError(f"cannot read {path}: {error.strerror}") from None


def _where_to_look(path: str) -> str:
    if "sample_corpora" in path.split("/"):
        return "nlpkit samples . puts the sample corpora here"
    return "check the path, or - for standard input"


@contextlib.contextmanager
def _reading(path: str) -> Iterator[BinaryIO]:
    """An open source whose read errors (a broken archive, an I/O error) name the file."""
    stream = open_binary(path)
    try:
        yield stream
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        reason = getattr(error, "strerror", None)
        what = "read" if reason and not path.endswith(COMPRESSED) else "decompress"
        reason = reason or error
        raise NlpkitError(f"cannot {what} {source_name(path)}: {reason}") from None
    finally:
        if path != STDIN:
            stream.close()


def read_chunks(path: str, size: int = BLOCK_SIZE) -> Iterator[bytes]:
    """The bytes of a file (or ``-``) as they are, decompressed by the name's ending."""
    with _reading(path) as stream:
        while chunk := stream.read(size):
            yield chunk


def _raw_chunks(path: str, encoding: str, errors: str, size: int) -> Iterator[bytes]:
    """Chunks of UTF-8 as they arrive; other encodings are turned into UTF-8 on the way."""
    with _reading(path) as stream:
        # read1 gives what is there: a pipe that trickles is answered line by line
        read = getattr(stream, "read1", stream.read)
        if codecs.lookup(encoding).name == "utf-8":
            chunk = read(size)
            while 0 < len(chunk) < len(_BOM) and _BOM.startswith(chunk) and (more := read(1)):
                chunk += more
            if chunk.startswith(_BOM):
                chunk = chunk[len(_BOM) :] or read(size)
            while chunk:
                yield chunk
                chunk = read(size)
            return
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        done = lines = 0
        while True:
            chunk = read(size)
            state = decoder.getstate()
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                good = error.start - len(state[0])  # bytes of this chunk before the bad one
                decoder.setstate(state)
                lines += decoder.decode(chunk[: max(good, 0)]).count("\n")
                position = f"byte {done + good + 1} of the file"
                raise NlpkitError(
                    f"{source_name(path)}: line {lines + 1}, {position}: not valid {encoding}",
                    hint="`errors` replace to put U+FFFD there",
                ) from None
            except UnicodeError as error:  # utf-16 without the mark that says which kind
                raise NlpkitError(
                    f"{source_name(path)}: not valid {encoding}: {error}",
                    hint=f"another `encoding`, such as {encoding}-le or utf-8",
                ) from None
            done += len(chunk)
            lines += text.count("\n")
            if text:
                yield text.encode("utf-8", "replace")
            if not chunk:
                return


def read_blocks(
    paths: Iterable[str],
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
    block_size: int = BLOCK_SIZE,
) -> Iterator[TextBlock]:
    """All sources one after the other as blocks of whole lines.

    A block holds what a read gave, up to its last line end, so memory is a block or the longest
    line, whichever is larger. Bytes are not checked here but where they are decoded
    (``TextBlock.text``), which may be another process.
    """
    check_encoding(encoding)
    longest = longest_line()
    for path in paths:
        source = source_name(path)
        line = 1
        rest: list[bytes] = []  # pieces of a line that has no end yet
        length = 0  # of these pieces
        for chunk in _raw_chunks(path, encoding, errors, min(block_size, longest)):
            end = chunk.find(b"\n")
            if length + (len(chunk) if end < 0 else end) > longest:
                refuse_long(source, line, longest)
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                rest.append(chunk)
                length += len(chunk)
                continue
            data = b"".join([*rest, chunk[:cut]])
            rest = [chunk[cut:]] if cut < len(chunk) else []
            length = len(chunk) - cut
            yield TextBlock(data, source, line)
            line += data.count(b"\n")
        if rest:
            yield TextBlock(b"".join(rest), source, line)


def longest_line() -> int:
    """Bytes that a line may have, by the environment or as nobody said."""
    text = os.environ.get(LONGEST_LINE_VARIABLE, "")
    if text and not (text.isdecimal() and int(text)):
        raise NlpkitError(
            f"{LONGEST_LINE_VARIABLE} is {text!r}", hint="a number of bytes, such as 1000000000"
        )
    return int(text or LONGEST_LINE)


def refuse_long(source: str, line: int, longest: int, what: str = "is") -> NoReturn:
    """Say that a line, or what starts with it, is longer than the limit."""
    raise NlpkitError(
        f"{source}: line {line} {what} longer than {longest:,} bytes",
        hint=f"{LONGEST_LINE_VARIABLE}=BYTES for a higher limit",
    )


def check_encoding(encoding: str) -> None:
    """Refuse an encoding that Python does not know."""
    try:
        known = codecs.lookup(encoding)._is_text_encoding
    except (LookupError, ValueError):
        known = False
    if not known:
        raise NlpkitError(f"unknown encoding: {encoding}", hint="utf-8, latin-1, cp1252 or utf-16")


def read_lines(
    paths: Iterable[str] | str, *, encoding: str = "utf-8", errors: str = "strict"
) -> Iterator[str]:
    """The lines of files (or ``-``) without their ends, streaming.

    >>> list(read_lines(["poem.txt.gz"]))  # doctest: +SKIP
    ['Tyger Tyger, burning bright,', 'In the forests of the night;']
    """
    paths = [paths] if isinstance(paths, str) else paths
    for block in read_blocks(paths, encoding=encoding, errors=errors):
        yield from block.lines(errors)


def parse_json(text: str) -> Any:
    """``json.loads`` for text from anywhere: whatever is wrong with it is a ``ValueError``."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("too deeply nested") from None


def parse_record(text: str, where: str, hint: str = "") -> dict[str, Any]:
    """The object that a line of JSON lines is; ``where`` it stands begins what is said of others.

    >>> parse_record('{"text": "x"}', "f: line 1")
    {'text': 'x'}
    """
    try:
        record = parse_json(text)
    except ValueError as error:
        raise NlpkitError(f"{where}: not JSON: {error}", hint=hint) from None
    if not isinstance(record, dict):
        raise NlpkitError(f"{where}: not an object", hint=hint)
    return record


# --- temporary files ----------------------------------------------------------------------------


@contextlib.contextmanager
def temporary_files() -> Iterator[None]:
    """Within this, what goes wrong with a temporary file is an error that says where they are."""
    try:
        yield
    except OSError as error:
        where = f"in {tempfile.tempdir}" if tempfile.tempdir else "anywhere"
        raise NlpkitError(
            f"cannot write temporary files {where}: {error.strerror or error}",
            hint="TMPDIR=FOLDER with room in it",
        ) from None


# --- writing ------------------------------------------------------------------------------------


def check_writable(path: str) -> None:
    """Fail now, not after an hour of work, when a file cannot be written there."""
    folder = os.path.dirname(os.path.realpath(path))
    if not path:
        raise NlpkitError("the name of the file to write is empty", hint="name a file")
    if os.path.isdir(path):
        raise NlpkitError(f"{path} is a directory", hint="name a file in it")
    if not os.path.isdir(folder):
        raise NlpkitError(f"no such folder: {folder}", hint=f"mkdir -p {folder}")
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:  # a name that is too long, a link that leads to itself
        raise NlpkitError(f"cannot write {path}: {error.strerror}") from None
    target = path if os.path.exists(path) else folder
    if not os.access(target, os.W_OK):
        raise NlpkitError(f"cannot write {path}: permission denied")


@contextlib.contextmanager
def atomic_writer(path: str) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends without an error.

    >>> with atomic_writer("counts.tsv") as out:  # doctest: +SKIP
    ...     out.write(b"the\\t120\\n")
    """
    check_writable(path)
    path = os.path.realpath(path)
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        # a device or a pipe cannot be renamed over
        with _naming(path), open(path, "wb") as device:
            step("write")
            yield device
        return
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~umask()
    with _naming(path):
        step("create")
        folder, name = os.path.split(path)
        prefix = f".{short_name(name)}."
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as out:
                step("write")
                yield out
                out.flush()
                step("fsync")
                os.fsync(out.fileno())
            os.chmod(temporary, mode)
            step("rename")
            os.replace(temporary, path)
            sync_folder(folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


@contextlib.contextmanager
def output_writer(path: str) -> Iterator[IO[bytes]]:
    """``atomic_writer``, compressed if the name ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst``."""
    with atomic_writer(path) as out:
        if kind := compression.ending(path):
            with compression.compressing(out, kind) as packed:
                yield packed
        else:
            yield out


def short_name(name: str) -> str:
    """The start of a name, for a temporary neighbour whose own name must not grow too long.

    >>> len(short_name("é" * 200))
    50
    """
    return os.fsencode(name)[:100].decode("utf-8", "ignore")


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Have a renaming survive a power cut, where the system can promise that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Turn an error of the file system (no space, read-only) into one that names the file."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.errno is None:
            raise
        raise NlpkitError(f"cannot write {path}: {error.strerror}") from None


def umask() -> int:
    """What new files do not allow."""
    current = os.umask(0)
    os.umask(current)
    return current


def write_text(path: str, text: str) -> None:
    """Write a small text file atomically, compressed if its name says so."""
    with output_writer(path) as out:
        out.write(text.encode("utf-8"))


def write_array(path: str, **arrays: Any) -> None:
    """Write ``.npy`` (the first array) or ``.npz`` (all, by name) atomically and without pickle."""
    import numpy

    arrays = {name: _without_objects(values) for name, values in arrays.items()}
    with atomic_writer(path) as out:
        if path.endswith(".npz"):
            numpy.savez_compressed(out, **arrays)
        else:
            save_array(out, next(iter(arrays.values())))


_ROWS = 1 << 14  # written at a time


def save_array(out: IO[bytes], array: Any) -> None:
    """Write ``.npy``; a full disk is an ``OSError`` with its reason, which numpy's own has not."""
    import numpy

    array = _without_objects(array)
    header = {
        "descr": numpy.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    numpy.lib.format.write_array_header_1_0(out, header)
    # a matrix whose rows lie apart in memory is copied in parts, never as a whole
    for start in range(0, len(array) if array.ndim else 1, _ROWS):
        rows = array[start : start + _ROWS] if array.ndim else array
        out.write(numpy.ascontiguousarray(rows).reshape(-1).view(numpy.uint8).data)


def _without_objects(values: Any) -> Any:
    """An array of plain numbers: a file of Python objects would be a pickle."""
    import numpy

    array = numpy.asarray(values)
    if array.dtype.hasobject:
        raise ValueError("an array of Python objects is not written")
    return array
