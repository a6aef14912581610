"""Reports: a few tables one below the other, in every format that rows of results have."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nlpkit.cli import tables
from nlpkit.cli.output import Writer, write_rows

FACTS = ("measure", "value", "note")


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
        out.write(f"{section.title}\n" if section.title else "")
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
