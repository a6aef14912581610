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
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.vectors.settings import PLOT, Projection

PAGE_ENDINGS = (".html", ".htm")


def plot(
    model: shared.ModelOption,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD", help="Words to show.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            min=1,
            max=limits.MANY,
            help="Show the so many most frequent words; stop words, punctuation and numbers are "
            "left out.",
        ),
    ] = None,
    all_words: Annotated[
        bool, typer.Option("--all-words", help="Do not leave any out of --top.")
    ] = False,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="FILE",
            help="Colours: word<TAB>group, or words below ': group'; these words are shown, too.",
        ),
    ] = None,
    relations: Annotated[
        str | None,
        typer.Option(
            "--relations",
            metavar="FILE",
            help="Arrows: pairs of words, such as france paris; these words are shown, too.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="What stands above the picture.")
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

    To a picture, to a page of three dimensions to turn, zoom and search in any browser without a
    network, or roughly to the terminal. Give words, --top N, --groups or --relations. The axes of a
    picture by pca say how much of the variance they show.

    Examples:
      $ nlpkit vectors plot king queen man woman france paris italy rome -m world.model
      $ nlpkit vectors plot --top 200 -m world.model -o world.png
      $ nlpkit vectors plot --top 1000 --method tsne -m world.model -o world.html
    """
    if not words and top is None and groups is None and relations is None:
        raise UsageError("name words to plot, or give --top, --groups or --relations")
    notes = Notes(quiet)
    is_page = output is not None and output.lower().endswith(PAGE_ENDINGS)
    if output is not None:
        from nlpkit.plots import check_picture

        textio.check_writable(output)
        if not is_page:
            check_picture(output)
    from nlpkit.vectors import query
    from nlpkit.vectors.marks import content_words, read_groups, read_relations
    from nlpkit.vectors.projection import project, variance_shares

    grouped = {} if groups is None else read_groups(textio.read_lines(groups), groups)
    pairs = [] if relations is None else read_relations(textio.read_lines(relations), relations)
    vectors = shared.open_vectors(model, notes, errors)
    marked = dict.fromkeys([*(word for pair in pairs for word in pair), *grouped])
    known = [word for word in marked if vectors.knows(word)]
    if len(known) < len(marked):
        notes.warn(f"{len(marked) - len(known):,} words of the files are unknown and left out")
    frequent = vectors.words[: top or 0]
    if top is not None and not all_words:
        frequent = content_words(vectors.words, top)
    chosen = list(dict.fromkeys([*(words or []), *known, *frequent]))
    if not chosen:
        raise NlpkitError("no word to show", hint="other words, or --all-words")
    matrix = query.stack(vectors, chosen)
    points = project(matrix, method, seed=seed)
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
        heading = title or f"{len(chosen):,} words of {model}"
        layouts = {f"{method.value} 2-D": points}
        if len(chosen) > 3:
            space = project(matrix, Projection.PCA, seed=seed, dimensions=3)
            layouts = {"pca 3-D": space, **layouts}
        if method is not Projection.PCA:
            layouts["pca 2-D"] = project(matrix, Projection.PCA, seed=seed)
        text = page(
            chosen,
            points,
            neighbours,
            heading,
            layouts=layouts,
            groups=grouped,
            relations=pairs,
        )
        textio.write_text(output, text)
    else:
        from nlpkit.vectors.plot import draw

        names = [f"t-SNE {number}" for number in (1, 2)]
        if method is Projection.PCA:
            shares = variance_shares(matrix)
            names = [f"axis {n} ({share:.0%} of variance)" for n, share in enumerate(shares, 1)]
        hidden = draw(
            chosen,
            points,
            output,
            title=title or f"{len(chosen):,} words of {model}",
            axis_names=names,
            groups=grouped,
            relations=pairs,
        )
        if hidden:
            notes.say(f"{hidden:,} of {len(chosen):,} labels found no room")
    notes.say(f"{len(chosen):,} words to {output}")
