"""``nlpkit vectors plot``."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.output import Notes, open_output
from nlpkit.errors import NlpkitError, UsageError, plural
from nlpkit.vectors.settings import PlotSettings, Projection

if TYPE_CHECKING:
    from nlpkit.vectors.store import Vectors

PAGE_ENDINGS = (".html", ".htm")


def plot(
    model: shared.ModelOption,
    settings: PlotSettings,
    words: list[str] | None = argument(None, "Words to show.", metavar="WORD"),
    output: str | None = flag(
        None,
        "A .png, .svg or .pdf picture, or an interactive .html page.",
        "--output",
        "-o",
        metavar="FILE",
        show_default="a rough view in the terminal",
    ),
    errors: options.Errors = "strict",
) -> None:
    """Draw words as points in a plane, near words near each other.

    To a picture, to a page of three dimensions to turn, zoom and search in any browser without a
    network, or roughly to the terminal. Give words, --top N, --groups or --relations. The axes of a
    picture by pca say how much of the variance they show. A page switches between methods (with
    more than 300 words between pca and that of --method, since the others take long), lights up
    neighbours, and draws an analogy that is typed into it: king - man + woman.

    Examples:
      $ nlpkit vectors plot king queen man woman france paris italy rome -m world.model
      $ nlpkit vectors plot --top 200 --clusters 8 -m world.model -o world.png
      $ nlpkit vectors plot --top 1000 --method tsne -m world.model -o world.html
    """
    given = (words or None, settings.top, settings.groups, settings.relations)
    if all(one is None for one in given):
        raise UsageError("name words to plot, or give --top, --groups or --relations")
    notes = Notes()
    is_page = output is not None and output.lower().endswith(PAGE_ENDINGS)
    if output is not None:
        from nlpkit.plots import check_picture

        textio.check_writable(output)
        if not is_page:
            check_picture(output)
    from nlpkit.vectors.projection import check_installed, project

    check_installed(settings.method)
    marks = _read_marks(settings)
    vectors = shared.open_vectors(model, notes, errors)
    chosen, matrix = _choose(vectors, words or [], marks, settings, notes)
    title = settings.title or f"{plural(len(chosen), 'word')} of {model}"
    if is_page:
        assert output is not None
        textio.write_text(output, _page(vectors, chosen, matrix, marks, settings, title))
    else:
        points = project(matrix, settings.method, seed=settings.seed)
        if output is None:
            _show(chosen, points)
            return
        _draw(chosen, points, matrix, marks, settings, title, output, notes)
    notes.say(f"{plural(len(chosen), 'word')} to {output}")


class _Marks(NamedTuple):
    """What is drawn beside the points."""

    groups: dict[str, str]
    relations: list[tuple[str, str]]


def _read_marks(settings: PlotSettings) -> _Marks:
    from nlpkit.vectors.marks import read_groups, read_relations

    groups, relations = settings.groups, settings.relations
    return _Marks(
        {} if groups is None else read_groups(textio.read_lines(groups), groups),
        [] if relations is None else read_relations(textio.read_lines(relations), relations),
    )


def _choose(
    vectors: Vectors, words: list[str], marks: _Marks, settings: PlotSettings, notes: Notes
) -> tuple[list[str], Any]:
    """The words to show, the most important first, and their vectors (N, D)."""
    from nlpkit.vectors import query
    from nlpkit.vectors.marks import cluster_groups, content_words

    marked = dict.fromkeys([*(word for pair in marks.relations for word in pair), *marks.groups])
    known = [word for word in marked if vectors.knows(word)]
    if len(known) < len(marked):
        unknown = plural(len(marked) - len(known), "unknown word")
        notes.warn(f"{unknown} of the files left out")
    frequent = vectors.words[: settings.top or 0]
    if settings.top is not None and not settings.all_words:
        frequent = content_words(vectors.words, settings.top)
    chosen = list(dict.fromkeys([*words, *known, *frequent]))
    if not chosen:
        raise NlpkitError("no word to show", hint="other words, or --all-words")
    matrix = query.stack(vectors, chosen)
    if settings.clusters is not None:
        marks.groups.update(cluster_groups(chosen, matrix, settings.clusters, settings.seed))
    return chosen, matrix


def _show(words: list[str], points: Any) -> None:
    from nlpkit.vectors.plot import terminal_view

    size = shutil.get_terminal_size()
    view = terminal_view(words, points, width=size.columns - 1, height=size.lines - 2)
    with open_output("-") as out:
        out.write(view + "\n")


def _page(
    vectors: Vectors,
    words: list[str],
    matrix: Any,
    marks: _Marks,
    settings: PlotSettings,
    title: str,
) -> str:
    from nlpkit.vectors import query
    from nlpkit.vectors.page import page
    from nlpkit.vectors.projection import page_layouts

    asked: list[tuple[list[str], list[str]]] = [([word], []) for word in words]
    layouts = page_layouts(matrix, settings.method, settings.seed)
    return page(
        words,
        next(iter(layouts.values())),
        query.nearest(vectors, asked, settings.count),
        title,
        layouts=layouts,
        groups=marks.groups,
        relations=marks.relations,
        matrix=matrix,
    )


def _draw(
    words: list[str],
    points: Any,
    matrix: Any,
    marks: _Marks,
    settings: PlotSettings,
    title: str,
    output: str,
    notes: Notes,
) -> None:
    from nlpkit.vectors.plot import draw
    from nlpkit.vectors.projection import NAMES, variance_shares

    if settings.method is Projection.PCA:
        shares = variance_shares(matrix)
        names = [f"axis {n} ({share:.0%} of variance)" for n, share in enumerate(shares, 1)]
    else:
        names = [f"{NAMES[settings.method]} {number}" for number in (1, 2)]
    hidden = draw(
        words,
        points,
        output,
        title=title,
        axis_names=names,
        groups=marks.groups,
        relations=marks.relations,
    )
    if hidden:
        notes.say(f"{hidden:,} of {len(words):,} labels found no room")
