"""Labelled texts in: label<TAB>text and text<TAB>label, fastText lines, JSON lines, folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, NoReturn

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.text.conll import Line, read_lines
from nlpkit.textio import Block

Format = Literal["tsv", "fasttext", "jsonl", "folder"]
FASTTEXT_LABEL = "__label__"
TRAIN_SPLITS = ("train", "training")
TEST_SPLITS = ("test", "dev", "valid", "validation", "heldout")
SAMPLE_LINES = 500


Text = str | tuple[str, str]  # a pair: does the second follow from the first, say they the same?
SEPARATOR = " ||| "  # between two texts, for models that read one


class Example(NamedTuple):
    """A text and its labels: one, or any number when texts have several; perhaps a second text."""

    text: str
    labels: tuple[str, ...]
    second: str | None = None

    @property
    def texts(self) -> Text:
        """The text, or both."""
        return self.text if self.second is None else (self.text, self.second)

    @property
    def joined(self) -> str:
        """The text, or both as one."""
        return join_texts(self.texts)


def join_texts(text: Text) -> str:
    """One text of one or two.

    >>> join_texts(("It rains.", "It is wet."))
    'It rains. ||| It is wet.'
    """
    return text if isinstance(text, str) else SEPARATOR.join(text)


def two_texts(text: Text) -> tuple[str, str | None]:
    """The first text and the second, if there is one."""
    return (text, None) if isinstance(text, str) else text


class Columns(NamedTuple):
    """Which column of a TSV file is what, from 0; ``split`` is -1 when there is none."""

    label: int
    text: int
    split: int = -1
    header: bool = False
    second: int = -1  # the second text of pairs


def read_examples(
    path: str,
    *,
    format: Format | None = None,
    split: Literal["train", "test"] = "train",
    multi_label: bool = False,
    encoding: str = "utf-8",
    errors: str = "strict",
) -> list[Example]:
    """All labelled texts of a file or folder; a ``split`` column keeps only the rows meant."""
    if format == "folder" or os.path.isdir(path):
        return list(_read_folder(path, encoding, errors))
    lines = list(read_lines(textio.read_blocks([path], encoding=encoding, errors=errors), errors))
    name = textio.source_name(path)
    sample = [text.rstrip("\r\n") for text, _, _ in lines[:SAMPLE_LINES] if text.strip()]
    if not sample:
        raise NlpkitError(f"{name}: nothing in it", hint="a file of labelled texts")
    format = format or detect_format(sample, name)
    if format == "jsonl":
        examples = list(_read_json(lines))
    elif format == "fasttext":
        examples = list(_read_fasttext(lines))
    else:
        examples = list(_read_tsv(lines, find_columns(sample, name), split, multi_label))
    if not examples:
        raise NlpkitError(f"{name}: no labelled text in it", hint="nlpkit classify train --help")
    return examples


def labelled_texts(pairs: Iterable[tuple[str, str | Sequence[str]]]) -> list[Example]:
    """Texts as (text, label) pairs; several labels are a list.

    >>> labelled_texts([("I did", "good"), ("So so", ["good", "bad"])])[1].labels
    ('good', 'bad')
    """
    examples = []
    for number, pair in enumerate(pairs, 1):
        if isinstance(pair, str) or len(pair) != 2 or not isinstance(pair[0], str):
            raise NlpkitError(f"example {number}: {pair!r:.60} is not a pair of a text and a label")
        text, label = pair
        examples.append(Example(text, (label,) if isinstance(label, str) else tuple(label)))
    if not examples:
        raise NlpkitError("no labels to learn", hint="pairs of a text and a label")
    return examples


def detect_format(sample: Sequence[str], name: str) -> Format:
    """What the first lines look like.

    >>> detect_format(["__label__good I liked it"], "f"), detect_format(["good\\tI did"], "f")
    ('fasttext', 'tsv')
    """
    if sample[0].startswith("{"):
        return "jsonl"
    if sum(line.startswith(FASTTEXT_LABEL) for line in sample) > len(sample) / 2:
        return "fasttext"
    if sum("\t" in line for line in sample) > len(sample) / 2:
        return "tsv"
    raise NlpkitError(
        f"{name}: no labels were recognised in it",
        hint="label<TAB>text, text<TAB>label, __label__x text, JSON lines or a folder per label",
    )


def find_columns(sample: Sequence[str], name: str) -> Columns:
    """By a header with the words label and text, else the label is the column that varies least.

    >>> find_columns(["I liked it\\tgood", "I did not\\tbad", "So so\\tbad"], "f")
    Columns(label=1, text=0, split=-1, header=False)
    """
    rows = [line.split("\t") for line in sample]
    head = [field.strip().lower() for field in rows[0]]
    if "label" in head and "text" in head:
        split = head.index("split") if "split" in head else -1
        second = head.index("text2") if "text2" in head else -1
        return Columns(head.index("label"), head.index("text"), split, True, second)
    if len(rows[0]) != 2:
        raise NlpkitError(
            f"{name}: {len(rows[0])} columns and no header that names them",
            hint="two columns, or a first line with label and text in it",
        )
    rows = [row for row in rows if len(row) == 2]
    first, second_column = ({row[column] for row in rows} for column in (0, 1))
    if len(first) != len(second_column):
        label = int(len(second_column) < len(first))
    else:
        label = int(sum(map(_words, second_column)) < sum(map(_words, first)))
    return Columns(label, 1 - label)


def _words(text: str) -> int:
    return len(text.split())


def _read_tsv(
    lines: Iterable[Line], columns: Columns, split: str, multi_label: bool
) -> Iterator[Example]:
    wanted = TRAIN_SPLITS if split == "train" else TEST_SPLITS
    needed = max(columns.label, columns.text, columns.split, columns.second) + 1
    started = not columns.header
    for text, source, number in lines:
        fields = text.rstrip("\r\n").split("\t")
        if not text.strip():
            continue
        if not started:
            started = True
            continue
        if len(fields) < needed:
            raise NlpkitError(
                f"{source}: line {number}: expected {needed} columns between tabs, "
                f"found {len(fields)}",
                hint="mend the line, or `format`",
            )
        if columns.split >= 0 and fields[columns.split].strip().lower() not in wanted:
            continue
        label = fields[columns.label].strip()
        if not label and not multi_label:
            raise NlpkitError(f"{source}: line {number}: the label is empty")
        parts = label.split(",") if multi_label else [label]
        labels = tuple(part.strip() for part in parts if part.strip())
        second = fields[columns.second] if columns.second >= 0 else None
        if second is not None and not second.strip():
            _refuse_single(source, number)
        yield Example(fields[columns.text], labels, second)


def _refuse_single(source: str, number: int) -> NoReturn:
    raise NlpkitError(
        f"{source}: line {number}: no second text (text2), which other lines have",
        hint="mend the line, or leave the column out",
    )


def _read_fasttext(lines: Iterable[Line]) -> Iterator[Example]:
    for text, source, number in lines:
        words = text.rstrip("\r\n").split(" ")
        count = 0
        while count < len(words) and words[count].startswith(FASTTEXT_LABEL):
            count += 1
        if not count and text.strip():
            raise NlpkitError(
                f"{source}: line {number}: no {FASTTEXT_LABEL} at its start", hint="mend the line"
            )
        if count:
            labels = tuple(word[len(FASTTEXT_LABEL) :] for word in words[:count])
            yield Example(" ".join(words[count:]), labels)


def _read_json(lines: Iterable[Line]) -> Iterator[Example]:
    pairs: bool | None = None  # whether there are two texts: as the first line has it
    for text, source, number in lines:
        if not text.strip():
            continue
        record = parse_json(text, source, number)
        labels = record.get("labels", record.get("label"))
        if isinstance(labels, str | int | bool):
            labels = [labels]
        if not isinstance(labels, list) or not all(isinstance(x, str | int) for x in labels):
            raise NlpkitError(
                f"{source}: line {number}: no label in it", hint='{"text": "...", "label": "..."}'
            )
        second = record.get("text2")
        pairs = second is not None if pairs is None else pairs
        if (second is not None) != pairs or not (second is None or isinstance(second, str)):
            _refuse_single(source, number)
        yield Example(record["text"], tuple(map(str, labels)), second)


def parse_json(text: str, source: str, number: int) -> dict[str, Any]:
    """An object with a text in it, or an error that names the line."""
    try:
        record = textio.parse_json(text)
    except ValueError as error:
        raise NlpkitError(f"{source}: line {number}: not JSON: {error}") from None
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise NlpkitError(
            f"{source}: line {number}: no text in it", hint='{"text": "...", "label": "..."}'
        )
    return record


def _read_folder(path: str, encoding: str, errors: str) -> Iterator[Example]:
    """A folder for each label, a file for each text."""
    try:
        labels = sorted(entry.name for entry in os.scandir(path) if entry.is_dir())
    except OSError as error:
        raise NlpkitError(
            f"cannot read {path}: {error.strerror}", hint="a folder per label, or another `format`"
        ) from None
    if not labels:
        raise NlpkitError(f"{path}: no folders in it", hint="a folder per label, a file per text")
    for label in labels:
        folder = os.path.join(path, label)
        for name in sorted(os.listdir(folder)):
            file = os.path.join(folder, name)
            if os.path.isfile(file) and not name.startswith("."):
                lines = textio.read_lines(file, encoding=encoding, errors=errors)
                yield Example(" ".join(lines), (label,))


def stream_texts(
    blocks: Iterable[Block],
    *,
    json_lines: bool | None,
    errors: str = "strict",
    pairs: bool = False,
) -> Iterator[list[Any]]:
    """For each block its texts: a text a line, or the ``text`` of JSON lines.

    ``pairs`` are two texts with a tab between them, or ``text`` and ``text2``.
    """
    for block in blocks:
        lines = block.lines(errors)
        first = next((line for line in lines if line.strip()), None)
        if json_lines is None and first is not None:
            json_lines = first.startswith('{"')
        if json_lines:
            numbered = enumerate(lines, block.first_line)
            kept = [(line, number) for number, line in numbered if line.strip()]
            records = [(parse_json(line, block.source, n), n) for line, n in kept]
            if pairs:
                yield [_pair(one["text"], one.get("text2"), block, n) for one, n in records]
                continue
            lines = [record["text"] for record, _ in records]
        if pairs:
            split = (line.partition("\t") for line in lines)
            yield [_pair(a, b, block, n) for n, (a, _, b) in enumerate(split, block.first_line)]
        else:
            yield lines


def _pair(first: str, second: Any, block: Block, number: int) -> tuple[str, str]:
    if not isinstance(second, str) or not second.strip():
        raise NlpkitError(
            f"{block.source}: line {number}: no second text, and the model was trained on pairs",
            hint="text<TAB>text2, or JSON lines with text and text2",
        )
    return first, second
