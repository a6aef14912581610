"""Documents: what each line of a corpus is called, and which document each sentence is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.wordcount import LINE_END
from nlpkit.text.records import RecordBlock, Row, lines_of, rows_of, text_of
from nlpkit.text.vocab import on_one_line
from nlpkit.textio import TextBlock


@dataclass(frozen=True)
class Documents:
    """The documents of a corpus, a name each, and the one that each of its sentences is of."""

    names: list[str]
    of_sentence: NDArray[np.int32]  # (sentences,)

    def check(self, ids: NDArray[np.int32]) -> None:
        """Kernels check no bounds: refuse what is no document, and too few of them."""
        of = self.of_sentence
        if of.dtype != np.int32 or of.ndim != 1 or len(of) != np.count_nonzero(ids < 0):
            raise NlpkitError("a document is needed for each sentence")
        if len(of) and not (of.min() >= 0 and of.max() < len(self.names)):
            raise NlpkitError(f"a sentence is of none of the {len(self.names):,} documents")

    @property
    def with_words(self) -> NDArray[np.bool_]:
        """Which documents have a sentence: those without a known word have nothing to learn."""
        found = np.zeros(len(self.names), np.bool_)
        found[self.of_sentence] = True
        return found


class Names:
    """Collects the names of documents; a name that comes twice is an error.

    >>> names = Names()
    >>> names.add("a", "x.tsv", 1)
    >>> names.add("a", "x.tsv", 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    nlpkit.errors.NlpkitError: x.tsv: line 2: the document 'a' was on line 1 of x.tsv already ...
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int]] = {}

    def add(self, name: str, source: str, line: int) -> None:
        """The next document."""
        name = on_one_line(name)
        if name in self._seen:
            where, first = self._seen[name]
            raise NlpkitError(
                f"{source}: line {line}: the document {name!r} was on line {first} "
                f"of {where} already",
                hint="a document is one line; join those of one id, or give each its own",
            )
        if not name:
            raise NlpkitError(f"{source}: line {line}: the document has an empty id")
        self._seen[name] = (source, line)

    def listed(self) -> list[str]:
        """All of them, in their order."""
        return list(self._seen)

    def __len__(self) -> int:
        return len(self._seen)


def named_lines(
    block: TextBlock, names: Names, key: str | None, errors: str = "strict"
) -> list[str]:
    """The lines of a block, a document each; ``names`` hears their ids.

    An id is what a record has as ``key``; without a key lines are numbered from 1.
    """
    if key is None:
        lines = lines_of(block, errors)
        for line in range(len(lines)):
            names.add(str(len(names) + 1), block.source, block.first_line + line)
        return lines
    if not isinstance(block, RecordBlock):
        raise NlpkitError(
            f"{block.source}: plain lines have no {key!r} to be their id",
            hint="`key` with the name or number of the column of texts, or no `id_key`",
        )
    lines = []
    for row in rows_of(block, errors):
        names.add(_id_of(row, key, block.source), block.source, row.line)
        lines.append(" ".join(text_of(row, block.source).split("\n")))
    return lines


def _id_of(row: Row, key: str, source: str) -> str:
    value: Any = row.record.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        found = ", ".join(map(str, list(row.record)[:8])) or "none"
        raise NlpkitError(
            f"{source}: line {row.line}: no id at {key!r}",
            hint=f"`id_key` with one of its keys: {found}",
        )
    return str(value)


@kernel()
def sentences_of_lines(
    ids: NDArray[np.int32], final: NDArray[np.int32], longest: int
) -> NDArray[np.int32]:
    """The line of each sentence that will be left when words without a ``final`` id are dropped
    and sentences are cut after ``longest`` words."""
    count = 0
    kept = 0
    for i in range(len(ids)):
        if ids[i] == LINE_END:
            count += (kept + longest - 1) // longest
            kept = 0
        elif final[ids[i]] >= 0:
            kept += 1
    found = np.empty(count, np.int32)
    line = 0
    n = 0
    kept = 0
    for i in range(len(ids)):
        if ids[i] == LINE_END:
            for _ in range((kept + longest - 1) // longest):
                found[n] = line
                n += 1
            kept = 0
            line += 1
        elif final[ids[i]] >= 0:
            kept += 1
    return found
