"""One training run, whatever is trained: settings, data, checkpoints, signals, the model written.

A trainer is a subclass of ``Run``. It makes its model and a ``training.loop.Trainer`` and says what
belongs to the run and what comes out of it:

    class MyRun(Run):
        def __init__(self, data, settings: MySettings, device) -> None:
            self.settings = settings.resolve(len(data))
            self.model = ...
            steps = self.settings.epochs * batches.per_epoch
            self.trainer = Trainer(
                self.model, optimizers, batch_loss, self.settings.loop(steps), evaluate=...
            )
            self.summary = f"{len(data):,} texts to learn from"  # said before it begins

        def common_settings(self):  # a checkpoint that has others is refused
            return vars(self.settings)

        def data_hash(self):
            return modeldir.data_hash(...)

        def result(self):  # when the best weights are in the model
            return MyModel(self.model, config=self.model_config(KIND, {...}, {"accuracy": 0.9}))

From Python ``MyRun(...).train()`` gives the model. A command draws it: ``draw_run(run, output,
notes, resume=resume, force=force)`` of ``cli/progress_training.py``. Both write a model whole
before they delete its checkpoint, and an interrupted run that is resumed gives the same bits.

Nothing here imports torch, so that word2vec, which needs none, is a run too.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlpkit import folders
from nlpkit.errors import NlpkitError
from nlpkit.modeldir import ModelConfig, checkpoint_path
from nlpkit.signals import ask_to_stop

if TYPE_CHECKING:
    from nlpkit.training.distributed import Processes
    from nlpkit.training.loop import Trainer

SAVE_SECONDS = 600.0  # between checkpoints that nobody asked for


@dataclass(frozen=True)
class Progress:
    """Where a run stands after a step."""

    step: int
    fraction: float  # of the run, by steps or time, whichever is further
    loss: float  # of this step
    learning_rate: float  # of AdamW; of the first optimizer where there is no AdamW
    speed: float  # items per second
    seconds: float
    due: bool = False  # whether this is one of the steps after which a run is looked at
    heldout: float | None = None  # when it was measured after this step
    best: bool = False  # whether that was the lowest so far


class Stopped(Exception):
    """A run was asked to stop, and has left a checkpoint to go on from."""

    def __init__(self, checkpoint: Path, where: str = "") -> None:
        super().__init__(f"stopped{where}, saved {checkpoint}")


class Run:
    """A training under way; see above. Of an n-gram model, which is counted, trainer is None."""

    settings: Any
    trainer: Trainer | None = None
    records: list[dict[str, Any]] | None = None  # of the curve, where it is no trainer's
    processes: Processes | None = None  # of torchrun: the first one saves and writes
    unit = "tokens"  # of the speed
    summary = ""  # what is trained on what
    outcome = ""  # what came out, once there is a result
    noisy_loss = True  # whether one step says little, so that a mean is shown
    save_seconds = SAVE_SECONDS

    # --- what a kind of run says of itself -------------------------------------------------------

    def common_settings(self) -> dict[str, Any]:
        """What a run that goes on with this one's checkpoint must have in common with it."""
        raise NotImplementedError

    def data_hash(self) -> str:
        """A fingerprint of the training data."""
        raise NotImplementedError

    def result(self) -> Any:
        """The trained model with its ``config``; the best weights are in it already."""
        raise NotImplementedError

    def unfinished(self) -> Any:
        """The model as it is, for a checkpoint: ``result``, where that takes no time to measure.

        Training goes on afterwards, so nothing that it needs may be changed.
        """
        return self.result()

    def model_config(
        self, kind: str, settings: dict[str, Any], metrics: dict[str, float]
    ) -> ModelConfig:
        """What ``config.json`` says of a model that comes out of this run."""
        seed = self.settings.seed
        if self.trainer is not None and settings.get("dtype") == "auto":
            settings = {**settings, "dtype": self.trainer.counters.dtype or "auto"}
        return ModelConfig(kind, settings, seed=seed, data_hash=self.data_hash(), metrics=metrics)

    def show_heldout(self, measured: float) -> str:
        """What was measured on held-out data, smaller ones being better, as it is shown."""
        return f"{measured:.4f}"

    # --- by the trainer, unless a run has its own ------------------------------------------------

    def steps(self) -> Generator[Progress, None, None]:
        """Train from wherever the state is to the end, one record after each step."""
        if self.trainer is None:
            return
        from nlpkit.openmp import CoreSharing

        with CoreSharing() as cores:
            cores.check()
            for progress in self.trainer.fit():
                cores.check()
                yield progress

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.trainer is None or self.trainer.finished

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write all that it takes to go on, and the model as it is."""
        assert self.trainer is not None
        self.trainer.save(path, self.common_settings(), self.data_hash(), self.unfinished)

    def load_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Go on from what ``save_checkpoint`` wrote; one of another run is refused."""
        if self.trainer is not None:
            self.trainer.load(path, self.common_settings(), self.data_hash())

    def where(self, progress: Progress) -> str:
        """How far the run is, in words."""
        return f"step {progress.step:,}"

    def save_model(self, model: Any, path: str | os.PathLike[str], force: bool) -> None:
        """Write the folder of the finished model."""
        model.save(path, force=force)

    def finish(self) -> Any:
        """The trained model, with the best weights there were and the curve of the training."""
        if self.trainer is None:
            return self.result()
        self.trainer.keep_best()
        model = self.result()
        model.curve = self.trainer.counters.records
        return model

    # --- the same for all -----------------------------------------------------------------------

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that talks and writes files."""
        return self.processes is None or self.processes.is_first

    def fit(
        self,
        checkpoint: Path | None = None,
        *,
        stopped: Callable[[], bool] = lambda: False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """Train to the end, with a checkpoint now and then; or, when asked to stop, save and raise.

        Without a place for checkpoints there are none, and nothing stops it but an exception.
        """
        if not self.is_first:
            checkpoint = None
        if self.trainer is not None and self.processes is None and checkpoint is not None:
            self.trainer.stopped = stopped  # several processes stop together, after a step
        last_save, where = time.monotonic(), ""
        with contextlib.closing(self.steps()) as steps:
            for progress in steps:
                where = f" after {self.where(progress)}"
                # first of all: after a SIGHUP the terminal may be gone
                if checkpoint is not None and not self.finished:
                    if stopped():
                        self.save_checkpoint(checkpoint)
                        raise Stopped(checkpoint, where)
                    if time.monotonic() - last_save > self.save_seconds:
                        self.save_checkpoint(checkpoint)
                        last_save = time.monotonic()
                if on_progress is not None:
                    on_progress(progress)
        if checkpoint is not None and stopped() and not self.finished:  # a step was given up
            self.save_checkpoint(checkpoint)
            raise Stopped(checkpoint, where)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Any:
        """Write the finished model, then delete its checkpoint; the first process does it.

        When writing fails or is interrupted, save a checkpoint: nothing that was learned is lost.
        """
        model = None
        if self.is_first:
            with self._nothing_lost(checkpoint_path(path)):
                model = self.finish()
                self.save_model(model, path, force)
            folders.remove(checkpoint_path(path))
        elif self.trainer is not None:
            self.trainer.keep_best()
        if self.processes is not None:
            self.processes.leave()
        return model

    @contextlib.contextmanager
    def _nothing_lost(self, checkpoint: Path) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if self.trainer is None and type(self).save_checkpoint is Run.save_checkpoint:
                raise  # counted at once: there is nothing to lose
            named = isinstance(error, NlpkitError)
            failure = error.message if named else "the model was not written"  # type: ignore[attr-defined]
            try:
                with ask_to_stop():
                    self.save_checkpoint(checkpoint)
            except NlpkitError as another:
                last = f"`resume`, to go on from the last checkpoint, {checkpoint}"
                raise NlpkitError(
                    f"{failure}; nor can its checkpoint be written: {another.message}",
                    hint=last if checkpoint.exists() else "",
                ) from None
            if isinstance(error, KeyboardInterrupt):
                raise Stopped(checkpoint) from None
            if named:
                raise NlpkitError(
                    f"{failure}; all that was learned is in {checkpoint}",
                    hint="the same again with `resume`, once that is mended",
                ) from None
            raise

    def train(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        resume: bool = False,
        force: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Any:
        """Train to the end and give the model; with a path also write it, with checkpoints."""
        checkpoint = None if path is None else checkpoint_path(path)
        if checkpoint is not None and resume:
            self.load_checkpoint(checkpoint)
        self.fit(checkpoint, on_progress=on_progress)
        return self.finish() if path is None else self.write(path, force=force)
