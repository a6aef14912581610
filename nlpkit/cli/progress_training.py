"""Draws a training run: the device, the progress bar, the curve at the end, how to go on.

Shared by every command that trains; what a run does is in ``training/run.py``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from nlpkit import modeldir, textio
from nlpkit.cli import everywhere
from nlpkit.cli.options import Training, use_threads
from nlpkit.cli.output import Notes
from nlpkit.errors import NlpkitError, plural
from nlpkit.signals import STOPPED, ask_to_stop
from nlpkit.textplot import labelled_sparkline
from nlpkit.training.run import Progress, Run, Stopped

if TYPE_CHECKING:
    from nlpkit.training.distributed import Processes
    from nlpkit.training.loop import Trainer

FEW_STEPS = 50  # with fewer than these nothing worth having is learned


def check_place(
    output: str | os.PathLike[str], flags: Training, processes: Processes | None = None
) -> Notes:
    """Refuse a place that cannot be written, or that has no checkpoint to resume from, before
    anything is read; where to say what happens."""
    is_first = processes is None or processes.is_first
    if is_first:
        modeldir.check_new(output, force=flags.force)
        if flags.resume:
            modeldir.check_checkpoint(modeldir.checkpoint_path(output))
    return Notes(quiet=not is_first)


def prepare_torch(flags: Training, notes: Notes, *, sparse: bool = False) -> Any:
    """Threads and memory for a long run; the device that was chosen."""
    import torch

    from nlpkit.device import keep_freed_memory, pick_device

    use_threads(flags.threads)
    keep_freed_memory()
    chosen = pick_device(flags.device, sparse=sparse)
    notes.say(f"device {chosen}, {plural(torch.get_num_threads(), 'thread')}")
    return chosen


def draw_run(
    run: Run,
    output: str | os.PathLike[str],
    notes: Notes,
    *,
    resume: bool = False,
    force: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Any:
    """Train to the end, from the checkpoint when asked to resume, and write the model.

    Or stop at a signal, with a checkpoint, and exit with 130. ``on_progress`` sees each record.
    """
    checkpoint = modeldir.checkpoint_path(output)
    if run.summary:
        notes.say(run.summary)
    if resume:
        run.load_checkpoint(checkpoint)
    try:
        if not run.finished:
            with (
                ask_to_stop() as stopped,
                notes.progress("training", total=1.0) as bar,
                _metrics(run, resume) as follow,
            ):
                shown = _Line(run, notes, bar, on_progress, follow)
                run.fit(checkpoint, stopped=stopped, on_progress=shown.update)
                follow(None)
        if run.trainer is not None:
            _say_end(run, run.trainer, notes)
        model = run.write(output, force=force)
    except Stopped as stop:
        command = ["nlpkit", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"]
        notes.say(str(stop))
        notes.say(f"resume with: {shlex.join(command)}")
        raise typer.Exit(STOPPED) from None
    if run.outcome:
        notes.say(f"{run.outcome}wrote {output}")
    return model


@contextlib.contextmanager
def _metrics(run: Run, resume: bool) -> Iterator[Callable[[Progress | None], None]]:
    """Writes records of the curve to the file of --metrics, if there is one, as they are made."""
    path = everywhere.current.get().metrics
    if path is None or not run.is_first:
        yield lambda progress: None
        return
    textio.check_writable(path)
    done = len(_kept(run) or [])

    def follow(progress: Progress | None) -> None:
        nonlocal done
        if (kept := _kept(run)) is not None:
            records = kept[done:]
            done += len(records)
        else:
            records = [] if progress is None else [_record(progress)]
        out.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in records)
        if records:
            out.flush()

    try:
        with open(path, "a" if resume else "w", encoding="utf-8") as out:
            yield follow
    except OSError as error:
        if error.filename not in (path, None):
            raise
        raise NlpkitError(f"cannot write {path}: {error.strerror}") from None


def _kept(run: Run) -> list[dict[str, Any]] | None:
    return run.records if run.trainer is None else run.trainer.counters.records


def _record(progress: Progress) -> dict[str, Any]:
    return {
        "step": progress.step,
        "loss": progress.loss,
        "learning_rate": progress.learning_rate,
        "seconds": round(progress.seconds, 3),
    }


class _Line:
    """What stands behind the bar: the step, its loss smoothed, the held-out loss, the speed."""

    def __init__(
        self,
        run: Run,
        notes: Notes,
        bar: Any,
        then: Callable[[Progress], None] | None,
        follow: Callable[[Progress], None],
    ) -> None:
        self.run, self.notes, self.bar, self.then, self.follow = run, notes, bar, then, follow
        self.loss: float | None = None
        self.heldout = ""

    def update(self, progress: Progress) -> None:
        """Show where the run stands."""
        self.follow(progress)
        if self.loss is None:
            self._say_dtype()
            self.loss = progress.loss
        share = 0.05 if self.run.noisy_loss else 1.0
        self.loss += share * (progress.loss - self.loss)
        if progress.heldout is not None:
            self.heldout = f"  held-out {self.run.show_heldout(progress.heldout)}"
        line = f"{self.run.where(progress)}  loss {self.loss:.4f}{self.heldout}"
        self.bar.update(progress.fraction, f"{line}  {progress.speed:,.0f} {self.run.unit}/s")
        if self.then is not None:
            self.then(progress)

    def _say_dtype(self) -> None:
        """What ``--dtype auto`` chose, when there was a choice."""
        trainer = self.run.trainer
        if trainer is not None and trainer.bfloat16_speed is not None:
            times = f"bfloat16 is {trainer.bfloat16_speed:.2f} times as fast here"
            self.notes.say(f"{trainer.counters.dtype} arithmetic: {times}")


def _say_end(run: Run, trainer: Trainer, notes: Notes) -> None:
    counters = trainer.counters
    losses = [record["loss"] for record in counters.records]
    curve = labelled_sparkline(losses)
    line = f"{plural(counters.step, 'step')} in {counters.seconds:.0f} s  loss {curve}"
    if counters.best_loss is not None:
        best = run.show_heldout(counters.best_loss)
        line += f"  held-out {best} at step {counters.best_step:,}"
    if trainer.fraction < 1:
        line += " (stopped early)"
    notes.say(line)
    if trainer.settings.max_time is not None and counters.step < FEW_STEPS:
        notes.warn(
            f"--max-time allowed {plural(counters.step, 'step')} only, too few to learn much "
            "(try: a longer --max-time or a smaller model)"
        )
