"""How a file of tagged sentences is laid out: detected from its first lines, or as told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nlpkit.errors import NlpkitError
from nlpkit.settings import DATA, MANY, changed, option
from nlpkit.text.conll import CONLLU, DOCUMENT_START, FIELD, Layout, TagFormat

SAMPLE_LINES = 400
_ENTITY = re.compile(r"O$|[BIES]-.")
_NODE_ID = re.compile(r"[0-9]+(-[0-9]+|\.[0-9]+)?$")


@dataclass(frozen=True)
class LayoutChoice:
    """What the user said of a file; None is to be detected. Columns are counted from 1."""

    input: TagFormat | None = option(
        None,
        "How the data is written: CoNLL-U, other columns, word/TAG lines, or a string, "
        "a tab and a tag for each character.",
        shown_default="detected",
        group=DATA,
    )
    column: str | None = option(
        None,
        "CoNLL-U column of the tag (misc:NER is the value of NER in it), or key of JSON lines.",
        metavar="NAME",
        shown_default="upos",
        group=DATA,
    )
    token_column: int | None = option(
        None, "Column of the token.", low=1, high=MANY, shown_default="detected", group=DATA
    )
    tag_column: int | None = option(
        None,
        "Column of the tag; negative from the end.",
        low=-MANY,
        high=MANY,
        shown_default="entities if any, else the last",
        group=DATA,
    )
    tag_names: str | None = option(
        None,
        "JSON lines: names of integer tags from 0 on, between commas or one per line of a file.",
        metavar="NAMES",
        group=DATA,
    )
    usual_column: str = "upos"  # of CoNLL-U when none is named


@dataclass(frozen=True)
class TrainingLayout(LayoutChoice):
    """The same for training, which has no format of output."""

    input: TagFormat | None = changed(LayoutChoice, "input", None, hidden_flags=("--format",))


def choose_layout(lines: Sequence[str], choice: LayoutChoice, source: str) -> Layout:
    """The layout of a tagged file, as told or as found; a file that fits none is an error."""
    found = detect_layout(lines)
    wanted = choice.input
    if wanted is None and found is None and choice.token_column is not None:
        wanted = "columns"
    if wanted is not None and (found is None or found.format != wanted):
        if wanted == "conllu":
            found = CONLLU
        elif wanted == "columns":
            # a width was not found: lines differ, and each is checked for the columns named
            tabs = all("\t" in line for line in lines if line.strip() and line[0] != "#")
            found = Layout("columns", tabs=tabs)
        else:
            found = Layout(wanted)
    if found is None:
        raise NlpkitError(
            f"{source}: no tagged sentences were recognised in it",
            hint="`input` conllu, columns, slash or pairs; nlpkit tag train --help",
        )
    if found.format == "conllu":
        return found.named(choice.column or choice.usual_column)
    if choice.column is not None:
        raise NlpkitError(
            "`column` names a column of CoNLL-U, and this is none",
            hint="`tag_column` with a number from 1",
        )
    return _with_columns(found, choice, lines) if found.format == "columns" else found


def _with_columns(found: Layout, choice: LayoutChoice, lines: Sequence[str]) -> Layout:
    token = found.token_column if choice.token_column is None else choice.token_column - 1
    found = replace(found, token_column=token)
    if choice.tag_column is not None:
        tag = choice.tag_column - 1 if choice.tag_column > 0 else choice.tag_column
    elif found.columns:
        tag = guess_tag_column(found, lines)
    else:
        tag = -1
    return replace(found, tag_column=tag, columns=max(found.columns, token + 1, tag + 1))


def detect_layout(lines: Sequence[str]) -> Layout | None:
    r"""The layout of a file from its first lines, or None when it looks like plain text.

    >>> detect_layout(["EU\tB-ORG", "rejects\tO", ""]).format
    'columns'
    >>> detect_layout(["The/DET dog/NOUN barks/VERB"]).format
    'slash'
    >>> detect_layout(["The dog barks at the cat."]) is None
    True
    """
    content = [
        line for line in (line.rstrip("\r\n") for line in lines[:SAMPLE_LINES]) if line.strip()
    ]
    plain = [line for line in content if not line.startswith("#")] or content
    if not plain:
        return None
    tabbed = sum("\t" in line for line in plain)
    split = [line.split("\t") for line in plain]
    # most lines decide: one that does not fit is then reported as such, with its number
    nodes = sum(len(fields) == 10 and bool(_NODE_ID.match(fields[0])) for fields in split)
    if nodes > len(plain) / 2:
        return CONLLU
    words = [word for line in plain for word in line.split()]
    marked = sum("/" in word[1:-1] for word in words)
    if not tabbed and marked >= 0.9 * len(words):
        return Layout("slash")
    if tabbed == len(plain) and _are_pairs(split):
        return Layout("pairs", columns=2)
    return _detect_columns(plain, tabbed / len(plain))


def _are_pairs(rows: list[list[str]]) -> bool:
    """A string and a tag for each character: ``AGCCT<TAB>NNCCC``.

    >>> _are_pairs([["AGCCT", "NNCCC"]]), _are_pairs([["Rio", "B-X"]])
    (True, False)
    """
    if all(_ENTITY.match(row[-1]) for row in rows):
        return False  # a word that is as long as its tag
    fits = [len(row) == 2 and len(row[0]) in (len(row[1]), len(row[1].split())) for row in rows]
    return all(fits) and sum(len(row[0]) for row in rows) > 2 * len(rows)


def _detect_columns(plain: list[str], tabbed: float) -> Layout | None:
    """Columns, if lines have so many of them as most others; ``tabbed`` is the share with tabs."""
    tabs = tabbed >= 0.9
    rows = [FIELD.findall(line) if not tabs else line.split("\t") for line in plain]
    rows = [row for row in rows if not row[0].startswith(DOCUMENT_START)]
    widths = [len(row) for row in rows]
    if not widths:
        return None
    usual = max(set(widths), key=lambda width: (widths.count(width), width))
    last = {row[-1] for row in rows if len(row) == usual}
    sure = tabbed >= 0.5 or (all(map(_ENTITY.match, last)) and last != {"O"})
    if usual < 2 or widths.count(usual) < (0.5 if sure else 0.9) * len(widths):
        return None
    if not sure and (len(plain) < 2 or any(row[-1][0].islower() for row in rows)):
        return None  # words between spaces look like columns too: a tag is not in lower case
    numbered = all(re.fullmatch(r"[0-9]+(-[0-9]+)?", row[0]) for row in rows) and usual > 2
    token = 1 if numbered else 0
    return Layout("columns", token_column=token, columns=usual, tabs=tabs)


def guess_tag_column(layout: Layout, lines: Sequence[str]) -> int:
    """The tag's column: the one that looks like entity tags, else the last.

    >>> lines = ["1\\tOslo\\tB-LOC\\t-\\tann", "2\\twaits\\tO\\t-\\t-"]
    >>> guess_tag_column(Layout("columns", 1, columns=5), lines)
    2
    """
    rows = [layout.fields(line.rstrip("\r\n")) for line in lines[:SAMPLE_LINES] if line.strip()]
    rows = [row for row in rows if len(row) == layout.columns]
    for column in range(layout.columns - 1, layout.token_column, -1):
        values = {row[column] for row in rows}
        if all(map(_ENTITY.match, values)) and values != {"O"}:
            return column
    return layout.columns - 1
