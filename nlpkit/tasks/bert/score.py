"""Pseudo-log-likelihood (Salazar et al., 2020): how likely each token is when it is masked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nlpkit.errors import NlpkitError
from nlpkit.models.bert_model import BertModel
from nlpkit.tasks.bert.fill import log_probabilities


@dataclass(frozen=True)
class PseudoScore:
    """How well a text fits what the model has read."""

    tokens: list[str]
    log_probabilities: list[float]  # of each token, given all others of its part

    @property
    def total(self) -> float:
        """The pseudo-log-likelihood, in nats."""
        return math.fsum(self.log_probabilities)

    @property
    def perplexity(self) -> float:
        """Pseudo-perplexity of a token."""
        return math.exp(min(700.0, -self.total / max(1, len(self.tokens))))


def score_text(bert: BertModel, text: str) -> PseudoScore:
    """Mask each token in turn; a text that is too long is scored in parts."""
    bert.model.require_head()
    codec, room = bert.codec, bert.model.settings.block_size - 2
    ids = codec.encode(text)
    if codec.mask_id in ids:
        raise NlpkitError("a text to score has no masks", hint="nlpkit bert fill")
    found: list[float] = []
    for start in range(0, len(ids), room):
        whole = codec.wrap(ids[start : start + room])
        places = range(1, len(whole) - 1)
        rows = [[*whole[:i], codec.mask_id, *whole[i + 1 :]] for i in places]
        tables = log_probabilities(bert, rows)
        # a special token in the text, such as [UNK], is none that a mask stands for
        scores = [float(table[0, whole[i]]) for i, table in zip(places, tables, strict=True)]
        found += [score if math.isfinite(score) else math.log(1e-10) for score in scores]
    return PseudoScore(codec.tokens(ids), found)
