"""Questions: files, windows, scores by the official rules, spans, training."""

from __future__ import annotations

import collections
import json
import re
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_berts import tiny_bert

from nlpkit.errors import NlpkitError
from nlpkit.metrics.squad import answer_f1, best_threshold, exact_match
from nlpkit.models.finetune import BertEncoder
from nlpkit.tasks.qa.data import Answer, Question, check_answers, find_answer, read_questions
from nlpkit.tasks.qa.model import QaModel, QaNetwork, best_spans
from nlpkit.tasks.qa.settings import QaSettings
from nlpkit.tasks.qa.train import QaRun
from nlpkit.tasks.qa.windows import Window, cover, find_tokens, make_windows

TEXT = "ann lives in rome and bob lives in oslo while eve lives in cairo"

# --- the rules, as the official script states them -----------------------------------------------


def official_normal(text: str) -> str:
    lowered = "".join(ch for ch in text.lower() if ch not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", lowered).split())


def official_f1(gold: str, found: str) -> float:
    gold_tokens, found_tokens = official_normal(gold).split(), official_normal(found).split()
    common = collections.Counter(gold_tokens) & collections.Counter(found_tokens)
    same = sum(common.values())
    if len(gold_tokens) == 0 or len(found_tokens) == 0:
        return int(gold_tokens == found_tokens)
    if same == 0:
        return 0
    precision, recall = 1.0 * same / len(found_tokens), 1.0 * same / len(gold_tokens)
    return (2 * precision * recall) / (precision + recall)


WORDS = st.lists(st.sampled_from("the a cat, Cat! dog's dog an X".split()), max_size=4)
TEXTS = WORDS.map(" ".join)


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_scores_follow_the_official_rules(found: str, references: list[str]) -> None:
    golds = [one for one in references if official_normal(one)] or [""]
    wanted = max(int(official_normal(gold) == official_normal(found)) for gold in golds)
    assert exact_match(found, references) == wanted
    assert answer_f1(found, references) == pytest.approx(max(official_f1(g, found) for g in golds))


@given(
    st.lists(
        st.tuples(TEXTS, st.lists(TEXTS, max_size=1), st.integers(-3, 3)), min_size=1, max_size=6
    )
)
def test_no_other_threshold_gives_more(rows: list[tuple[str, list[str], int]]) -> None:
    answers, references, nothing = zip(*rows, strict=True)
    best = best_threshold(answers, references, nothing)

    def f1(threshold: float) -> float:
        given = ["" if n > threshold else a for a, n in zip(answers, nothing, strict=True)]
        return sum(map(answer_f1, given, references)) / len(given)

    assert best.f1 == pytest.approx(f1(best.value))
    assert best.f1 == pytest.approx(max(f1(half / 2) for half in range(-9, 10)))


# --- files --------------------------------------------------------------------------------------


def squad(answers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    qa = {"id": "q1", "question": "Who?", "answers": answers, **more}
    return {"data": [{"title": "t", "paragraphs": [{"context": "Ann did.", "qas": [qa]}]}]}


def test_both_versions_of_squad_are_read(tmp_path: Path) -> None:
    file = tmp_path / "squad.json"
    answer = {"text": "Ann", "answer_start": 0}
    for value, expected in (
        (squad([answer]), (Answer("Ann", 0),)),
        (squad([], is_impossible=True, plausible_answers=[answer]), ()),
    ):
        file.write_text(json.dumps(value, indent=1))
        (question,) = read_questions(str(file))
        assert question == Question("q1", "Who?", "Ann did.", expected)


def test_tables_with_and_without_a_header_are_read(tmp_path: Path) -> None:
    file = tmp_path / "questions.tsv"
    file.write_text("Who?\tAnn did.\tAnn\nWhen?\tAnn did.\t\nWhy?\tAnn did.\n")
    assert [one.answers for one in read_questions(str(file))] == [(Answer("Ann", 0),), (), ()]
    file.write_text("split\tanswer\ttext\tquestion\ntrain\tAnn\tAnn did.\tWho?\ntest\t\tx\ty\n")
    assert [one.question for one in read_questions(str(file))] == ["Who?"]
    assert [one.question for one in read_questions(str(file), split="test")] == ["y"]


def test_answers_out_of_place_are_counted_and_named(tmp_path: Path) -> None:
    file = tmp_path / "squad.json"
    file.write_text(json.dumps(squad([{"text": "Ann", "answer_start": 4}] * 5)))
    with pytest.raises(NlpkitError) as caught:
        check_answers(read_questions(str(file)), "squad.json")
    assert caught.value.message == (
        "squad.json: 5 answers do not stand where they should: q1: 'Ann'; q1: 'Ann'; q1: 'Ann'"
    )
    assert caught.value.hint == "mend answer_start, which counts characters from 0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no question in it"),
        ('{"data": 3}', "no list of data"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', "no context"),
        ("{", "not JSON"),
        ("only one column\n", "line 1: 1 columns"),
    ],
)
def test_other_files_are_refused_in_a_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(NlpkitError, match=message):
        read_questions(str(tmp_path / "file"))


