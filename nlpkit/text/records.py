"""Records: plain lines, JSON lines, CSV and TSV, read alike by every command that reads text.

What a file holds is told by its name or its first line. A line of plain text is a record without
keys; CSV and TSV become JSON lines on the way in, so that the rest of a command knows two forms
only: ``TextBlock`` (lines are texts) and ``RecordBlock`` (lines are JSON objects). The keys that a
command does not read pass through it untouched.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from nlpkit import compression
from nlpkit.errors import NlpkitError
from nlpkit.settings import DATA, option
from nlpkit.text.pipeline import Tokens, TokenSettings, show
from nlpkit.textio import TextBlock, longest_line, parse_json, read_blocks

TEXT_KEYS = ("text", "sentence", "tokens")
TOKEN_KEYS = ("tokens", "text", "sentence")
ID_KEYS = ("ids",)
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv"}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_SPACY = (
    'python -c "import json, sys, spacy; from spacy.tokens import DocBin; '
    "[print(json.dumps({'text': d.text, 'entities': [[e.start_char, e.end_char, e.label_] "
    "for e in d.ents]})) for d in "
    "DocBin().from_disk(sys.argv[1]).get_docs(spacy.blank('en').vocab)]\" FILE.spacy > FILE.jsonl"
)
# What a new text, new tokens or new ids leave without a meaning.
_STALE = {"text": ("tokens", "offsets", "ids", "length"), "tokens": ("ids", "length")}


@dataclass(frozen=True)
class Reading:
    """How input is read."""

    input: Literal["auto", "text", "jsonl", "csv", "tsv"] = option(
        "auto",
        "What the input is; auto: told by its name or first line.",
        group=DATA,
    )
    key: str | None = option(
        None,
        "The key of a JSON object, or the column of a CSV or TSV file, to read; a number is a "
        "column of a file without a header.",
        group=DATA,
        flags=("--key", "--column"),
        metavar="NAME",
        shown_default="text, sentence, tokens or ids",
    )
    encoding: str = option("utf-8", "Encoding of the input.", group=DATA, metavar="NAME")
    errors: Literal["strict", "replace", "ignore"] = option(
        "strict", "What to do with bytes that the encoding does not allow.", group=DATA
    )


@dataclass(frozen=True)
class RecordBlock(TextBlock):
    """Lines that are JSON objects; the first of ``keys`` that an object has is what is read."""

    keys: tuple[str, ...] = TEXT_KEYS


class Row(NamedTuple):
    """What is read of a record, and all of it; a line of plain text is an empty record."""

    value: Any
    record: dict[str, Any]
    line: int


class RecordText(str):
    """A text that knows the record it was read from, for commands that take plain texts."""

    record: dict[str, Any]

    @classmethod
    def of(cls, text: str, record: dict[str, Any]) -> str:
        """The text itself where there is no record."""
        if not record:
            return text
        made = cls(text)
        made.record = record
        return made


def pair_of(line: str, where: str) -> tuple[str, str]:
    """Two texts: a record's own with that of its key second, or what a tab stands between.

    >>> pair_of("a king\\ta queen", "line 1")
    ('a king', 'a queen')
    """
    if isinstance(line, RecordText):
        second = line.record.get("second")
        if not isinstance(second, str):
            raise NlpkitError(f"{where}: no text second", hint="keys: first, second")
        return line, second
    first, tab, second = line.partition("\t")
    if not tab or "\t" in second:
        raise NlpkitError(f"{where}: not a pair", hint="FIRST<TAB>SECOND")
    return first, second


def with_record(text: str | None, made: dict[str, Any]) -> dict[str, Any]:
    """What was made of a text, behind the other keys of the record that it came from.

    A count does not take the place of what it counts, nor tokens that were read and are said again
    as a text that of the text.

    >>> with_record(RecordText.of("Hi!", {"id": 7, "text": "Hi!"}), {"text": "Hi!", "score": 1})
    {'id': 7, 'text': 'Hi!', 'score': 1}
    >>> with_record(RecordText.of("Hi !", {"tokens": ["Hi", "!"]}), {"tokens": 2})
    {'tokens': ['Hi', '!'], 'token_count': 2}
    """
    record = getattr(text, "record", {})
    if "text" in record and made.get("text") == text:
        made = {key: value for key, value in made.items() if key != "text"}
    if isinstance(record.get("tokens"), list) and isinstance(made.get("tokens"), int):
        made = {"token_count" if key == "tokens" else key: made[key] for key in made}
    new = {key: value for key, value in made.items() if record.get(key, value) != value}
    kept = extend(record, **new) if new else record
    return {**{key: value for key, value in kept.items() if key not in made}, **made}


# --- reading ------------------------------------------------------------------------------------


def refuse_spacy(paths: Iterable[str]) -> None:
    """Say what a ``.spacy`` file is, and how it becomes one that can be read."""
    for path in paths:
        if path.endswith(".spacy"):
            what = f"{path} is a DocBin of spaCy, which only spaCy can read"
            raise NlpkitError(what, hint=_SPACY)


def read_records(
    paths: Iterable[str],
    reading: Reading | None = None,
    keys: tuple[str, ...] = TEXT_KEYS,
    say: Callable[[str], None] = lambda message: None,
    *,
    tables: bool = True,
) -> Iterator[TextBlock]:
    """All sources as blocks, each a ``RecordBlock`` where its source holds records.

    ``say`` hears what was detected, when it is not plain text. Without ``tables`` a name that ends
    in .tsv or .csv says nothing: lines with tabs are a format of their own there.
    """
    reading = reading or Reading()
    wanted = keys if reading.key is None else (reading.key,)
    for path in paths:
        refuse_spacy([path])
        blocks = read_blocks([path], encoding=reading.encoding, errors=reading.errors)
        first = next(blocks, None)
        if first is None:
            continue
        form = reading.input if reading.input != "auto" else detect(path, first, reading, wanted)
        squad = "question" in wanted and _SQUAD.match(first.data) is not None
        form = "jsonl" if squad else form
        if reading.input == "auto" and reading.key is None and form != "jsonl" and not tables:
            form = "text"
        blocks = itertools.chain([first], blocks)
        if form == "text":
            named = _form_by_name(path)
            if tables and reading.input == "auto" and named is not None:
                say(f"{first.source}: plain text, of one column (if not: --input {named})")
            yield from blocks
            continue
        if reading.input == "auto":
            what = _which(form, wanted, _first_line(first))
            say(f"{first.source}: {_NAMES[form]}, {what} (if not: --input text)")
        if form != "jsonl":
            blocks = _table_blocks(blocks, _DELIMITERS[form], wanted, reading.errors)
        elif squad:
            blocks = squad_blocks(blocks, reading.errors)
        elif ARRAY.match(first.data):
            blocks = array_blocks(blocks, reading.errors)
        for block in blocks:
            yield RecordBlock(block.data, block.source, block.first_line, wanted)


_OBJECTS = re.compile(rb"\s*\[\s*\{")  # a file that is one array of objects
ARRAY = re.compile(rb'\s*\[\s*(\{|\[\s*")')  # of arrays that begin with a text, too
_SQUAD = re.compile(rb'\s*\{\s*"(version|data)"\s*:')  # a file that is one object


def array_blocks(blocks: Iterable[TextBlock], errors: str = "strict") -> Iterator[TextBlock]:
    """One JSON array, as pandas and Label Studio export records, as JSON lines."""
    parts = list(blocks)
    source = parts[0].source
    try:
        found = parse_json("".join(block.text(errors) for block in parts))
    except ValueError as error:
        raise NlpkitError(
            f"{source}: not a JSON array: {error}", hint="an object per line, or `input` text"
        ) from None
    lines = "".join(json.dumps(record) + "\n" for record in found)
    yield TextBlock(lines.encode(), source, 1)


def squad_blocks(blocks: Iterable[TextBlock], errors: str = "strict") -> Iterator[TextBlock]:
    """SQuAD's JSON as JSON lines: each question with its context."""
    parts = list(blocks)
    source = parts[0].source
    try:
        records = [
            {**question, "context": paragraph["context"]}
            for article in parse_json("".join(block.text(errors) for block in parts))["data"]
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except (ValueError, TypeError, KeyError):
        raise NlpkitError(
            f"{source}: neither JSON lines nor SQuAD's JSON", hint="data, paragraphs, qas"
        ) from None
    lines = "".join(json.dumps(record) + "\n" for record in records)
    yield TextBlock(lines.encode(), source, 1)


_NAMES = {"jsonl": "JSON lines", "csv": "CSV", "tsv": "TSV"}


def _which(form: str, keys: tuple[str, ...], line: bytes) -> str:
    """What is read of the record in a first line, or may be where that has none of it.

    >>> _which("csv", TEXT_KEYS, b"id,text"), _which("jsonl", TEXT_KEYS, b"{")
    ('column text', 'key text or sentence or tokens')
    """
    text = line.decode("utf-8", "replace").lstrip("\ufeff")
    there: list[str] = []
    if form == "jsonl":
        try:
            there = _readable(parse_json(text), keys)
        except ValueError:
            pass  # which is said when the line is read
    else:
        names = [name.strip('"') for name in text.split(_DELIMITERS[form])]
        there = [key for key in keys if key in names]
    return f"{'key' if form == 'jsonl' else 'column'} {' or '.join(there[:1] or keys)}"


def _readable(record: Any, keys: Iterable[str]) -> list[str]:
    """Keys with a text or a list: a count of tokens is nothing to read where there is a text."""
    found = record if isinstance(record, dict) else {}
    return [key for key in keys if isinstance(found.get(key), (str, list))]


def _first_line(block: TextBlock) -> bytes:
    return next((line for line in block.data.splitlines() if line.strip()), b"")


def bare_name(path: str) -> str:
    """A name without the ending that says how the file is compressed.

    >>> bare_name("reviews.csv.gz")
    'reviews.csv'
    """
    return path.removesuffix(compression.ending(path) or "\0")


def _form_by_name(path: str) -> str | None:
    name = bare_name(path)
    return next((form for ending, form in _ENDINGS.items() if name.endswith(ending)), None)


def detect(path: str, first: TextBlock, reading: Reading, keys: tuple[str, ...] = TEXT_KEYS) -> str:
    """What a source holds, by its name, or by its first line that is not empty.

    A first line of one column that is none of ``keys`` is plain text, whatever the name says.
    """
    line = _first_line(first)
    form = _form_by_name(path)
    if form is not None:
        single = _DELIMITERS.get(form, "").encode() not in line
        if single and line.strip().decode("utf-8", "replace").strip('"') not in keys:
            return "text"
        return form
    if _OBJECTS.match(first.data):
        return "jsonl"
    if line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}"):
        try:
            if isinstance(parse_json(line.decode("utf-8", "replace")), dict):
                return "jsonl"
        except ValueError:
            return "text"
    if reading.key is not None:  # nobody names a column of plain text
        tabs = b"\t" in line
        return "tsv" if tabs else "csv"
    return "text"


