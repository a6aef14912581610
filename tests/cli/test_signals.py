"""Ctrl-C, SIGTERM and SIGHUP, at any moment: exit code 130, no traceback, nothing left behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

MODULE = [sys.executable, "-m", "nlpkit"]
PATIENCE = 60  # seconds, for machines that are busy
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
SMALL_GPT = "--layers 1 --dim 16 --heads 2 --block-size 16 --threads 1".split()
TEXT = b"To be, or not to be, that is the question:\n" * 40

every_signal = pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)


@contextmanager
def started(
    arguments: Sequence[str],
    folder: Path,
    *,
    env: dict[str, str] | None = None,
    stderr: int = subprocess.PIPE,
    prepare: Callable[[], object] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a session of its own, gone when the block ends."""
    process = subprocess.Popen(
        [*MODULE, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=folder,
        env={**os.environ, **(env or {})},
        start_new_session=True,
        preexec_fn=prepare,
    )
    try:
        yield process
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()


def wait_for(condition: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def ended(process: subprocess.Popen[bytes]) -> str:
    """What a stopped command said last."""
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err.decode()
    assert b"Traceback" not in err
    assert b"ignored" not in err
    return err.decode()


SLOW = """
import pathlib, time
pathlib.Path("loading").touch()
try:
    time.sleep(60)
except KeyboardInterrupt:
    {answer}
"""


@every_signal
@pytest.mark.parametrize("answer", ["raise", "raise ImportError('half loaded') from None"])
def test_while_modules_load(tmp_path: Path, number: int, answer: str) -> None:
    """What a signal makes of a module in the making is up to the module."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "typer.py").write_text(SLOW.format(answer=answer))
    path = os.pathsep.join([str(slow), os.environ.get("PYTHONPATH", "")])
    with started(["tokenize"], tmp_path, env={"PYTHONPATH": path}) as process:
        wait_for((tmp_path / "loading").exists, process)
        process.send_signal(number)
        assert ended(process) == ""


def test_while_torch_loads(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "torch.py").write_text(SLOW.format(answer="raise ImportError from None"))
    path = os.pathsep.join([str(slow), os.environ.get("PYTHONPATH", "")])
    command = ["gpt", "train", "-", "-o", "m"]
    with started(command, tmp_path, env={"PYTHONPATH": path}) as process:
        wait_for((tmp_path / "loading").exists, process)
        process.send_signal(signal.SIGINT)
        ended(process)


def test_a_signal_that_hits_a_destructor_is_not_lost(tmp_path: Path) -> None:
    program = """
import os, signal, time
from nlpkit.signals import run_interruptible
class Fragile:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)
def run():
    Fragile()
    time.sleep(60)
run_interruptible(run)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (130, b"")


def test_a_signal_after_the_work_shows_no_traceback(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from nlpkit.signals import run_interruptible
try:
    run_interruptible(lambda: sys.exit(3))
finally:
    os.kill(os.getpid(), signal.SIGINT)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (130, b"")


def test_while_gpt_train_reads_its_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "text")
    (tmp_path / "out").mkdir()
    with (
        started(["gpt", "train", "text", "-o", "out/m", *SMALL_GPT], tmp_path) as process,
        open(tmp_path / "text", "wb", buffering=0) as pipe,
    ):
        for _ in range(50):
            pipe.write(TEXT)
        process.send_signal(signal.SIGTERM)
        assert ended(process).endswith("error: interrupted\n")
    assert list((tmp_path / "out").iterdir()) == []


def lines_until(stream: IO[bytes] | None, beginning: bytes) -> None:
    assert stream is not None
    for line in stream:
        if line.startswith(beginning):
            return
    pytest.fail(f"no line {beginning!r}")


def test_in_training_a_checkpoint_is_saved(tmp_path: Path) -> None:
    train = ["gpt", "train", "-", "-o", "m", "--eval-interval", "1", "--sample", "1"]
    with started([*train, *SMALL_GPT, "--max-iters", "1000000"], tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(TEXT)
        process.stdin.close()
        process.stdin = None
        lines_until(process.stderr, b"--- step 3")
        process.send_signal(signal.SIGHUP)
        assert "resume with: nlpkit gpt train" in ended(process)
    assert [path.name for path in tmp_path.iterdir()] == ["m.checkpoint"]


def test_a_terminal_that_is_closed_does_not_cost_the_checkpoint(tmp_path: Path) -> None:
    import fcntl
    import termios

    (tmp_path / "text").write_bytes(TEXT)
    leader, terminal = os.openpty()
    command = "word2vec train text -o m --dim 8 --min-count 1 --epochs 1000000 --threads 1".split()
    with started(
        [*command, "--checkpoint-every", "0.2s"],
        tmp_path,
        stderr=terminal,
        prepare=lambda: fcntl.ioctl(terminal, termios.TIOCSCTTY, 0),
    ) as process:
        os.close(terminal)

        def has_saved() -> bool:
            while select.select([leader], [], [], 0)[0]:
                os.read(leader, 1 << 16)
            return (tmp_path / "m.checkpoint").exists()

        wait_for(has_saved, process)
        os.close(leader)
        assert process.wait(PATIENCE) == 130
    assert [path.name for path in tmp_path.iterdir() if path.name != "text"] == ["m.checkpoint"]


def test_nohup_is_respected(tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with started(["tokenize"], tmp_path, prepare=ignore) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"It's.\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"It 's .\n"
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(b"Hi!\n", timeout=PATIENCE)
        assert (process.returncode, out, err) == (0, b"Hi !\n", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_all_processes_of_a_command_at_once(tmp_path: Path, number: int) -> None:
    with started(["tokenize", "--jobs", "2", "-o", "out"], tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(b"Some text here.\n" * 200_000)
        wait_for(lambda: any(file.stat().st_size for file in tmp_path.iterdir()), process)
        os.killpg(process.pid, number)
        assert ended(process) == "error: interrupted\n"
        await_end(process.pid)
    assert list(tmp_path.iterdir()) == []


def group_is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def await_end(group: int) -> None:
    end = time.monotonic() + PATIENCE
    while not group_is_gone(group):
        assert time.monotonic() < end, "processes are left"
        time.sleep(0.05)


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="counts processes by /proc")


def count_children(process: int) -> int:
    return len(Path(f"/proc/{process}/task/{process}/children").read_text().split())


@on_linux
def test_while_processes_are_started(tmp_path: Path) -> None:
    with started(["tokenize", "--jobs", "60"], tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(b"Some text here.\n")
        process.stdin.flush()
        wait_for(lambda: count_children(process.pid) > 3, process)
        process.send_signal(signal.SIGTERM)
        assert ended(process) == "error: interrupted\n"
        await_end(process.pid)


@on_linux
def test_processes_do_not_outlive_the_one_that_started_them(tmp_path: Path) -> None:
    with started(["tokenize", "--jobs", "2"], tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(b"Some text here.\n")
        process.stdin.flush()
        wait_for(lambda: count_children(process.pid) == 2, process)
        process.kill()
        process.wait()
        await_end(process.pid)


def test_the_demo_takes_its_steps_with_it(tmp_path: Path) -> None:
    with started(["demo"], tmp_path, env={"TMPDIR": str(tmp_path)}) as process:
        assert process.stdout is not None
        lines_until(process.stdout, b"$ nlpkit bpe train")
        process.send_signal(signal.SIGTERM)
        assert ended(process).endswith("error: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_a_second_signal_does_not_keep_the_demo_from_tidying_up(tmp_path: Path) -> None:
    with started(["demo"], tmp_path, env={"TMPDIR": str(tmp_path)}) as process:
        assert process.stdout is not None
        lines_until(process.stdout, b"$ nlpkit names train")
        time.sleep(1)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
            time.sleep(0.2)
        assert ended(process).endswith("error: interrupted\n")
    assert list(tmp_path.iterdir()) == []
