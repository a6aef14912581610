"""Scores of answers by the official rules of SQuAD 1.1 and 2.0 (Rajpurkar et al., 2016, 2018).

Answers are compared in lower case, without punctuation, without a, an and the, and with single
spaces. A question counts by its best reference answer; one that has none is answered rightly by
nothing at all.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


class AnswerScores(NamedTuple):
    """Shares of 1, over all questions."""

    exact: float
    f1: float
    questions: int


class Threshold(NamedTuple):
    """From which score on a question counts as unanswerable, and what that gives."""

    value: float
    f1: float


def normalize_answer(text: str) -> str:
    """What is compared.

    >>> normalize_answer("The  Eiffel Tower!")
    'eiffel tower'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, references: Sequence[str]) -> float:
    """1 if the answer is one of the references.

    >>> exact_match("the cat", ["Cat.", "dog"]), exact_match("", [])
    (1.0, 1.0)
    """
    normal = normalize_answer(answer)
    return float(any(normal == normalize_answer(one) for one in _kept(references)))


def answer_f1(answer: str, references: Sequence[str]) -> float:
    """F1 of the words that answer and reference share, with the best reference.

    >>> round(answer_f1("black cat", ["the cat"]), 3)
    0.667
    """
    return max(_f1(answer, one) for one in _kept(references))


def _kept(references: Sequence[str]) -> list[str]:
    """References with something in them; none at all means that there is no answer."""
    return [one for one in references if normalize_answer(one)] or [""]


def _f1(answer: str, reference: str) -> float:
    found, wanted = normalize_answer(answer).split(), normalize_answer(reference).split()
    if not found or not wanted:
        return float(found == wanted)
    shared = sum((Counter(found) & Counter(wanted)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(found), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def score_answers(answers: Sequence[str], references: Sequence[Sequence[str]]) -> AnswerScores:
    """Means over questions."""
    pairs = list(zip(answers, references, strict=True))
    count = max(1, len(pairs))
    return AnswerScores(
        sum(exact_match(*pair) for pair in pairs) / count,
        sum(answer_f1(*pair) for pair in pairs) / count,
        len(pairs),
    )


def best_threshold(
    answers: Sequence[str], references: Sequence[Sequence[str]], nothing: Sequence[float]
) -> Threshold:
    """The threshold with the highest F1: no answer where ``nothing`` is above it.

    ``nothing`` says for each question how much likelier no answer is than the answer.

    >>> best_threshold(["cat", "dog"], [["cat"], []], [-1.0, 2.0])
    Threshold(value=0.5, f1=1.0)
    """
    # nothing is answered at first; then questions are answered one by one, the surest first
    total = best = float(sum(not any(map(normalize_answer, ones)) for ones in references))
    order = sorted(range(len(answers)), key=lambda place: nothing[place])
    value = nothing[order[0]] - 1.0 if order else 0.0
    for rank, place in enumerate(order):
        answerable = any(map(normalize_answer, references[place]))
        total += answer_f1(answers[place], references[place]) - (0.0 if answerable else 1.0)
        last = rank + 1 == len(order)
        if total > best and (last or nothing[order[rank + 1]] > nothing[place]):
            best = total
            above = nothing[place] + 2.0 if last else nothing[order[rank + 1]]
            value = (nothing[place] + above) / 2
    return Threshold(value, best / max(1, len(answers)))
