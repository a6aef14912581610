"""Rows of results: a table for people, TSV, CSV, JSON lines or Markdown for everything else."""

from __future__ import annotations

import csv
import io
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

FORMATS = ("table", "tsv", "csv", "jsonl", "markdown")
# What a narrow terminal does without, in this order: names and scores stay. Both ends of an
# interval go together, for one alone says nothing. A note goes only where it cannot be folded.
DROPPED_FIRST = (("low", "high"), *zip(("protocol", "coverage", "questions", "support", "note")))
_NARROW_NOTE = 24
_GAP = 2
# a dot is a zero in a matrix
_NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(\.[0-9]+)?(%|e[-+]?[0-9]+)?|\.")


def show(value: Any) -> str:
    """A value as a cell.

    >>> show(0.5), show(None), show(3)
    ('0.5000', '', '3')
    """
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else str(value)


def width_of(text: str) -> int:
    """Columns of a terminal that a text takes: wide characters take two.

    >>> width_of("東京"), width_of("e\\u0301")
    (4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(letter)
        else 2
        if unicodedata.east_asian_width(letter) in "WF"
        else 1
        for letter in text
    )


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    width: int = 80,
    colour: bool = False,
) -> str:
    """Rows under their column names, numbers to the right, within ``width`` columns.

    >>> print(table(["word", "score"], [["king", 0.5], ["queen", 0.25]]), end="")
    word    score
    ─────  ──────
    king   0.5000
    queen  0.2500
    """
    cells = [list(row) for row in rows]
    columns = list(columns)
    for names in DROPPED_FIRST:
        if total_width(columns, cells) - _folded(columns, cells, names) > width:
            kept = [place for place, name in enumerate(columns) if name not in names]
            columns = [columns[place] for place in kept]
            cells = [[row[place] for place in kept] for row in cells]
    numeric = [
        any(_is_number(row[place]) for row in cells)
        and all(row[place] in (None, "") or _is_number(row[place]) for row in cells)
        for place in range(len(columns))
    ]
    widths = _widths(columns, cells)
    over = sum(widths) + _GAP * (len(columns) - 1) - width
    texts = [place for place, number in enumerate(numeric) if not number]
    if over > 0 and texts:  # the widest text goes on in the next line
        widest = max(texts, key=lambda place: widths[place])
        widths[widest] = max(widths[widest] - over, len(columns[widest]), 12)
    lines = _lines(columns, widths, numeric)
    if colour:
        lines = [f"\x1b[1m{line}\x1b[0m" for line in lines]
    lines.append((" " * _GAP).join("─" * size for size in widths))
    for row in cells:
        lines += _lines([show(value) for value in row], widths, numeric)
    return "\n".join(lines) + "\n"


def total_width(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    """Columns of a terminal that a whole table takes."""
    return sum(_widths(columns, rows)) + _GAP * (len(columns) - 1)


def _folded(columns: Sequence[str], rows: Sequence[Sequence[Any]], names: Sequence[str]) -> int:
    """Columns of a terminal that are won by folding the note, if it is among ``names``."""
    if "note" not in names or "note" not in columns:
        return 0
    return max(0, _widths(columns, rows)[list(columns).index("note")] - _NARROW_NOTE)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return isinstance(value, (int, float)) and value is not True


def _widths(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[int]:
    return [
        max([width_of(name), *(width_of(show(row[place])) for row in rows)])
        for place, name in enumerate(columns)
    ]


def _lines(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    """A row as one line, or as several where a text is wider than its column."""
    parts = [
        [cell] if width_of(cell) <= size else textwrap.wrap(cell, size) or [""]
        for cell, size in zip(cells, widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, parts), default=0)):
        line = ""
        for place, part in enumerate(parts):
            text = part[number] if number < len(part) else ""
            space = " " * (widths[place] - width_of(text))
            line += (space + text if numeric[place] else text + space) + " " * _GAP
        lines.append(line.rstrip())
    return lines


def delimited(cells: Sequence[Any], format: str) -> str:
    """One row as a line of TSV, CSV or Markdown.

    >>> delimited(["a,b", 0.5], "csv"), delimited(["a|b", 1], "markdown")
    ('"a,b",0.5000\\n', '| a\\\\|b | 1 |\\n')
    """
    shown = [show(cell) for cell in cells]
    if format == "csv":
        out = io.StringIO(newline="")
        # with its own line end the writer quotes carriage returns, too
        csv.writer(out).writerow(shown)
        return out.getvalue().removesuffix("\r\n") + "\n"
    if format == "markdown":
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in shown) + " |\n"
    return "\t".join(shown) + "\n"


def markdown_rule(columns: Sequence[str]) -> str:
    """The line under the header of a Markdown table."""
    return "|" + " --- |" * len(columns) + "\n"
