"""``nlpkit qa`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from model_kinds import QUESTIONS
from tiny_berts import save_bert
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app
from nlpkit.tasks.qa.data import read_questions


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
        (
            "who ?\tann is here\tbob\n",
            "1 answer does not stand where it should: line 1: 'bob' (try: answers that are",
        ),
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


def test_records_ask_their_own_questions_and_keep_their_keys(folder: Path) -> None:
    model = str(folder / "qa.model")
    records = [
        {"id": 1, "question": "where ?", "context": "ann lives in oslo"},
        {"id": 2, "question": "when ?", "text": "ann lives in oslo"},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    result = run("answer", model, "-", "-", "--json", input=lines)
    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["id"], first["context"], first["answer"]) == (1, "ann lives in oslo", "oslo")
    assert (second["id"], second["text"], second["answer"]) == (2, "ann lives in oslo", "")
    alone = json.loads(
        run("answer", model, "where ?", "--text", "ann lives in oslo", "--json").stdout
    )
    assert {key: alone[key] for key in ("start", "end", "score")} == {
        key: first[key] for key in ("start", "end", "score")
    }
    result = run("answer", model, "-", "-", input='{"question": "where ?"}\n')
    assert (result.exit_code, result.stderr.count("\n")) == (1, 2)  # JSON lines were recognised
    assert "a question without a text" in result.stderr


@pytest.mark.parametrize("indent", [None, 2])
def test_squads_own_file_asks_its_questions(folder: Path, indent: int | None) -> None:
    qas = [{"id": "a", "question": "where ?"}, {"id": "b", "question": "when ?"}]
    paragraphs = [{"context": "ann lives in oslo", "qas": qas}]
    squad = {"version": "1.1", "data": [{"title": "Ann", "paragraphs": paragraphs}]}
    path = folder / "squad.json"
    path.write_text(json.dumps(squad, indent=indent))
    for inputs, text in ((str(path), ""), ("-", path.read_text())):
        result = run("answer", str(folder / "qa.model"), "-", inputs, "--json", input=text)
        found = [json.loads(line) for line in result.stdout.splitlines()]
        assert [(one["id"], one["answer"]) for one in found] == [("a", "oslo"), ("b", "")]
    path.write_text('{"data": [{"paragraphs": 3}]}')
    result = run("answer", str(folder / "qa.model"), "-", str(path))
    assert (result.exit_code, "neither JSON lines nor SQuAD's JSON" in result.stderr) == (1, True)


def test_questions_as_json_lines_are_those_of_squad(folder: Path) -> None:
    context = "ann lives in oslo"
    start = {"text": ["oslo"], "answer_start": [13]}
    lines = [
        {"id": "a", "question": "where ?", "context": context, "answers": start, "split": "test"},
        {"id": "b", "question": "where ?", "context": context, "answer": "oslo", "split": "train"},
        {"id": "c", "question": "when ?", "context": context, "answers": {"text": []}},
    ]
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read_questions(str(path), split="test")
    assert [(one.id, one.references) for one in found] == [("a", ["oslo"]), ("c", [])]
    assert read_questions(str(path))[0].answers[0].start == 13
    shown = run("evaluate", str(folder / "qa.model"), str(path), "--format", "csv", "--header")
    assert shown.stdout.splitlines()[:2] == ["measure,value", "questions,2"]
    path.write_text('{"question": "where ?", "context": "x", "answers": {"text": ["x"], '
                    '"answer_start": ["0"]}}\n')  # fmt: skip
    result = run("evaluate", str(folder / "qa.model"), str(path))
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
