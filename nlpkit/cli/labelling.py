"""Flags and steps that ``nlpkit tag`` and ``nlpkit classify`` have in common."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import typer

from nlpkit import settings as limits
from nlpkit.cli.frame import UsageError
from nlpkit.cli.output import Notes
from nlpkit.modeldir import checkpoint_path

if TYPE_CHECKING:
    import torch

    from nlpkit.training.loop import Trainer
    from nlpkit.vectors.store import Vectors

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


class Run(Protocol):
    """A training under way: what a tagger's and a classifier's have in common."""

    trainer: Trainer
    settings: Any

    def data_hash(self) -> str: ...

    def common_settings(self) -> dict[str, Any]: ...

    def save(self, path: str, *, force: bool = False) -> None: ...


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


def load_vectors(path: str | None) -> Vectors | None:
    """Vectors of any format, or None."""
    if path is None:
        return None
    from nlpkit.vectors.formats import load

    return load(path)


def start_torch(device: str, threads: int, notes: Notes) -> torch.device:
    """Load torch, set its threads, pick and name the device."""
    import torch

    from nlpkit.device import keep_freed_memory, pick_device
    from nlpkit.parallel import worker_count

    torch.set_num_threads(worker_count(threads))
    keep_freed_memory()
    chosen = pick_device(device, sparse=True)
    notes.say(f"training on {chosen}")
    return chosen


def draw_run(
    run: Run, output: str, notes: Notes, *, vectors: str | None, resume: bool, force: bool
) -> None:
    """Train to the end, from the checkpoint when asked, and save; Ctrl-C leaves a checkpoint."""
    from nlpkit.cli.progress_training import draw_training

    settings = {**run.common_settings(), "vectors": vectors}
    checkpoint = checkpoint_path(output)
    if resume:
        run.trainer.load(checkpoint, settings, run.data_hash())
    draw_training(
        run.trainer,
        notes,
        lambda: run.save(output, force=force),
        checkpoint=checkpoint,
        settings=settings,
        data_hash=run.data_hash(),
    )
