"""What is given from Python: settings as keywords, data as paths or as what files would hold."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from nlpkit import schema, textio
from nlpkit.errors import NlpkitError
from nlpkit.textio import TextBlock

if TYPE_CHECKING:
    from nlpkit.training.run import Run

PathName = str | os.PathLike[str]
Text = PathName | Iterable[str] | Iterable[os.PathLike[str]]  # a file, lines, or several files
Sentences = Iterable[Sequence[str]]  # lists of tokens
Settings = TypeVar("Settings")
LINES_AT_ONCE = 10_000


# --- settings and training ----------------------------------------------------------------------


def make_settings(function: str, kind: type[Settings], given: dict[str, Any]) -> Settings:
    """Settings from keywords, with their names, types and ranges checked."""
    known = [field.name for field in fields(kind) if field.init]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise NlpkitError(f"{function} has no setting {name!r}", hint=", ".join(known))
    values = {name: plain(value) for name, value in given.items()}
    try:
        return schema.read(kind, values, function)
    except NlpkitError as error:  # its hint is for files
        raise NlpkitError(error.message) from None


def plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def trained(run: Run, on_progress: Callable[[Any], None] | None) -> Any:
    model = run.train(on_progress=on_progress)
    model.config.command = []  # no command made it
    return model


# --- data ---------------------------------------------------------------------------------------


def path_of(data: Any) -> str | None:
    """The path, where data is one."""
    return os.fspath(data) if isinstance(data, str | os.PathLike) else None


def not_text(data: Any) -> Any:
    """Items that are not lines, or an error: a list of strings is easily given for pairs."""
    first, items = peek(data)
    if isinstance(first, str):
        raise NlpkitError(f"expected pairs, not text: {first[:40]!r}", hint="a path, or pairs")
    return items


def peek(data: Any) -> tuple[Any, Iterator[Any]]:
    """The first item, or None, and all items; a path is the only item."""
    items = iter([data] if isinstance(data, str | os.PathLike) else data)
    start = list(itertools.islice(items, 1))
    return (start[0] if start else None), itertools.chain(start, items)


def blocks_of(text: Any, items: Iterator[Any] | None = None) -> Iterator[TextBlock]:
    """Blocks of a file, of several files, or of lines; ``items`` are those already looked at."""
    path = path_of(text)
    if path is not None:
        yield from textio.read_blocks([path])
        return
    first, items = peek(text if items is None else items)
    if isinstance(first, os.PathLike):
        yield from textio.read_blocks(os.fspath(item) for item in items)
        return
    number = 1
    while lines := list(itertools.islice(items, LINES_AT_ONCE)):
        whole = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        yield TextBlock(whole.encode(), "lines", number)
        number += whole.count("\n")


def lines_of(names: Any) -> Iterator[str]:
    """Lines of a file or of an iterable, whose pairs are joined by a tab."""
    first, items = peek(names)
    if isinstance(first, tuple):
        yield from ("\t".join(item) for item in items)
        return
    for block in blocks_of(names, items):
        yield from block.lines()
