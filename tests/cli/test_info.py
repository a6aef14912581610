"""``nlpkit info --verify``, and commands that are given models nobody should trust."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runner import Runner
from model_files import without_manifest
from small_models import KINDS


@pytest.fixture
def model(run: Runner) -> Callable[[str], Path]:
    def make(kind: str) -> Path:
        KINDS[kind][0](run.folder / "m")
        return run.folder / "m"

    return make


def edit(model: Path, *path: str, value: Any) -> None:
    file = without_manifest(model) / "config.json"
    config = inner = json.loads(file.read_text(encoding="utf-8"))
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    file.write_text(json.dumps(config), encoding="utf-8")


def test_verify_says_that_all_is_well(run: Runner, model: Callable[[str], Path]) -> None:
    folder = model("vectors")
    assert run.ok("info", "m", "--verify") == "3 files, 395 bytes: all as they were written\n"
    assert json.loads(run.ok("info", "m", "--verify", "--json")) == {
        "verified": True,
        "files": 3,
        "bytes": 395,
        "unlisted": [],
        "file": None,
        "reason": None,
    }
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    assert run.ok("info", "m", "--verify").endswith("\nnot in the manifest: notes.txt\n")


def test_verify_names_the_first_file_that_was_changed(
    run: Runner, model: Callable[[str], Path]
) -> None:
    file = model("vectors") / "vectors.npy"
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "m/vectors.npy is damaged: its SHA-256" in run.fails("info", "m", "--verify")
    result = run("info", "m", "--verify", "--json")
    assert result.code == 1
    record = json.loads(result.out)
    assert (record["verified"], record["file"]) == (False, "vectors.npy")
    assert "SHA-256" in record["reason"]
    assert "m/vectors.npy is damaged" in run.fails("vectors", "nearest", "-m", "m", "king")


def test_old_models_have_nothing_to_verify(run: Runner, made: Path) -> None:
    without_manifest(shutil.copytree(made / "demo.model", run.folder / "m"))
    assert "m has no manifest" in run.fails("info", "m", "--verify")
    assert run.ok("info", "m").startswith("demo model")


@pytest.mark.parametrize(
    ("kind", "command", "path", "value", "message"),
    [
        ("vectors", "info m", ["command"], [1], "command[0] is 1, not text"),
        (
            "gpt byte",
            "gpt sample m",
            ["settings", "architecture", "block_size"],
            10**9,
            "block_size 1000000000 is out of proportion",
        ),
        ("classifier bow", "classify predict m", ["settings", "ngrams"], -1, "ngrams is -1, not"),
        ("tagger lstm", "tag predict m", ["settings", "hidden"], "x", 'hidden is "x", not a whole'),
    ],
)
def test_a_wrong_value_in_a_config_is_one_line(
    run: Runner,
    model: Callable[[str], Path],
    kind: str,
    command: str,
    path: list[str],
    value: Any,
    message: str,
) -> None:
    edit(model(kind), *path, value=value)
    assert message in run.fails(*command.split(), input="Anna\n")


def test_a_flipped_byte_in_an_array_header_is_one_line(
    run: Runner, model: Callable[[str], Path]
) -> None:
    file = without_manifest(model("vectors")) / "vectors.npy"
    data = bytearray(file.read_bytes())
    data[10] ^= 1
    file.write_bytes(data)
    assert "m/vectors.npy is damaged" in run.fails("vectors", "nearest", "-m", "m", "king")
