"""``nlpkit vectors plot``."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.output import Notes, open_output
from nlpkit.errors import UsageError
from nlpkit.vectors.settings import PLOT, Projection

PAGE_ENDINGS = (".html", ".htm")


def plot(
    model: shared.ModelOption,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD", help="Words to show.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, max=limits.MANY, help="Show the so many most frequent words."),
    ] = None,
    method: Annotated[
        Projection,
        typer.Option("--method", help="pca keeps directions, tsne keeps neighbourhoods."),
    ] = PLOT.method,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A .png, .svg or .pdf picture, or an interactive .html page.",
            show_default="a rough view in the terminal",
        ),
    ] = None,
    number: Annotated[
        int,
        typer.Option(
            "--number", "-n", min=1, max=1_000, help="Neighbours to show of a word, in a page."
        ),
    ] = PLOT.neighbours,
    seed: options.Seed = PLOT.seed,
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Draw words as points in a plane, near words near each other.

    To a picture, to a page that can be panned, zoomed and searched in any browser without a
    network, or roughly to the terminal. Give words, or --top N, or both.

    Examples:
      $ nlpkit vectors plot king queen man woman france paris italy rome -m world.model
      $ nlpkit vectors plot --top 200 -m world.model -o world.png
      $ nlpkit vectors plot --top 1000 --method tsne -m world.model -o world.html
    """
    if not words and top is None:
        raise UsageError("name words to plot, or give --top")
    notes = Notes(quiet)
    is_page = output is not None and output.lower().endswith(PAGE_ENDINGS)
    if output is not None:
        from nlpkit.plots import check_picture

        textio.check_writable(output)
        if not is_page:
            check_picture(output)
    from nlpkit.vectors import query
    from nlpkit.vectors.projection import project

    vectors = shared.open_vectors(model, notes, errors)
    chosen = list(dict.fromkeys([*(words or []), *vectors.words[: top or 0]]))
    points = project(query.stack(vectors, chosen), method, seed=seed)
    if output is None:
        from nlpkit.vectors.plot import terminal_view

        size = shutil.get_terminal_size()
        with open_output("-") as out:
            out.write(
                terminal_view(chosen, points, width=size.columns - 1, height=size.lines - 2) + "\n"
            )
        return
    if is_page:
        from nlpkit.vectors.page import page

        neighbours = query.nearest(vectors, [([word], []) for word in chosen], number)
        title = f"{len(chosen):,} words of {model} ({method.value})"
        textio.write_text(output, page(chosen, points, neighbours, title))
    else:
        from nlpkit.vectors.plot import draw

        hidden = draw(chosen, points, output)
        if hidden:
            notes.say(f"{hidden:,} of {len(chosen):,} labels found no room")
    notes.say(f"{len(chosen):,} words to {output}")
