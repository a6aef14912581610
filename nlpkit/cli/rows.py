"""Rows of ids as lines: numbers between spaces, or JSON (``{"ids": [...]}`` or ``[...]``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nlpkit.errors import NlpkitError
from nlpkit.textio import Block, parse_json


def read_rows(blocks: Iterable[Block], errors: str = "strict") -> Iterator[list[list[int]]]:
    """For each block the rows of ids in its lines; an empty line is an empty row."""
    for block in blocks:
        yield [
            parse_row(line, block.source, number)
            for number, line in enumerate(block.lines(errors), block.first_line)
        ]


def parse_row(line: str, source: str, number: int) -> list[int]:
    """One line of ids.

    >>> parse_row("3 1 2", "-", 1), parse_row('{"ids": [3]}', "-", 1)
    ([3, 1, 2], [3])
    """
    try:
        if line.lstrip()[:1] in ("{", "["):
            found: Any = parse_json(line)
            found = found["ids"] if isinstance(found, dict) else found
            if not all(type(index) is int for index in found):
                raise ValueError
            return list(found)
        return list(map(int, line.split()))
    except (ValueError, KeyError, TypeError):
        raise NlpkitError(
            f"{source}: line {number}: expected ids, found {line[:40]!r}",
            hint="whole numbers between spaces, or jsonl with the key ids",
        ) from None
