"""Which words decided a tag: hide each word of the sentence and see how the tag's odds change.

A hidden word is one that the tagger does not know and whose spelling says nothing; the words
around it stay where they are. This asks the model, whatever it is, and needs nothing of its inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nlpkit.errors import NlpkitError
from nlpkit.tasks.tag.predictor import Tagger

HIDDEN = "\u2026"  # an ellipsis: no letters, no case, no digits


class TagExplanation(NamedTuple):
    """The tag of a word, and for each word of its sentence how far the log-odds fall without it."""

    place: int
    tag: str
    probability: float
    influence: list[float]


def explain_tags(
    tagger: Tagger, tokens: Sequence[str], places: Sequence[int] | None = None
) -> list[TagExplanation]:
    """Explain the tags of some words of a sentence (from 0), or of all.

    >>> explain_tags(tagger, ["Time", "flies"])[0].tag  # doctest: +SKIP
    'NOUN'
    """
    from scipy.special import logit, softmax

    variants = [list(tokens)]
    variants += [[*tokens[:i], HIDDEN, *tokens[i + 1 :]] for i in range(len(tokens))]
    shares = [softmax(scores, axis=1) for scores in tagger.scores(variants)]  # (T, K) each
    tags = tagger.tag(tokens)
    inner = [tagger.tags.tokens[int(row.argmax())] for row in shares[0]]
    found = []
    for place in range(len(tokens)) if places is None else places:
        if not 0 <= place < len(tokens):
            raise NlpkitError(f"there is no word {place + 1} in a sentence of {len(tokens)}")
        chosen = tagger.tags.encode([inner[place]])[0]
        each = np.array([share[place, chosen] for share in shares], np.float64)
        odds = logit(each.clip(1e-7, 1 - 1e-7))
        influence = (odds[0] - odds[1:]).tolist()
        found.append(TagExplanation(place, tags[place], float(each[0]), influence))
    return found
