"""Scoring a model on a tagged file, or one tagged file against another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from nlpkit.errors import NlpkitError
from nlpkit.metrics.calibration import Bin, calibration
from nlpkit.metrics.spans import TagScores, score_tags
from nlpkit.tasks.tag.layouts import LayoutChoice
from nlpkit.tasks.tag.predictor import Tagger
from nlpkit.tasks.tag.reading import read_tagged
from nlpkit.text.conll import Sentence
from nlpkit.text.schemes import is_entity_tag, split_tag


@dataclass
class Evaluation:
    """Scores with the sentences they are made of."""

    scores: TagScores
    sentences: list[Sentence]  # with the right tags
    predicted: list[list[str]]
    notes: list[str] = field(default_factory=list)
    bins: list[Bin] = field(default_factory=list)  # of a model, if they were asked for

    def worst(self, count: int) -> Iterator[tuple[Sentence, list[str], int]]:
        """The sentences with the most mistakes: sentence, predicted tags, mistakes."""
        wrong = [
            sum(right != found for right, found in zip(sentence.tags, tags, strict=True))
            for sentence, tags in zip(self.sentences, self.predicted, strict=True)
        ]
        order = sorted(range(len(wrong)), key=lambda place: -wrong[place])
        for place in order[:count]:
            if wrong[place]:
                yield self.sentences[place], self.predicted[place], wrong[place]


def evaluate_model(
    tagger: Tagger,
    test: str,
    choice: LayoutChoice,
    *,
    encoding: str,
    errors: str,
    calibrate: bool = False,
) -> Evaluation:
    """Tag the sentences of a file and compare; ``calibrate`` takes longer."""
    if tagger.layout.format == "conllu":
        column = f"{tagger.layout.tag_column + 1}:{tagger.layout.key}"
        choice = replace(choice, usual_column=column)
    sentences, _ = read_tagged([test], choice, encoding=encoding, errors=errors)
    sentences = _with_tags(sentences, test)
    predicted = tagger.tag_sentences([sentence.tokens for sentence in sentences])
    known = [
        [place for place, token in enumerate(sentence.tokens) if token in tagger.codec]
        for sentence in sentences
    ]
    scores = score_tags([sentence.tags for sentence in sentences], predicted, known)
    bins = _calibration(tagger, sentences) if calibrate else []
    return Evaluation(scores, sentences, predicted, _unseen(tagger, sentences), bins)


def _calibration(tagger: Tagger, sentences: list[Sentence]) -> list[Bin]:
    """How sure of its tags a tagger is, and how often they are right, token by token."""
    sure: list[float] = []
    right: list[bool] = []
    for sentence, scores in zip(
        sentences, tagger.scores([sentence.tokens for sentence in sentences]), strict=True
    ):
        tags, each, _ = tagger.probabilities(scores)
        sure += each
        right += [tag == wanted for tag, wanted in zip(tags, sentence.tags, strict=True)]
    return calibration(np.array(sure), np.array(right, bool))


def _with_tags(sentences: list[Sentence], name: str) -> list[Sentence]:
    filled = [sentence for sentence in sentences if sentence.tokens]
    if not filled or all(tag == "_" for sentence in filled for tag in sentence.tags):
        raise NlpkitError(f"{name} has no tags to compare with", hint="`column` or `tag_column`")
    return filled


def _unseen(tagger: Tagger, sentences: list[Sentence]) -> list[str]:
    """A note on tags that training never saw: they cannot be right."""
    if tagger.scheme is None:
        known = set(tagger.tags.tokens)
        names = {tag for sentence in sentences for tag in sentence.tags}
    else:
        known = {_type(tag) for tag in tagger.tags.tokens}
        names = {_type(tag) for sentence in sentences for tag in sentence.tags}
    unseen = sorted(names - known)
    if not unseen:
        return []
    return [f"tags that training never saw count as mistakes: {' '.join(unseen)}"]


def _type(tag: str) -> str:
    """The type of an entity, or the tag itself where it belongs to no entity scheme."""
    return split_tag(tag)[1] if is_entity_tag(tag) else tag


def evaluate_files(
    gold: str, predicted: str, choice: LayoutChoice, *, encoding: str, errors: str
) -> Evaluation:
    """Compare two files with the same tokens."""
    right, _ = read_tagged([gold], choice, encoding=encoding, errors=errors)
    found, _ = read_tagged([predicted], choice, encoding=encoding, errors=errors)
    right = _with_tags(right, gold)
    found = [sentence for sentence in found if sentence.tokens]
    if len(right) != len(found):
        raise NlpkitError(
            f"{gold} has {len(right)} sentences, {predicted} has {len(found)}",
            hint="two files with the same tokens",
        )
    for one, other in zip(right, found, strict=True):
        if one.tokens != other.tokens:
            raise NlpkitError(
                f"{one.where(0)} and {other.where(0)}: the tokens differ",
                hint="two files with the same tokens",
            )
    rows = [sentence.tags for sentence in found]
    return Evaluation(score_tags([sentence.tags for sentence in right], rows), right, rows)
