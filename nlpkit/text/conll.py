"""Tagged sentences in and out: CoNLL-U, any other columns, word/TAG lines, strings with tags.

A sentence keeps every line of its source, ends included, so that what is not the tag goes out byte
for byte as it came in: comments, multiword ranges (``1-2``), empty nodes (``8.1``), blank lines,
``SpaceAfter=No`` and all other columns. Which column is the tag and what the tags mean is not
known here: ``Layout`` says the first, the tagger the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from nlpkit.errors import NlpkitError
from nlpkit.schema import Ranges
from nlpkit.textio import TextBlock, longest_line, refuse_long

TagFormat = Literal["conllu", "columns", "slash", "pairs"]
CONLLU_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DOCUMENT_START = "-DOCSTART-"
FIELD = re.compile(r"[^ \t]+")
_NOT_A_WORD = re.compile(r"[0-9]+[-.][0-9]+$")


@dataclass(frozen=True)
class Layout:
    """Where tokens and tags stand in a file. Columns are counted from 0, ``-1`` is the last.

    ``conllu`` and ``columns`` have one token per line; ``slash`` has lines of ``word/TAG``;
    ``pairs`` has lines of a string, a tab and a tag for each of its characters.
    """

    format: TagFormat
    token_column: int = 0
    tag_column: int = -1
    columns: int = 0  # how many a line must have at least; 0 is not known yet
    tabs: bool = True  # columns end at a tab, else at any run of spaces and tabs
    key: str = ""  # the tag is this key's value in a column such as Number=Sing|Person=3

    RANGES: ClassVar[Ranges] = {
        "token_column": (0, 2**20),
        "tag_column": (-(2**20), 2**20),
        "columns": (0, 2**20),
    }

    def fields(self, line: str) -> list[str]:
        """The columns of a line without its end."""
        return line.split("\t") if self.tabs else FIELD.findall(line)

    def named(self, name: str) -> Layout:
        """The layout with another column as the tag's: a name of CoNLL-U or a number from 1.

        >>> CONLLU.named("deprel").tag_column, CONLLU.named("feats:Number").key
        (7, 'Number')
        """
        name, _, key = name.partition(":")
        names = CONLLU_COLUMNS if self.format == "conllu" else ()
        if name.isdigit() and 1 <= int(name) <= (len(names) or 2**20):
            return replace(self, tag_column=int(name) - 1, key=key)
        if name.lower() not in names:
            raise NlpkitError(
                f"no such {'CoNLL-U ' if names else ''}column: {name}",
                hint=", ".join(names) or "a number from 1",
            )
        return replace(self, tag_column=names.index(name.lower()), key=key)


CONLLU = Layout("conllu", token_column=1, tag_column=3, columns=10)


@dataclass
class Sentence:
    """One sentence with all its lines. ``tags`` is empty when the file has no such column."""

    lines: list[str]  # with their ends
    rows: list[int]  # which of the lines hold the tokens
    tokens: list[str]
    tags: list[str]
    source: str
    first_line: int  # counted from 1

    def where(self, token: int) -> str:
        """File and line of a token, for messages."""
        row = self.rows[token] if token < len(self.rows) else 0
        return f"{self.source}: line {self.first_line + row}"

    @property
    def spaces_after(self) -> list[bool]:
        """Whether white space follows each token, by ``SpaceAfter=No`` in a last column."""
        return [
            "SpaceAfter=No" not in self.lines[row].rsplit("\t", 1)[-1].rstrip("\r\n").split("|")
            for row in self.rows
        ]


# --- reading ------------------------------------------------------------------------------------


Line = tuple[str, str, int]  # with its end, the source, the number from 1


def read_lines(blocks: Iterable[TextBlock], errors: str = "strict") -> Iterator[Line]:
    r"""Lines with their ends (``\n`` or ``\r\n``), each with its source and number."""
    for block in blocks:
        lines = block.text(errors).split("\n")
        last = lines.pop()
        number = block.first_line
        for line in lines:
            yield line + "\n", block.source, number
            number += 1
        if last:
            yield last, block.source, number


class SentenceReader:
    """Gives sentences as soon as their lines are there: a blank line ends one.

    What stands between sentences (more blank lines, comments) goes with the next one, and what
    is left at the end of a file is a last sentence without tokens.
    """

    def __init__(self, layout: Layout, *, tagged: bool = True) -> None:
        self.layout, self.tagged = layout, tagged
        self._longest = longest_line()
        self._start("", 1)

    def _start(self, source: str, first_line: int) -> None:
        self._sentence = Sentence([], [], [], [], source, first_line)
        self._length = 0  # of its lines

    def feed(self, lines: Iterable[Line]) -> Iterator[Sentence]:
        """The sentences that these lines complete."""
        whole_line = {"slash": _slash_line, "pairs": _pairs_line}.get(self.layout.format)
        for text, source, number in lines:
            if whole_line is not None:
                yield whole_line(text, source, number, self.tagged)
                continue
            held = self._sentence
            if held.lines and source != held.source:
                yield held
                held.lines = []
            if not held.lines:
                self._start(source, number)
                held = self._sentence
            self._length += len(text)
            if self._length > self._longest:
                refuse_long(source, held.first_line, self._longest, "starts a sentence")
            body = text.rstrip("\r\n")
            if body.strip():
                found = _token_fields(body, self.layout, self.tagged, source, number)
                if found is not None:
                    held.rows.append(len(held.lines))
                    held.tokens.append(found[0])
                    if found[1] is not None:
                        held.tags.append(found[1])
                held.lines.append(text)
            else:
                held.lines.append(text)
                if held.rows:
                    yield held
                    self._start(source, number + 1)

    def close(self) -> Iterator[Sentence]:
        """What is left when the input has ended."""
        if self._sentence.lines:
            yield self._sentence
            self._start("", 1)


def read_sentences(
    lines: Iterable[Line], layout: Layout, *, tagged: bool = True
) -> Iterator[Sentence]:
    r"""All sentences; with ``tagged`` a line without its tag is an error.

    >>> lines = [("# 1\n", "f", 1), ("Oslo\tLOC\n", "f", 2), ("\n", "f", 3), ("waits\tO\n", "f", 4)]
    >>> [sentence.tokens for sentence in read_sentences(lines, Layout("columns", 0, 1, 2))]
    [['Oslo'], ['waits']]
    """
    reader = SentenceReader(layout, tagged=tagged)
    yield from reader.feed(lines)
    yield from reader.close()


def _token_fields(
    line: str, layout: Layout, tagged: bool, source: str, number: int
) -> tuple[str, str | None] | None:
    """Token and tag of a line, or None for a comment and what else is no token."""
    if layout.format == "conllu" and line.startswith("#"):
        return None
    fields = layout.fields(line)
    if len(fields) < layout.columns and layout.tabs and not line.startswith("#"):
        loose = FIELD.findall(line)  # spaces where the rest of the file has tabs
        fields = loose if len(loose) == layout.columns else fields
    if line.startswith("#") and (len(fields) < layout.columns or fields[2:3] == ["="]):
        return None
    if not fields or fields[0] == DOCUMENT_START:
        return None
    wanted = layout.columns if tagged or layout.format == "conllu" else layout.token_column + 1
    if len(fields) < wanted:
        between = "between tabs" if layout.tabs else "between spaces or tabs"
        raise NlpkitError(
            f"{source}: line {number}: expected {wanted} columns {between}, found {len(fields)}",
            hint="mend the line, or `input`, `token_column` and `tag_column`",
        )
    if layout.format == "conllu" and _NOT_A_WORD.match(fields[0]):
        return None
    token = fields[layout.token_column]
    if not token:
        raise NlpkitError(f"{source}: line {number}: the token is empty", hint="mend the line")
    tag = layout.tag_column
    if tag < 0:
        tag += len(fields)
    if not 0 <= tag < len(fields) or (tag == layout.token_column and not tagged):
        return token, None
    if tagged and not fields[tag]:
        raise NlpkitError(f"{source}: line {number}: the tag is empty", hint="mend the line")
    return token, keyed_value(fields[tag], layout.key) if layout.key else fields[tag]


def keyed_value(field: str, key: str) -> str:
    """The value of a key among several, ``_`` when it is not there.

    >>> keyed_value("Number=Sing|Person=3", "Person"), keyed_value("_", "Person")
    ('3', '_')
    """
    start = key + "="
    found = (part[len(start) :] for part in field.split("|") if part.startswith(start))
    return next(found, "_")


def _with_keyed_value(field: str, key: str, value: str) -> str:
    start = key + "="
    parts = [] if field == "_" else field.split("|")
    if any(part.startswith(start) for part in parts):
        parts = [start + value if part.startswith(start) else part for part in parts]
    elif value != "_":
        parts.append(start + value)
    return "|".join(parts) or "_"


def _slash_line(line: str, source: str, number: int, tagged: bool) -> Sentence:
    tokens: list[str] = []
    tags: list[str] = []
    for word in line.split():
        token, slash, tag = word.rpartition("/")
        if token and slash and tag:
            tokens.append(token)
            tags.append(tag)
        elif tagged:
            raise NlpkitError(
                f"{source}: line {number}: expected word/TAG, found {word[:40]!r}",
                hint="a slash and a tag behind every word, or `input` columns",
            )
        else:
            tokens.append(word)
    if len(tags) != len(tokens):
        tokens, tags = line.split(), []
    return Sentence([line], [0] * len(tokens), tokens, tags, source, number)


def _pairs_line(line: str, source: str, number: int, tagged: bool) -> Sentence:
    text, _, given = line.rstrip("\r\n").partition("\t")
    tags = given.split() if " " in given.strip() else list(given)
    if tagged and len(tags) != len(text):
        raise NlpkitError(
            f"{source}: line {number}: {len(text)} characters and {len(tags)} tags",
            hint="string<TAB>tags with a tag for each character",
        )
    tags = tags if len(tags) == len(text) else []
    return Sentence([line], [0] * len(text), list(text), tags, source, number)


def column_of(sentence: Sentence, name: str, layout: Layout) -> list[str]:
    r"""What a column holds for each token of a sentence in columns.

    >>> rows = ["1\tIt\t_\t_\t_\t_\t2\tnsubj\t_\t_\n", "2\truns\t_\t_\t_\t_\t0\troot\t_\t_\n"]
    >>> sentence = Sentence(rows, [0, 1], ["It", "runs"], [], "f", 1)
    >>> column_of(sentence, "head", CONLLU), column_of(sentence, "deprel", CONLLU)
    (['2', '0'], ['nsubj', 'root'])
    """
    layout, found = layout.named(name), []
    for token, row in enumerate(sentence.rows):
        fields = layout.fields(sentence.lines[row].rstrip("\r\n"))
        if layout.tag_column >= len(fields):
            raise NlpkitError(
                f"{sentence.where(token)}: no column {name}, there are {len(fields)}",
                hint="mend the line, or another column",
            )
        value = fields[layout.tag_column]
        found.append(keyed_value(value, layout.key) if layout.key else value)
    return found


# --- writing ------------------------------------------------------------------------------------


def with_columns(sentence: Sentence, columns: Mapping[str, Sequence[str]], layout: Layout) -> str:
    r"""The sentence as text with some columns replaced, by name, and nothing else touched.

    >>> sentence = Sentence(["1\tIt" + 8 * "\t_" + "\n"], [0], ["It"], [], "f", 1)
    >>> with_columns(sentence, {"head": ["0"], "deprel": ["root"]}, CONLLU)
    '1\tIt\t_\t_\t_\t_\t0\troot\t_\t_\n'
    """
    lines = list(sentence.lines)
    for name, values in columns.items():
        chosen = layout.named(name)
        for row, value in zip(sentence.rows, values, strict=True):
            lines[row] = _replace_field(lines[row], value, chosen)
    return "".join(lines)


def with_tags(sentence: Sentence, tags: Sequence[str], layout: Layout) -> str:
    r"""The sentence as text with its tags replaced and nothing else touched.

    >>> sentence = Sentence(["Oslo  _ x\r\n"], [0], ["Oslo"], ["_"], "f", 1)
    >>> with_tags(sentence, ["LOC"], Layout("columns", 0, 1, 3, tabs=False))
    'Oslo  LOC x\r\n'
    """
    if layout.format in ("slash", "pairs"):
        end = line_end(sentence.lines[0])
        make = slash_text if layout.format == "slash" else pairs_text
        return make(sentence.tokens, tags) + end
    lines = list(sentence.lines)
    for row, tag in zip(sentence.rows, tags, strict=True):
        lines[row] = _replace_field(lines[row], tag, layout)
    return "".join(lines)


def line_end(line: str) -> str:
    """What ends a line: a line feed, with or without a carriage return, or nothing."""
    return line[len(line.rstrip("\r\n")) :]


def slash_text(tokens: Sequence[str], tags: Sequence[str]) -> str:
    """A line of word/TAG."""
    return " ".join([f"{token}/{tag}" for token, tag in zip(tokens, tags, strict=True)])


def pairs_text(tokens: Sequence[str], tags: Sequence[str]) -> str:
    """A string, a tab, and a tag for each character: unseparated when all are one letter."""
    between = "" if all(len(tag) == 1 for tag in tags) else " "
    return "".join(tokens) + "\t" + between.join(tags)


def _replace_field(line: str, tag: str, layout: Layout) -> str:
    end = line_end(line)
    body = line[: len(line) - len(end)]
    fields = body.split("\t")
    column = layout.tag_column
    if layout.tabs and len(fields) >= layout.columns:
        if column < 0:
            column += max(len(fields), layout.columns)
        if 0 <= column < len(fields):
            key = layout.key
            fields[column] = _with_keyed_value(fields[column], key, tag) if key else tag
            return "\t".join(fields) + end
    found = list(FIELD.finditer(body))
    if column < 0:
        column += max(len(found), layout.columns)
    if 0 <= column < len(found) and (not layout.tabs or len(found) == layout.columns):
        start, stop = found[column].span()
        return body[:start] + tag + body[stop:] + end
    # the column is not there: tokens without tags came in, so it is added
    return body + ("\t" if layout.tabs else " ") + tag + end
