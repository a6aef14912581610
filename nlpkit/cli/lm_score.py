"""Scoring text with any language model: what ``lm score`` and ``gpt score`` share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import flag_field
from nlpkit.cli.output import Writer, facts, open_output, rows_format, write_report, write_rows
from nlpkit.errors import NlpkitError
from nlpkit.text.records import Reading, with_record

if TYPE_CHECKING:
    from nlpkit.tasks.lm.model import TextModel

_STREAM = 1 << 12


@dataclass(frozen=True)
class Scoring:
    """Flags of ``score``."""

    lines: bool = flag_field(False, "Score each line on its own.")
    tokens: bool = flag_field(
        False, "Show every token: as coloured text on a terminal, else as JSON lines."
    )
    stride: int | None = flag_field(
        None,
        "Tokens from window to window.",
        low=1,
        high=limits.LONGEST,
        shown_default="half a block",
    )
    format: options.RowsFormat = None


def run_score(
    path: str,
    inputs: list[str] | None,
    scoring: Scoring,
    use: options.Use,
    reading: Reading,
    *,
    gpt: bool = False,
) -> None:
    """Load a model and score text, a block of it at a time."""
    from nlpkit.tasks.lm.model import GptModel, TextModel

    errors, stride = reading.errors, scoring.stride
    shown = rows_format(scoring.format)
    model = (GptModel if gpt else TextModel).load(path)
    paths = options.resolve_inputs(inputs)
    options.place(model.model, use, model.work(sum(map(_guess_size, paths))))
    with open_output("-") as out:
        if scoring.lines and not scoring.tokens:
            _score_lines(out, model, options.read_lines(paths, reading), stride, shown)
        else:
            blocks = options.read_plain(paths, reading)
            if scoring.tokens:
                from nlpkit.cli.inspect_output import write_tokens

                texts = (block.text(errors) for block in blocks)
                write_tokens(out, model, texts, stride, shown == "jsonl")
            else:
                _score_all(out, model, blocks, errors, stride, shown)


def _score_lines(
    out: Writer, model: TextModel, texts: Iterable[str], stride: int | None, format: str
) -> None:
    if format == "table":
        texts = list(texts)  # a table is as wide as its widest row
        if texts:
            records = [_line_record(model, text, stride) for text in texts]
            write_rows(out, list(records[0]), [list(one.values()) for one in records], format)
        return
    for text in texts:
        record = _line_record(model, text, stride)
        if format == "jsonl":
            out.write_json(with_record(text, record))
        else:
            write_rows(out, list(record), [list(map(str, record.values()))], format)


def _line_record(model: TextModel, text: str, stride: int | None) -> dict[str, Any]:
    return {**_score_record(model, model.score(text, stride)), "text": text}


def _score_all(
    out: Writer,
    model: TextModel,
    blocks: Iterator[textio.TextBlock],
    errors: str,
    stride: int | None,
    format: str,
) -> None:
    found = model.score_blocks(blocks, errors, stride)
    if not found.tokens:
        raise NlpkitError("no text to score", hint="a file that is not empty")
    record = _score_record(model, found)
    rows = [(name, str(value)) for name, value in record.items()]
    write_report(out, [facts(*rows)], record, format)


def _score_record(model: TextModel, found: Any) -> dict[str, Any]:
    from nlpkit.text.word_codec import Words

    record: dict[str, Any] = {
        "perplexity": round(found.perplexity, 4),
        "bits_per_token": round(found.bits_per_token, 4),
        "bits_per_byte": round(found.bits_per_byte, 4),
        "tokens": found.tokens,
        "bytes": found.bytes,
        "perplexity_per_word": round(found.perplexity_per_word, 4),
        "words": found.words,
    }
    if isinstance(model.codec, Words):
        record["unknown"] = found.unknown
        record["perplexity_of_known"] = round(found.perplexity_of_known, 4)
    return record


def _guess_size(path: str) -> int:
    """Bytes of a file; of a stream, which may be of any length, a guess."""
    return os.path.getsize(path) if os.path.isfile(path) else _STREAM
