"""``nlpkit names`` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app
from nlpkit.models.settings import MODEL_NAMES

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
    page = folder / "report.html"
    assert run("report", str(folder / "gpt"), "-n", "20", "--plot", str(page)).exit_code == 0
    assert "% of training names</title>" in page.read_text()
    assert "length\tsamples\ttraining names" in run("report", str(folder / "gpt"), "-n", "5").stdout
    drawn = run("report", str(folder / "gpt"), "-n", "5", "--format", "table").stdout
    assert "▇▇" in drawn
    assert "░░" in drawn


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


_USE_ALL = """
import sys
from typer.testing import CliRunner
from nlpkit.cli.main import app
for model in sys.argv[1:]:
    for name, *flags in (["sample", "-n", "3", "--scores"], ["score"], ["report", "-n", "20"]):
        result = CliRunner().invoke(app, ["names", name, model, *flags], input="Maria\\nBeo\\n")
        print(result.exit_code, len(result.stdout.splitlines()), result.stderr.count("error"))
"""


def test_every_model_trains_and_another_process_samples_scores_and_reports(
    folder: Path, tmp_path: Path
) -> None:
    models = []
    for name in MODEL_NAMES:
        models.append(str(tmp_path / name))
        # those without layers have fewer tensors than this
        layers = "20" if name in ("ngram", "bigram", "mlp") else "1"
        flags = ["--model", name, "-o", models[-1], *SMALL, "--epochs", "1", "--layers", layers]
        made = run("train", str(folder / "names.txt"), *flags)
        assert made.exit_code == 0, made.stderr
    command = [sys.executable, "-c", _USE_ALL, *models]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = [[int(number) for number in line.split()] for line in done.stdout.splitlines()]
    for place in range(len(models)):
        (sampled, scored, reported) = found[3 * place : 3 * place + 3]
        assert sampled == [0, 3, 0], models[place]
        assert scored == [0, 2, 0], models[place]
        assert reported[0] == 0, models[place]
        assert reported[1] > 10, models[place]
    assert len(found) == 3 * len(MODEL_NAMES)


@pytest.mark.parametrize(
    ("lines", "flags", "message"),
    [
        ("", [], "there are no names"),
        ("Anna\n", [], "too few to hold 1 out"),
        ("Anna\nBob\nEve\n", ["--heads", "3", "--dim", "8"], "--heads 3 does not divide --dim 8"),
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


def test_an_unknown_model_is_wrong_usage_that_names_the_known_ones(tmp_path: Path) -> None:
    result = run("train", "-", "-o", str(tmp_path / "m"), "--model", "oracle", input="Anna\n")
    assert result.exit_code == 2
    assert all(name in result.stderr for name in ("oracle", *MODEL_NAMES))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--prefix", "Ж"], "never seen 'Ж'"),
        (["--temperature", "-1"], "--temperature cannot be -1"),
        (["--top-k", "999"], "more than the"),
        (["--top-p", "0"], "--top-p cannot be 0"),
        (["--pattern", "M.*M", "--tries", "20"], "only 0 of 20 names"),
        (["--pattern", "QQ"], "--pattern QQ asks for characters that the model has never seen"),
        (["--pattern", "M.*z"], "--pattern M.*z asks for characters"),
        (["--pattern", "M{60}"], "--pattern M{60} asks for 60 characters or more"),
        (["--pattern", "(?i)q.*"], "no name of this model can match"),
        (["--pattern", "["], "--pattern ["),
        (["--prefix", "M" * 90], "no name can have 90"),
        (["--label", "x"], "no label 'x'"),
    ],
)
def test_bad_sampling_is_one_line(folder: Path, flags: list[str], message: str) -> None:
    result = run("sample", str(folder / "ngram"), *flags)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Жan", "never seen 'Ж'"),
        ("Maria\tx", "no label 'x'"),
        ("M" * 90, "a name of 90 characters"),
        ("\n", "there are no names"),
    ],
)
def test_names_that_cannot_be_scored_are_one_line(folder: Path, line: str, message: str) -> None:
    for model in ("ngram", "gpt"):
        result = run("score", str(folder / model), input=f"Maria\n{line}\n" if line.strip() else "")
        assert result.exit_code == 1
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""


def test_a_name_of_two_labels_is_held_out_with_both(tmp_path: Path) -> None:
    lines = "\n".join(f"{name}\t{label}" for name in NAMES for label in ("x", "y"))
    train = ["train", "-", "-o", str(tmp_path / "m"), "--model", "ngram", "--threads", "1"]
    made = run(*train, "--test-size", "5", input=lines)
    assert made.exit_code == 0, made.stderr
    learned = (tmp_path / "m" / "names.txt").read_text(encoding="utf-8").splitlines()
    counts = Counter(line.split("\t")[0] for line in learned)
    assert len(counts) == len(NAMES) - 5
    assert set(counts.values()) == {2}


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
