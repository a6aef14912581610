"""``nlpkit names`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app

NAMES = [a + b for a in ("Mar", "Al", "Be", "Con", "Dol") for b in ("ia", "ina", "o", "ó d'", "t")]
SMALL = ["--dim", "16", "--layers", "1", "--heads", "2", "--epochs", "3", "--threads", "1"]


def run(*arguments: str, input: str = "") -> Result:
    result = CliRunner().invoke(app, ["names", *arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    (folder / "names.txt").write_text("\n".join(NAMES) + "\n", encoding="utf-8")
    for name, model in (("gpt", "gpt"), ("ngram", "ngram")):
        flags = ["--model", model, "-o", str(folder / name), *SMALL]
        result = run("train", str(folder / "names.txt"), *flags)
        assert result.exit_code == 0, result.stderr
    return folder


def test_train_sample_score_and_report_work_together(folder: Path) -> None:
    names = run("sample", str(folder / "ngram"), "-n", "5", "--prefix", "Mar").stdout.splitlines()
    assert len(names) == 5
    assert all(name.startswith("Mar") for name in names)
    scored = run("score", str(folder / "ngram"), "--json", input="\n".join([*names, "tttt"]))
    rows = [json.loads(line) for line in scored.stdout.splitlines()]
    assert [row["name"] for row in rows] == [*names, "tttt"]
    assert max(rows, key=lambda row: row["bits_per_character"])["name"] == "tttt"
    picture = folder / "report.svg"
    report = run("report", str(folder / "gpt"), "-n", "20", "--plot", str(picture), "--json")
    assert json.loads(report.stdout)["samples"] == 20
    assert picture.stat().st_size > 1000
    assert "lengths" in run("report", str(folder / "gpt"), "-n", "5").stdout


def test_prefixes_come_one_a_line(folder: Path) -> None:
    out = run("sample", str(folder / "ngram"), "-n", "2", "--prefix", "-", input="Al\nBe\n").stdout
    assert [name[:2] for name in out.splitlines()] == ["Al", "Al", "Be", "Be"]


def test_same_seed_same_model(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        train = ["train", str(folder / "names.txt"), "-o", str(tmp_path / name), *SMALL]
        assert run(*train).exit_code == 0
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("a", "b")]
    assert weights[0] == weights[1]


def test_saved_config_trains_again(folder: Path, tmp_path: Path) -> None:
    config = str(folder / "gpt" / "config.json")
    made = run("train", str(folder / "names.txt"), "-o", str(tmp_path / "m"), "--config", config)
    assert made.exit_code == 0, made.stderr
    first, second = (
        json.loads((path / "config.json").read_text())["settings"]
        for path in (folder / "gpt", tmp_path / "m")
    )
    assert first == second


def test_labels_are_learned_and_asked_for(tmp_path: Path) -> None:
    lines = [f"{name}\tx" for name in NAMES] + [f"{name}\ty" for name in NAMES]
    train = ["train", "-", "-o", str(tmp_path / "m"), "--model", "ngram", "--threads", "1"]
    assert run(*train, input="\n".join(lines)).exit_code == 0
    out = run("sample", str(tmp_path / "m"), "-n", "3", "--label", "y", "--scores").stdout
    assert [line.split("\t")[1] for line in out.splitlines()] == ["y", "y", "y"]


@pytest.mark.parametrize(
    ("lines", "flags", "message"),
    [
        ("", [], "there are no names"),
        ("Anna\n", [], "too few to hold 1 out"),
        ("Anna\nBob\nEve\n", ["--heads", "3", "--dim", "8"], "--heads 3 does not divide --dim 8"),
        ("Anna\nBob\nEve\n", ["--model", "oracle"], "no model 'oracle'"),
        ("Anna\nBob\n", ["--resume"], "no checkpoint to resume"),
        ("Anna\nBob\n", ["--test-size", "5"], "too few to hold 5 out"),
        ("Anna\nBob\n", ["--device", "abacus"], "no device abacus"),
    ],
)
def test_bad_training_is_one_line(
    tmp_path: Path, lines: str, flags: list[str], message: str
) -> None:
    result = run("train", "-", "-o", str(tmp_path / "m"), "--quiet", *flags, input=lines)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--prefix", "Ж"], "never seen 'Ж'"),
        (["--temperature", "-1"], "--temperature cannot be -1"),
        (["--top-k", "999"], "more than the"),
        (["--top-p", "0"], "--top-p cannot be 0"),
        (["--pattern", "QQ", "--tries", "20"], "only 0 of 20 names"),
        (["--pattern", "["], "--pattern ["),
        (["--prefix", "M" * 90], "no name can have 90"),
        (["--label", "x"], "no label 'x'"),
    ],
)
def test_bad_sampling_is_one_line(folder: Path, flags: list[str], message: str) -> None:
    result = run("sample", str(folder / "ngram"), *flags)
    assert result.exit_code == 1
    assert message in result.stderr


def test_existing_model_is_kept_without_force(folder: Path) -> None:
    result = run("train", str(folder / "names.txt"), "-o", str(folder / "gpt"))
    assert result.exit_code == 1
    assert "exists already" in result.stderr


def test_wrong_kind_missing_and_cut_models_are_one_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"kind": "gpt", "format_version": 1}')
    assert "is a gpt model" in run("sample", str(tmp_path / "other")).stderr
    assert "no such model" in run("sample", str(tmp_path / "none")).stderr
    import shutil

    shutil.copytree(folder / "gpt", tmp_path / "cut")
    weights = tmp_path / "cut" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    assert "is damaged" in run("sample", str(tmp_path / "cut")).stderr
    weights.unlink()
    assert "has no weights.safetensors" in run("sample", str(tmp_path / "cut")).stderr
