"""Draws a training run: the progress bar, Ctrl-C, the checkpoint, the curve at the end.

Shared by every command that trains; it knows ``Trainer.fit()`` and nothing of models.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from nlpkit.cli.output import Notes
from nlpkit.textplot import sparkline

if TYPE_CHECKING:
    from nlpkit.training import Progress, Trainer

SAVE_SECONDS = 600.0  # between checkpoints that nobody asked for


@contextlib.contextmanager
def ask_to_stop() -> Iterator[Callable[[], bool]]:
    """Ctrl-C (or a polite kill) is answered after the step; a second one at once."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, note) for number in signals}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def prepare_torch(device: str, threads: int, notes: Notes) -> Any:
    """Threads and memory for a long run; the device that was chosen."""
    import torch

    from nlpkit.cli.options import resolve_jobs
    from nlpkit.device import keep_freed_memory, pick_device

    torch.set_num_threads(resolve_jobs(threads))
    keep_freed_memory()
    chosen = pick_device(device)
    notes.say(f"device {chosen}, {torch.get_num_threads()} threads")
    return chosen


def draw_training(
    trainer: Trainer,
    notes: Notes,
    *,
    checkpoint: str | os.PathLike[str],
    settings: dict[str, Any],
    data_hash: str,
    unit: str = "tokens",
    on_progress: Callable[[Progress], None] | None = None,
) -> None:
    """Run to the end and leave the best weights in the model, or stop, save and exit with 130.

    ``settings`` and ``data_hash`` are what a resumed run must have in common with this one. The
    checkpoint is removed when the run ends; call this before the model itself is written.
    """
    last_save = time.monotonic()
    loss = heldout = None
    with ask_to_stop() as stopped, notes.progress("training", total=1.0) as bar:
        for progress in trainer.fit():
            loss = progress.loss if loss is None else 0.95 * loss + 0.05 * progress.loss
            heldout = heldout if progress.heldout is None else progress.heldout
            shown = "" if heldout is None else f"  held-out {heldout:.4f}"
            bar.update(
                progress.fraction,
                f"step {progress.step:,}  loss {loss:.4f}{shown}  {progress.speed:,.0f} {unit}/s",
            )
            if on_progress is not None:
                on_progress(progress)
            if stopped() and not trainer.finished:
                trainer.save(checkpoint, settings, data_hash)
                break
            if time.monotonic() - last_save > SAVE_SECONDS:
                trainer.save(checkpoint, settings, data_hash)
                last_save = time.monotonic()
    if not trainer.finished:
        command = ["nlpkit", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"]
        notes.say(f"stopped after step {trainer.counters.step:,}, saved {checkpoint}")
        notes.say(f"resume with: {shlex.join(command)}")
        raise typer.Exit(130)
    trainer.keep_best()
    shutil.rmtree(checkpoint, ignore_errors=True)
    _say_end(trainer, notes)


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
