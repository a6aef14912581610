"""Tagged sentences as JSON lines: tokens with tags, or a text with spans of characters.

Read are what ``nlpkit tag predict --json`` writes, Hugging Face's ``tokens`` with ``ner_tags``
(names or integers), and ``{"text": ..., "entities": [[0, 2, "ORG"]]}`` as Doccano has it; also the
tasks of Label Studio, and spaCy's old training data (``["text", {"entities": [...]}]``), in lines
or as one array. Spans become IOB2 tags on the tokens of the word tokeniser.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from nlpkit.errors import NlpkitError, NlpkitWarning, plural
from nlpkit.text import records
from nlpkit.text.conll import Layout, Sentence
from nlpkit.text.schemes import EntitySpan, write_spans
from nlpkit.textio import TextBlock, parse_json, read_lines

TAG_KEYS = ("tags", "ner_tags", "ner", "pos_tags", "upos", "labels")
SPAN_KEYS = ("entities", "label", "labels", "spans")
_FIELDS = (("start", "start_offset"), ("end", "end_offset"), ("type", "label", "labels"))
LAYOUT = Layout("columns", tag_column=1, columns=2)
_TASK = ("data", "annotations", "predictions")  # of Label Studio
_SHOWN = 3


class Misplaced(NamedTuple):
    """A span that does not begin and end where tokens do."""

    where: str
    start: int
    end: int
    text: str


def are_records(blocks: list[TextBlock], errors: str) -> bool:
    """Whether a file is an array, or its first line that is not empty an object with a sentence."""
    if records.ARRAY.match(blocks[0].data):
        return True
    line = next((line for block in blocks for line in block.lines(errors) if line.strip()), "")
    try:
        found = _usual(parse_json(line)) if line.lstrip()[:1] in ("{", "[") else None
    except ValueError:
        return False
    return isinstance(found, dict) and bool({"tokens", "text"} & set(found))


def _record_blocks(blocks: Iterable[TextBlock], errors: str) -> Iterator[records.RecordBlock]:
    """JSON lines, each with tokens or a text, of files that hold lines or one array."""
    for _, group in itertools.groupby(blocks, lambda block: block.source):
        parts = list(group)
        if records.ARRAY.match(parts[0].data):
            parts = list(records.array_blocks(parts, errors))
        for block in parts:
            data = block.data
            if _is_unusual(data):
                data = "".join(map(_usual_line, block.lines(errors))).encode()
            yield records.RecordBlock(data, block.source, block.first_line, records.TOKEN_KEYS)


def usual_blocks(blocks: Iterable[TextBlock], errors: str) -> Iterator[TextBlock]:
    """Records of which tasks of Label Studio and examples of old spaCy are texts with entities."""
    for block in blocks:
        if isinstance(block, records.RecordBlock) and _is_unusual(block.data):
            data = "".join(map(_usual_line, block.lines(errors))).encode()
            block = replace(block, data=data)
        yield block


def _is_unusual(data: bytes) -> bool:
    return not data.lstrip().startswith(b"{") or b'"data"' in data


def _usual_line(line: str) -> str:
    try:
        return json.dumps(_usual(parse_json(line))) + "\n"
    except ValueError:
        return line + "\n"  # which rows_of names


def _usual(found: Any) -> Any:
    """A record with a text and entities, of a task of Label Studio or an example of old spaCy.

    >>> _usual(["Oslo", {"entities": [[0, 4, "LOC"]]}])
    {'text': 'Oslo', 'entities': [[0, 4, 'LOC']]}
    """
    if isinstance(found, list) and len(found) == 2 and isinstance(found[1], dict):
        return {"text": found[0], **found[1]}
    if isinstance(found, dict) and isinstance(found.get("data"), dict) and "text" in found["data"]:
        made = found.get("annotations") or [{}]
        results = made[0].get("result", []) if isinstance(made[0], dict) else []
        values = [one.get("value") for one in results if isinstance(one, dict)]
        rest = {name: value for name, value in found.items() if name not in _TASK}
        entities = [one for one in values if one and "start" in one]
        return {**rest, **found["data"], "entities": entities}
    return found


def read_tag_names(given: str | None) -> list[str]:
    """Names of integer tags from 0 on: between commas, or one per line of a file."""
    if not given:
        return []
    if "," in given:
        return [name.strip() for name in given.split(",")]
    return [line.strip() for line in read_lines(given) if line.strip()]


def read_record_sentences(
    blocks: Iterable[TextBlock],
    *,
    key: str | None = None,
    tag_names: str | None = None,
    errors: str = "strict",
) -> list[Sentence]:
    """All sentences of JSON lines; spans beside the borders of tokens are counted and warned of."""
    names = read_tag_names(tag_names)
    sentences, misplaced = [], []
    for block in _record_blocks(blocks, errors):
        for row in records.rows_of(block, errors):
            where = f"{block.source}: line {row.line}"
            tokens, tags, wrong = _sentence(row, where, key, names)
            misplaced += wrong
            lines = [f"{token}\t{tag}\n" for token, tag in zip(tokens, tags, strict=True)]
            rows = list(range(len(lines)))
            sentences.append(Sentence([*lines, "\n"], rows, tokens, tags, block.source, row.line))
    if misplaced:
        shown = "; ".join(
            f"{one.where}: [{one.start}, {one.end}] is {one.text!r}" for one in misplaced[:_SHOWN]
        )
        warnings.warn(
            f"{plural(len(misplaced), 'span')} left out, not beginning and ending where tokens do: "
            f"{shown}",
            NlpkitWarning,
            stacklevel=2,
        )
    return sentences


def _sentence(
    row: records.Row, where: str, key: str | None, names: list[str]
) -> tuple[list[str], list[str], list[Misplaced]]:
    keys = (key,) if key else TAG_KEYS
    found = next((one for one in keys if one in row.record), None)
    by_spans = not names and not key and _has_better_spans(row.record, found)
    if isinstance(row.value, list) and not by_spans:
        if found is None:
            raise NlpkitError(
                f"{where}: no tags in it", hint=f"`column` with one of {', '.join(row.record)}"
            )
        tokens = [str(token) for token in row.value]
        tags = _tags(row.record[found], names, where)
        if len(tags) != len(tokens):
            counts = plural(len(tokens), "token"), plural(len(tags), "tag")
            raise NlpkitError(f"{where}: {counts[0]} and {counts[1]}")
        if any(not token or set("\t\r\n") & set(token) for token in tokens):
            raise NlpkitError(f"{where}: a token is empty or has a tab or line end in it")
        return tokens, tags, []
    text = str(row.record["text"] if by_spans else row.value)
    found = next((one for one in ((key,) if key else SPAN_KEYS) if one in row.record), None)
    if found is None:
        raise NlpkitError(
            f"{where}: no entities in it", hint='{"text": "...", "entities": [[0, 2, "ORG"]]}'
        )
    entities = row.record[found] or []
    if not isinstance(entities, list):
        raise NlpkitError(f"{where}: {found} is no list", hint='[[0, 2, "ORG"]]')
    spans = [_span(entity, text, where) for entity in entities]
    return _tagged_text(text, spans, where)


def _has_better_spans(record: dict[str, Any], tags: str | None) -> bool:
    """Whether there are spans beside integers, as ``tag predict --format spans`` fills them in."""
    has_spans = isinstance(record.get("text"), str) and "entities" in record
    values = record.get(tags) if tags else None
    return has_spans and isinstance(values, list) and any(type(one) is int for one in values)


def _tags(values: Any, names: list[str], where: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(tag, str | int) for tag in values):
        raise NlpkitError(f"{where}: tags are a list of names or integers")
    if not any(type(tag) is int for tag in values):
        return [str(tag) for tag in values]
    if not names:
        raise NlpkitError(
            f"{where}: tags are integers", hint="`tag_names` O,B-PER,I-PER,... or a file of names"
        )
    found = []
    for tag in values:
        if isinstance(tag, int) and not 0 <= tag < len(names):
            raise NlpkitError(f"{where}: tag {tag}, and {len(names)} names")
        found.append(names[tag] if isinstance(tag, int) else tag)
    return found


def _span(entity: Any, text: str, where: str) -> tuple[int, int, str]:
    """Start, end and type of ``[0, 2, "ORG"]`` or ``{"start": 0, "end": 2, "label": "ORG"}``."""
    if isinstance(entity, dict):
        entity = [next((entity[one] for one in known if one in entity), None) for known in _FIELDS]
        if isinstance(entity[2], list) and len(entity[2]) == 1:
            entity[2] = entity[2][0]
    if (
        not isinstance(entity, list)
        or len(entity) < 3
        or not all(type(number) is int for number in entity[:2])
        or not isinstance(entity[2], str)
        or not 0 <= entity[0] < entity[1] <= len(text)
    ):
        raise NlpkitError(f"{where}: {str(entity)[:40]} is no span", hint='[0, 2, "ORG"]')
    return entity[0], entity[1], entity[2]


def _tagged_text(
    text: str, entities: list[tuple[int, int, str]], where: str
) -> tuple[list[str], list[str], list[Misplaced]]:
    """Tokens of a text with the tags of its spans.

    >>> _tagged_text("Ada Lovelace wrote.", [(0, 12, "PER"), (13, 15, "X")], "")[:2]
    (['Ada', 'Lovelace', 'wrote', '.'], ['B-PER', 'I-PER', 'O', 'O'])
    """
    from nlpkit.text.tokenizers import get_tokenizer

    borders = get_tokenizer("word").spans(text)
    starts = {start: place for place, (start, _) in enumerate(borders)}
    ends = {end: place + 1 for place, (_, end) in enumerate(borders)}
    spans: list[EntitySpan] = []
    misplaced = []
    for start, end, kind in sorted(entities):
        if start in starts and end in ends and (not spans or spans[-1].end <= starts[start]):
            spans.append(EntitySpan(starts[start], ends[end], kind))
        else:
            misplaced.append(Misplaced(where, start, end, text[start:end]))
    tokens = [text[start:end] for start, end in borders]
    return tokens, write_spans(spans, len(tokens), "IOB2"), misplaced
