"""``nlpkit sentences``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import open_output
from nlpkit.text.records import Reading, extend, rows_of, text_of
from nlpkit.text.sentences import sentence_spans

app = new_app()


@app.command()
def sentences(
    reading: Reading,
    inputs: options.Inputs = None,
    wrapped: bool = flag(
        False,
        "Lines are wrapped: a paragraph goes on until an empty line. "
        "Without it a line is a paragraph.",
    ),
    offsets: bool = flag(False, "Say where each sentence stands in its paragraph, in characters."),
    format: Literal["text", "jsonl"] | None = flag(
        None,
        "text: one sentence per line, with --offsets as sentence, start, end, paragraph; "
        "jsonl: one object per line.",
        "--format",
        "-f",
        show_default="text",
    ),
    output: options.Output = "-",
) -> None:
    """Split running text into sentences, one per line.

    Empty lines stay, so paragraphs can still be told apart. The keys of jsonl are text and
    paragraph (counted from 1), with --offsets also start and end; a sentence of a record keeps
    the record's other keys.

    Examples:
      $ echo "Dr. Smith left. \\"Why?\\" I asked." | nlpkit sentences
      $ nlpkit sentences --wrapped sample_corpora/tales.txt | head -5
      $ nlpkit sentences --json --offsets sample_corpora/tales.txt | head -2
    """
    chosen = format or "text"
    blocks = options.read_records(inputs, reading)
    with open_output(output) as out:
        number = 0
        for found in _paragraphs(blocks, reading.errors, wrapped):
            if found is None:
                out.flush()
                continue
            paragraph, record = found
            spans = sentence_spans(paragraph)
            number += bool(spans)
            for start, end in spans:
                text = paragraph[start:end]
                if chosen == "jsonl":
                    where = {"start": start, "end": end} if offsets else {}
                    out.write_json(extend(record, text=text, paragraph=number, **where))
                else:
                    text = " ".join(text.split("\n"))  # of a JSON string
                    out.write(f"{text}\t{start}\t{end}\t{number}\n" if offsets else text + "\n")
            if not spans and chosen == "text" and not offsets:
                out.write("\n")


def _paragraphs(
    blocks: Iterator[textio.TextBlock], errors: str, wrapped: bool
) -> Iterator[tuple[str, dict[str, Any]] | None]:
    """Paragraphs, an empty one for an empty line, and None where a waiting reader may be served."""
    lines: list[str] = []
    length, longest = 0, textio.longest_line()
    for block in blocks:
        for row in rows_of(block, errors):
            line = text_of(row, block.source)
            if not wrapped or row.record:
                yield line, row.record
            elif line.strip():
                length = length + len(line) if lines else len(line)
                lines.append(line)
                if length > longest:
                    textio.refuse_long(block.source, row.line, longest, "ends a paragraph")
            else:
                if lines:
                    yield " ".join(lines), {}
                    lines = []
                yield "", {}
        yield None
    if lines:
        yield " ".join(lines), {}
