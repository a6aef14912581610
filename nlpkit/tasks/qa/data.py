"""Questions on texts: SQuAD's JSON (1.1 and 2.0, as it is published), JSON lines and TSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from nlpkit import textio
from nlpkit.errors import NlpkitError, plural
from nlpkit.text.records import row_lines

LINES = 'JSON lines: {"question": ..., "context": ..., "answers": {"text": [...]}}'
CONTEXT_KEYS = ("context", "text")
TSV = "question<TAB>text<TAB>answer, the answer empty where the text has none"
SHOWN = 3  # of many mistakes
TRAIN_SPLITS = ("train", "training")


class Answer(NamedTuple):
    """A span of the text; ``start`` is a character."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question on a text, with its reference answers: none if the text has no answer."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]

    @property
    def references(self) -> list[str]:
        """The texts of the answers."""
        return [answer.text for answer in self.answers]


def read_questions(
    path: str,
    *,
    split: Literal["train", "test"] = "train",
    encoding: str = "utf-8",
    errors: str = "strict",
) -> list[Question]:
    """All questions of a file: JSON by its first character, CSV by its header, else TSV, of which a
    ``split`` column (or key) keeps only the rows meant."""
    name = textio.source_name(path)
    lines = list(row_lines(path, ("question",), encoding=encoding, errors=errors, forms=("csv",)))
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip("\ufeff \t").startswith("{"):
        if _is_question(first):
            questions = list(_from_records(lines, name, split))
        else:
            questions = list(_from_squad(textio.parse_record("\n".join(lines), name), name))
    else:
        questions = list(_from_tsv(lines, name, split))
    if not questions:
        raise NlpkitError(f"{name}: no question in it", hint=f"SQuAD's JSON, JSON lines, or {TSV}")
    return questions


def asked(questions: Iterable[Sequence[str]]) -> list[Question]:
    """Questions from (question, text, answer), of which an empty answer is none.

    >>> asked([("Who sat?", "The cat sat.", "The cat")])[0].references
    ['The cat']
    """
    found = []
    for number, one in enumerate(questions, 1):
        if len(one) != 3:
            raise NlpkitError(f"question {number} is not (question, text, answer): {one!r:.60}")
        question, context, answer = one
        answers = (Answer(answer, find_answer(context, answer)),) if answer else ()
        found.append(Question(f"question {number}", question, context, answers))
    return found


def _is_question(line: str) -> bool:
    """Whether a line is a record of its own, and not the beginning of SQuAD's JSON."""
    try:
        value = textio.parse_json(line)
    except ValueError:
        return False
    return isinstance(value, dict) and "question" in value


