"""``nlpkit tokenize``."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import open_output
from nlpkit.errors import UsageError
from nlpkit.parallel import ordered_map
from nlpkit.text.pipeline import Tokens, TokenSettings, load_stopwords, show
from nlpkit.text.records import Reading, extend, lines_of, rows_of, text_of

app = new_app()
TokenFormat = Literal["text", "lines", "jsonl"]


@app.command()
def tokenize(
    *,
    reading: Reading,
    inputs: options.Inputs = None,
    settings: TokenSettings,
    stopwords: str | None = flag(
        None, "Drop these words (FILE: one word per line).", metavar="en|FILE"
    ),
    format: TokenFormat | None = flag(
        None,
        "text: tokens between spaces; lines: one token per line; jsonl: objects.",
        "--format",
        "-f",
        show_default="text, or lines with --offsets",
    ),
    offsets: bool = flag(False, "Say where each token starts and ends, in characters."),
    output: options.Output = "-",
    jobs: options.Jobs = 1,
) -> None:
    """Split text into tokens, a line of tokens for a line of text.

    White space inside a token (--tokenizer char, gpt2 or a subword model) is written as ▁ in text
    and lines; jsonl keeps it. With --offsets, lines has the columns token, start, end, line, and
    jsonl has the keys text, tokens, offsets, where text[start:end] is the token. With JSON lines or
    CSV in and jsonl out, the other keys of a record stay.

    Examples:
      $ echo "Don't panic, it's Mr. Smith's e-mail." | nlpkit tokenize
      $ nlpkit tokenize --lower --no-punct sample_corpora/tales.txt | head -3
      $ echo "naïve café" | nlpkit tokenize -t char
      $ nlpkit tokenize --json --offsets sample_corpora/tales.txt | head -1
      $ nlpkit tokenize -t regex --pattern "[\\w']+" sample_corpora/tales.txt | head -1
    """
    chosen = format or ("lines" if offsets else "text")
    if offsets and chosen == "text":
        raise UsageError("--offsets needs --format lines or jsonl")
    if stopwords:
        settings = replace(settings, stopwords=load_stopwords(stopwords))
    Tokens(settings)  # a wrong setting fails here, before any process is started
    blocks = options.read_records(inputs, reading)
    make = functools.partial(make_formatter, settings, chosen, offsets, reading.errors)
    with open_output(output) as out:
        for data in ordered_map(make, blocks, options.resolve_jobs(jobs)):
            out.write_bytes(data)
            out.flush()


def make_formatter(
    settings: TokenSettings, format: str, offsets: bool, errors: str
) -> Callable[[textio.TextBlock], bytes]:
    """A function from a block of text to its tokens as bytes.

    Built once in each process: the table of seen pieces lives in it.
    """
    write = {"text": _text, "lines": _lines, "jsonl": _jsonl}[format]
    return functools.partial(write, Tokens(settings), offsets, errors)


def _text(tokens: Tokens, offsets: bool, errors: str, block: textio.TextBlock) -> bytes:
    rows = [" ".join(tokens.shown(line)) for line in lines_of(block, errors)]
    rows.append("")
    return "\n".join(rows).encode("utf-8", "replace")


def _lines(tokens: Tokens, offsets: bool, errors: str, block: textio.TextBlock) -> bytes:
    rows = []
    for row in rows_of(block, errors):
        line = text_of(row, block.source)
        if offsets:
            _, found, spans = tokens.with_offsets(line)
            for token, (start, end) in zip(found, spans, strict=True):
                rows.append(f"{show(token)}\t{start}\t{end}\t{row.line}\n")
        else:
            rows += [token + "\n" for token in tokens.shown(line)]
    return "".join(rows).encode("utf-8", "replace")


def _jsonl(tokens: Tokens, offsets: bool, errors: str, block: textio.TextBlock) -> bytes:
    dump = json.JSONEncoder(ensure_ascii=False).encode
    rows = []
    for row in rows_of(block, errors):
        line = text_of(row, block.source)
        if offsets:
            text, found, spans = tokens.with_offsets(line)
            rows.append(dump(extend(row.record, text=text, tokens=found, offsets=spans)))
        else:
            rows.append(dump(extend(row.record, tokens=tokens.tokens(line))))
    rows.append("")
    return "\n".join(rows).encode("utf-8", "backslashreplace")
