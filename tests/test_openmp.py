"""Threads that wait politely while other programs want the cores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nlpkit import openmp
from nlpkit.generate.loop import generate
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.models import finetune_states
from nlpkit.models.build import ModelSettings, build_model
from nlpkit.models.finetune import PretrainedEncoder, Reading
from nlpkit.models.finetune_states import padded_batches
from nlpkit.openmp import CoreSharing, sharing_cores

SECOND = 10**9


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the scheduler counts next; each look takes the first."""
    counted: list[tuple[int, int]] = []
    monkeypatch.setattr(openmp, "queueing", lambda: counted.pop(0) if counted else None)
    monkeypatch.setattr(CoreSharing, "SECONDS", 0.0)
    return counted


def test_a_busy_machine_makes_threads_share_and_an_idle_one_ends_it(
    scheduler: list[tuple[int, int]],
) -> None:
    threads = threading.active_count()
    with CoreSharing() as cores:
        scheduler.append((SECOND, 0))
        cores.check()
        assert not cores.sharing
        scheduler.append((2 * SECOND, SECOND))  # half of the last two seconds in the queue
        cores.check()
        assert cores.sharing
        assert threading.active_count() > threads
        for look in range(CoreSharing.PATIENCE):
            assert cores.sharing
            scheduler.append(((3 + look) * SECOND, SECOND))
            cores.check()
        assert not cores.sharing
    assert threading.active_count() == threads


def test_a_machine_that_was_busy_while_loading_is_shared_from_the_first_step(
    scheduler: list[tuple[int, int]],
) -> None:
    scheduler.append((SECOND, SECOND))
    with CoreSharing() as cores:
        cores.check()
        assert cores.sharing
    assert not cores.sharing


def test_one_thread_and_a_system_that_does_not_count_need_nothing(
    scheduler: list[tuple[int, int]],
) -> None:
    with CoreSharing() as cores:
        cores.check()  # nothing counted
        assert not cores.sharing
        torch.set_num_threads(1)
        scheduler.append((SECOND, SECOND))
        cores.check()
        assert not cores.sharing
        assert scheduler  # nobody looked


def test_results_are_the_same_bits_while_threads_are_parked() -> None:
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(300, 400, generator=generator)
    before = torch.nn.functional.layer_norm(a @ a.T, (300,)).sum(0)
    cores = CoreSharing()
    cores.park()
    assert torch.equal(torch.nn.functional.layer_norm(a @ a.T, (300,)).sum(0), before)
    cores.unpark()


def test_a_missing_or_odd_schedstat_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openmp, "_SCHEDSTAT", tmp_path / "schedstat")
    assert openmp.queueing() is None
    (tmp_path / "schedstat").write_text("12 x 3\n")
    assert openmp.queueing() is None
    (tmp_path / "schedstat").write_text("12 7 3\n")
    assert openmp.queueing() == (12, 7)


def test_a_model_that_writes_shares_the_cores_too(scheduler: list[tuple[int, int]]) -> None:
    threads = threading.active_count()
    model = build_model(ModelSettings(vocab_size=4, dim=8, layers=1, heads=2)).eval()
    scheduler.append((SECOND, SECOND))
    steps = generate(model, [[1]], 3, SamplingSettings(), torch.Generator())
    next(steps)
    assert threading.active_count() > threads
    steps.close()
    assert threading.active_count() == threads


def test_batches_share_the_cores_until_the_last_one_or_the_one_that_failed(
    scheduler: list[tuple[int, int]],
) -> None:
    threads = threading.active_count()
    scheduler += [(SECOND, SECOND)] * 2
    batches = sharing_cores(["a", "b"])
    assert next(batches) == "a"
    assert threading.active_count() > threads
    assert list(batches) == ["b"]
    assert threading.active_count() == threads
    scheduler.append((SECOND, SECOND))
    failing = sharing_cores([1])
    next(failing)
    with pytest.raises(RuntimeError):
        failing.throw(RuntimeError)  # type: ignore[attr-defined]
    assert threading.active_count() == threads


def test_an_encoder_looks_at_the_cores_before_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[CoreSharing] = []
    monkeypatch.setattr(CoreSharing, "check", lambda cores: looks.append(cores))
    monkeypatch.setattr(finetune_states, "BATCH_TOKENS", 4)
    readings = [Reading([4] * 4, [0] * 4) for _ in range(3)]
    encoder = PretrainedEncoder()
    batches = padded_batches(encoder, readings, torch.device("cpu"))
    assert [rows.tolist() for rows, *_ in batches] == [[0], [1], [2]]
    assert len(looks) == 3
