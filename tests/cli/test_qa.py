"""``nlpkit qa`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from model_kinds import QUESTIONS
from tiny_berts import save_bert
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app


def run(*arguments: str, input: str = "") -> Result:
    result = CliRunner().invoke(app, ["qa", *arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qa")
    bert = save_bert(folder, [QUESTIONS])
    (folder / "questions.tsv").write_text(QUESTIONS)
    flags = ["--pretrained", bert, "--epochs", "30", "--lr", "0.01", "--layer-decay", "1"]
    output = str(folder / "qa.model")
    questions = str(folder / "questions.tsv")
    result = run("train", questions, *flags, "--dev", questions, "-o", output)
    assert result.exit_code == 0, result.stderr
    return folder


def test_answers_are_spans_with_their_places(folder: Path) -> None:
    model = str(folder / "qa.model")
    texts = "\n".join(["nothing here", "ann lives in oslo"]) + "\n"
    result = run("answer", model, "where ?", "-", "--json", "-n", "3", input=texts)
    first, *others = map(json.loads, result.stdout.splitlines())
    assert (first["answer"], first["text"], first["start"], first["end"]) == ("oslo", 2, 13, 17)
    assert len(others) == 2
    assert first["score"] >= others[0]["score"]
    result = run("answer", model, "when ?", "--text", "ann lives in oslo", "--format", "tsv")
    assert result.stdout.split("\t")[0] == ""
    result = run(
        "answer", model, "when ?", "--text", "ann lives in oslo", "--threshold", "1000", "--json"
    )
    assert json.loads(result.stdout)["answer"]


def test_scores_and_predictions_are_written(folder: Path) -> None:
    predictions = folder / "answers.json"
    result = run(
        "evaluate",
        *(str(folder / "qa.model"), str(folder / "questions.tsv")),
        *("--json", "--predictions", str(predictions)),
    )
    record = json.loads(result.stdout)
    assert record["questions"] == 18
    assert record["questions_unanswerable"] == 6
    assert record["exact"] > 0.8
    assert json.loads(predictions.read_text())["line 2"] == "rome"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("who ?\tann is here\tbob\n", "1 answers do not stand in their texts"),
        ("who ?\tann is here\t\n", "no question has an answer"),
        ("", "no question in it"),
    ],
)
def test_bad_questions_are_one_line(folder: Path, text: str, message: str) -> None:
    (folder / "bad.tsv").write_text(text)
    bert, output = str(folder / "tiny.bert"), str(folder / "bad.model")
    result = run("train", str(folder / "bad.tsv"), "--pretrained", bert, "-o", output)
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (folder / "bad.model").exists()


def test_a_model_that_is_no_bert_is_named(folder: Path) -> None:
    output = str(folder / "bad.model")
    questions = str(folder / "questions.tsv")
    result = run("train", questions, "--pretrained", str(folder / "qa.model"), "-o", output)
    assert result.exit_code == 1
    assert "is a qa model, which gives no states of tokens" in result.stderr


def test_an_empty_text_or_question_is_refused(folder: Path) -> None:
    result = run("answer", str(folder / "qa.model"), "who ?", "--text", " ")
    assert result.exit_code == 1
    assert "an empty question, or no text" in result.stderr
