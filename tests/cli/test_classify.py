"""``nlpkit classify`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app

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
        ("multi", ["--multi-label", "--epochs", "40", "--lr", "0.3"]),
    ]:
        result = run(
            "train",
            str(folder / f"{name}.tsv"),
            "-o",
            str(folder / name),
            "-q",
            *flags,
            "--batch-size",
            "8",
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
    one = run("predict", str(folder / "data"), "-k", "2", "--threshold", "0.5", input="great\n")
    assert one.stdout.count("\t") == 1
    bad = run("predict", str(folder / "data"), "--input", "jsonl", input='{"text": 1}\n')
    assert (bad.exit_code, "line 1: no text" in bad.stderr) == (1, True)


def test_several_labels(folder: Path) -> None:
    args = [str(folder / "multi"), "-k", "2", "--threshold", "0.5"]
    rows = run("predict", *args, input="a b\na c\nd b\n").stdout.splitlines()
    assert [sorted(row.split("\t")[::2]) for row in rows] == [["red", "round"], ["red"], ["round"]]
    report = run("evaluate", str(folder / "multi"), str(folder / "multi.tsv"), "--json").stdout
    assert json.loads(report)["micro_f1"] == 1.0


def test_evaluate(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "c.png"
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


def test_explain(folder: Path) -> None:
    record = json.loads(
        run("explain", str(folder / "data"), "--json", input="Pie was great").stdout
    )
    assert record["label"] == "good"
    best = max(record["words"], key=lambda word: word["influence"])
    assert (best["word"], best["start"]) == ("great", 8)
    plain = run("explain", str(folder / "data"), input="was great\n").stdout
    assert plain.startswith("good\t")
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
