"""Rows of ids: numbers between spaces, or records (``{"ids": [...]}`` or ``[...]``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nlpkit.errors import NlpkitError
from nlpkit.text.records import Row, rows_of
from nlpkit.textio import TextBlock, parse_json


def read_rows(
    blocks: Iterable[TextBlock], errors: str = "strict"
) -> Iterator[list[tuple[Row, list[int]]]]:
    """For each block its rows with their ids; an empty line is an empty row."""
    for block in blocks:
        yield [
            (row, parse_row(row.value, block.source, row.line)) for row in rows_of(block, errors)
        ]


def parse_row(value: Any, source: str, number: int) -> list[int]:
    """The ids of one row.

    >>> parse_row("3 1 2", "-", 1), parse_row([3], "-", 1)
    ([3, 1, 2], [3])
    """
    try:
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            value = parse_json(value)  # records among lines of numbers
            value = value["ids"] if isinstance(value, dict) else value
        if isinstance(value, str):
            return list(map(int, value.split()))
        if not all(type(index) is int for index in value):
            raise ValueError
        return list(value)
    except (ValueError, KeyError, TypeError):
        raise NlpkitError(
            f"{source}: line {number}: expected ids, found {str(value)[:40]!r}",
            hint="whole numbers between spaces, or jsonl with the key ids",
        ) from None
