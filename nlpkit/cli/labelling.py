"""Flags and steps that ``nlpkit tag`` and ``nlpkit classify`` have in common."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from nlpkit import settings as limits
from nlpkit.errors import UsageError

if TYPE_CHECKING:
    pass

Layers = Annotated[
    int,
    typer.Option(
        "--layers", min=1, max=limits.DEEPEST, help="Layers of the encoder, one on the other."
    ),
]
Hidden = Annotated[
    int,
    typer.Option(
        "--hidden", min=1, max=limits.WIDEST, help="Width of each direction of the encoder."
    ),
]
Positions = Annotated[
    Literal["decay", "sinusoidal"],
    typer.Option(
        "--positions",
        help="transformer: how it knows the order: attention falls with distance, as is learned, "
        "or waves are added to the words.",
    ),
]
NormPlace = Annotated[
    Literal["pre", "post"],
    typer.Option(
        "--norm", help="transformer: LayerNorm before attention and network, or after each sum."
    ),
]
StartVectors = Annotated[
    str | None,
    typer.Option(
        "--vectors",
        metavar="VECTORS",
        help="Word vectors of any format nlpkit reads; words outside the data keep theirs.",
    ),
]
FineTune = Annotated[
    bool, typer.Option("--fine-tune", help="Let training correct the vectors of words it sees.")
]
WordDim = Annotated[
    int,
    typer.Option(
        "--word-dim", min=1, max=limits.WIDEST, help="Numbers in a learned word embedding."
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option("--epochs", min=1, max=limits.MOST_EPOCHS, help="How often to go over the data."),
]

Settings = TypeVar("Settings")


def settings_from(kind: type[Settings], **flags: Any) -> Settings:
    """Settings with the flags that were given; None leaves the default where it lives."""
    return kind(**{name: value for name, value in flags.items() if value is not None})


def check_transformer(flag: str, encoder: str, positions: str, norm: str) -> None:
    """Refuse flags of the transformer with another encoder, which ``flag`` names."""
    if encoder != "transformer" and (positions, norm) != ("decay", "pre"):
        raise UsageError(f"--positions and --norm need {flag} transformer")


def calm_threads() -> None:
    """One thread for matrix products: these are small, and waiting threads only burn time.

    Numpy's library reads this once, when it is loaded, so this comes before the engines.
    """
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
