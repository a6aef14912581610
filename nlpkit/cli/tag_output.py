"""What ``nlpkit tag predict`` reads and writes: columns, word/TAG lines, JSON, colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from nlpkit.cli.output import Writer
from nlpkit.errors import UsageError
from nlpkit.tasks.tag.layouts import CONLLU, detect_layout
from nlpkit.tasks.tag.reading import looks_tagged, sample, stream_sentences, until_content
from nlpkit.tasks.tag.records import are_records, predicted_rows
from nlpkit.text import conll
from nlpkit.text.conll import Layout, Sentence
from nlpkit.text.patterns import Span, find_spans
from nlpkit.textio import Block

if TYPE_CHECKING:
    from nlpkit.tasks.tag.predictor import Tagger

_COLORS = ("36", "33", "35", "32", "34", "31")


class Item(NamedTuple):
    """A sentence to tag: a line of text with its tokens, or a sentence in columns."""

    text: str
    tokens: list[str]
    spans: list[Span] | None  # None: to be found when they are wanted
    sentence: Sentence | None
    record: dict[str, Any] | None = None  # that it came in, with its other keys


def predict_stream(
    tagger: Tagger,
    blocks: Iterable[Block],
    out: Writer,
    *,
    input: str,
    format: str,
    errors: str,
    token_column: int | None,
    to_file: bool,
) -> None:
    """Tag block after block; the order of the input is the order of the output."""
    blocks = iter(blocks)
    first = until_content(blocks)
    if not first:
        return
    blocks = chain(first, blocks)
    layout = None
    if input == "jsonl" or (input == "auto" and are_records(sample(first, errors))):
        for block in blocks:
            batch = _record_items(block, tagger.settings.unit, errors)
            if format in ("auto", "slash"):
                _write_tagged(tagger, batch, out, None)
            elif format == "columns":
                raise UsageError("--format columns needs input in columns")
            else:
                _write_analysed(tagger, batch, out, format)
            out.flush()
        return
    if input in ("auto", "columns"):
        lines, entities = sample(first, errors), tagger.scheme is not None
        layout = _columns_layout(tagger.layout, lines, input, token_column, entities)
    if layout is None:
        kind = "text" if input == "auto" else input
        items = _text_items(blocks, kind, tagger.settings.unit, errors)
    else:
        items = _column_items(blocks, layout, errors)
    chosen = _pick(format, layout, tagger, to_file)
    for batch in items:
        if chosen in ("jsonl", "color"):
            _write_analysed(tagger, batch, out, chosen)
        else:
            _write_tagged(tagger, batch, out, layout if chosen == "columns" else None)
        out.flush()


def _columns_layout(
    trained: Layout, lines: list[str], input: str, token_column: int | None, entities: bool
) -> Layout | None:
    """The layout of the input, or None when it is plain text."""
    if input == "auto" and token_column is None and not looks_tagged(lines, trained):
        return None
    found = detect_layout(lines)
    if found is not None and found.format == "conllu" and trained.format != "conllu":
        # entities are no parts of speech: they go where CoNLL-U keeps other things
        layout = CONLLU if not entities else replace(CONLLU, tag_column=9, key="NER")
        return layout if token_column is None else replace(layout, token_column=token_column - 1)
    if trained.format in ("slash", "pairs", "conllu"):
        return trained
    content = [line for line in lines if line.strip() and not line.startswith("#")]
    tabs = trained.tabs if not content else any("\t" in line for line in content)
    column = trained.token_column if token_column is None else token_column - 1
    return replace(trained, tabs=tabs, token_column=column)


def _pick(format: str, layout: Layout | None, tagger: Tagger, to_file: bool) -> str:
    if format == "columns" and layout is None:
        raise UsageError("--format columns needs input in columns")
    if format != "auto":
        return format
    if layout is not None:
        return "columns"
    on_terminal = not to_file and sys.stdout is not None and sys.stdout.isatty()
    colors = on_terminal and tagger.scheme is not None and not os.environ.get("NO_COLOR")
    return "color" if colors else "slash"


def _text_items(blocks: Iterable[Block], kind: str, unit: str, errors: str) -> Iterator[list[Item]]:
    from nlpkit.text.tokenizers import get_tokenizer

    tokenizer = get_tokenizer("word" if kind == "text" else "whitespace")
    for block in blocks:
        yield [
            Item(line, list(line) if unit == "char" else tokenizer.tokens(line), None, None)
            for line in block.lines(errors)
        ]


def _record_items(block: Block, unit: str, errors: str) -> list[Item]:
    """Records with tokens, or with a text to be cut into tokens."""
    from nlpkit.text.records import text_of
    from nlpkit.text.tokenizers import get_tokenizer

    tokenizer = get_tokenizer("word")
    items = []
    for row in predicted_rows(block, errors):
        text = text_of(row, block.source)
        if isinstance(row.value, list):
            given = row.record.get("text")
            tokens = text.split(" ") if text else []
            fits = isinstance(given, str) and "".join(given.split()) == "".join(tokens)
            items.append(Item(given if fits else text, tokens, None, None, row.record))  # type: ignore[arg-type]
        else:
            cut = list(text) if unit == "char" else tokenizer.tokens(text)
            items.append(Item(text, cut, None, None, row.record))
    return items


def _column_items(blocks: Iterable[Block], layout: Layout, errors: str) -> Iterator[list[Item]]:
    for sentences in stream_sentences(blocks, layout, errors):
        yield [Item("", sentence.tokens, None, sentence) for sentence in sentences]


def _write_tagged(tagger: Tagger, batch: list[Item], out: Writer, layout: Layout | None) -> None:
    rows = tagger.tag_sentences([item.tokens for item in batch])
    pieces = []
    for item, tags in zip(batch, rows, strict=True):
        if layout is not None and item.sentence is not None:
            pieces.append(conll.with_tags(item.sentence, tags, layout))
        elif item.sentence is None or item.tokens:
            line = conll.pairs_text if tagger.settings.unit == "char" else conll.slash_text
            pieces.append(line(item.tokens, tags) + "\n")
    out.write("".join(pieces))


def _write_analysed(tagger: Tagger, batch: list[Item], out: Writer, format: str) -> None:
    scores = tagger.scores([item.tokens for item in batch])
    for item, row in zip(batch, scores, strict=True):
        if item.sentence is not None and not item.tokens:
            continue  # comments and blank lines at the end of a file
        text, spans = _text_and_spans(item, tagger.settings.unit)
        tags, probabilities, found = tagger.probabilities(row)
        entities = [
            {
                "start": spans[entity.span.start][0],
                "end": spans[entity.span.end - 1][1],
                "type": entity.span.type,
                "text": text[spans[entity.span.start][0] : spans[entity.span.end - 1][1]],
                "probability": round(entity.probability, 6),
            }
            for entity in found
        ]
        if format == "color":
            out.write_styled(_colored(text, entities, out.safe) + "\n")
            continue
        record: dict[str, Any] = {
            **(item.record or {}),
            "text": text,
            "tokens": item.tokens,
            "tags": tags,
            "probabilities": [round(probability, 6) for probability in probabilities],
        }
        if tagger.scheme is not None:
            record["entities"] = entities
        out.write_json(record)


def _text_and_spans(item: Item, unit: str) -> tuple[str, list[Span]]:
    """The text of a sentence and where its tokens stand in it."""
    if item.sentence is None:
        return item.text, find_spans(item.text, item.tokens)
    pieces: list[str] = []
    spans = []
    length = 0
    spaced = [unit == "word"] * len(item.tokens)
    if len(set(item.sentence.rows)) == len(item.tokens):
        spaced = [a and b for a, b in zip(spaced, item.sentence.spaces_after, strict=True)]
    for token, space in zip(item.tokens, spaced, strict=True):
        spans.append((length, length + len(token)))
        pieces.append(token + " " if space else token)
        length += len(pieces[-1])
    return "".join(pieces).rstrip(" "), spans


def _colored(text: str, entities: list[dict[str, Any]], safe: Callable[[str], str]) -> str:
    """The text with its entities in colour, each followed by its type."""
    pieces = []
    done = 0
    for entity in entities:
        color = _COLORS[sum(entity["type"].encode()) % len(_COLORS)]
        words, kind = safe(entity["text"]), safe(entity["type"])
        pieces.append(safe(text[done : entity["start"]]))
        pieces.append(f"\x1b[1;{color}m{words}\x1b[0m\x1b[2m[{kind}]\x1b[0m")
        done = entity["end"]
    return "".join([*pieces, safe(text[done:])])
