"""Folders are replaced without a gap: a process may die before any of its file operations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nlpkit import faults, folders, modeldir, textio
from nlpkit.errors import NlpkitError
from nlpkit.modeldir import ModelConfig

LONGEST_NAME = 255  # bytes


def write(path: Path, text: str, *, force: bool = True) -> None:
    with modeldir.create(path, ModelConfig(kind="demo"), force=force) as folder:
        modeldir.write_text(folder / "a.txt", text)
        modeldir.write_text(folder / "b.txt", text)


def read(path: Path) -> str:
    """The text of a model, whose two files must be of one time."""
    modeldir.load_config(path, kind="demo")
    first, second = (path / "a.txt").read_text(), (path / "b.txt").read_text()
    assert first == second
    return first


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def write_and_die(path: Path, text: str, operation: int) -> bool:
    """Write in a process of its own that dies before its n-th file operation, if it gets there."""
    child = os.fork()
    if child == 0:
        faults._steps_left = operation
        write(path, text)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, faults.KILLED)
    return code == faults.KILLED


@pytest.fixture(params=["exchange", "two renames"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "two renames":
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    return str(request.param)


def test_a_process_that_dies_at_any_moment_leaves_the_old_model_or_the_new(
    tmp_path: Path, way: str
) -> None:
    model = tmp_path / "m.model"
    seen = []
    for operation in range(1, 100):
        write(model, "old")
        died = write_and_die(model, "new", operation)
        seen.append(read(model))
        if not died:
            break
    assert sorted(set(seen)) == ["new", "old"]
    assert seen == sorted(seen, reverse=True)  # from some moment on it is the new one
    for name in names(tmp_path):
        assert name == "m.model" or not modeldir.is_model(tmp_path / name)
    write(model, "next")
    assert not [name for name in names(tmp_path) if name.endswith(".old")]


@pytest.mark.parametrize("find", ["is_model", "load_config", "check_new", "create"])
def test_what_was_left_between_two_renames_is_found(tmp_path: Path, find: str) -> None:
    model = tmp_path / "m.model"
    write(model, "old")
    os.rename(model, folders._aside(model))
    if find == "is_model":
        assert modeldir.is_model(model)
    elif find == "load_config":
        modeldir.load_config(model)
    elif find == "check_new":
        with pytest.raises(NlpkitError, match="exists already"):
            modeldir.check_new(model, force=False)
    else:
        with pytest.raises(NlpkitError, match="exists already"):
            write(model, "new", force=False)
    assert read(model) == "old"
    assert names(tmp_path) == ["m.model"]


def test_an_error_between_two_renames_puts_the_old_model_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.model"
    write(model, "old")
    monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    real = os.rename

    def fail_once(source: Path, target: Path) -> None:
        if Path(source).name.endswith(folders.TEMPORARY):
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "rename", fail_once)
    with pytest.raises(NlpkitError, match="Input/output error"):
        write(model, "new")
    assert read(model) == "old"
    assert names(tmp_path) == ["m.model"]


def test_a_reader_that_moves_the_old_model_back_does_not_stop_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.model"
    write(model, "old")
    monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    real, calls = os.rename, []

    def reader_comes_between(source: Path, target: Path) -> None:
        calls.append(source)
        real(source, target)
        if len(calls) == 1:
            folders.recover(model)

    monkeypatch.setattr(os, "rename", reader_comes_between)
    write(model, "new")
    assert read(model) == "new"
    assert names(tmp_path) == ["m.model"]


def test_a_folder_in_the_making_is_no_model(tmp_path: Path) -> None:
    with modeldir.create(tmp_path / "m.model", ModelConfig(kind="demo")) as folder:
        modeldir.write_text(folder / "config.json", "{}")
        assert not modeldir.is_model(folder)
        with pytest.raises(NlpkitError, match="is not a model folder"):
            modeldir.load_config(folder)


def test_a_removed_folder_is_gone_as_a_whole(tmp_path: Path) -> None:
    for operation in (1, 2, 3):
        write(tmp_path / "m.model", "old")
        if os.fork() == 0:
            faults._steps_left = operation
            folders.remove(tmp_path / "m.model")
            os._exit(0)
        os.wait()
        if (tmp_path / "m.model").exists():
            assert read(tmp_path / "m.model") == "old"
    folders.remove(tmp_path / "m.model")
    folders.remove(tmp_path / "m.model")
    assert not (tmp_path / "m.model").exists()


# --- places -------------------------------------------------------------------------------------


def test_a_link_to_a_model_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "disk" / "m.model", tmp_path / "m.model"
    real.parent.mkdir()
    link.symlink_to(real)
    modeldir.check_new(link, force=False)  # it leads nowhere yet
    write(link, "old", force=False)
    modeldir.check_new(link, force=True)
    write(link, "new")
    assert link.is_symlink()
    assert read(real) == "new"
    assert names(real.parent) == ["m.model"]


@pytest.mark.parametrize("name", ["loop", "missing/m.model"])
def test_a_link_that_cannot_be_followed_is_refused_at_once(tmp_path: Path, name: str) -> None:
    link = tmp_path / "loop"
    link.symlink_to(tmp_path / name)
    with pytest.raises(NlpkitError, match=r"leads nowhere|no such folder"):
        modeldir.check_new(link, force=True)


@pytest.mark.parametrize("letter", ["x", "é", "\udcff"])
def test_a_long_name_is_written_or_refused_at_once(tmp_path: Path, letter: str) -> None:
    size = len(os.fsencode(letter))
    longest = (LONGEST_NAME - len(".checkpoint")) // size
    model = tmp_path / (letter * longest)
    modeldir.check_new(model, force=False)
    for path in (model, modeldir.checkpoint_path(model)):
        write(path, "old")
        write(path, "new")
        assert read(path) == "new"
    with pytest.raises(NlpkitError, match="File name too long"):
        modeldir.check_new(tmp_path / (letter * (longest + 1)), force=False)
    file = tmp_path / (letter * (LONGEST_NAME // size - 1) + ".")
    textio.write_text(str(file), "text")
    assert file.read_text() == "text"


def test_a_checkpoint_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    modeldir.checkpoint_path(tmp_path / "m.model").write_text("not a folder")
    with pytest.raises(NlpkitError, match="is not a checkpoint"):
        modeldir.check_new(tmp_path / "m.model", force=True)


def test_half_characters_in_a_path_come_back_from_the_config(tmp_path: Path) -> None:
    config = ModelConfig(kind="demo", settings={"source": "caf\udce9.txt"})
    with modeldir.create(tmp_path / "caf\udce9.model", config):
        pass
    found = modeldir.load_config(tmp_path / "caf\udce9.model")
    assert found.settings == {"source": "caf\udce9.txt"}


# --- the seam -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [("", 0, ""), ("99", 0, ""), ("3", faults.KILLED, ""), ("3:ENOSPC", 1, "No space left")],
)
def test_the_environment_chooses_the_fault(
    tmp_path: Path, fault: str, code: int, message: str
) -> None:
    program = "from nlpkit import textio; textio.write_text('file.txt', 'text')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, faults.VARIABLE: fault},
        stderr=subprocess.PIPE,
    )
    assert done.returncode == code
    assert message in done.stderr.decode()
    assert (tmp_path / "file.txt").exists() == (code == 0)


def test_a_signal_while_the_temporary_folder_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(folder: Path, mode: int) -> None:
        os.mkdir(folder, mode)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", make)
    with pytest.raises(KeyboardInterrupt), folders.atomic_folder(tmp_path / "m"):
        pass
    assert not list(tmp_path.iterdir())
