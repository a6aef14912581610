"""Files and places as they should not be: long lines, damaged archives, odd names, dying processes,
and words that would give a terminal orders."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pty
import subprocess
from pathlib import Path

import numpy as np
import pytest
import zstandard
from command_runner import NLPKIT, Runner
from test_bad_input import READERS

from nlpkit import faults
from nlpkit.vectors.formats import save
from nlpkit.vectors.store import Vectors

LIMIT = 100_000
LINE = f"line 2 is longer than {LIMIT:,} bytes (try: NLPKIT_MAX_LINE=BYTES"
COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
ESCAPE = "\x1b[31m"


@pytest.fixture
def vectors(run: Runner) -> str:
    """Three words, one of which would colour a terminal."""
    matrix = np.array([[1, 0], [0.9, 0.1], [0, 1]], np.float32)
    save(Vectors(["king", f"{ESCAPE}queen", "pear"], matrix), str(run.folder / "v.model"))
    return "v.model"


# --- long lines and damaged archives ------------------------------------------------------------


@pytest.mark.parametrize("name", READERS)
def test_a_line_without_end_is_an_error_with_its_place(run: Runner, name: str, made: Path) -> None:
    run.write("zeros.gz", gzip.compress(b"1\n" + bytes(2 * LIMIT)))
    arguments = [argument.replace("MADE", str(made)) for argument in READERS[name]]
    before = run.files()
    result = run(*arguments, "zeros.gz", "-o", "out.txt", env={"NLPKIT_MAX_LINE": str(LIMIT)})
    assert f"zeros.gz: {LINE}" in run.check_failure(result, before)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("vectors info", "line 3 is longer than"),
        ("tag check", "line 1 starts a sentence longer than"),
        ("sentences --wrapped -o out.txt", "ends a paragraph longer than"),
    ],
)
def test_vectors_sentences_and_paragraphs_are_not_longer_than_a_line(
    run: Runner, monkeypatch: pytest.MonkeyPatch, command: str, message: str
) -> None:
    monkeypatch.setenv("NLPKIT_MAX_LINE", str(LIMIT))
    rows = b"a 1 2\nb 1 2\n" + (b"c" * 2 * LIMIT if "vectors" in command else b"c 1 2\n" * LIMIT)
    run.write("text.gz", gzip.compress(rows))
    assert message in run.fails(*command.split(), "text.gz")


def test_the_longest_line_is_allowed_and_the_limit_is_a_number(run: Runner) -> None:
    run.write("text.txt", "a" * LIMIT + "\nb\n")
    limit = {"NLPKIT_MAX_LINE": str(LIMIT)}
    assert len(run.ok("tokenize", "text.txt", env=limit)) == LIMIT + 3
    result = run("tokenize", "text.txt", env={"NLPKIT_MAX_LINE": "64M"})
    assert "NLPKIT_MAX_LINE is '64M'" in run.check_failure(result, run.files())


@pytest.mark.parametrize("command", ["tokenize", "vectors info"])
def test_a_small_archive_of_much_takes_little_memory(run: Runner, command: str) -> None:
    run.write("zeros.gz", gzip.compress(bytes(1 << 22)) * 100)
    line = run.shell_fails(f"ulimit -v 1000000; nlpkit {command} zeros.gz")
    assert "out of memory" not in line


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("damage", ["cut", "flipped", "other"])
def test_damaged_archives_are_one_line(run: Runner, ending: str, damage: str) -> None:
    rows = "".join(f"word{number} {number} 1.5\n" for number in range(3000))
    whole = COMPRESS[ending](rows.encode())
    middle = len(whole) // 2
    damaged = {
        "cut": whole[:middle],
        "flipped": whole[:middle] + bytes(64) + whole[middle + 64 :],
        "other": rows.encode(),
    }[damage]
    file = run.write(f"rows.{ending}", damaged)
    for command in (["vectors", "info"], ["tokenize", "-o", "out.txt"]):
        assert f"cannot decompress {file}: " in run.fails(*command, file)


def test_json_that_is_nested_too_deeply_is_one_line(run: Runner) -> None:
    deep = '{"text": ' + "[" * 100_000
    file = run.write("deep.jsonl", deep + "\n")
    assert "deep.jsonl: line 1: not JSON" in run.fails("classify", "train", file, "-o", "m")
    toml = run.write("deep.toml", "dim = " + "[" * 100_000)
    result = run("word2vec", "train", "--config", toml, "-o", "m", input="a b")
    assert result.code == 2
    assert "Traceback" not in result.err


# --- temporary files ----------------------------------------------------------------------------


def test_a_full_temporary_folder_is_one_line_and_a_missing_one_is_passed_over(run: Runner) -> None:
    rows = "".join(f"word{number} {number} 1.5\n" for number in range(3000))
    run.write("rows.gz", gzip.compress(rows.encode()))
    line = run.shell_fails("ulimit -f 16; nlpkit vectors info rows.gz")
    assert "cannot write temporary files in" in line
    assert "TMPDIR=FOLDER" in line
    assert "3000" in run.ok("vectors", "info", "rows.gz", env={"TMPDIR": "/nowhere"})


# --- places -------------------------------------------------------------------------------------


def test_a_link_to_a_model_is_followed_and_odd_names_are_written(run: Runner, vectors: str) -> None:
    (run.folder / "link").symlink_to(vectors)
    assert "exists already" in run.fails("vectors", "normalize", vectors, "-o", "link")
    run.ok("vectors", "normalize", vectors, "-o", "link", "--force")
    assert (run.folder / "link").is_symlink()
    assert "normalize" in run.ok("info", vectors)
    odd = os.fsdecode(b"caf\xe9.model")
    run.ok("vectors", "convert", vectors, "-o", odd)
    assert rf"-o {odd}".encode("utf-8", "backslashreplace").decode() in run.ok("info", odd)
    assert '"command"' in run.ok("info", odd, "--json")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x" * 245, "File name too long"),
        ("x" * 300, "File name too long"),
        ("loop", "leads nowhere"),
        ("dangling", "no such folder"),
        ("file", "exists and is not a model"),
        ("file/m", "no such folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_vectors_are_read(
    run: Runner, name: str, message: str
) -> None:
    run.write("file", "text")
    (run.folder / "loop").symlink_to("loop")
    (run.folder / "dangling").symlink_to("missing/m")
    before = sorted(os.listdir(run.folder))
    result = run("vectors", "convert", "nowhere.txt", "-o", name, "--to", "folder", "--force")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert message in result.err
    assert sorted(os.listdir(run.folder)) == before


@pytest.mark.parametrize("name", ["vocab build", "encode", "pad", "vectorize", "bpe train"])
def test_a_file_that_cannot_be_written_is_refused_before_reading(
    run: Runner, name: str, made: Path
) -> None:
    arguments = [argument.replace("MADE", str(made)) for argument in READERS[name]]
    line = run.fails(*arguments, "nowhere.txt", "-o", "missing/out.npz")
    assert "no such folder" in line


@pytest.mark.parametrize("name", ["file", "file/projector", "x" * 300, "file/a/b"])
def test_a_projector_folder_that_cannot_be_written_is_refused_first(run: Runner, name: str) -> None:
    run.write("file", "text")
    line = run.fails("vectors", "export-projector", "nowhere.txt", "-o", name)
    assert "cannot write" in line


def test_a_projector_folder_is_written_whole(run: Runner, vectors: str) -> None:
    command = ["vectors", "export-projector", vectors, "-o", "new/projector"]
    result = run(*command, env={faults.VARIABLE: "5"})
    assert result.code == faults.KILLED
    assert not (run.folder / "new" / "projector").exists()
    run.ok(*command)
    run.ok(*command, "--restrict", "1")  # into a folder that is there
    assert sorted(os.listdir(run.folder / "new" / "projector")) == ["metadata.tsv", "vectors.tsv"]


def test_a_file_where_a_folder_of_texts_should_be(run: Runner) -> None:
    file = run.write("texts.txt", "good\n")
    line = run.fails("classify", "train", file, "--format", "folder", "-o", "m")
    assert "texts.txt: Not a directory (try: a folder per label" in line


@pytest.mark.parametrize("command", [["info"], ["bpe", "encode", "-m"], ["names", "sample"]])
def test_a_name_that_is_too_long_to_exist_is_one_line(run: Runner, command: list[str]) -> None:
    run.fails(*command, "x" * 300)


def test_a_model_is_there_after_a_kill_at_any_moment(run: Runner, vectors: str) -> None:
    """Every second operation here; each one, and the way of two renames, in test_folders.py."""
    command = ["vectors", "normalize", vectors, "-o", "m", "--force"]
    run.ok(*command)
    for operation in range(2, 100, 2):
        result = run(*command, env={faults.VARIABLE: str(operation)})
        assert "king" in run.ok("vectors", "info", "m")
        if result.code == 0:
            return
        assert result.code == faults.KILLED
    pytest.fail("the command never came to its end")


# --- terminals ----------------------------------------------------------------------------------


def on_terminal(folder: Path, *arguments: str, columns: int = 100) -> str:
    """What a person sees on stdout and stderr."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    with subprocess.Popen(
        [*NLPKIT, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        cwd=folder,
        env=environment,
    ):
        os.close(slave)
        seen = b""
        while True:
            try:
                piece = os.read(master, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            seen += piece
    os.close(master)
    return seen.decode()


@pytest.mark.parametrize("format", ["table", "tsv", "jsonl"])
def test_a_terminal_is_shown_escapes_and_a_pipe_gets_the_bytes(
    run: Runner, vectors: str, format: str
) -> None:
    command = ["vectors", "nearest", "king", "-m", vectors, "-n", "1", "--format", format]
    seen = on_terminal(run.folder, *command)
    assert ESCAPE not in seen
    assert ("\\u001b[31mqueen" if format == "jsonl" else "\\x1b[31mqueen") in seen
    if format != "jsonl":
        assert f"{ESCAPE}queen" in run.ok(*command)


def test_notes_errors_and_text_on_a_terminal_are_harmless(run: Runner, vectors: str) -> None:
    text = run.write("text.txt", f"a {ESCAPE}b \x9b31mc \u202ed\te\r\n")
    seen = on_terminal(run.folder, "tokenize", "-t", "whitespace", text)
    assert seen == "a \\x1b[31mb \\u009b31mc \\u202ed e\r\n"
    assert "\\x1b[31mqueen" in on_terminal(run.folder, "vectors", "info", vectors)
    missing = on_terminal(run.folder, "tokenize", f"{ESCAPE}.txt")
    assert missing.startswith("error: no such file: \\x1b[31m.txt")
    noted = on_terminal(run.folder, "vectors", "convert", vectors, "-o", f"{ESCAPE}.model")
    assert "to \\x1b[31m.model (folder)" in noted


def test_colours_of_our_own_reach_a_terminal(run: Runner) -> None:
    texts = "".join(f"__label__good nice {ESCAPE}film {n}\n__label__bad awful {n}\n" for n in "abc")
    run.write("texts.txt", texts)
    run.ok("classify", "train", "texts.txt", "-o", "m", "-q", "--epochs", "3", "--threads", "1")
    run.write("text.txt", f"nice {ESCAPE}film\n")
    seen = on_terminal(run.folder, "classify", "explain", "m", "text.txt")
    assert "\x1b[0m" in seen
    assert "\\x1b" in seen
    assert ESCAPE.encode() not in seen.replace("\x1b[31mawful", "").encode()


def test_the_root_of_all_files_is_no_place_for_a_model(run: Runner) -> None:
    file = run.write("v.txt", "2 2\na 1 2\nb 3 4\n")
    assert "/ exists and is not a model" in run.fails("vectors", "convert", file, "-o", "/")
    assert "/ is not a model folder" in run.fails("info", "/")
    assert "no such folder" in run.fails("vectors", "convert", file, "-o", "no/where/")


def test_an_empty_name_never_replaces_the_current_folder(run: Runner) -> None:
    file = run.write("v.txt", "2 2\na 1 2\nb 3 4\n")
    assert "a folder needs a name" in run.fails("vectors", "convert", file, "-o", "")
