"""Pipes, terminals and Ctrl-C: commands that live among other commands."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from command_runner import NLPKIT, Runner

PATIENCE = 60  # seconds, for machines that are busy


@contextmanager
def started(
    arguments: list[str], folder: Path, *, stdin: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a process group of its own, gone when the block ends."""
    process = subprocess.Popen(
        [*NLPKIT, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                # what could not be written does not matter any more
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        process.wait()


def read_line(stream: IO[bytes]) -> str:
    """The next line, without waiting for ever."""
    ready, _, _ = select.select([stream], [], [], PATIENCE)
    assert ready, "no answer"
    return stream.readline().decode()


def is_group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("arguments", "answers"),
    [
        (["tokenize"], {"Don't stop.": "Do n't stop .", "": "", "Hi!": "Hi !"}),
        (["tokenize", "--json"], {"Hi!": '{"tokens": ["Hi", "!"]}'}),
        (["detokenize"], {"Do n't .": "Don't."}),
        (["sentences"], {"It is so.": "It is so.", "Yes.": "Yes."}),
        (["bpe", "encode", "-m", "MADE/tokenizer.json"], {"": ""}),
        (["encode", "-V", "MADE/words.vocab"], {"": "", "nothing": "1"}),
        (["decode", "-V", "MADE/words.vocab"], {"1 0": "<unk> <pad>"}),
        (["pad", "--maxlen", "3"], {"1": "0 0 1", "1 2 3 4": "2 3 4"}),
        (["vectorize", "--mode", "hash", "--buckets", "50"], {"cold food": "42 8", "": ""}),
    ],
)
def test_a_pipe_that_trickles_is_answered_line_by_line(
    made: Path, tmp_path: Path, arguments: list[str], answers: dict[str, str]
) -> None:
    arguments = [argument.replace("MADE", str(made)) for argument in arguments]
    with started(arguments, tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for question, answer in answers.items():
            process.stdin.write(question.encode() + b"\n")
            process.stdin.flush()
            assert read_line(process.stdout) == answer + "\n"
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    "command",
    [
        "yes 'Some text here.' | nlpkit tokenize",
        "yes 'Some text here.' | nlpkit tokenize --jobs 2",
        "yes 'Some text here.' | nlpkit sentences --json",
        "yes 1 2 3 | nlpkit pad --maxlen 5",
        "seq 200000 | nlpkit vocab build -q",
    ],
)
def test_a_reader_that_goes_away_early_ends_the_command_silently(run: Runner, command: str) -> None:
    result = run.shell(f"{command} | head -1; echo ${{PIPESTATUS[1]}}")
    assert result.err == ""
    assert len(result.out.splitlines()) == 2
    assert result.out.endswith("\n0\n")


@pytest.mark.parametrize("arguments", [["tokenize"], ["vocab", "build"], ["pad"], ["bpe", "train"]])
def test_a_person_at_a_terminal_gets_the_help_and_exit_code_2(
    tmp_path: Path, arguments: list[str]
) -> None:
    leader, terminal = os.openpty()
    try:
        with started(arguments, tmp_path, stdin=terminal) as process:
            out, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == 2
            assert out == b""
            assert err.startswith(b"Usage: nlpkit " + " ".join(arguments).encode())
            assert b"Examples:" in err
    finally:
        os.close(leader)
        os.close(terminal)


@pytest.mark.parametrize("options", [[], ["--jobs", "2"]])
def test_memory_does_not_grow_with_the_input(tmp_path: Path, options: list[str]) -> None:
    peaks = []
    for megabytes in (4, 12):
        with started(["tokenize", *options, "-o", "/dev/null"], tmp_path) as process:
            assert process.stdin is not None
            for _ in range(megabytes):
                process.stdin.write(b"some words of text\n" * 52_000)
            process.stdin.close()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
            peaks.append(used.ru_maxrss)  # kilobytes
    assert peaks[1] - peaks[0] < 12_000


@pytest.mark.parametrize("arguments", [["tokenize", "--jobs", "2"], ["tokenize"]])
@pytest.mark.parametrize("output", [[], ["-o", "out.txt"]])
def test_ctrl_c_ends_with_130_one_line_no_file_and_no_process(
    tmp_path: Path, arguments: list[str], output: list[str]
) -> None:
    with started([*arguments, *output], tmp_path) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def feed() -> None:
            # an endless pipe, until the command is gone
            try:
                while True:
                    stdin.write(b"Some text here.\n" * 10_000)
            except (BrokenPipeError, ValueError):
                pass

        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        if output:
            wait_for(lambda: any(file.stat().st_size for file in tmp_path.iterdir()))
        else:
            assert read_line(stdout) == "Some text here .\n"
            threading.Thread(target=drain, args=(stdout,), daemon=True).start()
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b"error: interrupted\n"
        feeder.join(PATIENCE)
        assert list(tmp_path.iterdir()) == []
        wait_for(lambda: not is_group_alive(process.pid))


def drain(stream: IO[bytes]) -> None:
    while stream.read(1 << 16):
        pass


def wait_for(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
