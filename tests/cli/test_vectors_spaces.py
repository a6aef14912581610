"""``nlpkit vectors embed``, ``search``, ``align``, ``shift``, ``bias``, ``from-counts --method
glove``, tables of other models, and ``nlpkit walks``, through the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app
from nlpkit.vectors.formats import save
from nlpkit.vectors.store import Vectors

GOLDEN = Path(__file__).parent.parent / "golden" / "0.1.0"
WORDS = ["king", "queen", "man", "woman", "apple", "pear", "the", "a"]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    rows = [
        [1, 0, 1],
        [0, 1, 1],
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, -1],
        [0.1, 0, -1],
        [1, 1, 1],
        [1, 1, 1],
    ]
    save(Vectors(WORDS, np.array(rows, np.float32)), "v.model")
    return "v.model"


def run(*arguments: str, text: str | None = None, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(arguments), input=text)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def records(result: Result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_lines_become_vectors(model: str) -> None:
    text = "king queen\nnothing known\nApple\n"
    found = records(run("vectors", "embed", "-m", model, "--method", "mean", "--json", text=text))
    assert [one["text"] for one in found] == text.splitlines()
    assert found[0]["vector"] == [0.5, 0.5, 1.0]
    assert found[1]["vector"] == found[2]["vector"] == [0.0, 0.0, 0.0]
    lines = run("vectors", "embed", "-m", model, "--lower", text=text).stdout.splitlines()
    assert len(lines) == 3
    assert all(len(line.split()) == 3 for line in lines)


def test_frequent_words_count_less_and_what_is_common_goes(model: str) -> None:
    mean = records(
        run("vectors", "embed", "-m", model, "--json", "--method", "mean", text="the man\n")
    )
    options = ["--keep-common", "--json"]
    sif = records(run("vectors", "embed", "-m", model, *options, text="the man\n"))
    assert np.argmax(sif[0]["vector"]) == 0
    # "the" is third by rank, "the" seventh: the latter is the rarer here, so both lose a little
    assert sif[0]["vector"][1] < mean[0]["vector"][1]
    rest = records(run("vectors", "embed", "-m", model, "--json", text="king\nking king\n"))
    np.testing.assert_allclose(rest[0]["vector"], [0, 0, 0], atol=1e-6)


def test_search_ranks_lines_by_meaning(model: str) -> None:
    Path("lines.txt").write_text("a queen\nan apple\n\na woman\npear apple\n")
    options = ["-m", model, "--method", "mean", "--json", "-n", "2"]
    found = records(run("vectors", "search", "lines.txt", "pear", "queen woman", *options))
    assert [one["query"] for one in found] == ["pear", "pear", "queen woman", "queen woman"]
    assert [one["line"] for one in found[:2]] == [5, 2]
    assert {one["line"] for one in found[2:]} == {1, 4}
    assert found[0]["text"] == "pear apple"
    assert "nofile" in run("vectors", "search", "nofile", "xyz", "-m", model, code=1).stderr
    assert found[0]["score"] > found[1]["score"]
    streamed = run("vectors", "search", "-", "pear", *options, text="a queen\npear\n")
    assert records(streamed)[0]["line"] == 2
    said = run("vectors", "search", "lines.txt", "zebra", "-m", model, code=1).output
    assert "no word of 'zebra' is known" in said


def test_texts_of_several_words_are_compared(model: str) -> None:
    whole = records(run("vectors", "similarity", "king man", "man king", "-m", model, "--json"))
    assert whole[0]["score"] == pytest.approx(1)
    found = records(run("vectors", "similarity", "-m", model, "--json", text="king man\tpear\n"))
    assert found[0]["score"] < 0
    assert "unknown word" in run("vectors", "similarity", "x y", "king", "-m", model, code=1).output


def test_a_turned_space_is_turned_back(model: str, tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    matrix = random.normal(size=(60, 5)).astype(np.float32)
    turn = np.linalg.qr(random.normal(size=(5, 5)))[0].astype(np.float32)
    words = [f"w{i}" for i in range(60)]
    save(Vectors(words, matrix), "a.model")
    save(Vectors([f"x{i}" for i in range(60)], matrix @ turn), "b.model")
    Path("d.txt").write_text("".join(f"w{i}\tx{i}\n" for i in range(60)))
    dictionary = ["--dictionary", "d.txt", "--held-out", "0.5", "--json"]
    found = records(run("vectors", "align", "a.model", "b.model", "-o", "c.model", *dictionary))[0]
    assert (found["pairs"], found["held_out"]) == (30, 30)
    assert found["cosine@1"] == found["cosine@5"] == 1.0
    assert found["csls@1"] > 0.9
    Path("few.txt").write_text("".join(f"w{i}\tx{i}\n" for i in range(3)))
    few = ["--dictionary", "few.txt", "--held-out", "0", "-o", "few.model"]
    said = run("vectors", "align", "a.model", "b.model", *few).stderr
    assert "warning: 3 pairs for 5 dimensions leave the rotation open" in said
    save(Vectors(words, matrix @ turn), "e.model")
    moved = matrix @ turn
    moved[7] = -moved[7]
    save(Vectors(words, moved), "f.model")
    shifts = records(run("vectors", "shift", "a.model", "f.model", "--also-b", "e.model", "--json"))
    assert shifts[0]["word"] == "w7"
    assert shifts[0]["low"] < 0.1 < 1.5 < shifts[0]["high"]
    assert shifts[1]["shift"] < 0.2
    said = run("vectors", "align", "a.model", model, "-o", "g.model", code=1).output
    assert "5 and 3 numbers" in said
    Path("d.txt").write_text("a b\nc\n")
    said = run("vectors", "align", "a.model", "b.model", "-o", "g", *dictionary, code=1).output
    assert "d.txt: line 2: expected two words, found 1" in said
    assert not Path("g").exists()


def test_bias_is_told_from_chance(model: str) -> None:
    text = ": royal\nking man zebra\nqueen woman\nman\nwoman\n"
    text += ": fruit\napple pear\nking queen\nman\nking\n"
    found = records(run("vectors", "bias", "-m", model, "--json", text=text))
    assert [one["test"] for one in found] == ["royal", "fruit"]
    assert found[0]["effect"] > 1
    assert (found[0]["known"], found[0]["words"]) == (6, 7)
    assert found[0]["p"] == pytest.approx(1 / 6)
    said = run("vectors", "bias", "-m", model, text="king\nqueen\n", code=1).output
    assert "has 2 lists of words, not 4" in said
    said = run("vectors", "bias", "-m", model, text="king x\nqueen man\nman\nking\n", code=1).output
    assert "of the first targets 1 of 2 words are known" in said


@pytest.mark.parametrize(
    ("name", "word", "size"),
    [("classify-cnn", "cold", 23), ("names-mlp", "a", 25), ("gpt-char", "e", 56)],
)
def test_the_table_of_a_model_is_vectors(model: str, name: str, word: str, size: int) -> None:
    folder = str(GOLDEN / name)
    assert records(run("vectors", "info", folder, "--json"))[0]["words"] == size
    near = records(run("vectors", "nearest", word, "-m", folder, "-n", "2", "--json"))
    assert len(near) == 2
    run("vectors", "convert", folder, "-o", "table.txt")
    assert Path("table.txt").read_text().startswith(f"{size} 8\n")


def test_a_model_without_a_table_says_so(model: str, tmp_path: Path) -> None:
    said = run("vectors", "nearest", "a", "-m", str(GOLDEN / "classify-bow"), code=1).output
    assert "keeps no words" in said
    shutil.copytree(GOLDEN / "names-mlp", "damaged")
    Path("damaged/alphabet.json").write_text("[1]")
    said = run("vectors", "nearest", "a", "-m", "damaged", code=1).output
    assert "damaged" in said


def test_glove_from_a_pipe_and_its_file(model: str) -> None:
    text = "king queen man\napple pear\nman king queen\npear apple\n" * 30
    options = ["--method", "glove", "--dim", "4", "--threads", "1", "--quiet"]
    for name in ("g.txt", "h.txt"):
        run("vectors", "from-counts", "-o", name, *options, text=text)
    assert Path("g.txt").read_bytes() == Path("h.txt").read_bytes()
    near = records(run("vectors", "nearest", "king", "-m", "g.txt", "-n", "2", "--json"))
    assert {one["word"] for one in near} == {"queen", "man"}
    said = run("vectors", "from-counts", "-o", "x", "--resume", text=text, code=2).output
    assert "--resume is for --method glove" in said
    # said before a text is read and counted, which may take long
    said = run("vectors", "from-counts", "-o", "x", "--resume", *options, text="", code=1).output
    assert "no checkpoint" in said


def test_walks_stream_and_bad_edges_are_one_line(model: str) -> None:
    lines = run("walks", "--walks", "2", "--length", "4", "--quiet", text="a b\nb c\n").stdout
    assert len(lines.splitlines()) == 6
    assert all(len(line.split()) == 4 for line in lines.splitlines())
    Path("e.txt").write_text("a b 1\nc d x\n")
    said = run("walks", "e.txt", code=1).output
    assert said.startswith("error: e.txt: line 2: 'x' is no weight")
    assert "standard input: line 1: " in run("walks", text="a\n", code=1).output


def test_a_folder_of_pair_files_is_a_table(model: str) -> None:
    Path("sets").mkdir()
    Path("sets/a.tsv").write_text("king\tqueen\t5\nking\tapple\t1\nking\tman\t8\nman\tzebra\t1\n")
    Path("sets/b.tsv").write_text("apple\tpear\t9\nking\tapple\t1\nman\twoman\t3\n")
    found = records(run("vectors", "evaluate", "similarity", "sets", "-m", model, "--json"))
    assert [(one["set"], one["known"], one["pairs"]) for one in found] == [
        ("a.tsv", 3, 4),
        ("b.tsv", 3, 3),
    ]
    assert found[1]["spearman"] == pytest.approx(1)
    compared = run("vectors", "evaluate", "similarity", "sets", "-m", model, "--compare", model)
    assert [line.split("\t")[0] for line in compared.stdout.splitlines()] == ["a.tsv", "b.tsv"]
    Path("sets/c.tsv").write_text("nothing\n")
    said = run("vectors", "evaluate", "similarity", "sets", "-m", model, code=1).output
    assert "c.tsv: no word pairs in it" in said
