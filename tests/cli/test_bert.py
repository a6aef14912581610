"""``nlpkit bert`` as a user runs it."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app

LINES = ["the cat sat on the mat", "the dog ran in the park", "a bird sang in a tree", ""]
TEXT = "\n".join(LINES * 12)
SMALL = ["--layers", "1", "--heads", "2", "--dim", "16", "--length", "16", "--max-iters", "60"]
SMALL += ["--vocab-size", "60", "--batch-size", "8", "--lr", "0.02", "--threads", "1"]


def run(*arguments: str, input: str = "") -> Result:
    result = CliRunner().invoke(app, ["bert", *arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def ok(*arguments: str, input: str = "") -> str:
    result = run(*arguments, input=input)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def rows(*arguments: str, input: str = "") -> list[Any]:
    return [json.loads(line) for line in ok(*arguments, input=input).splitlines()]


def refused(*arguments: str, input: str = "") -> str:
    result = run(*arguments, input=input)
    assert result.exit_code == 1, result.stderr
    assert result.stderr.count("error: ") == 1
    return result.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model, and the text."""
    path = tmp_path_factory.mktemp("bert")
    (path / "text.txt").write_text(TEXT + "\n")
    result = run("train", str(path / "text.txt"), "-o", str(path / "m"), "--recipe", "bert", *SMALL)
    assert result.exit_code == 0, result.stderr
    assert "baselines: unigram" in result.stderr
    assert "of masked right" in result.stderr
    return path


@pytest.fixture
def model(folder: Path) -> str:
    return str(folder / "m")


def test_masks_are_filled_from_arguments_and_lines(model: str) -> None:
    line = ok("fill", model, "the cat sat on the [MASK]", "-n", "2").splitlines()[0]
    probability, token, text = line.split("\t")
    assert 0 < float(probability) <= 1
    assert text.replace(" ", "").endswith(token.removeprefix("##"))
    (one, two) = rows("fill", model, "-", "--json", input="the [MASK]\n[MASK] cat [MASK]\n")
    assert "order" not in one
    assert two["order"] == "best"
    assert [len(filling["tokens"]) for filling in two["fillings"]] == [2]
    (found,) = rows("fill", model, "the [MASK] sat", "--targets", "cat,dog", "--json")
    assert {filling["tokens"][0] for filling in found["fillings"]} == {"cat", "dog"}
    assert "no [MASK] in the text" in refused("fill", model, "the cat")
    assert "line 2: no [MASK]" in refused("fill", model, "-", input="the [MASK]\nthe cat\n")


def test_two_texts_are_compared_as_rows_pictures_and_a_page(model: str, tmp_path: Path) -> None:
    texts = ("the [MASK] sat on", "the [MASK] ran in")
    found = rows("compare", model, *texts, "-k", "5", "--json")
    differences = [row["difference"] for row in found]
    assert len(found) == 5
    assert differences == sorted(differences, reverse=True)
    for row in found:
        assert np.log(row["first"] / row["second"]) == pytest.approx(row["difference"], abs=1e-3)
    page = str(tmp_path / "c.html")
    ok("compare", model, *texts, "--plot", page, "-k", "0")
    assert "[MASK] sat on" in Path(page).read_text()
    assert "•" in ok("compare", model, *texts, "--view")
    assert run("compare", model, *texts, "--view", "--json").exit_code == 2
    assert "cannot draw" in refused("compare", model, *texts, "--plot", "c.doc")
    assert "2 masks" in refused("compare", model, "[MASK] [MASK]", "[MASK]")


def test_vectors_go_to_every_kind_of_file(model: str, folder: Path, tmp_path: Path) -> None:
    lines = "the cat\nthe dog sat\n"
    printed = np.array([row["vector"] for row in rows("embed", model, input=lines)])
    assert printed.shape == (2, 16)
    text = ok("embed", model, "--format", "text", input=lines)
    np.testing.assert_allclose(np.loadtxt(text.splitlines()), printed, atol=1e-6)
    first = ok("embed", model, "--tokens", "--format", "text", input=lines).split("\n")
    assert [line.split(" ")[0] for line in first[:4]] == ["the", "cat", "", "the"]
    ok("embed", model, "-o", str(tmp_path / "v.jsonl.gz"), input=lines)
    with gzip.open(tmp_path / "v.jsonl.gz", "rt") as packed:
        assert len(packed.readlines()) == 2
    array = ["-o", str(tmp_path / "v.npy")]
    assert run("embed", model, "--json", *array, input=lines).exit_code == 2
    ok("embed", model, "-o", str(tmp_path / "v.npy"), input=lines)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), printed, atol=1e-6)
    ok("embed", model, "--tokens", "-o", str(tmp_path / "v.npz"), input=lines)
    arrays = np.load(tmp_path / "v.npz")
    assert arrays["vectors"].shape == (int(arrays["lengths"].sum()), 16)
    ok("embed", model, str(folder / "text.txt"), "-o", str(tmp_path / "lines"))
    shown = CliRunner().invoke(
        app, ["vectors", "nearest", "-m", str(tmp_path / "lines"), "-n", "1", LINES[0]]
    )
    assert shown.exit_code == 0, shown.stderr
    ok("embed", model, str(folder / "text.txt"), "--tokens", "-o", str(tmp_path / "tokens"))
    assert "--layer 9: the model has 1" in refused("embed", model, "--layer", "9", input=lines)


