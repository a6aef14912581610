"""``nlpkit lm compare``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import argument, flag, with_settings
from nlpkit.cli.output import Writer, open_output, rows_format, write_rows
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.text.records import Reading
from nlpkit.text.vocab import on_one_line

if TYPE_CHECKING:
    from nlpkit.compare import Compared


@with_settings(options.Use, Reading)
def compare(
    *,
    model: options.Model,
    first: str | None = argument(None, "A text that ends with a blank, _.", metavar="FIRST"),
    second: str | None = argument(None, "Another one, to compare it with.", metavar="SECOND"),
    pairs: str | None = flag(
        None,
        "Pairs of texts: FIRST<TAB>SECOND per line, or records with first and second.",
        metavar="FILE",
    ),
    count: int = flag(
        30, "Candidates to show; 0 is all.", "--count", "-n", "-k", min=0, max=10_000_000
    ),
    targets: str | None = flag(None, "Compare these, between commas, only.", metavar="WORDS"),
    plot: str | None = flag(
        None, "Draw both likelihoods: .png, .svg, .pdf or .html.", metavar="FILE"
    ),
    view: bool = flag(False, "Draw them here, with characters."),
    format: options.RowsFormat = None,
    use: options.Use,
    reading: Reading,
) -> None:
    """Compare what a model expects in two sentences: a table of likelihoods and a scatter plot.

    Each text ends with a blank. Shown are the tokens that are likeliest in either, those first
    that the first text favours most. Columns and keys: token, first, second (probabilities),
    difference (of their natural logarithms); with --pairs also pair, its number. Pairs that are
    records keep their other keys with --json.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm compare 3gram.model "the old _" "the young _" -k 10
      $ nlpkit lm compare 3gram.model "the old _" "the young _" --plot old-young.html
      $ nlpkit lm compare 3gram.model "the _" "a _" --targets king,queen,fox --json
    """
    from nlpkit.compare import compare as rank
    from nlpkit.compare import draw_scatter, scatter_text
    from nlpkit.plots import check_picture
    from nlpkit.tasks.lm.ask import blank_logs
    from nlpkit.tasks.lm.model import TextModel

    if (first is None) != (second is None) or (first is None) == (pairs is None):
        raise UsageError("give FIRST and SECOND, or --pairs")
    if plot is not None:
        check_picture(plot)
        if pairs is not None:
            raise UsageError("--plot draws one pair, not --pairs")
    chosen = rows_format(format)
    check_view(view, chosen)
    wanted = None if targets is None else [word.strip() for word in targets.split(",")]
    found = TextModel.load(model)
    options.place(found.model, use, found.work(2))
    with open_output("-") as out:
        for number, (left, right) in enumerate(_pairs(first, second, pairs, reading), 1):
            record = getattr(left, "record", {})
            tokens, logs = blank_logs(found, left, wanted)
            _, others = blank_logs(found, right, wanted)
            rows = rank(tokens, logs, others, count or None)
            write_compared(out, rows, chosen, number if pairs is not None else None, record)
            if view:
                out.write(scatter_text(rows, (left, right)) + "\n")
            if plot is not None:
                draw_scatter(rows, (left, right), plot)


def check_view(view: bool, rows: str) -> None:
    """A drawing between JSON objects would make both unreadable."""
    if view and rows == "jsonl":
        raise UsageError("--view draws between the rows: not with --json; --plot writes a file")


def _pairs(
    first: str | None, second: str | None, pairs: str | None, reading: Reading
) -> Iterator[tuple[str, str]]:
    if pairs is None:
        assert first is not None
        assert second is not None
        yield first, second
        return
    name = textio.source_name(pairs)
    lines = options.read_lines([pairs], reading, ("first",), tables=False)
    for number, line in enumerate(lines, 1):
        if hasattr(line, "record"):
            second = line.record.get("second")
            if not isinstance(second, str):
                raise NlpkitError(
                    f"{name}: record {number}: no text second", hint="keys: first, second"
                )
            yield line, second
            continue
        if not line.strip():
            continue
        left, tab, right = line.partition("\t")
        if not tab or "\t" in right:
            raise NlpkitError(f"{name}: line {number}: not a pair", hint="FIRST<TAB>SECOND")
        yield left, right


def _shown(log: float, format: str) -> float | str:
    """A probability; four decimals would make most of them 0."""
    return float(f"{math.exp(log):.6g}") if format == "jsonl" else f"{math.exp(log):.3g}"


def write_compared(
    out: Writer,
    rows: list[Compared],
    format: str,
    number: int | None = None,
    record: dict[str, Any] | None = None,
) -> None:
    """Rows with probabilities; ``number`` is that of the pair, if there are several."""
    columns = ("token", "first", "second", "difference")
    listed = [
        (
            row.token if format == "jsonl" else on_one_line(row.token),
            _shown(row.first, format),
            _shown(row.second, format),
            round(row.difference, 4),
        )
        for row in rows
    ]
    if number is None:
        write_rows(out, columns, listed, format)
    elif record and format == "jsonl":
        others = {key: value for key, value in record.items() if key not in columns}
        for row in listed:
            out.write_json({**others, "pair": number, **dict(zip(columns, row, strict=True))})
    else:
        write_rows(out, ("pair", *columns), [(number, *row) for row in listed], format)
