"""Draws a training run: the progress bar, Ctrl-C, the checkpoint, the curve at the end.

Shared by every command that trains; it knows ``Trainer.fit()`` and nothing of models. A checkpoint
is deleted in one place, ``write_model``, and only when the model has been written.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from nlpkit import folders
from nlpkit.cli.output import Notes
from nlpkit.cli.signals import STOPPED, stop_signals
from nlpkit.errors import NlpkitError
from nlpkit.textplot import sparkline

if TYPE_CHECKING:
    from nlpkit.training.loop import Progress, Trainer

SAVE_SECONDS = 600.0  # between checkpoints that nobody asked for
FEW_STEPS = 50  # with fewer than these nothing worth having is learned


@contextlib.contextmanager
def ask_to_stop() -> Iterator[Callable[[], bool]]:
    """The first signal is noted, to be answered when there is time; a second one interrupts."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, note) for number in stop_signals()}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def prepare_torch(device: str, threads: int, notes: Notes) -> Any:
    """Threads and memory for a long run; the device that was chosen."""
    import torch

    from nlpkit.device import keep_freed_memory, pick_device
    from nlpkit.parallel import worker_count

    torch.set_num_threads(worker_count(threads))
    keep_freed_memory()
    chosen = pick_device(device)
    notes.say(f"device {chosen}, {torch.get_num_threads()} threads")
    return chosen


def draw_training(
    trainer: Trainer,
    notes: Notes,
    write: Callable[[], None],
    *,
    checkpoint: str | os.PathLike[str],
    settings: dict[str, Any],
    data_hash: str,
    unit: str = "tokens",
    on_progress: Callable[[Progress], None] | None = None,
) -> None:
    """Run to the end, ``write`` the model with its best weights, and delete the checkpoint.

    Or stop, save a checkpoint and exit with 130. ``settings`` and ``data_hash`` are what a resumed
    run must have in common with this one.
    """
    from nlpkit.openmp import CoreSharing

    def save() -> None:
        trainer.save(checkpoint, settings, data_hash)

    last_save = time.monotonic()
    loss = heldout = None
    with (
        ask_to_stop() as stopped,
        notes.progress("training", total=1.0) as bar,
        CoreSharing() as cores,
    ):
        cores.check()
        for progress in trainer.fit():
            cores.check()
            # first of all: after a SIGHUP the terminal may be gone
            if stopped() and not trainer.finished:
                save()
                break
            if loss is None:
                _say_dtype(trainer, notes)
            loss = progress.loss if loss is None else 0.95 * loss + 0.05 * progress.loss
            heldout = heldout if progress.heldout is None else progress.heldout
            shown = "" if heldout is None else f"  held-out {heldout:.4f}"
            bar.update(
                progress.fraction,
                f"step {progress.step:,}  loss {loss:.4f}{shown}  {progress.speed:,.0f} {unit}/s",
            )
            if on_progress is not None:
                on_progress(progress)
            if time.monotonic() - last_save > SAVE_SECONDS:
                save()
                last_save = time.monotonic()
    if not trainer.finished:
        stop_here(checkpoint, notes, f" after step {trainer.counters.step:,}")
    trainer.keep_best()
    _say_end(trainer, notes)
    write_model(write, save, checkpoint, notes)


def write_model(
    write: Callable[[], None],
    save: Callable[[], None],
    checkpoint: str | os.PathLike[str],
    notes: Notes,
) -> None:
    """``write`` a finished model, then delete its checkpoint.

    When writing fails or is interrupted, ``save`` a checkpoint: nothing that was learned is lost.
    """
    try:
        write()
    except BaseException as error:
        failure = error.message if isinstance(error, NlpkitError) else "the model was not written"
        try:
            with ask_to_stop():
                save()
        except NlpkitError as another:
            older = Path(checkpoint).exists()
            raise NlpkitError(
                f"{failure}; nor can its checkpoint be written: {another.message}",
                hint=f"--resume, to go on from the last checkpoint, {checkpoint}" if older else "",
            ) from None
        if isinstance(error, KeyboardInterrupt):
            stop_here(checkpoint, notes)
        if isinstance(error, NlpkitError):
            raise NlpkitError(
                f"{failure}; all that was learned is in {checkpoint}",
                hint="the same command with --resume, once that is mended",
            ) from None
        raise
    folders.remove(checkpoint)


def stop_here(checkpoint: str | os.PathLike[str], notes: Notes, where: str = "") -> NoReturn:
    """Say how to go on, and exit."""
    command = ["nlpkit", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"]
    notes.say(f"stopped{where}, saved {checkpoint}")
    notes.say(f"resume with: {shlex.join(command)}")
    raise typer.Exit(STOPPED)


def _say_dtype(trainer: Trainer, notes: Notes) -> None:
    """What ``--dtype auto`` chose, when there was a choice."""
    speed = trainer.bfloat16_speed
    if speed is not None:
        notes.say(f"{trainer.counters.dtype} arithmetic: bfloat16 is {speed:.2f} times as fast")


def _say_end(trainer: Trainer, notes: Notes) -> None:
    counters = trainer.counters
    losses = [record["loss"] for record in counters.records]
    line = f"{counters.step:,} steps in {counters.seconds:.0f} s  loss {sparkline(losses)}"
    if losses:
        line += f" {losses[-1]:.4f}"
    if counters.best_loss is not None:
        line += f"  held-out {counters.best_loss:.4f} at step {counters.best_step:,}"
    if trainer.fraction < 1:
        line += " (stopped early)"
    notes.say(line)
    if trainer.settings.max_time is not None and counters.step < FEW_STEPS:
        notes.warn(
            f"--max-time allowed {counters.step} steps only, too few to learn much "
            "(try: a longer --max-time or a smaller model)"
        )
