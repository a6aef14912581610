"""How good predicted labels are: accuracy, precision, recall, F1, confusions, calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nlpkit.metrics.calibration import Bin, calibration, calibration_error
from nlpkit.metrics.spans import Counts
from nlpkit.nn.inference import Floats
from nlpkit.tasks.classify.data import Example
from nlpkit.tasks.classify.fasttext import AnyClassifier
from nlpkit.tasks.classify.predictor import decide


@dataclass
class LabelScores:
    """All that ``classify evaluate`` shows."""

    texts: int
    accuracy: float  # the share of texts with all labels right
    labels: dict[str, Counts]
    confusions: Counter[tuple[str, str]] = field(default_factory=Counter)  # (true, predicted)
    bins: list[Bin] = field(default_factory=list)

    @property
    def micro(self) -> Counts:
        """Counts over all labels together."""
        counts = self.labels.values()
        return Counts(
            sum(count.right for count in counts),
            sum(count.predicted for count in counts),
            sum(count.true for count in counts),
        )

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the labels that occur."""
        seen = [count.f1 for count in self.labels.values() if count.true]
        return sum(seen) / len(seen) if seen else 0.0

    @property
    def calibration_error(self) -> float:
        """The mean gap between how sure and how right, weighted by number (ECE)."""
        return calibration_error(self.bins)


def score_labels(
    examples: Sequence[Example], classifier: AnyClassifier, threshold: float = 0.5
) -> LabelScores:
    """Classify labelled texts and compare."""
    texts: list[Any] = [example.texts for example in examples]
    probabilities = classifier.probabilities(texts)
    several = classifier.settings.multi_label
    decided = decide(classifier.labels.tokens, probabilities, threshold if several else None)
    labels: dict[str, Counts] = {name: Counts() for name in classifier.labels.tokens}
    confusions: Counter[tuple[str, str]] = Counter()
    right = 0
    for example, found in zip(examples, decided, strict=True):
        true = set(example.labels)
        right += true == set(found)
        for label in true:
            labels.setdefault(label, Counts()).true += 1
        for label in found:
            labels[label].predicted += 1
            labels[label].right += label in true
        if len(example.labels) == 1 and len(found) == 1:
            confusions[example.labels[0], found[0]] += 1
    return LabelScores(
        len(examples),
        right / max(1, len(examples)),
        labels,
        confusions,
        _calibration(examples, classifier, probabilities),
    )


def _calibration(
    examples: Sequence[Example], classifier: AnyClassifier, probabilities: Floats
) -> list[Bin]:
    """Decisions in bins of equal width: of the likeliest label, or of each when multi-label."""
    names = classifier.labels.tokens
    true = np.array([[name in example.labels for name in names] for example in examples], bool)
    if classifier.settings.multi_label:
        sure, hit = probabilities.reshape(-1), true.reshape(-1)
    else:
        best = probabilities.argmax(axis=1)
        rows = np.arange(len(examples))
        sure, hit = probabilities[rows, best], true[rows, best]
    return calibration(sure, hit)
