"""What a tagger is given to tag: lines of raw text, which are tokenised, or sentences in columns.

``items`` reads either as a stream, and ``analyse`` makes a record of each sentence: its tokens,
their tags and probabilities, and the entities with their places in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nlpkit.tasks.tag.layouts import detect_layout
from nlpkit.tasks.tag.reading import looks_tagged, sample, stream_sentences, until_content
from nlpkit.text.conll import CONLLU, Layout, Sentence
from nlpkit.text.patterns import Span, find_spans
from nlpkit.text.records import RecordBlock, rows_of, text_of
from nlpkit.text.tokenizers import get_tokenizer
from nlpkit.textio import TextBlock

if TYPE_CHECKING:
    from nlpkit.tasks.tag.predictor import Tagger

InputKind = Literal["auto", "text", "tokens", "columns", "jsonl", "csv", "tsv"]


class Item(NamedTuple):
    """A sentence to tag: a line of text with its tokens, or a sentence in columns."""

    text: str
    tokens: list[str]
    sentence: Sentence | None = None
    record: dict[str, Any] | None = None  # that it came in, with its other keys


def tokenize_text(lines: Iterable[str], unit: str = "word", kind: str = "text") -> list[Item]:
    """Lines of raw text, or with kind ``tokens`` of tokens between spaces.

    >>> tokenize_text(["Time flies."])[0].tokens
    ['Time', 'flies', '.']
    """
    tokenizer = get_tokenizer("word" if kind == "text" else "whitespace")
    return [Item(line, list(line) if unit == "char" else tokenizer.tokens(line)) for line in lines]


def items(
    tagger: Tagger,
    blocks: Iterable[TextBlock],
    *,
    kind: InputKind = "auto",
    errors: str = "strict",
    token_column: int | None = None,
) -> tuple[Layout | None, Iterator[list[Item]]]:
    """The layout of the input, None for text, and its sentences, as they come.

    ``token_column`` is counted from 1.
    """
    blocks = iter(blocks)
    first = until_content(blocks)
    layout, unit = None, tagger.settings.unit
    lines, every = sample(first, errors), chain(first, blocks)
    if any(isinstance(block, RecordBlock) for block in first):
        return None, (_record_items(block, unit, errors) for block in every)
    if kind in ("auto", "columns") and first:
        entities = tagger.scheme is not None
        layout = _columns_layout(tagger.layout, lines, kind, token_column, entities)
    if layout is not None:
        return layout, _column_items(every, layout, errors)
    cut = "text" if kind == "auto" else kind
    return None, (
        _record_items(block, unit, errors)
        if isinstance(block, RecordBlock)
        else tokenize_text(block.lines(errors), unit, cut)
        for block in every
    )


def _columns_layout(
    trained: Layout, lines: list[str], kind: str, token_column: int | None, entities: bool
) -> Layout | None:
    """The layout of the input, or None when it is plain text."""
    if kind == "auto" and token_column is None and not looks_tagged(lines, trained):
        return None
    found = detect_layout(lines)
    if found is not None and found.format == "conllu" and trained.format != "conllu":
        # entities are no parts of speech: they go where CoNLL-U keeps other things
        layout = CONLLU.named("misc:NER") if entities else CONLLU
        return layout if token_column is None else replace(layout, token_column=token_column - 1)
    if trained.format in ("slash", "pairs", "conllu"):
        return trained
    content = [line for line in lines if line.strip() and not line.startswith("#")]
    tabs = trained.tabs if not content else any("\t" in line for line in content)
    column = trained.token_column if token_column is None else token_column - 1
    return replace(trained, tabs=tabs, token_column=column)


def _column_items(blocks: Iterable[TextBlock], layout: Layout, errors: str) -> Iterator[list[Item]]:
    for sentences in stream_sentences(blocks, layout, errors):
        yield [Item("", sentence.tokens, sentence) for sentence in sentences]


def _record_items(block: TextBlock, unit: str, errors: str) -> list[Item]:
    """Records with tokens, or with a text to be cut into tokens."""
    found = []
    for row in rows_of(block, errors):
        text = text_of(row, block.source)
        if isinstance(row.value, list):
            given = row.record.get("text")
            tokens = text.split(" ") if text else []
            if isinstance(given, str) and "".join(given.split()) == "".join(tokens):
                text = given
            found.append(Item(text, tokens, record=row.record))
        else:
            found.append(tokenize_text([text], unit)[0]._replace(record=row.record))
    return found


def analyse(tagger: Tagger, batch: Sequence[Item]) -> Iterator[dict[str, Any]]:
    """A record of each sentence; what is left of comments at the end of a file is none."""
    scores = tagger.scores([item.tokens for item in batch])
    for item, row in zip(batch, scores, strict=True):
        if item.sentence is not None and not item.tokens:
            continue
        text, spans = _text_and_spans(item, tagger.settings.unit)
        tags, probabilities, found = tagger.probabilities(row)
        record: dict[str, Any] = {
            **(item.record or {}),
            "text": text,
            "tokens": item.tokens,
            "tags": tags,
            "probabilities": [round(probability, 6) for probability in probabilities],
        }
        if tagger.scheme is not None:
            places = [(spans[e.span.start][0], spans[e.span.end - 1][1]) for e in found]
            record["entities"] = [
                {
                    "start": start,
                    "end": end,
                    "type": entity.span.type,
                    "text": text[start:end],
                    "probability": round(entity.probability, 6),
                }
                for (start, end), entity in zip(places, found, strict=True)
            ]
        yield record


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