def _table_blocks(
    blocks: Iterable[TextBlock], delimiter: str, keys: tuple[str, ...], errors: str
) -> Iterator[TextBlock]:
    """CSV or TSV as blocks of JSON lines; a row that goes on in the next block waits for it."""
    waiting: list[str] = []
    header: list[str] = []
    csv.field_size_limit(longest_line())  # the library's own limit is 128 kB
    dump = json.JSONEncoder(ensure_ascii=False).encode
    source, first_line = "", 1
    for block in blocks:
        source, first_line = block.source, block.first_line - len(waiting)
        lines = [*waiting, *(f"{line}\n" for line in block.lines(errors))]
        rows, waiting = _parse_rows(lines, delimiter, source, first_line, is_last=False)
        if not header and rows:
            header = _header(rows[0][1], keys, source)
            rows = rows if header[0] == "1" else rows[1:]
        for number, row in rows:
            if len(row) != len(header):
                raise NlpkitError(
                    f"{source}: line {number}: {len(row)} fields, {len(header)} expected",
                    hint="a field with the delimiter in it stands in double quotes",
                )
        records = [dump(dict(zip(header, row, strict=True))) + "\n" for _, row in rows]
        if records:
            yield TextBlock("".join(records).encode(), source, rows[0][0])
        first_line += len(lines) - len(waiting)
    if waiting:
        _parse_rows(waiting, delimiter, source, first_line, is_last=True)


