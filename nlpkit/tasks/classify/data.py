"""Labelled texts in: two columns, fastText lines, JSON lines, CSV with a header, folders."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, NoReturn

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.text import records
from nlpkit.text.conll import Line, read_lines
from nlpkit.textio import TextBlock

LabelFormat = Literal["tsv", "fasttext", "jsonl", "csv", "folder"]
FASTTEXT_LABEL = "__label__"
TRAIN_SPLITS = ("train", "training")
TEST_SPLITS = ("test", "dev", "valid", "validation", "heldout")
SAMPLE_LINES = 500
# What columns and keys are called where nobody says which they are.
TEXT_NAMES = ("text", "sentence", "review", "content", "document", "body")
LABEL_NAMES = ("labels", "label", "class", "category", "sentiment", "topic", "target")


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


class Names(NamedTuple):
    """What the columns or keys of texts and labels are called; None is the first usual name."""

    text: str | None = None
    label: str | None = None


class Columns(NamedTuple):
    """Which column of a TSV file is what, from 0; ``split`` is -1 when there is none."""

    label: int
    text: int
    split: int = -1
    header: bool = False
    second: int = -1  # the second text of pairs


def read_examples(
    paths: str | Sequence[str],
    *,
    format: LabelFormat | None = None,
    split: Literal["train", "test"] = "train",
    multi_label: bool = False,
    names: Names | None = None,
    encoding: str = "utf-8",
    errors: str = "strict",
) -> list[Example]:
    """All labelled texts of files or folders; a ``split`` column keeps only the rows meant."""
    paths = [paths] if isinstance(paths, str) else paths
    return [
        example
        for path in paths
        for example in _read_one(path, format, split, multi_label, names, encoding, errors)
    ]


def _read_one(
    path: str,
    format: LabelFormat | None,
    split: str,
    multi_label: bool,
    names: Names | None,
    encoding: str,
    errors: str,
) -> list[Example]:
    names = names or Names()
    if format == "folder" or os.path.isdir(path):
        return list(_read_folder(path, encoding, errors))
    if format == "csv" or (format is None and records.bare_name(path).endswith(".csv")):
        reading = records.Reading(input="csv", encoding=encoding, errors=errors)  # type: ignore[arg-type]
        keys = (names.text,) if names.text else TEXT_NAMES
        blocks = records.read_records([path], reading, keys)
        examples = list(_read_records(blocks, names, split, multi_label, errors))
        return _some(examples, textio.source_name(path))
    lines = list(read_lines(textio.read_blocks([path], encoding=encoding, errors=errors), errors))
    name = textio.source_name(path)
    sample = [text.rstrip("\r\n") for text, _, _ in lines[:SAMPLE_LINES] if text.strip()]
    if not sample:
        raise NlpkitError(f"{name}: nothing in it", hint="a file of labelled texts")
    format = format or detect_format(sample, name)
    if format == "jsonl":
        objects = [records.RecordBlock(text.encode(), source, n) for text, source, n in lines]
        examples = list(_read_records(objects, names, split, multi_label, errors))
    elif format == "fasttext":
        examples = list(_read_fasttext(lines))
    else:
        examples = list(_read_tsv(lines, find_columns(sample, name, names), split, multi_label))
    return _some(examples, name)


def _some(examples: list[Example], name: str) -> list[Example]:
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


def detect_format(sample: Sequence[str], name: str) -> LabelFormat:
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
        hint="label<TAB>text, text<TAB>label, __label__x text, JSON lines, a folder per label, "
        "or `input` csv",
    )


def find_columns(sample: Sequence[str], name: str, names: Names | None = None) -> Columns:
    """By a header that names both, else the label is the column that varies least.

    >>> find_columns(["I liked it\\tgood", "I did not\\tbad", "So so\\tbad"], "f")
    Columns(label=1, text=0, split=-1, header=False, second=-1)
    """
    rows = [line.split("\t") for line in sample]
    head = [field.strip().lower() for field in rows[0]]
    wanted = names or Names()
    text, label = (
        next((head.index(one) for one in known if one in head), -1)
        for known in (
            (wanted.text.lower(),) if wanted.text else TEXT_NAMES,
            (wanted.label.lower(),) if wanted.label else LABEL_NAMES,
        )
    )
    if text >= 0 and label >= 0:
        split = head.index("split") if "split" in head else -1
        second = head.index("text2") if "text2" in head else -1
        return Columns(label, text, split, True, second)
    if wanted != Names():
        raise NlpkitError(
            f"{name}: no column {wanted.text or 'text'} or no column {wanted.label or 'label'}",
            hint=f"names of the header: {', '.join(rows[0][:8])}",
        )
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
                hint="mend the line, or `input`",
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


def _read_records(
    blocks: Iterable[TextBlock], names: Names, split: str, multi_label: bool, errors: str
) -> Iterator[Example]:
    """Examples of JSON objects, which rows of CSV have become, too."""
    wanted = TRAIN_SPLITS if split == "train" else TEST_SPLITS
    pairs: bool | None = None  # whether there are two texts: as the first record has it
    for block in blocks:
        assert isinstance(block, records.RecordBlock)
        keyed = replace(block, keys=(names.text,) if names.text else TEXT_NAMES)
        for row in records.rows_of(keyed, errors):
            known = (names.label,) if names.label else LABEL_NAMES
            key = next((one for one in known if one in row.record), None)
            marked = str(row.record.get("split", wanted[0])).strip().lower()
            if marked not in wanted and marked in (*TRAIN_SPLITS, *TEST_SPLITS):
                continue
            value = row.record.get(key or "")
            labels = _labels(value, multi_label)
            if labels is None and isinstance(value, float | dict):
                raise NlpkitError(
                    f"{block.source}: line {row.line}: {json.dumps(value)[:40]} is no label",
                    hint="a text or a whole number, or `label_column` with another name",
                )
            if key is None or labels is None or not isinstance(row.value, str):
                shown = ", ".join(map(str, list(row.record)[:8]))
                what = "text" if not isinstance(row.value, str) else "label"
                raise NlpkitError(
                    f"{block.source}: line {row.line}: no {what} in it",
                    hint=f"`text_column` and `label_column` with two of {shown}",
                )
            second = row.record.get("text2") or None
            pairs = second is not None if pairs is None else pairs
            if (second is not None) != pairs or not (second is None or isinstance(second, str)):
                _refuse_single(block.source, row.line)
            yield Example(row.value, labels, second)


def _labels(value: Any, multi_label: bool) -> tuple[str, ...] | None:
    """The labels that a record names, as text; None if it names none.

    >>> _labels(3, False), _labels("a, b", True), _labels(["a", 2], False), _labels("", False)
    (('3',), ('a', 'b'), ('a', '2'), None)
    """
    if isinstance(value, list):
        found = [one["label"] if isinstance(one, dict) and "label" in one else one for one in value]
        return tuple(map(str, found)) if all(isinstance(x, str | int) for x in found) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int):
        return None
    if multi_label and isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return (str(value).strip(),) if str(value).strip() else None


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


def _read_folder(path: str, encoding: str, errors: str) -> Iterator[Example]:
    """A folder for each label, a file for each text."""
    try:
        labels = sorted(entry.name for entry in os.scandir(path) if entry.is_dir())
    except OSError as error:
        raise NlpkitError(
            f"cannot read {path}: {error.strerror}", hint="a folder per label, or another `input`"
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


def without_labels(text: str) -> str:
    """A text without the gold labels that a line in fastText's form starts with.

    >>> without_labels("__label__good __label__food I liked it")
    'I liked it'
    """
    while text.startswith(FASTTEXT_LABEL):
        text = text.partition(" ")[2]
    return text


def pair_of(text: str, record: Mapping[str, Any], where: str) -> tuple[str, str]:
    """The two texts of a record, or of a line with a tab between them.

    >>> pair_of("It rains.\\tIt is wet.", {}, "line 1")
    ('It rains.', 'It is wet.')
    """
    second = record.get("text2")
    if "text2" not in record:
        text, _, second = text.partition("\t")
    if not isinstance(second, str) or not second.strip():
        raise NlpkitError(
            f"{where}: no second text, and the model was trained on pairs",
            hint="text<TAB>text2, or records with text and text2",
        )
    return text, second
