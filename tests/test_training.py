"""The training loop: a resumed run has the bits of an uninterrupted one, and trouble is named."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import typer
from torch import Tensor, nn

from nlpkit.cli.output import Notes
from nlpkit.cli.progress_training import draw_run
from nlpkit.device import memory_advice, pick_device, seeded
from nlpkit.errors import NlpkitError
from nlpkit.nn.optimizers import Muon, adamw, orthogonalize
from nlpkit.training.loop import Trainer, scheduled_share
from nlpkit.training.run import Run
from nlpkit.training.settings import LoopSettings

SETTINGS = {"dim": 8}


pytestmark = pytest.mark.usefixtures("one_thread")


def make_trainer(**changes: object) -> Trainer:
    """A small net with dropout and both optimizers, on data that depends on the batch number."""
    generator = torch.Generator().manual_seed(5)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 1))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3, generator=generator)
    matrix = model[0].weight
    rest = [parameter for parameter in model.parameters() if parameter is not matrix]

    def loss_on(number: int) -> Tensor:
        data = torch.randn(16, 4, generator=torch.Generator().manual_seed(number))
        return ((model(data) - data.sum(1, keepdim=True)) ** 2).mean()

    def batch_loss(number: int) -> tuple[Tensor, int]:
        return loss_on(number), 16

    settings = LoopSettings(**{"max_steps": 40, "grad_accum": 2, **changes})  # type: ignore[arg-type]
    optimizers = [Muon([(matrix, 2)]), adamw(rest, lr=0.01)]
    return Trainer(model, optimizers, batch_loss, settings, evaluate=lambda: loss_on(10_000).item())


def bits(trainer: Trainer) -> list[bytes]:
    return [parameter.detach().numpy().tobytes() for parameter in trainer.model.parameters()]


@pytest.mark.parametrize("stop_at", [1, 13, 39])
def test_resumed_run_has_the_bits_of_an_uninterrupted_one(tmp_path: Path, stop_at: int) -> None:
    whole = make_trainer()
    list(whole.fit())
    first = make_trainer()
    list(itertools.islice(first.fit(), stop_at))
    first.save(tmp_path / "m.checkpoint", SETTINGS, "hash")
    second = make_trainer()
    second.load(tmp_path / "m.checkpoint", SETTINGS, "hash")
    list(second.fit())
    assert bits(second) == bits(whole)
    without_time = [
        [{key: value for key, value in record.items() if key != "seconds"} for record in records]
        for records in (whole.counters.records, second.counters.records)
    ]
    assert without_time[0] == without_time[1]
    whole.keep_best()
    second.keep_best()
    assert bits(second) == bits(whole)


def test_training_learns_and_keeps_the_best_weights() -> None:
    trainer = make_trainer(max_steps=200)
    records = list(trainer.fit())
    losses = [record.heldout for record in records if record.heldout is not None]
    assert len(losses) == Trainer.EVALUATIONS
    assert min(losses) < 0.5 * losses[0]
    trainer.keep_best()
    assert trainer.evaluate is not None
    assert trainer.evaluate() == pytest.approx(min(losses))


def test_global_random_state_is_left_alone() -> None:
    trainer = make_trainer(max_steps=3)
    before = torch.random.get_rng_state()
    list(trainer.fit())
    assert torch.equal(before, torch.random.get_rng_state())


def test_dropout_differs_between_steps_and_not_between_runs() -> None:
    def draw(step: int) -> Tensor:
        with seeded(1, step, torch.device("cpu")):
            return torch.rand(4)

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_early_stopping_counts_evaluations_without_a_better_loss() -> None:
    trainer = make_trainer(max_steps=1000, eval_interval=1, patience=3)
    losses = iter([3.0, 2.0, 2.5, 2.4, 2.3, 1.0])
    trainer.evaluate = lambda: next(losses)
    assert [record.heldout for record in trainer.fit()] == [3.0, 2.0, 2.5, 2.4, 2.3]
    assert trainer.counters.best_step == 2


def test_time_limit_ends_the_run() -> None:
    trainer = make_trainer(max_steps=None, max_time=10.0)
    ticks = itertools.count(0, 0.25)
    trainer._clock = lambda: float(next(ticks))
    records = list(trainer.fit())
    assert records[-1].fraction == 1.0
    assert 10 < len(records) < 40


def test_nan_loss_stops_with_advice() -> None:
    trainer = make_trainer()
    good = trainer.batch_loss
    trainer.batch_loss = lambda number: (good(number)[0] * float("nan"), 1)
    with pytest.raises(NlpkitError, match=r"became nan at step 1 .*lower `lr`"):
        list(trainer.fit())


def test_a_heldout_loss_that_is_no_number_stops_with_advice() -> None:
    trainer = make_trainer(eval_interval=1)
    trainer.evaluate = lambda: float("inf")
    with pytest.raises(NlpkitError, match=r"held-out loss became inf at step 1 .*lower `lr`"):
        list(trainer.fit())


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_out_of_memory_says_what_to_lower(error: Exception) -> None:
    with pytest.raises(NlpkitError, match=r"out of memory .*`batch_size`"), memory_advice():
        raise error


def test_other_errors_are_not_taken_for_memory() -> None:
    with pytest.raises(RuntimeError, match="shape"), memory_advice():
        raise RuntimeError("shape mismatch")


def test_checkpoint_of_other_settings_or_data_is_refused(tmp_path: Path) -> None:
    trainer = make_trainer()
    path = tmp_path / "m.checkpoint"
    trainer.save(path, SETTINGS, "hash")
    with pytest.raises(NlpkitError, match="made with dim 8, not 9"):
        trainer.load(path, {"dim": 9}, "hash")
    with pytest.raises(NlpkitError, match="other data"):
        trainer.load(path, SETTINGS, "another")
    with pytest.raises(NlpkitError, match="no checkpoint"):
        trainer.load(tmp_path / "none.checkpoint", SETTINGS, "hash")


def test_schedules_warm_up_and_end_at_zero() -> None:
    for name in ("linear", "cosine"):
        settings = LoopSettings(schedule=name, warmup=0.1)  # type: ignore[arg-type]
        rates = [scheduled_share(step / 100, settings) for step in range(101)]
        assert max(rates) == pytest.approx(1.0)
        assert rates[5] == pytest.approx(0.5)
        assert rates[100] == pytest.approx(0.0, abs=1e-6)
        assert rates[10:] == sorted(rates[10:], reverse=True)


def test_unknown_device_is_one_line() -> None:
    with pytest.raises(NlpkitError, match="no device abacus"):
        pick_device("abacus")


def test_orthogonalize_evens_out_singular_values() -> None:
    generator = torch.Generator().manual_seed(0)
    for shape in ((2, 6, 24), (1, 12, 3), (3, 3, 12)):
        values = torch.linalg.svdvals(orthogonalize(torch.randn(shape, generator=generator)))
        assert ((values > 0.1) & (values < 2)).all()


def test_muon_takes_fused_matrices_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(6, 3, generator=generator)
    gradient = torch.randn(6, 3, generator=generator)
    fused = nn.Parameter(start.clone())
    apart = [nn.Parameter(piece.clone()) for piece in start.split(3)]
    fused.grad = gradient.clone()
    for parameter, piece in zip(apart, gradient.split(3), strict=True):
        parameter.grad = piece.clone()
    Muon([(fused, 2)]).step()
    Muon([(parameter, 1) for parameter in apart]).step()
    assert torch.allclose(fused, torch.cat(apart), atol=1e-6)
    stacked = nn.Parameter(start.view(2, 3, 3).mT.contiguous())
    stacked.grad = gradient.view(2, 3, 3).mT.contiguous()
    Muon([(stacked, 2)]).step()
    assert torch.allclose(stacked.mT.flatten(0, 1), torch.cat(apart), atol=1e-6)


class SmallRun(Run):
    """A run whose result is a list of weights."""

    def __init__(self, trainer: Trainer, write: Callable[[], None] | None) -> None:
        self.trainer, self._write, self.written = trainer, write, list[bytes]()

    def common_settings(self) -> dict[str, object]:
        return SETTINGS

    def data_hash(self) -> str:
        return "hash"

    def result(self) -> Any:
        return SimpleNamespace(save=self.save)

    def save(self, path: Path, *, force: bool) -> None:
        if self._write is not None:
            self._write()
        self.written = bits(self.trainer)  # type: ignore[arg-type]


class Drawn:
    """Runs as a command draws them: what is written is a list of weights."""

    def __init__(self, folder: Path) -> None:
        self.output = folder / "m"
        self.checkpoint = folder / "m.checkpoint"
        self.written: list[list[bytes]] = []

    def draw(
        self,
        trainer: Trainer,
        *,
        at_step: dict[int, Callable[[], None]] | None = None,
        write: Callable[[], None] | None = None,
        resume: bool = False,
    ) -> None:
        run = SmallRun(trainer, write)
        draw_run(
            run,
            self.output,
            Notes(),
            resume=resume,
            on_progress=lambda progress: (at_step or {}).get(progress.step, lambda: None)(),
        )
        self.written.append(run.written)

    def resumed(self) -> Trainer:
        trainer = make_trainer()
        trainer.load(self.checkpoint, SETTINGS, "hash")
        return trainer


def send(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


@pytest.fixture
def run(tmp_path: Path) -> Drawn:
    return Drawn(tmp_path)


@pytest.fixture
def whole() -> list[bytes]:
    """The weights that an uninterrupted run ends with."""
    trainer = make_trainer()
    list(trainer.fit())
    trainer.keep_best()
    return bits(trainer)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_a_checkpoint_that_resumes_exactly(
    run: Drawn, whole: list[bytes], number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as stopped:
        run.draw(make_trainer(), at_step={7: send(number)})
    assert stopped.value.exit_code == 130
    assert "resume with: nlpkit" in capsys.readouterr().err
    run.draw(run.resumed())
    assert run.written == [whole]
    assert not run.checkpoint.exists()
    assert "held-out" in capsys.readouterr().err


@pytest.mark.parametrize("part", [1, 2, 3, 50])
def test_a_signal_between_the_parts_of_a_step_leaves_the_state_before_it(
    run: Drawn, whole: list[bytes], part: int
) -> None:
    """The first step, the second and a later one of two parts each are hit at either part."""
    trainer = make_trainer()
    batch_loss, seen = trainer.batch_loss, list[int]()

    def interrupted(number: int) -> tuple[Tensor, int]:
        seen.append(number)
        if number == part:
            send(signal.SIGINT)()
        return batch_loss(number)

    trainer.batch_loss = interrupted
    with pytest.raises(typer.Exit):
        run.draw(trainer)
    assert seen[-1] == part
    assert trainer.counters.step == (part + 1) // 2
    run.draw(run.resumed())
    assert run.written == [whole]


def test_a_step_of_many_parts_is_given_up(run: Drawn) -> None:
    trainer = make_trainer(grad_accum=1000, max_steps=3)
    trainer.model.register_buffer("state", torch.zeros(1))  # as a recurrent model carries one on
    batch_loss, seen = trainer.batch_loss, list[int]()

    def interrupted(number: int) -> tuple[Tensor, int]:
        seen.append(number)
        trainer.model.state = trainer.model.state + 1
        if number == 1500:
            send(signal.SIGTERM)()
        return batch_loss(number)

    trainer.batch_loss = interrupted
    with pytest.raises(typer.Exit):
        run.draw(trainer)
    assert (len(seen), trainer.counters.step) == (1501, 1)
    assert trainer.model.state.tolist() == [1000]
    assert run.checkpoint.exists()


def test_an_ignored_signal_stays_ignored(run: Drawn, whole: list[bytes]) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run.draw(make_trainer(), at_step={7: send(signal.SIGHUP)})
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert run.written == [whole]


@pytest.mark.parametrize("earlier", [False, True])
def test_the_checkpoint_is_there_while_the_model_is_written(run: Drawn, earlier: bool) -> None:
    """Not made for the purpose, but one that is there stays until the model is."""
    trainer = make_trainer()
    if earlier:
        trainer.save(run.checkpoint, SETTINGS, "hash")
    seen = []
    run.draw(trainer, write=lambda: seen.append(run.checkpoint.exists()))
    assert seen == [earlier]
    assert not run.checkpoint.exists()


def fail(error: BaseException) -> Callable[[], None]:
    def write() -> None:
        raise error

    return write


def test_a_model_that_cannot_be_written_leaves_a_checkpoint(run: Drawn, whole: list[bytes]) -> None:
    with pytest.raises(NlpkitError, match=r"no space; all that .*m.checkpoint .*`resume`"):
        run.draw(make_trainer(), write=fail(NlpkitError("no space")))
    run.draw(run.resumed())
    assert run.written == [whole]
    assert not run.checkpoint.exists()


def test_a_signal_while_the_model_is_written_leaves_a_checkpoint(
    run: Drawn, whole: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as stopped:
        run.draw(make_trainer(), write=fail(KeyboardInterrupt()))
    assert stopped.value.exit_code == 130
    assert "resume with: nlpkit" in capsys.readouterr().err
    run.draw(run.resumed())
    assert run.written == [whole]


def test_a_bug_while_the_model_is_written_leaves_a_checkpoint(run: Drawn) -> None:
    with pytest.raises(ZeroDivisionError):
        run.draw(make_trainer(), write=fail(ZeroDivisionError()))
    assert run.resumed().finished


def test_when_the_checkpoint_cannot_be_written_either_both_reasons_are_given(run: Drawn) -> None:
    trainer = make_trainer()
    trainer.save(run.checkpoint, SETTINGS, "hash")
    trainer.save = fail_to_save  # type: ignore[method-assign]
    with pytest.raises(NlpkitError, match=r"no space; nor .*: read-only .*last checkpoint, .*/m\."):
        run.draw(trainer, write=fail(NlpkitError("no space")))
    assert run.checkpoint.exists()


def fail_to_save(*arguments: object) -> None:
    raise NlpkitError("read-only")


@pytest.mark.parametrize(("seconds", "few"), [(1.0, True), (1e9, False)])
def test_a_run_with_too_little_time_to_learn_says_so(
    run: Drawn, seconds: float, few: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = make_trainer(max_steps=60, max_time=seconds)
    ticks = itertools.count(0, 0.1)
    trainer._clock = lambda: float(next(ticks))
    run.draw(trainer)
    assert ("too few to learn much (try: a longer --max-time" in capsys.readouterr().err) is few


def test_the_curve_records_the_learning_rate_of_adamw() -> None:
    trainer = make_trainer(max_steps=20, warmup=0.0)
    rates = [progress.learning_rate for progress in trainer.fit()]
    assert rates[0] == pytest.approx(0.01)
    assert [record["learning_rate"] for record in trainer.counters.records] == rates
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("step", "7"), ("step", 1.5), ("seconds", None), ("best_loss", "low"), ("records", 3)],
)
def test_a_checkpoint_with_damaged_counters_is_one_line(
    tmp_path: Path, name: str, value: object
) -> None:
    path = tmp_path / "m.checkpoint"
    make_trainer().save(path, SETTINGS, "hash")
    config = json.loads((path / "config.json").read_text())
    config["settings"]["counters"][name] = value
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(NlpkitError, match=f"does not fit: .*{name}"):
        make_trainer().load(path, SETTINGS, "hash")
    config["settings"] = {}
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(NlpkitError, match="does not fit"):
        make_trainer().load(path, SETTINGS, "hash")


def test_tiny_numbers_are_zero_in_a_step_only() -> None:
    tiny = 1e-40
    seen = []

    def batch_loss(number: int) -> tuple[torch.Tensor, int]:
        seen.append((torch.full((1,), tiny) * 0.5).item())
        return (model(torch.ones(1, 1)) ** 2).mean(), 1

    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    list(Trainer(model, [optimizer], batch_loss, LoopSettings(max_steps=1)).fit())
    assert seen == [0]
    assert (torch.full((1,), tiny) * 0.5).item() > 0


# --- dtype auto ---------------------------------------------------------------------------------


def timed(monkeypatch: pytest.MonkeyPatch, **seconds: float) -> list[str]:
    """A processor with bfloat16 and these times; gives the list of what is tried."""
    tried: list[str] = []

    def time_gradients(self: Trainer, dtype: str) -> float:
        tried.append(dtype)
        self._gradients("float32")
        return seconds[dtype]

    monkeypatch.setattr("nlpkit.training.loop.has_bfloat16", lambda device: True)
    monkeypatch.setattr(Trainer, "TRIAL_PAYS", 1)
    monkeypatch.setattr(Trainer, "_time_gradients", time_gradients)
    return tried


def test_auto_keeps_float32_where_a_step_is_too_short_to_be_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timed(monkeypatch, float32=0.004, bfloat16=0.0)  # a clock that ticks every 4 ms
    trainer = make_trainer(dtype="auto", max_steps=2)
    list(trainer.fit())
    assert (trainer.counters.dtype, trainer.bfloat16_speed) == ("float32", None)


def test_auto_takes_bfloat16_where_it_is_clearly_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = timed(monkeypatch, float32=3.0, bfloat16=2.0)
    trainer = make_trainer(dtype="auto", max_steps=2)
    list(trainer.fit())
    assert (trainer.counters.dtype, trainer.bfloat16_speed) == ("bfloat16", 1.5)
    assert tried == ["float32", "bfloat16"] * Trainer.TRIALS
    plain = make_trainer(max_steps=2)
    list(plain.fit())
    assert bits(trainer) != bits(plain)


def test_a_trial_leaves_no_trace_where_float32_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    timed(monkeypatch, float32=2.0, bfloat16=1.9)
    trainer, plain = make_trainer(dtype="auto"), make_trainer()
    list(trainer.fit())
    list(plain.fit())
    assert trainer.counters.dtype == "float32"
    assert bits(trainer) == bits(plain)


def test_a_resumed_run_keeps_the_dtype_that_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = timed(monkeypatch, float32=3.0, bfloat16=2.0)
    whole, first, second = (make_trainer(dtype="auto") for _ in range(3))
    list(whole.fit())
    list(itertools.islice(first.fit(), 7))
    first.save(tmp_path / "m.checkpoint", SETTINGS, "hash")
    timed(monkeypatch, float32=1.0, bfloat16=2.0)
    tried.clear()
    second.load(tmp_path / "m.checkpoint", SETTINGS, "hash")
    list(second.fit())
    assert second.counters.dtype == "bfloat16"
    assert tried == []
    assert bits(second) == bits(whole)


def test_a_short_run_is_not_worth_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = timed(monkeypatch, float32=3.0, bfloat16=2.0)
    monkeypatch.setattr(Trainer, "TRIAL_PAYS", 3)
    trainer = make_trainer(dtype="auto", max_steps=2)
    list(trainer.fit())
    assert (trainer.counters.dtype, tried) == ("float32", [])