def tables_as_json(
    blocks: Iterable[TextBlock],
    keys: Iterable[str],
    errors: str = "strict",
    forms: tuple[str, ...] = ("csv", "tsv"),
) -> Iterator[TextBlock]:
    """CSV and TSV whose header has all ``keys`` as JSON lines; anything else as it is.

    For files of rows, of which every reader takes JSON lines.

    >>> blocks = [TextBlock(b"id,a,b\\n1,x,\\"y,z\\"\\n", "rows.csv", 1)]
    >>> next(tables_as_json(blocks, ("a", "b"))).data
    b'{"id": "1", "a": "x", "b": "y,z"}\\n'
    """
    blocks = iter(blocks)
    first = next(blocks, None)
    if first is None:
        return
    again = itertools.chain([first], blocks)
    header = next((line for line in first.lines(errors) if line.strip()), "").lstrip("\ufeff")
    for form in forms:
        names = (name.strip().strip('"') for name in header.split(_DELIMITERS[form]))
        if set(keys) <= set(names):
            yield from _table_blocks(again, _DELIMITERS[form], tuple(keys), errors)
            return
    yield from again


def row_lines(
    path: str,
    keys: Iterable[str],
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
    forms: tuple[str, ...] = ("csv", "tsv"),
) -> Iterator[str]:
    """The lines of a file of rows, those of a table with ``keys`` as JSON lines."""
    blocks = read_blocks([path], encoding=encoding, errors=errors)
    for block in tables_as_json(blocks, keys, errors, forms):
        yield from block.lines(errors)


