"""What ``compare`` commands of language models show: rows, and a plot of them.

A command has the parameters ``count: Count``, ``plot: Plot``, ``format: options.RowsFormat`` and
``json: options.Json``, calls ``check_plot`` first and ``show_comparison`` in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli.output import open_output, rows_format, write_rows

if TYPE_CHECKING:
    from nlpkit.tasks.compare import Compared

Count = Annotated[
    int,
    typer.Option(
        "--count",
        "-n",
        metavar="N",
        min=0,
        max=limits.MANY,
        help="Tokens that are likeliest in either text; 0 is all.",
    ),
]
Plot = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="A scatter plot: .png, .svg, .pdf, an .html page, or - as text on the terminal.",
    ),
]
COLUMNS = ("token", "first", "second", "difference", "log_ratio")


def check_plot(plot: str | None) -> None:
    """Find out before the work whether the plot can be written."""
    from nlpkit.plots import check_picture

    if plot is not None and plot.lower().endswith(".html"):
        textio.check_writable(plot)
    elif plot not in (None, "-"):
        assert plot is not None
        check_picture(plot)


def show_comparison(
    rows: Sequence[Compared],
    titles: tuple[str, str],
    plot: str | None,
    format: str | None,
    as_json: bool,
) -> None:
    """The plot, if one was asked for, and the rows on standard output."""
    from nlpkit.tasks.compare import comparison_page, draw_comparison, terminal_comparison

    with open_output("-") as out:
        if plot == "-":
            shown = (out.safe(titles[0]), out.safe(titles[1]))
            safe = [type(row)(out.safe(row.word), row.first, row.second) for row in rows]
            out.write_styled(terminal_comparison(safe, shown) + "\n")
            return
        if plot is not None and plot.lower().endswith(".html"):
            textio.write_text(plot, comparison_page(rows, titles))
        elif plot is not None:
            draw_comparison(rows, titles, plot)
        table = (
            (row.word, row.first, row.second, row.difference, round(row.log_ratio, 3))
            for row in rows
        )
        write_rows(out, COLUMNS, table, rows_format(format, as_json))
