"""``nlpkit vectors``: every command through the command line, with its formats and its errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_runner import Runner
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app
from nlpkit.vectors.formats import load, save
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.words import ListedWords

ROWS = {
    "man": [1, 0, 0, 0.2],
    "woman": [0, 1, 0, 0.2],
    "king": [1, 0, 1, 0.1],
    "queen": [0, 1, 1, 0.1],
    "apple": [0.1, 0.1, 0, 1],
    "pear": [0.1, 0.2, 0, 1],
    "new york": [0.5, 0.5, -1, 0],
}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    words = ListedWords(list(ROWS), np.arange(len(ROWS), 0, -1))
    save(Vectors(words, np.array(list(ROWS.values()), np.float32)), "v.model")
    return "v.model"


def run(*arguments: str, text: str | None = None, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["vectors", *arguments], input=text)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def records(result: Result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def rows(result: Result) -> list[list[str]]:
    return [line.split("\t") for line in result.stdout.splitlines()]


# --- asking -------------------------------------------------------------------------------------


def test_nearest_of_words_on_the_command_line(model: str) -> None:
    assert [row[:2] for row in rows(run("nearest", "apple", "-m", model, "-n", "1"))] == [
        ["apple", "pear"]
    ]
    found = records(run("nearest", "king", "woman", "--negative", "man", "-m", model, "--json"))
    assert found[0]["query"] == "king woman"
    assert found[0]["word"] == "queen"
    assert len(found) == 4


def test_an_unknown_word_is_an_error_with_close_spellings(model: str) -> None:
    result = run("nearest", "aple", "-m", model, code=1)
    assert result.stdout == ""
    assert result.stderr == "error: unknown word: 'aple' (try: 'apple')\n"
    assert "'kign'" in run("nearest", "man", "--negative", "kign", "-m", model, code=1).stderr


def test_lines_of_standard_input_are_answered_in_order_with_notes(model: str) -> None:
    text = "apple\nzzz apple\n\nking queen\nnew york\tking\n"
    found = records(run("nearest", "-m", model, "-n", "1", "--json", text=text))
    assert [r["query"] for r in found] == ["apple", "zzz apple", "", "king queen", "new york king"]
    assert found[0]["word"] == "pear"
    assert found[0]["note"] is None
    assert (found[1]["word"], found[1]["note"]) == (None, "unknown: zzz")
    assert found[2]["note"] == "expected at least 1 words, found 0"
    table = rows(run("nearest", "-m", model, "-n", "1", text=text))
    assert all(len(row) == 4 for row in table)
    strict = run("nearest", "-m", model, "--strict", text=text, code=1)
    assert "line 2: unknown: zzz" in strict.stderr


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_every_metric_and_restriction_is_taken(model: str, metric: str) -> None:
    found = records(
        run("nearest", "apple", "-m", model, "--metric", metric, "--restrict", "4", "--json")
    )
    assert {r["word"] for r in found} == {"man", "woman", "king", "queen"}


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul", "pairdirection"])
def test_analogy_completes_a_is_to_b_as_c_is_to(model: str, method: str) -> None:
    result = run("analogy", "man", "king", "woman", "-m", model, "-n", "1", "--method", method)
    assert rows(result)[0][:2] == ["man king woman", "queen"]


def test_analogy_wants_three_words(model: str) -> None:
    assert "expected 3 words, found 2" in run("analogy", "man", "king", "-m", model, code=1).stderr
    found = records(run("analogy", "-m", model, "--json", text="man king woman apple\n"))
    assert found[0]["note"] == "expected 3 words, found 4"


def test_similarity_and_odd_one_out(model: str) -> None:
    assert rows(run("similarity", "apple", "apple", "-m", model)) == [["apple apple", "1.0000"]]
    found = records(run("similarity", "-m", model, "--json", text="apple pear\nking zzz\n"))
    assert found[0]["score"] > 0.99
    assert found[1] == {"query": "king zzz", "score": None, "note": "unknown: zzz"}
    odd = rows(run("odd-one-out", "king", "queen", "woman", "apple", "-m", model))
    assert odd[0][1] == "apple"


def test_get_prints_exact_numbers(model: str) -> None:
    (line,) = run("get", "king", "-m", model).stdout.splitlines()
    word, *numbers = line.split(" ")
    assert word == "king"
    assert np.array(numbers, np.float32).tolist() == np.array(ROWS["king"], np.float32).tolist()
    found = records(run("get", "-m", model, "--json", text="new york\nzzz\n"))
    assert found[0] == {"word": "new york", "vector": [0.5, 0.5, -1.0, 0.0]}
    assert found[1] == {"word": "zzz", "vector": None}
    run("get", "-m", model, "--strict", text="zzz\n", code=1)


def test_expand_appends_near_words(model: str) -> None:
    arguments = ("expand", "-m", model, "-n", "1", "--minimum", "0.9")
    assert run(*arguments, text="an apple\nnone\n").stdout == "an apple pear\nnone\n"
    found = records(run(*arguments, "--json", text="an apple\n"))
    assert found == [{"line": "an apple", "added": ["pear"]}]


# --- files --------------------------------------------------------------------------------------


def test_info_tells_words_dim_and_counts(model: str) -> None:
    (found,) = records(run("info", model, "--json"))
    assert (found["words"], found["dim"], found["kind"], found["tokens"]) == (7, 4, "vectors", 28)
    assert "words\t7\n" in run("info", model).stdout


@pytest.mark.parametrize("name", ["a.txt", "a.vec", "a.bin", "glove.txt", "a.model"])
def test_any_format_can_be_written_and_asked(model: str, name: str) -> None:
    run("convert", model, "-o", name, "--restrict", "6")
    assert list(load(name).words) == list(ROWS)[:6]
    assert rows(run("nearest", "apple", "-m", name, "-n", "1"))[0][1] == "pear"


def test_an_existing_output_needs_force(model: str) -> None:
    run("convert", model, "-o", "a.txt")
    assert "--force" in run("convert", model, "-o", "a.txt", code=1).stderr
    run("convert", model, "-o", "a.txt", "--force")
    assert "--force" in run("normalize", model, "-o", model, code=1).stderr


def test_repeated_words_are_reported(model: str) -> None:
    Path("twice.txt").write_text("a 1 2\nb 3 4\na 5 6\n")
    result = run("info", "twice.txt")
    assert "warning: twice.txt: 1 repeated words" in result.stderr
    assert run("info", "twice.txt", "--quiet").stderr == ""


def test_normalize_merge_and_pca(model: str) -> None:
    run("normalize", model, "-o", "unit.model")
    np.testing.assert_allclose(load("unit.model").norms, 1, rtol=1e-6)
    run("merge", model, "unit.model", "-o", "both.model")
    assert load("both.model").dim == 8
    run("merge", model, "unit.model", "-o", "mean.txt", "--method", "average")
    assert load("mean.txt").dim == 4
    run("merge", model, "-o", "one.model", code=2)
    os.mkfifo("pipe")
    run("merge", "pipe", "pipe", "-o", "one.model", code=2)  # the second would wait for ever
    run("pca", model, "-o", "small.model", "--dim", "2")
    assert load("small.model").dim == 2


def test_export_projector_writes_both_files(model: str) -> None:
    run("export-projector", model, "-o", "projector", "--restrict", "3")
    assert Path("projector/metadata.tsv").read_text().splitlines()[:2] == ["word\tcount", "man\t7"]
    assert len(Path("projector/vectors.tsv").read_text().splitlines()) == 3


def test_from_counts_makes_a_model_to_ask(model: str) -> None:
    lines = ["the king sat on a throne", "the queen sat on a throne"] * 10
    lines += ["he ate an apple pie", "she ate a pear pie"] * 10
    Path("text.txt").write_text("\n".join(lines))
    run("from-counts", "text.txt", "-o", "counts.model", "--dim", "6", "--min-count", "2")
    run("nearest", "king", "-m", "counts.model")
    before = load("counts.model").matrix.copy()
    run("from-counts", "text.txt", "-o", "again.txt", "--dim", "6", "--min-count", "2")
    np.testing.assert_array_equal(load("again.txt").matrix, before)


# --- evaluating and plotting --------------------------------------------------------------------


def test_evaluate_analogies_by_section_with_protocol(model: str) -> None:
    Path("q.txt").write_text(": royal\nman king woman queen\n: other\nman zzz woman queen\n")
    result = run("evaluate", "analogies", "q.txt", "-m", model, "--json")
    found = {r["section"]: r for r in records(result)}
    assert found["royal"]["accuracy"] == 1
    assert (found["total"]["answered"], found["total"]["questions"]) == (1, 2)
    assert found["total"]["coverage"] == 0.5
    assert "3cosadd" in found["total"]["protocol"]
    assert "protocol: 3cosadd" in result.stderr
    compared = records(
        run("evaluate", "analogies", "q.txt", "-m", model, "--compare", model, "--json")
    )
    assert compared[-1]["section"] == "total"
    assert compared[-1]["p"] == 1


def test_evaluate_similarity_and_compare(model: str) -> None:
    pairs = "man\twoman\t5\nking\tqueen\t7\napple\tpear\t9\nking\tapple\t1\nzzz\tking\t3\n"
    Path("p.tsv").write_text(pairs)
    (found,) = records(run("evaluate", "similarity", "p.tsv", "-m", model, "--json"))
    assert (found["known"], found["pairs"]) == (4, 5)
    assert found["low"] <= found["spearman"] <= found["high"]
    arguments = ("evaluate", "similarity", "p.tsv", "-m", model, "--compare", model, "--json")
    (compared,) = records(run(*arguments))
    assert (compared["difference"], compared["p"], compared["shared"]) == (0, 1, 4)


def test_a_set_of_unknown_words_is_left_out_of_a_folder(model: str) -> None:
    Path("sets").mkdir()
    Path("sets/a.tsv").write_text("uno\tdue\t1\ndue\ttre\t2\ntre\tuno\t3\n")
    Path("sets/b.tsv").write_text("man\twoman\t5\nking\tqueen\t7\nking\tapple\t1\n")
    for compare in ([], ["--compare", model]):
        result = run("evaluate", "similarity", "sets", "-m", model, "--json", *compare)
        assert [row["set"] for row in records(result)] == ["b.tsv"]
        assert "a.tsv is left out: only 0 of 3 pairs" in result.stderr
    Path("sets/b.tsv").unlink()
    refused = run("evaluate", "similarity", "sets", "-m", model, code=1)
    assert "only 0 of 3 pairs" in refused.stderr


@pytest.mark.parametrize(
    ("name", "start"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.html", b"<!doctype html>")]
)
def test_plot_to_files(model: str, name: str, start: bytes) -> None:
    run("plot", "king", "queen", "--top", "3", "-m", model, "-o", name)
    assert Path(name).read_bytes().startswith(start)


def test_plot_in_the_terminal(model: str) -> None:
    result = run("plot", "--top", "7", "-m", model)
    assert "king" in result.stdout
    assert "new york" in result.stdout


def test_plot_without_words_or_with_another_ending_is_refused(model: str) -> None:
    assert "--top" in run("plot", "-m", model, code=2).stderr
    assert "cannot draw" in run("plot", "--top", "3", "-m", model, "-o", "p.doc", code=1).stderr


def test_what_is_no_vectors_is_refused_in_one_line(model: str) -> None:
    Path("text.txt").write_text("just some text\nin lines\n")
    Path("v.kv").write_bytes(b"\x80\x04\x95 a pickle")
    for path, message in [
        ("text.txt", "does not hold word vectors"),
        ("v.kv", "save_word2vec_format"),
        ("nowhere", "no such file"),
    ]:
        result = run("nearest", "king", "-m", path, code=1)
        assert message in result.stderr
        assert result.stderr.count("\n") == 1


# --- in a process of its own --------------------------------------------------------------------


def test_describing_the_commands_imports_nothing_heavy() -> None:
    heavy = ["numpy", "scipy", "sklearn", "torch", "numba", "matplotlib"]
    code = f"import sys, nlpkit.cli.vectors; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_nearest_of_a_folder_needs_numpy_alone(model: str) -> None:
    heavy = ["scipy", "sklearn", "torch", "numba", "matplotlib", "rich"]
    code = (
        "import sys; from nlpkit.vectors import formats, query;"
        "query.nearest(formats.load('v.model'), [(['king'], [])]);"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_bad_bytes_and_a_full_disk_are_one_line(model: str, run: Runner) -> None:
    message = run.fails("vectors", "nearest", "-m", model, input=b"king\n\xff\xfe\n")
    assert "standard input: line 2, byte 1" in message
    message = run.shell_fails(f"nlpkit vectors nearest king -m {model} > /dev/full")
    assert "No space left" in message


def test_a_reader_that_leaves_early_is_no_error(model: str, run: Runner) -> None:
    line = f"yes king | head -20000 | nlpkit vectors nearest -m {model} | head -1"
    result = run.shell(line)
    assert result.out.startswith("king\t")
    assert result.err == ""
