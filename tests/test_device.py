"""Where torch computes: the GPU when there is one and the work is worth moving there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from nlpkit import device
from nlpkit.cli import lm_score
from nlpkit.cli.main import app
from nlpkit.device import pick_device
from nlpkit.errors import NlpkitError

LITTLE, MUCH = 10**6, 10**13


@pytest.mark.parametrize("work", [None, LITTLE, MUCH])
def test_without_a_gpu_auto_is_the_cpu(monkeypatch: pytest.MonkeyPatch, work: float | None) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert pick_device("auto", work).type == "cpu"


@pytest.mark.parametrize(("cuda", "kind"), [(True, "cuda"), (False, "mps")])
def test_a_gpu_is_chosen_for_training_and_for_much_work(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, kind: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert pick_device("auto").type == kind
    assert pick_device("auto", MUCH).type == kind
    assert pick_device("auto", LITTLE).type == "cpu"
    assert pick_device("cpu", MUCH).type == "cpu"


@pytest.mark.parametrize("name", ["meta", "cuda:9", "xpu", "nowhere", "cpu:-1", ""])
def test_a_device_that_cannot_compute_here_is_refused(name: str) -> None:
    with pytest.raises(NlpkitError, match="no device"):
        pick_device(name)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    names = "\n".join(a + b for a in ("Mar", "Al", "Be") for b in ("ia", "o", "t", "na"))
    small = ["--dim", "8", "--layers", "1", "--heads", "2", "--threads", "1"]
    for command, text in (
        (["names", "train", "-", "-o", str(folder / "names"), "--epochs", "1"], names),
        (["gpt", "train", "-", "-o", str(folder / "gpt"), "--max-iters", "1"], names * 20),
    ):
        made = CliRunner().invoke(app, [*command, *small], input=text)
        assert made.exit_code == 0, made.stderr
    return folder


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (["gpt", "sample", "MODELS/gpt", "Mar", "-n", "3", "--threads", "1"], ["--samples", "4"]),
        (["gpt", "score", "MODELS/gpt", "FILE", "--threads", "1"], ["FILE", "FILE"]),
        (["gpt", "score", "MODELS/gpt", "--lines", "--threads", "1"], ["FILE"]),
        (["names", "sample", "MODELS/names", "-n", "2"], ["-n", "7"]),
        (["names", "score", "MODELS/names", "FILE"], ["FILE"]),
        (["names", "report", "MODELS/names", "-n", "5"], ["-n", "9"]),
    ],
)
def test_commands_say_where_and_tell_how_much_there_is_to_do(
    one_thread: None,
    models: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    more: list[str],
) -> None:
    """With a GPU there, this little is done by the CPU; more of it is more work."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    asked: list[tuple[str, float | None]] = []

    def noted(name: str = "auto", work: float | None = None) -> torch.device:
        asked.append((name, work))
        return pick_device(name, work)

    monkeypatch.setattr(device, "pick_device", noted)
    file = models / "names.txt"
    file.write_text("Maria\nAlo\n" * 8)
    monkeypatch.setattr(lm_score, "_STREAM", 10)

    def run(*arguments: str) -> str:
        words = [word.replace("MODELS", str(models)) for word in arguments]
        words = [str(file) if word == "FILE" else word for word in words]
        result = CliRunner().invoke(app, words, input="Maria\n")
        assert result.exit_code == 0, result.stderr
        return result.stderr

    assert "device" not in run(*command)  # a CPU is no news in a pipe
    run(*command, *more)
    assert run(*command, "--quiet") == ""
    run(*command, "--device", "cpu")
    names, work = zip(*asked, strict=True)
    assert names == ("auto", "auto", "auto", "cpu")
    assert 0 < work[0] < work[1]


def die() -> None:
    os.kill(os.getpid(), signal.SIGILL)


def fail() -> None:
    raise RuntimeError


@pytest.mark.parametrize(("attempt", "works"), [(bool, True), (die, False), (fail, False)])
def test_a_processor_that_dies_of_bfloat16_does_so_in_another_process(
    monkeypatch: pytest.MonkeyPatch, attempt: Callable[[], None], works: bool
) -> None:
    monkeypatch.setattr(device, "_compute_in_bfloat16", attempt)
    assert device._bfloat16_works.__wrapped__() == works
