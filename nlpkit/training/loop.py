"""One training loop for every model here: schedule, clipping, evaluation, early stopping, resume.

A ``Trainer`` is given a model, its optimizers and a function from the number of a batch to its
loss. ``fit()`` is a generator of ``Progress`` records that somebody else draws. Batch and random
numbers of a step depend on the seed and the number of the step only, so a checkpoint needs no
generators and no position in the data: weights, optimizer state and counters are the whole state,
and an interrupted run that is resumed gives the bits of one that was not. (A run that is limited
by time takes as many steps as the machine allows, so its bits are its own.)

Left out: data, models, drawing, and what is particular to a machine (``nlpkit.device``). Gradients
of several processes are averaged by whatever wraps the model (``nlpkit.training.distributed``).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from nlpkit import modeldir
from nlpkit.device import check_bfloat16, flush_denormals, has_bfloat16, memory_advice, seeded
from nlpkit.errors import NlpkitError
from nlpkit.modeldir import CHECKPOINT
from nlpkit.training.run import Progress
from nlpkit.training.settings import LoopSettings

BatchLoss = Callable[[int], tuple[Tensor, int]]  # batch number -> mean loss, items in the batch


@dataclass
class _Counters:
    """Everything of the state that is not a tensor."""

    step: int = 0
    seconds: float = 0.0
    best_loss: float | None = None
    best_step: int = 0
    stale: int = 0  # evaluations since the best
    dtype: str = ""  # what the trial of dtype auto chose
    loss_sum: float = 0.0  # since the last record
    loss_count: int = 0
    records: list[dict[str, Any]] = field(default_factory=list)


def scheduled_share(fraction: float, settings: LoopSettings) -> float:
    """The share of the highest learning rate at this point of the run.

    >>> [scheduled_share(f, LoopSettings(warmup=0.5)) for f in (0.25, 0.5, 0.75, 1.0)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if fraction < settings.warmup:
        return max(fraction, 0.001) / settings.warmup
    done = (fraction - settings.warmup) / max(1e-9, 1 - settings.warmup)
    if settings.schedule == "linear":
        return max(0.0, 1 - done)
    if settings.schedule == "cosine":
        return 0.5 + 0.5 * math.cos(math.pi * min(1.0, done))
    return 1.0


class Trainer:
    """A model on its way. ``fit()`` goes on from wherever the state is.

    >>> model, target = nn.Linear(1, 1), torch.ones(4, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> def batch_loss(number): return ((model(target) - target) ** 2).mean(), 4
    >>> trainer = Trainer(model, [optimizer], batch_loss, LoopSettings(max_steps=50))
    >>> [progress.step for progress in trainer.fit()][-1]
    50
    """

    RECORDS = 100  # points of the curve
    EVALUATIONS = 20
    TRIALS = 3  # of each dtype; the first one warms up
    MEASURABLE = 0.005  # seconds of a step from which on dtype auto compares
    TRIAL_PAYS = 200  # steps of a run from which on dtype auto tries both
    CLEARLY_FASTER = 1.1  # or the noise of a busy machine would decide

    def __init__(
        self,
        model: nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        batch_loss: BatchLoss,
        settings: LoopSettings,
        *,
        evaluate: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if settings.max_steps is None and settings.max_time is None:
            raise ValueError("neither max_steps nor max_time")
        self.model, self.optimizers = model, list(optimizers)
        self.batch_loss, self.settings, self.evaluate = batch_loss, settings, evaluate
        self.device = next(model.parameters()).device
        if settings.dtype == "bfloat16" and self.device.type == "cpu":
            check_bfloat16()
        self.counters = _Counters(dtype="" if settings.dtype == "auto" else settings.dtype)
        self.best_weights: dict[str, Tensor] | None = None
        self.extras: dict[str, Any] = {}  # what `evaluate` found besides: into the next record
        self.bfloat16_speed: float | None = None  # beside float32, when both were tried
        self.stopped: Callable[[], bool] = lambda: False  # asked between the parts of a step
        self._clock = clock
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["peak_lr"] = group["lr"]

    @property
    def fraction(self) -> float:
        """How much of the run is done."""
        by_steps = self.counters.step / max(1, self.settings.max_steps or math.inf)
        by_time = self.counters.seconds / (self.settings.max_time or math.inf)
        return min(1.0, max(by_steps, by_time))

    @property
    def finished(self) -> bool:
        """Whether steps, time or patience have run out."""
        patience = self.settings.patience
        return self.fraction >= 1 or (patience is not None and self.counters.stale >= patience)

    @property
    def learning_rate(self) -> float:
        """That of the last step: of AdamW, or of the first optimizer where there is no AdamW."""
        by_adamw = [o for o in self.optimizers if isinstance(o, torch.optim.AdamW)]
        rate: float = [*by_adamw, *self.optimizers][0].param_groups[0]["lr"]
        return rate

    def fit(self) -> Iterator[Progress]:
        """Train to the end, one record per step; stop reading after any of them and save().

        A step of many parts that is told to stop is given up, and the state is that before it.
        """
        if not self.counters.dtype:
            self.counters.dtype = self._try_dtypes()
        while not self.finished:
            started, before = self._clock(), self.fraction
            share = scheduled_share(before, self.settings)
            self.model.train()
            with memory_advice(), flush_denormals():
                done = self._step(share)
            if done is None:
                return
            loss, items = done
            self.counters.step += 1
            seconds = self._clock() - started
            self.counters.seconds += seconds
            heldout, best = None, False
            due = self._is_due(before)
            if due and self.evaluate is not None:
                heldout, best = self._measure()
                self.counters.seconds += self._clock() - started - seconds
            self._record(before, loss, heldout)
            yield Progress(
                step=self.counters.step,
                fraction=self.fraction,
                loss=loss,
                learning_rate=self.learning_rate,
                speed=items / max(seconds, 1e-9),
                seconds=self.counters.seconds,
                due=due,
                heldout=heldout,
                best=best,
            )

    def _step(self, share: float) -> tuple[float, int] | None:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * share
        found = self._gradients(self.counters.dtype)
        if found is None:
            return None
        total, items = found
        self._check_loss(total, "loss", self.counters.step + 1)
        if self.settings.grad_clip > 0:
            # sparse ones are rows of tables, whose optimizer scales each row by itself
            dense = [p for p in self.model.parameters() if p.grad is None or not p.grad.is_sparse]
            nn.utils.clip_grad_norm_(dense, self.settings.grad_clip)
        with self._autocast(self.counters.dtype):  # Muon multiplies matrices, too
            for optimizer in self.optimizers:
                optimizer.step()
        return total, items

    def _autocast(self, dtype: str) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=dtype == "bfloat16")

    @staticmethod
    def _check_loss(loss: float, name: str, step: int) -> None:
        if not math.isfinite(loss):
            raise NlpkitError(
                f"the {name} became {loss} at step {step}",
                hint="a lower `lr`, a longer `warmup` or a smaller `grad_clip`",
            )

    def _gradients(self, dtype: str) -> tuple[float, int] | None:
        """Put the gradients of the next step into the parameters; its mean loss and items.

        Nothing, when told to stop before all of its parts are there.
        """
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        total, items = 0.0, 0
        accum = self.settings.grad_accum
        carried = {n: b.clone() for n, b in self.model.named_buffers()} if accum > 1 else {}
        for part in range(accum):
            if part and self.stopped():
                for name, buffer in self.model.named_buffers():  # states of a recurrent model
                    buffer.copy_(carried[name])
                return None
            number = self.counters.step * accum + part
            # gradients of several processes are averaged once a step, after the last part
            sync = getattr(self.model, "no_sync", None) if part < accum - 1 else None
            with (
                seeded(self.settings.seed, number, self.device),
                sync() if sync else contextlib.nullcontext(),
            ):
                with self._autocast(dtype):
                    loss, count = self.batch_loss(number)
                (loss / accum).backward()
            total += loss.item() / accum
            items += count
        return total, items

    def _try_dtypes(self) -> str:
        """bfloat16 if the device has it and gradients of the first step are ready sooner.

        A short run is not worth the trial. Weights and random numbers stay as they are.
        """
        steps = self.settings.max_steps
        if (steps is not None and steps < self.TRIAL_PAYS) or not has_bfloat16(self.device):
            return "float32"
        best = {"float32": math.inf, "bfloat16": math.inf}
        self.model.train()
        with memory_advice(), flush_denormals():
            for _ in range(self.TRIALS):
                for dtype in best:
                    best[dtype] = min(best[dtype], self._time_gradients(dtype))
        if min(best.values()) < self.MEASURABLE:  # the clock may tick too rarely to tell
            return "float32"
        self.bfloat16_speed = best["float32"] / best["bfloat16"]
        return "bfloat16" if self.bfloat16_speed > self.CLEARLY_FASTER else "float32"

    def _time_gradients(self, dtype: str) -> float:
        """Seconds for the gradients of a step; of the processor, where others cannot disturb."""
        alone = self.device.type == "cpu" and self._clock is time.monotonic
        clock = time.process_time if alone else self._clock
        started = clock()
        self._gradients(dtype)
        return clock() - started

    def _is_due(self, before: float) -> bool:
        if self.fraction >= 1:
            return True
        if self.settings.eval_interval is not None:
            return self.counters.step % self.settings.eval_interval == 0
        return int(self.fraction * self.EVALUATIONS) > int(before * self.EVALUATIONS)

    @torch.no_grad()
    def _measure(self) -> tuple[float, bool]:
        """Held-out loss, and whether it is the best; the best weights are kept aside."""
        assert self.evaluate is not None
        self.model.eval()
        loss = self.evaluate()
        counters = self.counters
        self._check_loss(loss, "held-out loss", counters.step)
        best = counters.best_loss is None or loss < counters.best_loss
        if best:
            counters.best_loss, counters.best_step, counters.stale = loss, counters.step, 0
            self.best_weights = {
                name: value.detach().clone() for name, value in self.model.state_dict().items()
            }
        else:
            counters.stale += 1
        return loss, best

    def _record(self, before: float, loss: float, heldout: float | None) -> None:
        counters = self.counters
        counters.loss_sum += loss
        counters.loss_count += 1
        if heldout is None and int(self.fraction * self.RECORDS) == int(before * self.RECORDS):
            return
        record = {
            "step": counters.step,
            "seconds": round(counters.seconds, 3),
            "loss": counters.loss_sum / counters.loss_count,
            "learning_rate": self.learning_rate,
        }
        if heldout is not None:
            record["heldout_loss"] = heldout
        record |= self.extras
        self.extras = {}
        counters.records.append(record)
        counters.loss_sum, counters.loss_count = 0.0, 0

    def keep_best(self) -> None:
        """Put the weights with the lowest held-out loss into the model, if any were measured."""
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)
        self.model.eval()

    @contextlib.contextmanager
    def with_best(self) -> Iterator[None]:
        """Within this the model is what it would be if training ended now."""
        now: dict[str, Tensor] | None = None
        if self.best_weights is not None:
            now = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        try:
            self.keep_best()
            yield
        finally:
            if now is not None:
                self.model.load_state_dict(now)

    def describe_progress(self) -> str:
        """How far the run is, and of which step its best weights are, in words."""
        counters, most = self.counters, self.settings.max_steps
        words = f"step {counters.step:,}"
        words += f" of {most:,}" if most is not None else f", {self.fraction:.0%} of its time"
        if self.best_weights is not None and counters.best_step != counters.step:
            words += f", best weights of step {counters.best_step:,}"
        return words

    # --- checkpoints ----------------------------------------------------------------------------

    def save(
        self,
        path: str | os.PathLike[str],
        settings: dict[str, Any],
        data_hash: str,
        model: Callable[[], Any] | None = None,
    ) -> None:
        """Write the whole state to a folder; ``settings`` and ``data_hash`` must match to resume.

        The folder has the form of a model: tensors of weights, best weights and optimizers. What
        ``model`` gives, a model of any kind, lies in it to be used.
        """
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in (self.best_weights or {}).items()}
        for number, optimizer in enumerate(self.optimizers):
            for index, state in optimizer.state_dict()["state"].items():
                for name, value in state.items():
                    tensors[f"optimizer.{number}.{index}.{name}"] = torch.as_tensor(value)
        counters = asdict(self.counters)
        records = counters.pop("records")
        config = modeldir.ModelConfig(
            kind=CHECKPOINT,
            settings={"run": _plain(settings), "counters": counters},
            data_hash=data_hash,
            metrics={"progress": self.describe_progress()},
        )
        with modeldir.create(path, config, force=True) as folder:
            # tied weights share memory, which the file format does not allow
            modeldir.write_weights(folder, {name: t.clone() for name, t in tensors.items()})
            modeldir.write_metrics(folder, records)
            if model is not None:
                with self.with_best():
                    found = model()
                    if isinstance(found, modeldir.Model):
                        found.curve = records
                        found.save_inside(folder / modeldir.UNFINISHED)

    def load(self, path: str | os.PathLike[str], settings: dict[str, Any], data_hash: str) -> None:
        """Go on from what ``save`` wrote."""
        modeldir.check_checkpoint(path)
        config = modeldir.load_config(path, kind=CHECKPOINT)
        saved, now = config.settings.get("run"), _plain(settings)
        if not isinstance(saved, dict):
            raise NlpkitError(f"{path} does not fit: it has no settings", hint="start again")
        for name in sorted(saved.keys() | now.keys()):
            if saved.get(name) != now.get(name):
                raise NlpkitError(
                    f"{path} was made with {name} {saved.get(name)}, not {now.get(name)}",
                    hint="the flags of the first run, or start again without `resume`",
                )
        if config.data_hash != data_hash:
            raise NlpkitError(f"{path} was made from other data", hint="the data of the first run")
        tensors = modeldir.read_weights(path, str(self.device))
        try:
            self.model.load_state_dict(_under("model.", tensors))
            self.best_weights = _under("best.", tensors) or None
            for number, optimizer in enumerate(self.optimizers):
                state: dict[int, dict[str, Tensor]] = {}
                for name, value in _under(f"optimizer.{number}.", tensors).items():
                    index, _, key = name.partition(".")
                    state.setdefault(int(index), {})[key] = value
                groups = optimizer.state_dict()["param_groups"]
                optimizer.load_state_dict({"state": state, "param_groups": groups})
            records = modeldir.read_metrics(path)
            self.counters = _read_counters(config.settings["counters"], records)
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            reason = str(error).split("\n")[0]
            raise NlpkitError(f"{path} does not fit: {reason}", hint="start again") from None


def _read_counters(saved: dict[str, Any], records: list[dict[str, Any]]) -> _Counters:
    """What ``save`` wrote of the counters; a value that cannot be is a ``ValueError``."""
    counters = _Counters(**saved, records=records)
    for name, value in vars(counters).items():
        default = getattr(_Counters(), name)
        kind = float if default is None else type(default)
        fits = isinstance(value, (int, float) if kind is float else kind)
        if not fits and not (default is None and value is None):
            raise ValueError(f"{name} cannot be {value!r}")
    return counters


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they look after a round trip through JSON, to be compared."""
    plain: dict[str, Any] = json.loads(json.dumps(settings))
    return plain


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