def _parse_rows(
    lines: list[str], delimiter: str, source: str, first_line: int, *, is_last: bool
) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """Rows with their first lines, and the lines of one that is not complete yet."""
    # tabs in TSV are never part of a field, and quotes are characters like others
    if delimiter == ",":
        reader = csv.reader(lines, strict=True)
    else:
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    rows: list[tuple[int, list[str]]] = []
    done = 0
    try:
        for row in reader:
            if row:
                rows.append((first_line + done, row))
            done = reader.line_num
    except csv.Error as error:
        if "unexpected end of data" in str(error) and not is_last:
            return rows, lines[done:]
        raise NlpkitError(
            f"{source}: line {first_line + done}: {error}",
            hint="a quote within quotes is written twice; `input` text for plain lines",
        ) from None
    return rows, []


def _header(first: list[str], keys: tuple[str, ...], source: str) -> list[str]:
    """Names of the columns: the first row, or numbers if a number was asked for."""
    if len(keys) == 1 and keys[0].isdecimal():
        if not 1 <= int(keys[0]) <= len(first):
            raise NlpkitError(f"{source}: {len(first)} columns, no column {keys[0]}")
        return [str(number) for number in range(1, len(first) + 1)]
    if not set(keys) & set(first):
        raise NlpkitError(
            f"{source}: no column {' or '.join(keys)} in the header",
            hint=f"`key` with one of {', '.join(first[:8])}, or a number if there is no header",
        )
    return first


# --- what is in a block -------------------------------------------------------------------------


