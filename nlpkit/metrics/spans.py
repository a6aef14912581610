"""How good predicted tags are: accuracy, precision, recall and F1, confusions, entities.

Entities count by the rule of the CoNLL shared tasks: one is right when its first token, last token
and type are all right, and nothing is given for a part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from nlpkit.text.schemes import detect_scheme, read_spans


@dataclass
class Counts:
    """Right, predicted and true numbers of something, and the measures made of them.

    >>> Counts(right=1, predicted=2, true=4).precision, Counts(1, 2, 4).recall
    (0.5, 0.25)
    """

    right: int = 0
    predicted: int = 0
    true: int = 0

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        both = self.predicted + self.true
        return 2 * self.right / both if both else 0.0


@dataclass
class TagScores:
    """All that ``tag evaluate`` shows."""

    tokens: int = 0
    right: int = 0
    known: int = 0  # tokens whose word was seen in training; 0 of 0 when that is not known
    known_right: int = 0
    sentences: int = 0
    right_sentences: int = 0
    tags: dict[str, Counts] = field(default_factory=dict)
    confusions: Counter[tuple[str, str]] = field(default_factory=Counter)  # (true, predicted)
    entities: Counts | None = None  # None when the tags are no entities
    types: dict[str, Counts] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        return self.right / self.tokens if self.tokens else 0.0

    @property
    def known_accuracy(self) -> float:
        return self.known_right / self.known if self.known else 0.0

    @property
    def unknown_accuracy(self) -> float:
        unknown = self.tokens - self.known
        return (self.right - self.known_right) / unknown if unknown else 0.0


def score_tags(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    known: Sequence[Collection[int]] | None = None,
) -> TagScores:
    """Compare tags; ``known`` has the tokens of each sentence whose word training saw.

    >>> scores = score_tags([["B-P", "I-P", "O"]], [["B-P", "O", "O"]])
    >>> scores.entities.f1, round(scores.accuracy, 2)
    (0.0, 0.67)
    """
    scores = TagScores(sentences=len(gold))
    pairs: Counter[tuple[str, str]] = Counter()
    for place, (right, found) in enumerate(zip(gold, predicted, strict=True)):
        pairs.update(zip(right, found, strict=True))
        scores.right_sentences += list(right) == list(found)
        for token in known[place] if known else ():
            scores.known += 1
            scores.known_right += right[token] == found[token]
    for (right_tag, found_tag), count in pairs.items():
        scores.tokens += count
        scores.tags.setdefault(right_tag, Counts()).true += count
        scores.tags.setdefault(found_tag, Counts()).predicted += count
        if right_tag == found_tag:
            scores.right += count
            scores.tags[right_tag].right += count
    scores.confusions = pairs
    if detect_scheme([*gold, *predicted]) is not None:
        _score_entities(gold, predicted, scores)
    return scores


def _score_entities(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scores: TagScores
) -> None:
    total = Counts()
    for right, found in zip(gold, predicted, strict=True):
        true_spans, found_spans = set(read_spans(right)), set(read_spans(found))
        for span in true_spans:
            scores.types.setdefault(span.type, Counts()).true += 1
        for span in found_spans:
            scores.types.setdefault(span.type, Counts()).predicted += 1
        for span in true_spans & found_spans:
            scores.types[span.type].right += 1
        total.true += len(true_spans)
        total.predicted += len(found_spans)
        total.right += len(true_spans & found_spans)
    scores.entities = total
