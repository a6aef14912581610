"""``nlpkit names inspect``."""

from __future__ import annotations

from typing import Annotated

import typer

from nlpkit.cli import lm_inspect, options


def inspect(
    model: options.Model,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name to look at.")],
    label: Annotated[
        str,
        typer.Option("--label", help="Its label, where the model has such.", show_default="none"),
    ] = "",
    show: lm_inspect.What = "steps",
    layer: lm_inspect.Layer = None,
    head: lm_inspect.Head = None,
    cell: lm_inspect.Cell = None,
    count: lm_inspect.Count = 5,
    plot: lm_inspect.Plot = None,
    json: options.Json = False,
) -> None:
    """Look inside a name model: what it expects at each letter, its gates, its attention.

    As nlpkit lm inspect, for a name: the end of the name is a token of its own.

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ nlpkit names inspect en.model Maria
      $ nlpkit names inspect en.model Maria --show attention --plot maria.html
    """
    from nlpkit.tasks.names.data import END
    from nlpkit.tasks.names.model import NamesModel

    lm_inspect.check_plot(plot, show)
    named = NamesModel.load(model)
    alphabet = named.alphabet
    letters = alphabet.encode(name)

    def name_of(index: int) -> str:
        return alphabet.decode([index]) or "\n"

    lm_inspect.run_inspect(
        named.model,
        [*letters, END],
        [alphabet.start(label)],
        lambda indices: [name_of(index) for index in indices],
        name_of,
        lm_inspect.Wanted(show, layer, head, cell, count, plot, json),
    )