def rows_of(block: TextBlock, errors: str = "strict") -> Iterator[Row]:
    """The rows of a block: a line of text each, or a record whose value is a text or a list."""
    if not isinstance(block, RecordBlock):
        for number, line in enumerate(block.lines(errors), block.first_line):
            yield Row(line, {}, number)
        return
    for number, line in enumerate(block.lines(errors), block.first_line):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError as error:
            raise NlpkitError(
                f"{block.source}: line {number}: not JSON: {error}",
                hint="an object per line, or `input` text",
            ) from None
        if not isinstance(record, dict):
            if isinstance(record, (list, str)):  # a bare value is its own record
                yield Row(record, {}, number)
                continue
            raise NlpkitError(f"{block.source}: line {number}: no JSON object: {line[:40]!r}")
        there = [key for key in block.keys if key in record]
        key = next(iter(_readable(record, there) or there), None)
        if key is None:
            names = ", ".join(map(str, list(record)[:8])) or "none"
            raise NlpkitError(
                f"{block.source}: line {number}: no key {' or '.join(block.keys)}",
                hint=f"`key` with one of its keys: {names}",
            )
        yield Row(record[key], record, number)


def text_of(row: Row, source: str) -> str:
    """A row as a text; tokens are joined by spaces.

    >>> text_of(Row(["It", "'s"], {}, 1), "-")
    "It 's"
    """
    if isinstance(row.value, str):
        return row.value
    return " ".join(_tokens(row, source))


def tokens_of(row: Row, tokens: Tokens, source: str) -> list[str]:
    """The (shown) tokens of a row: those it has, or those of its text."""
    if isinstance(row.value, str):
        return tokens.shown(row.value)
    return tokens.finish(_tokens(row, source))


def _tokens(row: Row, source: str) -> list[str]:
    value = row.value
    if isinstance(value, list) and all(isinstance(token, str) for token in value):
        return [show(token) for token in value]
    shown = json.dumps(value, ensure_ascii=False)[:40]
    raise NlpkitError(
        f"{source}: line {row.line}: expected a text or a list of tokens, found {shown}",
        hint="`key` with the name of another key",
    )


def lines_of(block: TextBlock, errors: str = "strict") -> list[str]:
    """Texts of a block, each fit to be one line of a plain text; a record's is a ``RecordText``."""
    if not isinstance(block, RecordBlock):
        return block.lines(errors)
    return [
        RecordText.of(" ".join(text_of(row, block.source).split("\n")), row.record)
        for row in rows_of(block, errors)
    ]


def plain_blocks(blocks: Iterable[TextBlock], errors: str = "strict") -> Iterator[TextBlock]:
    """Blocks of plain lines: what an engine reads that knows of no records."""
    for block in blocks:
        if isinstance(block, RecordBlock):
            text = "".join(f"{line}\n" for line in lines_of(block, errors))
            yield TextBlock(text.encode("utf-8", "replace"), block.source, block.first_line)
        else:
            yield block


def read_tokens(
    blocks: Iterable[TextBlock], settings: TokenSettings, errors: str = "strict"
) -> Iterator[list[tuple[Row, list[str]]]]:
    """For each block its rows with their (shown) tokens."""
    tokens = Tokens(settings)
    for block in blocks:
        yield [(row, tokens_of(row, tokens, block.source)) for row in rows_of(block, errors)]


def token_keys(settings: TokenSettings) -> tuple[str, ...]:
    """Where tokens are looked for: those that are there, unless a tokeniser is asked for."""
    return TOKEN_KEYS if settings.tokenizer == "whitespace" else TEXT_KEYS


def extend(record: dict[str, Any], **made: Any) -> dict[str, Any]:
    """A record with what was made of it, and without what that has made stale.

    >>> extend({"id": 7, "text": "Hi!", "ids": [1]}, tokens=["Hi", "!"])
    {'id': 7, 'text': 'Hi!', 'tokens': ['Hi', '!']}
    """
    if not record:
        return made
    stale = {name for key in made for name in _STALE.get(key, ())} - set(made)
    return {**{key: value for key, value in record.items() if key not in stale}, **made}
