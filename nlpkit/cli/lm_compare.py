"""``nlpkit lm compare``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.output import Writer, open_output, rows_format, write_rows
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.text.vocab import on_one_line

if TYPE_CHECKING:
    from nlpkit.compare import Compared


def compare(
    model: options.Model,
    first: Annotated[
        str | None, typer.Argument(metavar="FIRST", help="A text that ends with a blank, _.")
    ] = None,
    second: Annotated[
        str | None, typer.Argument(metavar="SECOND", help="Another one, to compare it with.")
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option("--pairs", metavar="FILE", help="Pairs of texts, FIRST<TAB>SECOND per line."),
    ] = None,
    count: Annotated[
        int,
        typer.Option("-k", "--count", min=0, max=10_000_000, help="Candidates to show; 0 is all."),
    ] = 30,
    targets: Annotated[
        str | None,
        typer.Option("--targets", metavar="WORDS", help="Compare these, between commas, only."),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw both likelihoods: .png, .svg, .pdf or .html."
        ),
    ] = None,
    view: Annotated[bool, typer.Option("--view", help="Draw them here, with characters.")] = False,
    format: Annotated[
        Literal["table", "tsv", "jsonl"] | None,
        typer.Option("--format", "-f", help="How to show rows.", show_default="table or tsv"),
    ] = None,
    json: options.Json = False,
    threads: options.Threads = 0,
) -> None:
    """Compare what a model expects in two sentences: a table of likelihoods and a scatter plot.

    Each text ends with a blank. Shown are the tokens that are likeliest in either, those first
    that the first text favours most. Columns and keys: token, first, second (probabilities),
    difference (of their natural logarithms); with --pairs also pair, its number.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm compare 3gram.model "the old _" "the young _" -k 10
      $ nlpkit lm compare 3gram.model "the old _" "the young _" --plot old-young.html
      $ nlpkit lm compare 3gram.model "the _" "a _" --targets king,queen,fox --json
    """
    from nlpkit.compare import check_drawing, draw_scatter, scatter_text
    from nlpkit.compare import compare as rank
    from nlpkit.tasks.lm.ask import blank_logs
    from nlpkit.tasks.lm.model import TextModel

    options.use_threads(threads)
    if (first is None) != (second is None) or (first is None) == (pairs is None):
        raise UsageError("give FIRST and SECOND, or --pairs")
    if plot is not None:
        check_drawing(plot)
        if pairs is not None:
            raise UsageError("--plot draws one pair, not --pairs")
    chosen = rows_format(format, json)
    wanted = None if targets is None else [word.strip() for word in targets.split(",")]
    found = TextModel.load(model)
    with open_output("-") as out:
        for number, (left, right) in enumerate(_pairs(first, second, pairs), 1):
            tokens, logs = blank_logs(found, left, wanted)
            _, others = blank_logs(found, right, wanted)
            rows = rank(tokens, logs, others, count or None)
            write_compared(out, rows, chosen, number if pairs is not None else None)
            if view:
                out.write(scatter_text(rows) + "\n")
            if plot is not None:
                draw_scatter(rows, (left, right), plot)


def _pairs(first: str | None, second: str | None, pairs: str | None) -> Iterator[tuple[str, str]]:
    if pairs is None:
        assert first is not None
        assert second is not None
        yield first, second
        return
    name = textio.source_name(pairs)
    for number, line in enumerate(textio.read_lines(options.resolve_inputs([pairs])), 1):
        if not line.strip():
            continue
        left, tab, right = line.partition("\t")
        if not tab or "\t" in right:
            raise NlpkitError(f"{name}: line {number}: not a pair", hint="FIRST<TAB>SECOND")
        yield left, right


def write_compared(
    out: Writer, rows: list[Compared], format: str, number: int | None = None
) -> None:
    """Rows with probabilities; ``number`` is that of the pair, if there are several."""
    columns = ("token", "first", "second", "difference")
    listed = [
        (
            row.token if format == "jsonl" else on_one_line(row.token),
            float(f"{math.exp(row.first):.6g}"),
            float(f"{math.exp(row.second):.6g}"),
            round(row.difference, 4),
        )
        for row in rows
    ]
    if number is None:
        write_rows(out, columns, listed, format)
    else:
        write_rows(out, ("pair", *columns), [(number, *row) for row in listed], format)
