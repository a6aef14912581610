"""Flags and steps that ``nlpkit tag`` and ``nlpkit classify`` have in common."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from nlpkit.cli.output import Notes
from nlpkit.modeldir import checkpoint_path

if TYPE_CHECKING:
    import torch

    from nlpkit.training import Trainer
    from nlpkit.vectors.store import Vectors

Layers = Annotated[
    int, typer.Option("--layers", min=1, help="Layers of the encoder, one on the other.")
]
Hidden = Annotated[
    int, typer.Option("--hidden", min=1, help="Width of each direction of the encoder.")
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
    int, typer.Option("--word-dim", min=1, help="Numbers in a learned word embedding.")
]
Epochs = Annotated[
    int | None, typer.Option("--epochs", min=1, help="How often to go over the data.")
]

Settings = TypeVar("Settings")


class Run(Protocol):
    """A training under way: what a tagger's and a classifier's have in common."""

    trainer: Trainer
    settings: Any

    def data_hash(self) -> str: ...


def settings_from(kind: type[Settings], **flags: Any) -> Settings:
    """Settings with the flags that were given; None leaves the default where it lives."""
    return kind(**{name: value for name, value in flags.items() if value is not None})


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
    from nlpkit.parallel import available_cores

    torch.set_num_threads(threads or available_cores())
    keep_freed_memory()
    chosen = pick_device(device)
    if device == "auto" and chosen.type == "mps":
        chosen = torch.device("cpu")  # mps lacks the sparse gradients of embeddings
    notes.say(f"training on {chosen}")
    return chosen


def draw_run(run: Run, output: str, notes: Notes, *, resume: bool, seed: int) -> None:
    """Train to the end, from the checkpoint when asked; Ctrl-C leaves a checkpoint."""
    from nlpkit.cli.progress_training import draw_training

    settings = {**asdict(run.settings), "seed": seed}
    checkpoint = checkpoint_path(output)
    if resume:
        run.trainer.load(checkpoint, settings, run.data_hash())
    draw_training(
        run.trainer, notes, checkpoint=checkpoint, settings=settings, data_hash=run.data_hash()
    )
