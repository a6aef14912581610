"""Flags that say where pairs are, and how ``nlpkit seq2seq`` reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from nlpkit.cli.flags import flag_field
from nlpkit.cli.frame import UsageError
from nlpkit.cli.options import Decoding, resolve_inputs
from nlpkit.settings import DATA

if TYPE_CHECKING:
    from nlpkit.tasks.translate.data import Columns, Pair

Pairs = Annotated[
    str | None,
    typer.Argument(
        metavar="PAIRS",
        help="source<TAB>target a line; JSON lines, CSV or TSV with source and target; - is "
        "standard input.",
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


@dataclass(frozen=True)
class PairFlags:
    """Where pairs are, for ``with_settings``."""

    pairs: Pairs = None
    source: SourceFile = None
    target: TargetFile = None
    source_columns: str | None = flag_field(
        None,
        "Columns of the source, from 1: text, then features such as V;PST.",
        metavar="N,N",
        shown_default="1",
        group=DATA,
    )
    target_column: int | None = flag_field(
        None, "Column of the target.", low=1, high=10_000, shown_default="2", group=DATA
    )

    def columns(self) -> Columns | None:
        """What the two flags say, if anything."""
        from nlpkit.tasks.translate.data import Columns

        if self.source_columns is None and self.target_column is None:
            return None
        return Columns.parse(self.source_columns or "1", self.target_column or 2)

    def load(self, decoding: Decoding) -> list[Pair]:
        """The pairs of one file or of two."""
        from nlpkit.tasks.translate.data import read_pairs, read_parallel

        columns, how = self.columns(), vars(decoding)
        if (self.source is None) != (self.target is None):
            raise UsageError("--source and --target go together")
        if self.source is not None and self.target is not None:
            if self.pairs is not None:
                raise UsageError("give PAIRS, or --source and --target, not both")
            return read_parallel(self.source, self.target, **how)
        [path] = resolve_inputs(self.pairs)
        return read_pairs(path, columns, **how)