def test_long_lines_are_read_in_parts_and_that_is_said(model: str) -> None:
    result = run("embed", model, input="the cat " * 30 + "\n")
    assert "1 line was longer than 16 tokens and read in parts" in result.stderr


def test_lines_are_found_from_an_index_and_without(
    model: str, folder: Path, tmp_path: Path
) -> None:
    text, index = str(folder / "text.txt"), str(tmp_path / "i")
    ok("index", model, text, "-o", index)
    os.rename(index, index + "2")  # it needs neither its place nor the model
    found = rows("search", index + "2", "the dog ran in the park", "-n", "3", "--json")
    assert found[0]["text"] == "the dog ran in the park"
    assert found[0]["score"] == pytest.approx(1, abs=1e-4)
    assert (found[0]["file"], found[0]["line"]) == (text, 2)
    assert rows("search", model, "the dog ran in the park", text, "-n", "3", "--json") == found
    (asked,) = rows("search", index + "2", "-", "-n", "1", "--json", input="a bird\n")
    assert asked["query"] == "a bird"
    assert "no lines to index" in refused("index", model, "-o", str(tmp_path / "j"))
    assert "an empty query" in refused("search", index + "2", " ")
    assert "is a bert model, not a bert-index model" in refused("search", model, "x")
    assert "is not a model folder" in refused("search", text, "x")


def test_an_index_holds_names_that_are_no_utf8(model: str, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"name-\xff.txt")
    odd.write_text("the dog ran\n")
    ok("index", model, str(odd), "-o", str(tmp_path / "i"))
    (found,) = rows("search", str(tmp_path / "i"), "a dog", "--json")
    assert found["file"] == str(odd)


def test_pairs_scores_attention_and_senses(model: str, folder: Path) -> None:
    (same,) = rows("similarity", model, "the cat", "the cat", "--json")
    assert same["cosine"] == pytest.approx(1, abs=1e-5)
    (pair,) = rows("similarity", model, "--json", input="the cat\tthe dog\n")
    assert -1 <= pair["cosine"] < 1
    assert "line 1: not a pair" in refused("similarity", model, input="the cat\n")
    record = {"id": 7, "first": "the cat", "second": "the dog"}
    (found,) = rows("similarity", model, "--json", input=json.dumps(record) + "\n")
    assert {key: found[key] for key in record} == record
    assert -1 <= found["cosine"] <= 1
    assert "keys: first, second" in refused("similarity", model, input='{"first": "the cat"}\n')
    good, bad = rows("score", model, "--json", input=f"{LINES[0]}\n{LINES[0][::-1]}\n")
    assert good["perplexity"] < bad["perplexity"]
    (scored,) = rows("score", model, "--tokens", input="the cat\n")
    assert sum(scored["logprobs"]) == pytest.approx(scored["score"], abs=1e-3)
    (map_,) = rows("attention", model, "the cat", "--layer", "1", "--head", "2")
    assert np.array(map_["weights"]).sum(axis=1) == pytest.approx(1, abs=1e-3)
    found = rows("senses", model, "the", str(folder / "text.txt"), "--senses", "2", "--json")
    assert {row["sense"] for row in found} == {1, 2}
    assert "does not occur" in refused("senses", model, "zebra", str(folder / "text.txt"))


def test_a_folder_goes_out_and_comes_back(model: str, tmp_path: Path) -> None:
    hf, again = str(tmp_path / "hf"), str(tmp_path / "again")
    ok("export", model, "-o", hf)
    ok("import", hf, "-o", again)
    line = "the cat sat\n"
    want = ok("embed", model, input=line)
    assert ok("embed", hf, input=line) == ok("embed", again, input=line) == want
    assert "exists and is not an empty folder" in refused("export", model, "-o", hf)
    (tmp_path / "hf" / "tokenizer.json").unlink()
    (tmp_path / "hf" / "vocab.txt").unlink()
    assert "has no vocabulary" in refused("embed", hf, input=line)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--next-sentence"], "needs four documents, here is 1"),
        (["--heads", "3"], "does not divide"),
        (["--tokenizer", "nothing.json"], "no such tokenizer"),
        (["--vectors", "nothing.txt"], "nothing.txt"),
    ],
)
def test_what_cannot_be_trained_is_one_line(flags: list[str], said: str, tmp_path: Path) -> None:
    text = "the cat\nthe dog\n" * 30
    where = str(tmp_path / "m")
    assert said in refused("train", "-", "-o", where, *SMALL, *flags, input=text)
    assert not (tmp_path / "m").exists()
    assert "no text to train on" in refused("train", "-", "-o", where, *SMALL, input="\n\n")