def test_an_answer_is_found_as_a_whole_word_first() -> None:
    assert find_answer("romeo, rome", "rome") == 7
    assert find_answer("romeo", "rome") == 0
    assert find_answer("oslo", "rome") == -1


# --- windows ------------------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(1, 20), st.integers(0, 25))
def test_windows_lose_no_token(length: int, room: int, overlap: int) -> None:
    stretches = cover(length, room, min(overlap, room // 2))
    assert set().union(*(range(*one) for one in stretches)) == set(range(length))
    assert all(end - start <= room for start, end in stretches)


@settings(max_examples=25)
@given(st.integers(16, 40), st.integers(0, 10))
def test_every_answer_stands_whole_in_some_window(room: int, overlap: int) -> None:
    codec = tiny_bert([TEXT, "where ?"]).codec
    windows = make_windows(codec, "where ?", TEXT, room=room, overlap=overlap)
    assert all(len(window.ids) <= room for window in windows)
    for word in TEXT.split():
        start = TEXT.index(word)
        found = [find_tokens(window, start, start + len(word)) for window in windows]
        assert any(found), word
        for window, tokens in zip(windows, found, strict=True):
            if tokens:
                ids = window.ids[tokens[0] : tokens[1] + 1]
                assert codec.decode(ids) == word


def test_a_window_without_room_is_refused() -> None:
    codec = tiny_bert([TEXT]).codec
    with pytest.raises(NlpkitError, match="no room for a question and a text"):
        make_windows(codec, "where", TEXT, room=10, overlap=2)


def test_spans_are_those_with_the_highest_sums() -> None:
    random = np.random.default_rng(1)
    spans = [(i, i + 1) for i in range(6)]
    window = Window([0] * 10, [0] * 10, 3, spans)
    start, end = random.normal(size=(2, 10)).astype("f4")
    found = best_spans(window, start, end, "abcdef", 0, 4, longest=3)
    wanted = sorted(
        ((start[3 + i] + end[3 + j], "abcdef"[i : j + 1]) for i in range(6) for j in range(i, 6)),
        reverse=True,
    )
    wanted = [pair for pair in wanted if len(pair[1]) <= 3][:4]
    assert [span.answer for span in found] == [text for _, text in wanted]
    assert [span.score for span in found] == pytest.approx([score for score, _ in wanted])


# --- a model ------------------------------------------------------------------------------------

PEOPLE = "ann bob eve dan kim".split()
TOWNS = "rome oslo cairo paris delhi lima".split()


def questions(count: int, seed: int) -> list[Question]:
    """Who, where, or a question that the text does not answer."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        person, town = random.choice(PEOPLE), random.choice(TOWNS)
        text = f"{person} lives in {town} now" if number % 2 else f"in {town} there is {person}"
        asked, answer = [("who", person), ("where", town), ("when", "")][number % 3]
        answers = (Answer(str(answer), text.index(str(answer))),) if answer else ()
        made.append(Question(str(number), f"{asked} is it ?", text, answers))
    return made


def test_a_tiny_bert_learns_to_answer_and_when_not_to(tmp_path: Path) -> None:
    everything = [f"{q.question} {q.context}" for q in questions(60, 1)]
    encoder = BertEncoder(tiny_bert(everything))
    options = QaSettings(epochs=6, batch_size=16, lr=3e-3, layer_decay=1.0, dropout=0.0)
    run = QaRun(questions(300, 2), encoder, options, dev=questions(40, 3))
    run.train(tmp_path / "qa.model")
    reader = QaModel.load(tmp_path / "qa.model")
    assert reader.config.metrics["dev_f1"] > 0.9
    right = 0
    for question in questions(40, 4):
        span = reader.answer(question.question, [question.context]).best(reader.threshold)
        assert span is None or question.context[span.start : span.end] == span.answer
        right += ("" if span is None else span.answer) in (question.references or [""])
    assert right > 35


def test_the_best_answer_over_several_texts_is_that_of_its_text() -> None:
    encoder = BertEncoder(tiny_bert([TEXT]))
    reader = QaModel(QaNetwork(encoder).eval(), QaSettings(), None)
    texts = ["ann lives in rome", "bob lives in oslo", "eve lives in cairo"]
    together = reader.answer("where", texts, count=3)
    alone = [reader.answer("where", [text], count=1).spans[0] for text in texts]
    best = max(range(3), key=lambda place: alone[place].score)
    assert together.spans[0].text == best
    assert together.spans[0].answer == alone[best].answer
    assert together.spans[0].score == pytest.approx(alone[best].score, abs=1e-4)
    assert sum(span.probability for span in together.spans) + together.probability == pytest.approx(
        1
    )


def test_questions_without_any_answer_teach_nothing() -> None:
    with pytest.raises(NlpkitError, match="no question has an answer"):
        QaRun([Question("1", "a", "b", ())], BertEncoder(tiny_bert(["a b"])), QaSettings())
