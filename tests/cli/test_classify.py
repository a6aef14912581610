"""``nlpkit classify`` as a user runs it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app
from nlpkit.text.subwords import Subwords

DATA = "".join(
    f"{label}\tthe {food} was {word}\n"
    for food in ("soup", "lamb", "tea", "rice")
    for label, word in [("good", "great"), ("good", "lovely"), ("bad", "cold"), ("bad", "awful")]
)


def run(*arguments: str, input: str | bytes = "") -> Result:
    result = CliRunner().invoke(app, ["classify", *arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classify")
    (folder / "data.tsv").write_text(DATA)
    (folder / "multi.tsv").write_text("red,round\ta b\nred\ta c\nround\td b\n" * 8)
    for name, flags in [
        ("data", []),
        ("multi", ["--multi-label"]),
    ]:
        result = run(
            "train",
            str(folder / f"{name}.tsv"),
            "-o",
            str(folder / name),
            "-q",
            *flags,
            "--threads",
            "1",
        )
        assert result.exit_code == 0, result.output
    return folder


def test_predict_has_a_line_for_each_line(folder: Path) -> None:
    result = run("predict", str(folder / "data"), input="the pie was great\n\nthe pie was awful\n")
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [row[0] for row in rows][::2] == ["good", "bad"]
    assert len(rows) == 3
    assert float(rows[0][1]) > 0.5


def test_k_threshold_and_json(folder: Path) -> None:
    text = '{"text": "the pie was great", "id": 7}\n'
    both = json.loads(run("predict", str(folder / "data"), "-k", "5", "--json", input=text).stdout)
    assert [found["label"] for found in both["labels"]] == ["good", "bad"]
    assert sum(found["probability"] for found in both["labels"]) == pytest.approx(1, abs=1e-5)
    assert both["id"] == 7
    one = run("predict", str(folder / "data"), "-k", "2", "--threshold", "0.5", input="great\n")
    assert one.stdout.count("\t") == 1
    bad = run("predict", str(folder / "data"), "--input", "jsonl", input='{"text": 1}\n')
    assert (bad.exit_code, "line 1: expected a text" in bad.stderr) == (1, True)


def test_several_labels(folder: Path) -> None:
    args = [str(folder / "multi"), "-k", "2", "--threshold", "0.5"]
    rows = run("predict", *args, input="a b\na c\nd b\n").stdout.splitlines()
    assert [sorted(row.split("\t")[::2]) for row in rows] == [["red", "round"], ["red"], ["round"]]
    report = run("evaluate", str(folder / "multi"), str(folder / "multi.tsv"), "--json").stdout
    assert json.loads(report)["micro_f1"] == 1.0


def test_evaluate(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "c.png"
    page = tmp_path / "c.html"
    asked = ("evaluate", str(folder / "data"), str(folder / "data.tsv"), "--plot", str(page))
    assert run(*asked).exit_code == 0
    assert "<title>right good → good: 8</title>" in page.read_text()
    assert "% sure, 100.0% right</title>" in page.read_text()
    # the matrix is an image within the page, which its own policy must let through
    assert 'xlink:href="data:image/png' in page.read_text()
    assert "img-src data:" in page.read_text()
    result = run(
        "evaluate",
        str(folder / "data"),
        str(folder / "data.tsv"),
        "--confusion",
        "--plot",
        str(picture),
    )
    assert "accuracy\t100.00%" in result.stdout
    assert "good\t0\t8" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    (tmp_path / "odd.tsv").write_text("odd\tthe soup was great\ngood\tthe tea was great\n")
    result = run("evaluate", str(folder / "data"), str(tmp_path / "odd.tsv"))
    assert "never saw count as mistakes: odd" in result.stderr


def test_predictions_in_every_format(folder: Path) -> None:
    ask = ("predict", str(folder / "data"), "-k", "2", "--threshold", "0.01", "--format")
    texts = "the soup was great, a treat\n\n"
    plain = run(*ask, "tsv", "--header", input=texts).stdout.splitlines()
    assert plain[0].split("\t") == ["label", "probability", "label2", "probability2"]
    assert plain[2] == ""
    names, first, second = csv.reader(run(*ask, "csv", "--header", input=texts).stdout.splitlines())
    assert names == ["label", "probability", "label2", "probability2", "text"]
    assert first[:4] == plain[1].split("\t")
    assert first[4] == texts.splitlines()[0]
    assert second == [""] * 5
    assert run(*ask, "markdown", input=texts).stdout.splitlines()[2].endswith("a treat |")
    assert run(*ask, "table", input=texts).stdout.splitlines()[2].split()[0] == first[0]


def test_explain(folder: Path) -> None:
    record = json.loads(
        run("explain", str(folder / "data"), "--json", input="Pie was great").stdout
    )
    assert record["label"] == "good"
    best = max(record["words"], key=lambda word: word["influence"])
    assert (best["word"], best["start"]) == ("great", 8)
    plain = run("explain", str(folder / "data"), input="was great\n").stdout
    assert [line.split("\t")[:4:3] for line in plain.splitlines()] == [["1", "was"], ["1", "great"]]
    assert plain.splitlines()[1].split("\t")[1] == "good"
    colored = run("explain", str(folder / "data"), "-f", "color", input="was great\n").stdout
    assert "\x1b[1;32mgreat\x1b[0m" in colored
    wrong = run("explain", str(folder / "data"), "--label", "fine", input="x\n")
    assert (wrong.exit_code, "no such label: fine" in wrong.stderr) == (1, True)


def test_predicting_leaves_torch_alone(folder: Path) -> None:
    code = (
        "import sys; from nlpkit.cli.main import app\n"
        "try: app(['classify', 'predict', sys.argv[1]])\n"
        "except SystemExit: pass\n"
        "print(*sorted({'torch', 'numba', 'matplotlib', 'rich', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "data")],
        input=b"great\n",
        capture_output=True,
        check=True,
    )
    assert done.stdout.endswith(b"\n\n")


def test_empty_texts_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,text\na,good day\nb,\na,good night\nb,  \nb,bad day\n")
    train = ["train", str(tmp_path / "t.csv"), "--threads", "1", "-o", str(tmp_path / "m")]
    assert "warning: 2 of 5 texts are empty: they teach nothing\n" in run(*train).stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "nothing in it"),
        (b"no labels at all\nnone\n", "no labels were recognised"),
        (b"good\tyes\n\xff\tno\n", "line 2, byte 1: 0xff is not valid UTF-8"),
    ],
)
def test_bad_data_is_one_clear_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "d").write_bytes(content)
    result = run("train", str(tmp_path / "d"), "-o", str(tmp_path / "m"))
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["", "\n", " \n\n", " \n \t\n", " ", "\r\n", "great"])
@pytest.mark.parametrize("flags", [[], ["--input", "text"], ["--json"]])
def test_blank_lines_are_texts_like_others(folder: Path, text: str, flags: list[str]) -> None:
    result = run("predict", str(folder / "data"), *flags, input=text)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert len(result.stdout.splitlines()) == len(text.splitlines())


def test_blank_lines_do_not_hide_json_lines(folder: Path) -> None:
    text = '\n \n{"text": "the pie was great"}\n\n'
    result = run("predict", str(folder / "data"), input=text)
    assert [line.split("\t")[0] for line in result.stdout.splitlines()] == ["good"]


def test_labels_that_break_lines_are_written_with_escapes(tmp_path: Path) -> None:
    labels = ["a\nb", "\ud800", "c\td", "e\\nf"]
    texts = ["one\nline", "two", "three", "four"]
    rows = [json.dumps({"text": x, "label": y}) for x, y in zip(texts, labels, strict=True)]
    (tmp_path / "data.jsonl").write_text("".join(f"{row}\n" for row in rows * 4))
    data, model = str(tmp_path / "data.jsonl"), str(tmp_path / "m")
    assert run("train", data, "-o", model, "-q", "-t", "char", "--threads", "1").exit_code == 0
    done = subprocess.run(
        [sys.executable, "-m", "nlpkit", "classify", "predict", model, data],
        capture_output=True,
        check=True,
    )
    first = [line.split("\t")[0] for line in done.stdout.decode().splitlines()[:4]]
    assert first == ["a\\nb", "\\ud800", "c\\td", "e\\nf"]
    lines = run("predict", model, data, "--json").stdout.splitlines()
    records = [json.loads(line)["labels"][0]["label"] for line in lines[:4]]
    assert records == labels
    scores = run("evaluate", model, data, "--confusion")
    assert scores.exit_code == 0
    assert "a\\nb\t100.00\t100.00\t100.00\t4\n" in scores.stdout
    (tmp_path / "odd.jsonl").write_text('{"text": "two", "label": "x\\ny"}\n')
    warning = run("evaluate", model, str(tmp_path / "odd.jsonl")).stderr
    assert warning == "warning: labels that training never saw count as mistakes: x\\ny\n"
    assert run("explain", model, "--label", "q\nr", input="x").stderr.count("\n") == 1
    assert run("explain", model, "--label", "a\nb", input="x").stdout.startswith("1\ta\\nb\t")


def test_a_pattern_belongs_to_the_model(folder: Path, tmp_path: Path) -> None:
    data, model = str(folder / "data.tsv"), str(tmp_path / "m")
    for flags in (["-t", "regex"], ["--pattern", "x"], ["-t", "regex", "--pattern", "("]):
        refused = run("train", data, "-o", model, *flags)
        assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    flags = ["-t", "regex", "--pattern", "[a-z]{5,}", "--threads", "1", "-q"]
    assert run("train", data, "-o", model, *flags).exit_code == 0
    explained = run("explain", model, "--json", input="the soup was great").stdout
    assert [word["word"] for word in json.loads(explained)["words"]] == ["great"]


def test_settings_of_a_model_with_subwords_can_be_used_again(folder: Path, tmp_path: Path) -> None:
    data = str(folder / "data.tsv")
    Subwords.train([DATA], vocab_size=280).save(str(tmp_path / "subwords.json"))
    flags = ["-q", "--epochs", "1", "--threads", "1"]
    first, again = tmp_path / "first", tmp_path / "again"
    made = run("train", data, "-o", str(first), "-t", str(tmp_path / "subwords.json"), *flags)
    assert made.exit_code == 0
    (tmp_path / "subwords.json").unlink()
    made = run("train", data, "-o", str(again), "--config", str(first / "config.json"), *flags)
    assert made.exit_code == 0, made.stderr
    assert (first / "weights.safetensors").read_bytes() == (
        again / "weights.safetensors"
    ).read_bytes()
    assert (first / "tokenizer.json").read_text() == (again / "tokenizer.json").read_text()


def test_texts_without_a_common_word_are_noticed(tmp_path: Path) -> None:
    endings = ["owski", "enko", "sson", "ez"]
    names = [f"{stem}{ending}" for stem in ("bar", "kol", "pet", "ruk") for ending in endings]
    lines = [f"{place % 4}\t{name}\n" for place, name in enumerate(names)]
    (tmp_path / "names.tsv").write_text("".join(lines))
    (tmp_path / "new.tsv").write_text("".join(line.replace("\t", "\tda") for line in lines))
    train = ["train", str(tmp_path / "names.tsv"), "--threads", "1", "-o", str(tmp_path / "m")]
    advice = "warning: 100% of the texts have no token in common with any other: "
    assert f"{advice}try -t char --ngrams 4\n" in run(*train).stderr
    held = run(*train, "--force", "--dev", str(tmp_path / "new.tsv")).stderr
    assert "100% of the held-out texts have no token that training knows: try -t char" in held
    assert "warning" not in run(*train, "--force", "-t", "char", "--ngrams", "4").stderr
    scores = run("evaluate", str(tmp_path / "m"), str(tmp_path / "new.tsv"), "--json").stdout
    assert json.loads(scores)["accuracy"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing in it"),
        ("\n \n", "nothing in it"),
        ("\ufeff", "nothing in it"),
        ("great\nawful\n", "no labels were recognised"),
        ("label\ttext\n", "no labelled text in it"),
        ('{"text": ' + "[" * 100_000, "not JSON: too deeply nested"),
    ],
)
def test_evaluating_bad_data_is_one_clear_line(
    folder: Path, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "bad").write_text(text)
    result = run("evaluate", str(folder / "data"), str(tmp_path / "bad"))
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert message in result.stderr


def test_a_file_is_no_folder(folder: Path, tmp_path: Path) -> None:
    for command in (["evaluate", str(folder / "data")], ["train", "-o", str(tmp_path / "m")]):
        result = run(*command, str(folder / "data.tsv"), "--input", "folder")
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert "data.tsv: Not a directory" in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        "good\tit was great\r\nbad\tit was awful\r\n",
        "\ufeffgood\tit was great\nbad\tit was awful",
        "\ufefflabel\ttext\ngood\tit was great\nbad\tit was awful\n",
        "good\tit was great\n\n \ngood\tit was lovely\n",
    ],
)
def test_line_ends_marks_and_blank_lines_make_no_difference(
    folder: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "test.tsv").write_bytes(text.encode())
    result = run("evaluate", str(folder / "data"), str(tmp_path / "test.tsv"), "--json")
    scores = json.loads(result.stdout)
    assert (scores["texts"], scores["accuracy"], result.stderr) == (2, 1, "")


def test_flags_of_the_transformer_need_one(tmp_path: Path) -> None:
    data = tmp_path / "texts.tsv"
    data.write_text(DATA)
    for flags in (["--norm", "post"], ["--model", "lstm", "--positions", "sinusoidal"]):
        failed = run("train", str(data), *flags, "-o", str(tmp_path / "model"))
        assert failed.exit_code == 2
        assert "need --model transformer" in failed.stderr
    assert not (tmp_path / "model").exists()


def test_gold_labels_of_fasttext_are_no_words_and_empty_lines_get_no_label(folder: Path) -> None:
    model = str(folder / "data")
    plain = run("predict", model, input="great pie\n").stdout
    lines = run("predict", model, input="__label__bad great pie\n\n  \n").stdout.splitlines()
    assert lines == [plain.rstrip("\n"), "", ""]
    empty = run("predict", model, "--json", input="\n").stdout
    assert json.loads(empty) == {"text": "", "labels": []}


def test_a_column_of_csv_is_labelled_and_the_others_stay(folder: Path) -> None:
    table = 'id,review\n7,"great, great\npie"\n'
    done = run("predict", str(folder / "data"), "--json", "--input", "csv", input=table)
    record = json.loads(done.stdout)
    assert (record["id"], record["review"]) == ("7", "great, great\npie")
    assert record["labels"][0]["label"] == "good"


def test_two_texts_are_labelled_together(tmp_path: Path) -> None:
    table = "label\ttext\ttext2\n" + "yes\ta b\tc\nno\ta b\td\n" * 8
    (tmp_path / "pairs.tsv").write_text(table)
    model = str(tmp_path / "pairs")
    flags = ["-o", model, "-q", "--threads", "1"]
    assert run("train", str(tmp_path / "pairs.tsv"), *flags).exit_code == 0
    done = run("predict", model, input="a b\tc\na b\td\n")
    assert [line.split("\t")[0] for line in done.stdout.split("\n")] == ["yes", "no", ""]
    done = run("predict", model, "--json", input='{"text": "a b", "text2": "d", "id": 7}\n')
    record = json.loads(done.stdout)
    assert (record["labels"][0]["label"], record["id"]) == ("no", 7)
    alone = run("predict", model, input="a b\n")
    assert (alone.exit_code, alone.stderr.count("\n")) == (1, 1)
