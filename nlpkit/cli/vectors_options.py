"""Flags that several ``nlpkit vectors`` commands share, and how they open and write vectors."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.output import Notes
from nlpkit.errors import NlpkitError, plural
from nlpkit.text.records import Reading
from nlpkit.vectors.settings import QUERY, VectorFormat

if TYPE_CHECKING:
    from nlpkit.vectors.store import Vectors

VECTORS_HELP = (
    "Word vectors: a model folder, word2vec text or binary, GloVe, fastText .vec, .bin or .ftz."
)

ModelOption = Annotated[
    str, typer.Option("--model", "-m", metavar="VECTORS", help=VECTORS_HELP, show_default=False)
]
VectorsArgument = Annotated[str, typer.Argument(metavar="VECTORS", help=VECTORS_HELP)]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORD", help="The question; without words, one a line on standard input."
    ),
]
Number = Annotated[
    int,
    typer.Option(
        "--count", "--number", "-n", min=1, max=limits.MANY, help="Answers to a question."
    ),
]
Restrict = Annotated[
    int | None,
    typer.Option(
        "--restrict",
        min=1,
        max=limits.MANY,
        metavar="N",
        help="Only the N most frequent words.",
        show_default="all",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first line that cannot be answered.")
]
NewVectors = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="VECTORS", help="Where to write the vectors.", show_default=False
    ),
]
To = Annotated[
    VectorFormat | None,
    typer.Option(
        "--to",
        help="Format to write; fasttext is the .vec text file, fasttext-bin keeps n-grams.",
        show_default="by name: .txt word2vec (glove*.txt glove), .vec fasttext, .bin binary "
        "(fasttext-bin with n-grams), compressed with .gz and so on, else a folder",
    ),
]
NUMBER = QUERY.n


@dataclass(frozen=True)
class Asking(Reading):
    """How questions are read and answers shown."""

    strict: Strict = False
    format: options.RowsFormat = None


def open_vectors(
    path: str, notes: Notes, errors: str = "strict", *, trained: bool = False
) -> Vectors:
    """Load any vectors, and say what was left out on the way."""
    from nlpkit.vectors.formats import load

    vectors = load(path, errors=errors, trained=trained)
    if vectors.duplicates:
        notes.warn(f"{path}: {vectors.duplicates:,} repeated words, the first of each is kept")
    return vectors


def check_output(path: str, to: VectorFormat | None, force: bool) -> None:
    """Refuse a place that cannot be written before the work is done."""
    from nlpkit import modeldir, textio
    from nlpkit.vectors.formats import format_of_name

    if (to or format_of_name(path)) is VectorFormat.FOLDER:
        modeldir.check_new(path, force=force)
        return
    textio.check_writable(path)
    if os.path.exists(path) and not force:
        raise NlpkitError(f"{path} exists already", hint="--force to replace it")


def save_vectors(
    vectors: Vectors, path: str, to: VectorFormat | None, force: bool, notes: Notes, **settings: Any
) -> None:
    """Write vectors and say what was written."""
    from nlpkit.vectors.formats import keeps_ngrams, save

    written = save(vectors, path, to, settings=settings, force=force)
    if not keeps_ngrams(vectors, written):
        notes.warn(
            f"{path} holds {len(vectors):,} known words; the n-grams for unknown ones are dropped"
        )
    words = plural(len(vectors), "word")
    notes.say(f"{words} of {vectors.dim} numbers to {path} ({written.value})")
