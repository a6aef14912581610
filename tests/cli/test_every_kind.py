"""Every kind of model of every command: trained, loaded by another process, used, interrupted,
resumed. Commands run in forks of a warm process (``warm.py``), and one of each in a new one."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import pytest
from command_runner import Runner
from model_kinds import MODEL, Kind, kinds, weights, write_data
from warm import Fault, Outcome, Warm, one_thread

KINDS = kinds()
RESUMABLE = [kind for kind in KINDS if kind.has_steps]
COMMANDS = list(dict.fromkeys(kind.command for kind in KINDS))
FIRST = [next(kind for kind in KINDS if kind.command == name) for name in COMMANDS]


def by_name(found: list[Kind]) -> list[object]:
    return [pytest.param(kind, id=kind.name) for kind in found]


class Trained:
    """Models by kind, each trained once, in a folder of its own."""

    def __init__(self, warm: Warm, folder: Path) -> None:
        self.warm, self.folder = warm, folder
        self._done: dict[str, Path] = {}

    def __call__(self, kind: Kind) -> Path:
        if kind.name not in self._done:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            write_data(folder)
            self.warm.ok(folder, *kind.train())
            self._done[kind.name] = folder
        return self._done[kind.name]


@pytest.fixture(scope="module")
def trained(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(warm, tmp_path_factory.mktemp("kinds"))


@pytest.mark.parametrize("kind", by_name(KINDS))
def test_a_model_is_trained_and_another_process_uses_it(kind: Kind, trained: Trained) -> None:
    folder = trained(kind)
    arguments, text = kind.use()
    kind.check(trained.warm.ok(folder, *arguments, input=text))
    assert not [path.name for path in folder.iterdir() if path.name.startswith((".", MODEL + "."))]


@pytest.mark.parametrize("kind", by_name(FIRST))
def test_a_new_process_does_what_a_fork_does(
    kind: Kind, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trained(kind)
    arguments, text = kind.use()
    for name, value in one_thread().items():
        monkeypatch.setenv(name, value)
    assert Runner(folder).ok(*arguments, input=text) == trained.warm.ok(
        folder, *arguments, input=text
    )
    assert MODEL in trained.warm.ok(folder, "info", MODEL)


@pytest.mark.parametrize("kind", by_name(RESUMABLE))
def test_an_interrupted_run_that_is_resumed_equals_one_that_was_not(
    kind: Kind, trained: Trained, tmp_path: Path
) -> None:
    write_data(tmp_path)
    interrupted = trained.warm.run(
        tmp_path, *kind.train(), fault=Fault(signal=signal.SIGINT, after_steps=3)
    )
    assert_stopped(interrupted, tmp_path)
    trained.warm.ok(tmp_path, *kind.train(), "--resume")
    assert weights(tmp_path / MODEL) == weights(trained(kind) / MODEL)
    assert not (tmp_path / f"{MODEL}.checkpoint").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_checkpoint_resume_is_refused_before_anything_is_read(
    command: str, trained: Trained, tmp_path: Path
) -> None:
    kind = next(kind for kind in RESUMABLE if kind.command == command)
    outcome = trained.warm.run(tmp_path, *kind.train(), "--resume")  # its data is missing, too
    assert outcome.code == 1
    assert outcome.err.startswith(f"error: no checkpoint to resume: {MODEL}.checkpoint")


def assert_stopped(outcome: Outcome, folder: Path) -> None:
    """It has said how to go on, and left what that takes."""
    assert outcome.code == 130, outcome.err
    assert "resume with: nlpkit " in outcome.err
    assert "Traceback" not in outcome.err
    assert (folder / f"{MODEL}.checkpoint").is_dir()
    assert not (folder / MODEL).exists()
