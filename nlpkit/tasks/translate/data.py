"""Pairs in: columns between tabs, JSON lines, or two files with a line for each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.text.conll import Line, line_end, read_lines
from nlpkit.text.records import tables_as_json

_EXAMPLE = '{"source": "...", "target": "..."}'


class Pair(NamedTuple):
    """A source, which may have columns of features behind its text, and its target."""

    source: str
    target: str


class Columns(NamedTuple):
    """Which columns of a TSV file are what, from 1."""

    source: tuple[int, ...] = (1,)
    target: int = 2

    @classmethod
    def parse(cls, source: str, target: int) -> Columns:
        """From ``1,3`` and ``2``.

        >>> Columns.parse("1,3", 2)
        Columns(source=(1, 3), target=2)
        """
        try:
            numbers = tuple(int(part) for part in source.split(","))
        except ValueError:
            numbers = (0,)
        if min(numbers) < 1 or target in numbers or max(*numbers, target) > 10_000:
            raise NlpkitError(
                f"columns {source} of the source and {target} of the target",
                hint="numbers from 1 on, such as `source_columns` 1,3 and `target_column` 2",
            )
        return cls(numbers, target)


def read_pairs(
    path: str, columns: Columns | None = None, *, encoding: str = "utf-8", errors: str = "strict"
) -> list[Pair]:
    """All pairs of a file, whose form is told by its first line."""
    blocks = textio.read_blocks([path], encoding=encoding, errors=errors)
    if columns is None:
        blocks = tables_as_json(blocks, ("source", "target"), errors)
    lines = read_lines(blocks, errors)
    first = next(lines, None)
    if first is None:
        raise NlpkitError(f"{textio.source_name(path)}: no pairs in it", hint="source<TAB>target")
    again = itertools.chain([first], lines)
    if first[0].lstrip().startswith("{") and columns is None:
        return list(_from_json(again))
    return list(_from_columns(again, columns))


def _bare(text: str) -> str:
    return text[: len(text) - len(line_end(text))]


def _from_columns(lines: Iterable[Line], columns: Columns | None) -> Iterator[Pair]:
    for text, source, number in lines:
        text = _bare(text)
        if not text.strip() and "\t" not in text:  # a tab alone is a pair of nothing, to be counted
            continue
        fields = text.split("\t")
        if columns is None and len(fields) != 2:
            raise NlpkitError(
                f"{source}: line {number}: expected source<TAB>target, found {len(fields)} "
                f"column{'s' * (len(fields) != 1)}",
                hint="`source_columns` and `target_column` say which is which"
                if len(fields) > 2
                else "a tab between source and target, JSON lines, or `source` and `target`",
            )
        chosen = columns or Columns()
        needed = max(*chosen.source, chosen.target)
        if len(fields) < needed:
            raise NlpkitError(
                f"{source}: line {number}: {len(fields)} columns between tabs, not {needed}",
                hint="mend the line",
            )
        sources = (fields[place - 1] for place in chosen.source)
        yield Pair("\t".join(sources), fields[chosen.target - 1])


def _from_json(lines: Iterable[Line]) -> Iterator[Pair]:
    for text, source, number in lines:
        if not text.strip():
            continue
        where = f"{source}: line {number}"
        record = textio.parse_record(text, where, _EXAMPLE)
        yield Pair(
            _text(record.get("source"), where, "source").replace("\n", " "),
            _text(record.get("target"), where, "target").replace("\n", " "),
        )


def _text(value: Any, where: str, name: str) -> str:
    if isinstance(value, list) and name == "source" and all(isinstance(x, str) for x in value):
        return "\t".join(value)
    if not isinstance(value, str):
        raise NlpkitError(f"{where}: no {name} in it", hint=_EXAMPLE)
    return value


def read_parallel(
    source: str, target: str, *, encoding: str = "utf-8", errors: str = "strict"
) -> list[Pair]:
    """The pairs of two files, a line of one for a line of the other."""
    sides = [
        list(textio.read_lines(path, encoding=encoding, errors=errors)) for path in (source, target)
    ]
    if len(sides[0]) != len(sides[1]):
        raise NlpkitError(
            f"{source} has {len(sides[0]):,} lines, {target} has {len(sides[1]):,}",
            hint="files with a line for each other",
        )
    if not sides[0]:
        raise NlpkitError(f"{source}: no lines in it", hint="one sentence per line")
    return [Pair(one, other) for one, other in zip(*sides, strict=True)]


class Sorted(NamedTuple):
    """Pairs that can be learned from, and how many were left out and why."""

    pairs: list[Pair]
    empty: int  # a side without text


def without_empty(pairs: Iterable[Pair], name: str = "pair") -> Sorted:
    """The pairs with text on both sides.

    >>> without_empty([Pair("a", "b"), Pair("a", " ")]).empty
    1
    """
    listed = list(pairs)
    kept = [pair for pair in listed if pair.source.strip() and pair.target.strip()]
    if not kept:
        raise NlpkitError(
            f"no {name} has text on both sides" if listed else f"no {name}s in the input",
            hint="source<TAB>target, one pair per line",
        )
    return Sorted(kept, len(listed) - len(kept))
