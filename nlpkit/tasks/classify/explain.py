"""Which words made the decision: leave each out and see how the score of the label changes.

This asks the model, whatever it is, and needs nothing of its inside. What two words say only
together is given to both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nlpkit.tasks.classify.predictor import Classifier
from nlpkit.text.patterns import Span


class Explanation(NamedTuple):
    """A decision, and for each word how much the label's log-odds fall without it."""

    label: str
    probability: float
    spans: list[Span]  # of the words in the text
    influence: list[float]


def explain(classifier: Classifier, text: str, label: str | None = None) -> Explanation:
    """Explain the likeliest label of a text, or the one that is named.

    >>> explain(classifier, "The soup was cold.").label  # doctest: +SKIP
    'negative'
    """
    from scipy.special import logit

    tokens = classifier.bags.tokens(text)
    variants = [tokens, *(tokens[:i] + tokens[i + 1 :] for i in range(len(tokens)))]
    probabilities = classifier.probabilities_of(variants).astype(np.float64)
    index = (
        int(probabilities[0].argmax()) if label is None else classifier.labels.encode([label])[0]
    )
    odds = logit(probabilities[:, index].clip(1e-7, 1 - 1e-7))
    return Explanation(
        classifier.labels.tokens[index],
        float(probabilities[0, index]),
        classifier.bags.spans(text),
        (odds[0] - odds[1:]).tolist(),
    )