def _from_records(lines: Sequence[str], name: str, split: str) -> Iterator[Question]:
    """A question a line; answers as Hugging Face's datasets have them, or an ``answer``."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}: line {number}"
        record = textio.parse_record(line, where, LINES)
        part = record.get("split")
        if part is not None and (str(part).lower() in TRAIN_SPLITS) != (split == "train"):
            continue
        key = next((key for key in CONTEXT_KEYS if key in record), CONTEXT_KEYS[0])
        context = _text(record, key, where, LINES)
        question = _text(record, "question", where, LINES)
        answers = tuple(_record_answers(record, context, where))
        yield Question(str(record.get("id", f"line {number}")), question, context, answers)


def _record_answers(record: dict[str, Any], context: str, where: str) -> Iterator[Answer]:
    found: Any = record.get("answers", record.get("answer"))
    starts: Any = None
    if isinstance(found, dict):
        found, starts = found.get("text"), found.get("answer_start")
    texts = [found] if isinstance(found, str) else found or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise NlpkitError(f"{where}: answers are no texts", hint=LINES)
    if starts is None:
        starts = [find_answer(context, text) for text in texts]
    whole = isinstance(starts, list) and all(type(start) is int for start in starts)
    if not whole or len(starts) != len(texts):
        raise NlpkitError(f"{where}: not an answer_start for each answer", hint=LINES)
    yield from (Answer(text, start) for text, start in zip(texts, starts, strict=True) if text)


def _from_squad(value: Any, name: str) -> Iterator[Question]:
    hint = "SQuAD's form: data, paragraphs, qas"
    for a, article in enumerate(_list(value, "data", name, hint)):
        where = f"{name}: data[{a}]"
        for p, paragraph in enumerate(_list(article, "paragraphs", where, hint)):
            place = f"{where}.paragraphs[{p}]"
            context = _text(paragraph, "context", place, hint)
            for q, qa in enumerate(_list(paragraph, "qas", place, hint)):
                spot = f"{place}.qas[{q}]"
                answers = []
                for one in _list(qa, "answers", spot, hint, may_lack=True):
                    start = one.get("answer_start") if isinstance(one, dict) else None
                    if not isinstance(start, int) or isinstance(start, bool):
                        raise NlpkitError(f"{spot}: an answer without answer_start", hint=hint)
                    answers.append(Answer(_text(one, "text", spot, hint), start))
                if qa.get("is_impossible"):
                    answers = []
                number = qa.get("id", f"{a}-{p}-{q}")
                question = _text(qa, "question", spot, hint)
                yield Question(str(number), question, context, tuple(answers))


def _list(value: Any, key: str, where: str, hint: str, *, may_lack: bool = False) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    if found is None and may_lack and isinstance(value, dict):
        return []
    if not isinstance(found, list):
        raise NlpkitError(f"{where}: no list of {key}", hint=hint)
    return found


def _text(value: Any, key: str, where: str, hint: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, str):
        raise NlpkitError(f"{where}: no {key}", hint=hint)
    return found


def _from_tsv(lines: Sequence[str], name: str, split: str) -> Iterator[Question]:
    """Columns by a header with question, text (or context) and answer, else in that order."""
    order, part = (0, 1, 2), -1
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        fields = line.split("\t")
        if number == 1 and (header := _header(fields)):
            order, part = header
            continue
        if len(fields) < 2:
            raise NlpkitError(f"{name}: line {number}: {len(fields)} columns", hint=TSV)
        fields += [""] * (1 + max(*order, part) - len(fields))
        if part >= 0 and (fields[part].strip().lower() in TRAIN_SPLITS) != (split == "train"):
            continue
        question, context, answer = (fields[column].strip() for column in order)
        answers = (Answer(answer, find_answer(context, answer)),) if answer else ()
        yield Question(f"line {number}", question, context, answers)


def _header(fields: Sequence[str]) -> tuple[tuple[int, int, int], int] | None:
    names = [field.strip().lower() for field in fields]
    text = "context" if "context" in names else "text"
    if {"question", text, "answer"} <= set(names):
        order = names.index("question"), names.index(text), names.index("answer")
        return order, names.index("split") if "split" in names else -1
    return None


def find_answer(context: str, answer: str) -> int:
    """Where an answer stands in a text, as whole words if it does somewhere; -1 for nowhere.

    >>> find_answer("a cathedral, a cat", "cat")
    15
    """
    start = first = context.find(answer)
    while start >= 0:
        end = start + len(answer)
        before, after = context[start - 1 : start], context[end : end + 1]
        if not before.isalnum() and not after.isalnum():
            return start
        start = context.find(answer, start + 1)
    return first


def check_answers(questions: Sequence[Question], name: str) -> None:
    """Refuse answers that do not stand where they are said to: how many, and the first three."""
    wrong = [
        (question, answer)
        for question in questions
        for answer in question.answers
        if answer.start < 0
        or question.context[answer.start : answer.start + len(answer.text)] != answer.text
    ]
    if wrong:
        shown = "; ".join(f"{one.id}: {answer.text[:30]!r}" for one, answer in wrong[:SHOWN])
        verb = (
            "does not stand where it should"
            if len(wrong) == 1
            else "do not stand where they should"
        )
        hint = "answers that are spans of their texts, letter by letter"
        if any(answer.start >= 0 for _, answer in wrong):  # those of TSV were looked for
            hint = "mend answer_start, which counts characters from 0"
        raise NlpkitError(f"{name}: {plural(len(wrong), 'answer')} {verb}: {shown}", hint=hint)
