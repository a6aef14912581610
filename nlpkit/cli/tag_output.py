"""What ``nlpkit tag predict`` writes: columns, word/TAG lines, JSON, colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nlpkit.cli.output import Writer
from nlpkit.errors import UsageError
from nlpkit.tasks.tag.raw import InputKind, Item, analyse, items
from nlpkit.tasks.tag.records import SPAN_KEYS, TAG_KEYS
from nlpkit.text import conll
from nlpkit.text.conll import Layout
from nlpkit.textio import TextBlock

if TYPE_CHECKING:
    from nlpkit.tasks.tag.predictor import Tagger

_COLORS = ("36", "33", "35", "32", "34", "31")


def predict_stream(
    tagger: Tagger,
    blocks: Iterable[TextBlock],
    out: Writer,
    *,
    input: InputKind,
    format: str,
    errors: str,
    token_column: int | None,
    to_file: bool,
) -> None:
    """Tag block after block; the order of the input is the order of the output."""
    layout, batches = items(tagger, blocks, kind=input, errors=errors, token_column=token_column)
    chosen: str | None = None
    for batch in batches:
        chosen = chosen or _pick(format, layout, tagger, to_file)
        if chosen == "color":
            for record in analyse(tagger, batch):
                line = _colored(record["text"], record.get("entities", []), out.safe)
                out.write_styled(line + "\n")
        elif chosen == "jsonl":
            for record in analyse(tagger, batch):
                out.write_json(record)
        elif chosen in ("spans", "ner_tags"):
            records = (item.record or {} for item in batch if item.sentence is None or item.tokens)
            for given, record in zip(records, analyse(tagger, batch), strict=True):
                out.write_json((_spans if chosen == "spans" else _ner_tags)(given, record))
        else:
            _write_tagged(tagger, batch, out, layout if chosen == "columns" else None)
        out.flush()


def _spans(given: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """A text with its entities as [start, end, type], as annotation tools read them."""
    key = next((key for key in SPAN_KEYS if key in given), "entities")
    found = [[one["start"], one["end"], one["type"]] for one in record.get("entities", [])]
    return {**given, "text": record["text"], key: found}


def _ner_tags(given: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Tokens with their tags, as data sets of Hugging Face have them."""
    key = next((key for key in TAG_KEYS if key in given), "ner_tags")
    return {**given, "tokens": record["tokens"], key: record["tags"]}


def _pick(format: str, layout: Layout | None, tagger: Tagger, to_file: bool) -> str:
    if format == "columns" and layout is None:
        raise UsageError("--format columns needs input in columns")
    if format == "spans" and tagger.scheme is None:
        raise UsageError("--format spans needs a model of entities: these tags are of single words")
    if format != "auto":
        return format
    if layout is not None:
        return "columns"
    on_terminal = not to_file and sys.stdout is not None and sys.stdout.isatty()
    colors = on_terminal and tagger.scheme is not None and not os.environ.get("NO_COLOR")
    return "color" if colors else "slash"


def _write_tagged(
    tagger: Tagger, batch: Sequence[Item], out: Writer, layout: Layout | None
) -> None:
    rows = tagger.tag_sentences([item.tokens for item in batch])
    pieces = []
    for item, tags in zip(batch, rows, strict=True):
        if layout is not None and item.sentence is not None:
            pieces.append(conll.with_tags(item.sentence, tags, layout))
        elif item.sentence is None or item.tokens:
            line = conll.pairs_text if tagger.settings.unit == "char" else conll.slash_text
            pieces.append(line(item.tokens, tags) + "\n")
    out.write("".join(pieces))


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
