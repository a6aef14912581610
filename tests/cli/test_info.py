"""``nlpkit info --verify``, and commands that are given models nobody should trust."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runner import Runner
from model_files import without_manifest
from small_models import KINDS

from nlpkit import plots


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


# --- what it shows ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(KINDS))
def test_layers_have_shapes_and_parameters(
    run: Runner, model: Callable[[str], Path], kind: str
) -> None:
    model(kind)
    record = json.loads(run.ok("info", "m", "--json"))
    assert record["parameters"] == sum(layer["parameters"] for layer in record["layers"])
    for layer in record["layers"]:
        assert layer["parameters"] == math.prod(layer["shape"])
    shown = run.ok("info", "m")
    assert not record["layers"] or f"{record['parameters']:,} parameters" in shown
    assert "None" not in shown


def test_values_that_were_used_stand_there_and_the_size_of_files(run: Runner) -> None:
    run.write("t.txt", "the old king sat in the house\n" * 20)
    tiny = "-q --max-iters 2 --dim 8 --layers 1 --heads 1 --block-size 8 --threads 1".split()
    run.ok("gpt", "train", "t.txt", "-o", "g", *tiny)
    assert json.loads(run.ok("info", "g", "--json"))["settings"]["dtype"] == "float32"
    rows = [line.split() for line in run.ok("info", "g", "g").splitlines()]
    assert ["dtype", "float32", "float32"] in rows
    assert ["dim", "8", "8"] in rows
    assert ["on", "disk"] in [row[:2] for row in rows]
    assert "architecture.dim" not in [row[0] for row in rows if row]


def test_several_models_stand_side_by_side(run: Runner, made: Path) -> None:
    shutil.copy(made / "words.vocab", run.folder / "v")
    shutil.copytree(made / "demo.model", run.folder / "m")
    shown = run.ok("info", "v", "m").splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in shown if line.strip()}
    assert rows["kind"] == ["vocabulary", "demo"]
    assert rows["dim"] == ["-", "8"]
    assert next(line for line in shown if line.startswith("final loss")).split()[-1] == "0.25"
    cells = [line.split(",") for line in run.ok("info", "v", "m", "--format", "csv").splitlines()]
    (sizes,) = [row[1:] for row in cells if row[0] == "on disk"]
    assert all(size.isdigit() for size in sizes)
    assert next(row[1] for row in cells if row[0] == "dim") == ""
    assert f"size,{sizes[1]}\n" in run.ok("info", "m", "--format", "csv")


def test_vectors_vocabularies_and_subwords_are_described(run: Runner, made: Path) -> None:
    run.write("v.txt", "2 3\nking 1 0 0\nqueen 1 0 1\n")
    run.ok("vectors", "convert", "v.txt", "-o", "v.bin", "-q")
    for name in ("v.txt", "v.bin"):
        record = json.loads(run.ok("info", name, "--json"))
        assert (record["kind"], record["words"], record["dim"]) == ("vectors", 2, 3)
    record = json.loads(run.ok("info", str(made / "words.vocab"), "--json"))
    assert record["kind"] == "vocabulary"
    assert run.ok("info", str(made / "words.vocab")).startswith("vocabulary, ")
    assert record["tokens"] >= record["types"] > 10
    assert json.loads(run.ok("info", str(made / "tokenizer.json"), "--json"))["kind"] == "subwords"
    run.write("text.txt", "no model at all\n")
    run.fails("info", "text.txt")
    assert "no such model: nowhere" in run.fails("info", "nowhere")


def test_a_header_of_weights_that_lies_is_named(run: Runner, model: Callable[[str], Path]) -> None:
    file = without_manifest(model("gpt char")) / "weights.safetensors"
    for data in (b"", b"\xff" * 8, b"\x02\0\0\0\0\0\0\0[]", b"\x0c" + bytes(7) + b"{" * 12):
        file.write_bytes(data)
        assert "is damaged" in run.fails("info", "m")


def test_the_curve_is_drawn(run: Runner, made: Path) -> None:
    run.ok("info", str(made / "demo.model"), "--plot", "curve.svg", "-o", "said.txt")
    picture = (run.folder / "curve.svg").read_text()
    assert "demo.model" in picture  # the title, which stands beside the path of its letters
    run.ok("info", str(made / "demo.model"), "--plot", "curve.html", "-o", "said.txt", "--quiet")
    page = (run.folder / "curve.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<title>training, " in page
    assert "no training curve" in run.fails("info", str(made / "words.vocab"), "--plot", "c.png")


# --- samples ------------------------------------------------------------------------------------


def test_samples_are_listed_written_and_copied(run: Runner) -> None:
    rows = [json.loads(line) for line in run.ok("samples", "--json").splitlines()]
    assert all(row["what"] for row in rows)
    assert "world.txt" in {row["name"] for row in rows}
    text = run.ok("samples", "world-pairs.tsv")
    run.ok("samples", ".")
    assert (run.folder / "sample_corpora" / "world-pairs.tsv").read_text() == text
    assert "--force" in run.fails("samples", ".")
    run.ok("samples", ".", "--force")
    assert "no sample and no folder" in run.fails("samples", "nowhere")
    assert "nlpkit samples ." in run.fails("tokenize", "sample_corpora/none.txt")


def test_samples_replace_copies_and_nothing_else(run: Runner) -> None:
    run.ok("samples", ".")
    copies = run.folder / "sample_corpora"
    (copies / "mine.txt").write_text("mine")
    assert "holds mine.txt, which is no sample" in run.fails("samples", ".", "--force")
    copies.rename(run.folder / "elsewhere")
    copies.symlink_to("elsewhere")
    assert "is a link to a folder elsewhere" in run.fails("samples", ".", "--force")
    assert "is a link to a folder elsewhere" in run.fails("samples", ".")
    assert (run.folder / "elsewhere" / "mine.txt").read_text() == "mine"
    copies.unlink()
    copies.mkdir()
    (copies / "world.txt").symlink_to("../elsewhere/mine.txt")
    assert "holds world.txt, which is no sample" in run.fails("samples", ".", "--force")
    (copies / "world.txt").unlink()
    (copies / "world.txt").mkdir()
    assert "holds world.txt, which is no sample" in run.fails("samples", ".", "--force")
    (copies / "world.txt").rmdir()
    (copies / "tales.txt").write_text("cut")
    run.ok("samples", ".", "--force")
    assert (copies / "tales.txt").stat().st_size > 100_000
    shutil.rmtree(copies)
    copies.write_text("mine")
    assert "is no folder" in run.fails("samples", ".", "--force")


def test_a_pipe_is_refused_instead_of_waited_for(run: Runner) -> None:
    os.mkfifo(run.folder / "pipe")
    assert "is neither a file nor a folder (try: save it to a file first)" in run.fails(
        "info", "pipe"
    )


def test_curves_of_several_models_have_a_colour_each_and_whole_steps() -> None:
    curve = [{"step": step, "loss": 1.0 / step, "heldout_loss": 2.0 / step} for step in (1, 2, 3)]
    drawn, axes = plots.figure()
    plots.plot_losses(axes, {"a": curve, "b": curve})
    seen = [(line.get_label(), line.get_color(), line.get_linestyle()) for line in axes.lines]
    assert seen == [
        ("a, training", "C0", "-"),
        ("a, held out", "C0", "--"),
        ("b, training", "C1", "-"),
        ("b, held out", "C1", "--"),
    ]
    drawn.canvas.draw()
    assert all(float(tick).is_integer() for tick in axes.get_xticks())
