"""``nlpkit elmo`` as a user runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app

TEXT = "the cat sat on the mat\nthe dog sat on the cat\n" * 15
SMALL = ["--dim", "6", "--hidden", "8", "--filters", "16", "--min-count", "1", "--epochs", "2"]


def run(*arguments: str, input: str = "") -> Result:
    result = CliRunner().invoke(app, ["elmo", *arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("elmo") / "elmo.model")
    result = run("train", "-", "-o", path, *SMALL, input=TEXT)
    assert result.exit_code == 0, result.stderr
    return path


def test_embed_gives_all_layers_one_or_a_mix(model: str, tmp_path: Path) -> None:
    lines = "the cat\n\na strange zebra\n"
    rows = [json.loads(line) for line in run("embed", model, input=lines).stdout.splitlines()]
    assert [row["tokens"] for row in rows] == [["the", "cat"], [], ["a", "strange", "zebra"]]
    layers = np.array(rows[2]["vectors"])
    assert layers.shape == (3, 3, 12)
    for flags, expected in (
        (["--layer", "1"], layers[1]),
        (["--layer", "mean"], layers.mean(axis=0)),
        (["--mix", "1,0,-2"], layers[0] - 2 * layers[2]),
    ):
        last = run("embed", model, *flags, input=lines).stdout.splitlines()[-1]
        np.testing.assert_allclose(json.loads(last)["vectors"], expected, atol=1e-5)
    ask = ("embed", model, "--layer", "top")
    assert run(*ask, "--json", input=lines).stdout == run(*ask, input=lines).stdout
    text = run(*ask, "--format", "text", input=lines).stdout.split("\n")
    assert [line.split(" ")[0] for line in text] == [
        "the",
        "cat",
        "",
        "",
        "a",
        "strange",
        "zebra",
        "",
        "",
    ]
    np.testing.assert_allclose([float(x) for x in text[4].split(" ")[1:]], layers[2][0], atol=1e-5)
    assert run("embed", model, "--format", "text", input=lines).exit_code == 2
    run("embed", model, "-o", str(tmp_path / "v.npz"), "--layer", "top", input=lines)
    arrays = np.load(tmp_path / "v.npz")
    assert arrays["lengths"].tolist() == [2, 0, 3]
    np.testing.assert_allclose(arrays["vectors"][2:], layers[2], atol=1e-5)


def test_the_batch_size_changes_nothing(model: str) -> None:
    lines = TEXT + "and the mat sat on a dog that was never seen\n"
    one, other = (
        [json.loads(line)["vectors"] for line in run(*flags, input=lines).stdout.splitlines()]
        for flags in (["embed", model], ["embed", model, "--batch-tokens", "1"])
    )
    for vectors, others in zip(one, other, strict=True):
        np.testing.assert_allclose(vectors, others, atol=1e-5)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--layer", "7"], "no layer 7 (try: all, mean, top, or a layer from 0 to 2)"),
        (["--mix", "1,2"], "2 shares for 3 layers"),
        (["--mix", "a"], "--mix takes numbers between commas"),
        (["--mix", "1,1,1", "--layer", "top"], "contradict"),
    ],
)
def test_a_wrong_layer_is_one_line(model: str, flags: list[str], message: str) -> None:
    result = run("embed", model, *flags, input="a\n")
    assert result.exit_code in (1, 2)
    assert message in result.stderr


def test_import_without_h5py_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    result = run("import", "options.json", "weights.hdf5", "-o", str(tmp_path / "m"))
    assert result.exit_code == 1
    assert result.stderr.endswith('needs the package h5py (try: pip install "nlpkit[elmo]")\n')


def test_import_of_a_folder_without_the_files_is_one_line(tmp_path: Path) -> None:
    result = run("import", str(tmp_path), "-o", str(tmp_path / "m"))
    assert result.exit_code == 1
    assert "found 0 *options.json and 0 *weights.hdf5" in result.stderr
