"""Flags that say where pairs are, and how ``nlpkit seq2seq`` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nlpkit.cli.frame import UsageError
from nlpkit.cli.options import resolve_inputs
from nlpkit.settings import DATA

if TYPE_CHECKING:
    from nlpkit.tasks.translate.data import Columns, Pair

Pairs = Annotated[
    str | None,
    typer.Argument(
        metavar="PAIRS",
        help="source<TAB>target a line, or JSON lines with source and target; - is standard input.",
    ),
]
SourceFile = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="FILE",
        help="Sources, one per line, with --target.",
        rich_help_panel=DATA,
    ),
]
TargetFile = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="FILE", help="Their targets, one per line.", rich_help_panel=DATA
    ),
]
SourceColumns = Annotated[
    str | None,
    typer.Option(
        "--source-columns",
        metavar="N,N",
        help="Columns of the source, from 1: text, then features such as V;PST.",
        show_default="1",
        rich_help_panel=DATA,
    ),
]
TargetColumn = Annotated[
    int | None,
    typer.Option(
        "--target-column",
        min=1,
        max=10_000,
        help="Column of the target.",
        show_default="2",
        rich_help_panel=DATA,
    ),
]


def pick_columns(source_columns: str | None, target_column: int | None) -> Columns | None:
    """What the two flags say, if anything."""
    from nlpkit.tasks.translate.data import Columns

    if source_columns is None and target_column is None:
        return None
    return Columns.parse(source_columns or "1", target_column or 2)


def load_pairs(
    pairs: str | None,
    source: str | None,
    target: str | None,
    columns: Columns | None,
    encoding: str,
    errors: str,
) -> list[Pair]:
    """The pairs of one file or of two."""
    from nlpkit.tasks.translate.data import read_pairs, read_parallel

    if (source is None) != (target is None):
        raise UsageError("--source and --target go together")
    if source is not None and target is not None:
        if pairs is not None:
            raise UsageError("give PAIRS, or --source and --target, not both")
        return read_parallel(source, target, encoding=encoding, errors=errors)
    [path] = resolve_inputs(pairs)
    return read_pairs(path, columns, encoding=encoding, errors=errors)
