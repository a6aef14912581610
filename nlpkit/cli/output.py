"""What a command shows: data on stdout or in a file, everything else on stderr."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Literal, NamedTuple

from nlpkit import compression, textio
from nlpkit.cli import everywhere, tables
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.text.records import RecordText, with_record

# Words from files may hold sequences that a terminal would obey.
# C0 and C1 controls, and what turns the direction of text around; tabs and line ends stay
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


def visible(text: str) -> str:
    r"""Control characters as escapes; those that JSON leaves as they are in a form it can read.

    >>> print(visible("a\x1b[31mred\x9b0m"))
    a\x1b[31mred\u009b0m
    """
    return _CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"


def safe_for(stream: IO[Any], text: str) -> str:
    """Text as it may reach a stream: untouched unless that is a terminal."""
    return visible(text) if stream.isatty() else text


STDOUT = "-"
FACTS = ("measure", "value", "note")  # columns of a section of facts


class Writer:
    """UTF-8 text to an open binary stream; a terminal sees control characters as escapes."""

    def __init__(self, stream: IO[bytes], *, flushes: bool = True) -> None:
        self.stream = stream
        self._flushes = flushes
        self._to_terminal = stream.isatty()
        self.has_header = False  # rows may come in parts

    @property
    def in_colour(self) -> bool:
        """Whether a person may be shown colours."""
        return self._to_terminal and "NO_COLOR" not in os.environ

    def write(self, text: str) -> None:
        """Write text; a lone surrogate (it can come from JSON) is an error, not half a line."""
        self.write_styled(self.safe(text))

    def safe(self, text: str) -> str:
        """Text from a file, as it may stand between codes of our own."""
        return visible(text) if self._to_terminal else text

    def write_styled(self, text: str) -> None:
        """Write text with colours or a drawn table; what comes from files went through ``safe``."""
        try:
            self.stream.write(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            bad = text[error.start]
            raise NlpkitError(
                f"U+{ord(bad):04X} is half a character and cannot be written"
            ) from None

    def write_bytes(self, data: bytes) -> None:
        """Write what is UTF-8 already."""
        if self._to_terminal:
            data = visible(data.decode("utf-8", "replace")).encode()
        self.stream.write(data)

    def write_json(self, record: Mapping[str, Any]) -> None:
        """One JSON object on a line; JSON has an escape for a lone surrogate."""
        text = self.safe(json.dumps(record, ensure_ascii=False)) + "\n"
        self.stream.write(text.encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        """Let a waiting reader have what is there."""
        if self._flushes:
            self.stream.flush()


def check_output(path: str) -> None:
    """For a command that writes when all is read: find out before whether it can."""
    path = everywhere.current.get().output if path == STDOUT else path
    if path != STDOUT:
        textio.check_writable(path)


def is_array(path: str, format: str | None) -> bool:
    """Whether an array file is to be written, which takes no --format; and whether it can be."""
    array = path.endswith((".npy", ".npz"))
    if array and format is not None:
        raise UsageError("an array file takes no --format")
    check_output(path)
    return array


@contextlib.contextmanager
def open_output(path: str) -> Iterator[Writer]:
    """Standard output for ``-``, else a file that appears whole or not at all."""
    path = everywhere.current.get().output if path == STDOUT else path
    if path != STDOUT:
        packed = compression.ending(path)
        if packed and path.removesuffix(packed).endswith((".npy", ".npz")):
            raise NlpkitError(f"{path}: no compressed array", hint="a name that ends in .npz")
        with textio.output_writer(path) as stream:
            # nobody waits for a compressed file, which each flush would make longer
            yield Writer(stream, flushes=not packed)
        return
    if sys.stdout is None:
        raise NlpkitError("standard output is closed", hint="-o FILE")
    stream = sys.stdout.buffer
    try:
        yield Writer(stream)
    except NlpkitError:  # what was found before it is shown before it
        stream.flush()
        raise
    stream.flush()


def write_rows(
    out: Writer, columns: Sequence[str], rows: Iterable[Sequence[Any]], format: str
) -> None:
    """Rows in one of ``tables.FORMATS``; TSV and CSV have their column names with --header.

    As JSON lines, a row with a text that came from a record keeps the other keys of that.
    """
    if format == "table":
        width = shutil.get_terminal_size().columns
        safe = [[out.safe(one) if isinstance(one, str) else one for one in row] for row in rows]
        drawn = tables.table(columns, safe, width=width, colour=out.in_colour)
        out.write_styled(drawn)
        return
    if format == "markdown" or (everywhere.current.get().header and format != "jsonl"):
        if not out.has_header:
            out.write(tables.delimited(columns, format))
            out.write(tables.markdown_rule(columns) if format == "markdown" else "")
        out.has_header = True
    for row in rows:
        if format == "jsonl":
            source = next((cell for cell in row if isinstance(cell, RecordText)), None)
            out.write_json(with_record(source, dict(zip(columns, row, strict=True))))
        else:
            out.write(tables.delimited(row, format))


def vector_line(numbers: Sequence[float], word: str = "") -> str:
    """A vector as a line of text, behind its word if it has one.

    >>> vector_line([0.5, 1.0], "king")
    'king 0.5 1\\n'
    """
    return " ".join([*([word] if word else []), *(f"{number:.9g}" for number in numbers)]) + "\n"


def vector_lines(words: Sequence[str], rows: Sequence[Sequence[float]]) -> str:
    """The vectors of the words of a text, a line each and an empty line behind them."""
    pairs = zip(words, rows, strict=True)
    return "".join(vector_line(row, word) for word, row in pairs) + "\n"


def rows_format(chosen: str | None) -> str:
    """``table`` on a terminal and ``tsv`` in a pipe, unless told."""
    if chosen is not None:
        return chosen
    to_file = everywhere.current.get().output != STDOUT
    on_terminal = not to_file and sys.stdout is not None and sys.stdout.isatty()
    return "table" if on_terminal else "tsv"


def drop_stream(name: Literal["stdout", "stderr"]) -> None:
    """Point a stream at nothing, so that the interpreter's last flush cannot fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, getattr(sys, name).fileno())
    except (OSError, ValueError, AttributeError):
        setattr(sys, name, None)
    finally:
        os.close(nowhere)


def write_stderr(text: str) -> None:
    """Say something; work does not stop because nobody listens, such as a closed terminal."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(safe_for(sys.stderr, text))
            sys.stderr.flush()
        except OSError:
            drop_stream("stderr")


class Notes:
    """Notes, warnings and progress on stderr, or silence with ``--quiet``."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet or everywhere.current.get().quiet

    def say(self, message: str) -> None:
        """A line for the person at the terminal."""
        if not self.quiet:
            write_stderr(message + "\n")

    def warn(self, message: str) -> None:
        """Something that may surprise later."""
        self.say(f"warning: {message}")

    def progress(self, what: str, total: float | None = None, unit: str = "") -> ProgressBar:
        """A progress bar (on a terminal) or a plain line now and then."""
        return ProgressBar(what, total, unit, self)


class ProgressBar:
    """Done, total, speed and time left of long work.

    >>> with Notes(quiet=True).progress("reading", total=10) as bar:
    ...     bar.update(5, "loss 1.23")
    """

    PLAIN_SECONDS = 10.0

    def __init__(self, what: str, total: float | None, unit: str, notes: Notes) -> None:
        self.what, self.total, self.unit, self.notes = what, total, unit, notes
        self.started = self.last_line = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> ProgressBar:
        if not self.notes.quiet and sys.stderr is not None and sys.stderr.isatty():
            import rich.progress as bars
            from rich.console import Console
            from rich.table import Column

            self._bar = bars.Progress(
                bars.TextColumn("{task.description}"),
                bars.BarColumn(),
                bars.TaskProgressColumn(),
                bars.TimeRemainingColumn(table_column=Column(min_width=len("0:00:00"))),
                bars.TextColumn("{task.fields[extra]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=self.total, extra="")
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            try:
                self._bar.stop()
            except OSError:
                drop_stream("stderr")

    def update(self, done: float, extra: str = "") -> None:
        """Say how far the work is; ``extra`` is shown behind (a loss, a speed)."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, extra=extra)
            return
        now = time.monotonic()
        if now - self.last_line < self.PLAIN_SECONDS:
            return
        self.last_line = now
        share = f" {100 * done / self.total:.0f}%" if self.total else f" {done:,.0f} {self.unit}"
        left = ""
        if self.total and done:
            seconds = (now - self.started) * (self.total - done) / done
            left = f", {seconds:.0f} s left"
        self.notes.say(f"{self.what}:{share}{left}{'  ' + extra if extra else ''}")


class Section(NamedTuple):
    """One table of a report; ``title`` is a line above it.

    The columns of a matrix are those of its rows: on a narrow terminal they have numbers for names.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    is_matrix: bool = False


def facts(*rows: Sequence[Any]) -> Section:
    """Numbers by name, each with a word on it or none.

    >>> facts(("texts", 220), ("unknown", "3.1%", "of tokens")).rows
    [['texts', 220, None], ['unknown', '3.1%', 'of tokens']]
    """
    return Section(FACTS, [[*row, *[None] * (len(FACTS) - len(row))] for row in rows])


def percent(share: float, digits: int = 2) -> str:
    """A share from 0 to 1 as people read it.

    >>> percent(0.5)
    '50.00%'
    """
    return f"{100 * share:.{digits}f}%"


def write_report(
    out: Writer, sections: Sequence[Section], record: Mapping[str, Any], format: str
) -> None:
    """``record`` as JSON, or the sections with an empty line between them.

    TSV and CSV name the columns of every section but the facts, whose names --header shows.
    """
    if format == "jsonl":
        out.write_json(record)
        return
    for number, section in enumerate(sections):
        out.write("\n" if number else "")
        apart = "\n" if format == "markdown" else ""  # or it would be the head of the table
        out.write(f"{section.title}\n{apart}" if section.title else "")
        columns, rows = section.columns, section.rows
        if columns == FACTS and not any(row[-1] for row in rows):
            columns, rows = columns[:-1], [row[:-1] for row in rows]
        if format in ("tsv", "csv"):
            if columns[0] != FACTS[0]:
                out.write(tables.delimited(columns, format))
                out.has_header = True
            elif format == "tsv":  # nothing behind what has no note
                rows = [row if row[-1] is not None else row[:-1] for row in rows]
        if section.is_matrix and format == "table":
            columns, rows = _fitted(columns, rows)
        write_rows(out, columns, rows, format)
        out.has_header = False


def _fitted(
    columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """A matrix with dots for zeros, and numbers for names of columns that are too wide."""
    rows = [[cell if cell != 0 else "." for cell in row] for row in rows]
    width = shutil.get_terminal_size().columns
    if tables.total_width(columns, rows) <= width:
        return columns, rows
    numbers = [str(number) for number in range(1, len(columns))]
    named = [[f"{number} {row[0]}", *row[1:]] for number, row in enumerate(rows, 1)]
    return [columns[0], *numbers], named
