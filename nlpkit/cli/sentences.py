"""``nlpkit sentences``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.frame import Command, new_app
from nlpkit.cli.output import open_output
from nlpkit.text.sentences import sentence_spans

app = new_app()


@app.command(cls=Command)
def sentences(
    inputs: options.Inputs = None,
    wrapped: Annotated[
        bool,
        typer.Option(
            "--wrapped",
            help="Lines are wrapped: a paragraph goes on until an empty line. "
            "Without it a line is a paragraph.",
        ),
    ] = False,
    offsets: Annotated[
        bool,
        typer.Option(
            "--offsets", help="Say where each sentence stands in its paragraph, in characters."
        ),
    ] = False,
    format: Annotated[
        Literal["text", "jsonl"] | None,
        typer.Option(
            "--format",
            "-f",
            help="text: a sentence a line, with --offsets as sentence, start, end, paragraph; "
            "jsonl: one object per line.",
            show_default="text",
        ),
    ] = None,
    json: options.Json = False,
    output: options.Output = "-",
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Split running text into sentences, one a line.

    Empty lines stay, so paragraphs can still be told apart. The keys of jsonl are text and
    paragraph (counted from 1), with --offsets also start and end.

    Examples:
      $ echo "Dr. Smith left. \\"Why?\\" I asked." | nlpkit sentences
      $ nlpkit sentences --wrapped sample_corpora/tales.txt | head -5
      $ nlpkit sentences --json --offsets sample_corpora/tales.txt | head -2
    """
    chosen = options.pick_format(format, json, "text")
    blocks = options.read_inputs(inputs, encoding, errors)
    with open_output(output) as out:
        number = 0
        for paragraph in _paragraphs(blocks, errors, wrapped):
            if paragraph is None:
                out.flush()
                continue
            spans = sentence_spans(paragraph)
            number += bool(spans)
            for start, end in spans:
                text = paragraph[start:end]
                if chosen == "jsonl":
                    where = {"start": start, "end": end} if offsets else {}
                    out.write_json({"text": text, "paragraph": number, **where})
                else:
                    out.write(f"{text}\t{start}\t{end}\t{number}\n" if offsets else text + "\n")
            if not spans and chosen == "text" and not offsets:
                out.write("\n")


def _paragraphs(blocks: Iterator[textio.Block], errors: str, wrapped: bool) -> Iterator[str | None]:
    """Paragraphs, an empty one for an empty line, and None where a waiting reader may be served."""
    lines: list[str] = []
    length, longest = 0, textio.longest_line()
    for block in blocks:
        for number, line in enumerate(block.lines(errors), block.first_line):
            if not wrapped:
                yield line
            elif line.strip():
                length = length + len(line) if lines else len(line)
                lines.append(line)
                if length > longest:
                    textio.refuse_long(block.source, number, longest, "ends a paragraph")
            else:
                if lines:
                    yield " ".join(lines)
                    lines = []
                yield ""
        yield None
    if lines:
        yield " ".join(lines)
