"""How good vectors are at analogy questions, a section at a time, and whether others are better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.metrics.intervals import mcnemar, wilson_interval
from nlpkit.vectors import query
from nlpkit.vectors.settings import EVALUATION, EvaluationSettings
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.transform import folded

_UNKNOWN, _WRONG, _RIGHT = -1, 0, 1
TOTAL = "total"


@dataclass(frozen=True)
class AnalogyQuestion:
    """``a b c d`` of a section: a is to b as c is to d."""

    section: str
    words: tuple[str, str, str, str]
    record: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


def read_questions(lines: Iterable[str], name: str) -> list[AnalogyQuestion]:
    """Lines as in questions-words: ``: section``, then four words a line; or JSON lines with a, b,
    c, d and, where there are several, section.

    >>> read_questions([": capitals", "Athens Greece Oslo Norway"], "x")[0].section
    'capitals'
    """
    questions = []
    section = "all"
    for number, line in enumerate(lines, 1):
        if line.startswith(":"):
            section = line[1:].strip()
            continue
        if line.lstrip().startswith("{"):
            questions.append(_from_record(line, f"{name}: line {number}"))
            continue
        words = line.split()
        if not words:
            continue
        if len(words) != 4:
            raise NlpkitError(f"{name}: line {number}: expected four words, found {len(words)}")
        questions.append(AnalogyQuestion(section, (words[0], words[1], words[2], words[3])))
    if not questions:
        raise NlpkitError(f"{name}: no questions in it", hint="four words a line")
    return questions


def _from_record(line: str, where: str) -> AnalogyQuestion:
    record = textio.parse_record(line, where)
    words: list[Any] = [record.get(key) for key in "abcd"]
    if not all(isinstance(word, str) and word for word in words):
        raise NlpkitError(f"{where}: no four words", hint="keys: a, b, c, d (and section)")
    a, b, c, d = words
    return AnalogyQuestion(str(record.get("section", "all")), (a, b, c, d), record)


@dataclass(frozen=True)
class AnalogyScore:
    """Right answers of a section, or of all."""

    section: str
    correct: int
    answered: int
    questions: int

    @property
    def accuracy(self) -> float:
        """Share of right answers among those given."""
        return self.correct / self.answered if self.answered else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy (Wilson)."""
        return wilson_interval(self.correct, self.answered)


@dataclass(frozen=True)
class AnalogyReport:
    """Scores by section, their sum, the outcome of each question, and the protocol."""

    sections: list[AnalogyScore]
    total: AnalogyScore
    section_of: list[str]  # by question
    outcomes: NDArray[np.int8]  # by question: -1 not answered, 0 wrong, 1 right
    answers: list[str | None]  # by question
    protocol: str


def evaluate_analogies(
    vectors: Vectors,
    questions: Sequence[AnalogyQuestion],
    settings: EvaluationSettings = EVALUATION,
) -> AnalogyReport:
    """Answer each question whose four words are known; the three given words are never answers."""
    known = folded(vectors, settings.restrict, settings.fold_case)
    texts = [
        tuple(word.casefold() for word in question.words) if settings.fold_case else question.words
        for question in questions
    ]
    outcomes = np.full(len(questions), _UNKNOWN, np.int8)
    asked = [index for index, words in enumerate(texts) if all(word in known for word in words)]
    if not asked:
        raise NlpkitError(
            f"none of the {len(questions)} questions has all four words in the vectors",
            hint="vectors of such words, or a higher `restrict`",
        )
    given = [(texts[index][0], texts[index][1], texts[index][2]) for index in asked]
    answers = query.analogy(known, given, 1, method=settings.method)
    given_answers: list[str | None] = [None] * len(questions)
    for index, answer in zip(asked, answers, strict=True):
        given_answers[index] = answer[0].word if answer else None
        right = bool(answer) and answer[0].word == texts[index][3]
        outcomes[index] = _RIGHT if right else _WRONG
    section_of = [question.section for question in questions]
    sections = [_score(name, outcomes[mask]) for name, mask in _by_section(section_of)]
    case = "case folded" if settings.fold_case else "case kept"
    return AnalogyReport(
        sections,
        _score(TOTAL, outcomes),
        section_of,
        outcomes,
        given_answers,
        f"{settings.method.value}, answers from the {min(settings.restrict, len(vectors)):,} most "
        f"frequent words, {case}, the three given words excluded, "
        "questions with other words skipped",
    )


def _by_section(section_of: list[str]) -> list[tuple[str, NDArray[np.bool_]]]:
    names = np.array(section_of)
    return [(name, names == name) for name in dict.fromkeys(section_of)]


def _score(section: str, outcomes: NDArray[np.int8]) -> AnalogyScore:
    answered = int((outcomes != _UNKNOWN).sum())
    return AnalogyScore(section, int((outcomes == _RIGHT).sum()), answered, len(outcomes))


@dataclass(frozen=True)
class AnalogyComparison:
    """Two sets on the questions of a section, or on all, that both can answer."""

    section: str
    shared: int
    first_accuracy: float
    second_accuracy: float
    only_first: int  # answered right by the first alone
    only_second: int
    p: float  # McNemar's exact test


def compare_analogies(first: AnalogyReport, second: AnalogyReport) -> list[AnalogyComparison]:
    """Whether two reports on the same questions differ by more than luck: by section, then all."""
    both = (first.outcomes != _UNKNOWN) & (second.outcomes != _UNKNOWN)
    if not both.any():
        raise NlpkitError("no question can be answered by both sets of vectors")
    left, right = first.outcomes == _RIGHT, second.outcomes == _RIGHT
    groups = [*_by_section(first.section_of), (TOTAL, np.ones(len(both), np.bool_))]
    return [
        _compare(name, left[mask & both], right[mask & both])
        for name, mask in groups
        if (mask & both).any()
    ]


def _compare(
    section: str, first: NDArray[np.bool_], second: NDArray[np.bool_]
) -> AnalogyComparison:
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    return AnalogyComparison(
        section,
        len(first),
        float(first.mean()),
        float(second.mean()),
        only_first,
        only_second,
        mcnemar(only_first, only_second),
    )
