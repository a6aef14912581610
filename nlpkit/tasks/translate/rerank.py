"""Answers of a beam search, ranked once more with a joint n-gram model beside the network.

log p + weight log q: p is the network's probability of an answer, q that of the counts. How much
they weigh is decided by held-out pairs, where it may turn out that they are worth nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nlpkit.generate.beam import Hypothesis, length_penalty
from nlpkit.models.joint_ngram import JointNgram

if TYPE_CHECKING:
    from nlpkit.tasks.translate.data import Pair
    from nlpkit.tasks.translate.model import Translator

WEIGHTS = tuple(eighths / 8 for eighths in range(17))  # that are tried, 0 to 2
SCALES = (0.25, 0.5, 0.75, 1.0, 1.5)
NOWHERE = -1e9  # the log-probability of a hypothesis that is not there


def rerank(
    joint: JointNgram,
    sources: Sequence[Sequence[int]],
    found: Sequence[Sequence[Hypothesis]],
    alpha: float,  # of the length penalty
) -> list[list[Hypothesis]]:
    """For each source its hypotheses, those first that both models hold likely."""
    logs = _score(joint, sources, [[one.ids for one in every] for every in found])
    ranked = []
    for every, row in zip(found, logs, strict=True):
        new = [
            replace(one, score=one.score + log * joint.weight / _penalty(one.ids, alpha))
            for one, log in zip(every, row, strict=True)
        ]
        ranked.append(sorted(new, reverse=True))
    return ranked


def choose_weight(
    joint: JointNgram, translator: Translator, pairs: Sequence[Pair]
) -> tuple[float, float]:
    """Give the model the weight that makes held-out targets likeliest among their hypotheses.

    Hypotheses share the probability softmax(s (log p + weight log q)), with s what fits best, too:
    that wavers less from one set of pairs to the next than counting which targets come first. The
    model weighs nothing if it loses more of these than it wins by a standard error. The share of
    targets that come first is given for no weight and for this one.
    """
    from nlpkit.tasks.translate.settings import PredictSettings

    settings = PredictSettings()
    settings = replace(settings, nbest=settings.beams)
    alpha = translator.length_penalty(settings)
    found = translator.predict([pair.source for pair in pairs], settings)
    sources = [row[:-1] for row in translator.encode_sources([pair.source for pair in pairs])]
    logs = _score(joint, sources, [[one.ids for one in every] for every in found])
    network = np.full((len(pairs), settings.nbest), NOWHERE)  # (N, B)
    counts, right = network.copy(), np.zeros(network.shape, bool)
    for i, (pair, every, row) in enumerate(zip(pairs, found, logs, strict=True)):
        for k, (one, log) in enumerate(zip(every, row, strict=True)):
            network[i, k], counts[i, k] = one.score, log / _penalty(one.ids, alpha)
            right[i, k] = one.text == pair.target
    there = right.any(axis=1)  # targets that the search found
    fits = {
        (weight, scale): _log_likelihood(scale * (network + weight * counts)[there], right[there])
        for weight in WEIGHTS
        for scale in SCALES
    }
    weight = max(fits, key=lambda pair: fits[pair])[0]
    none, some = (_come_first(network + one * counts, right) for one in (0.0, weight))
    won, lost = (some & ~none).sum(), (none & ~some).sum()
    joint.weight = weight if lost - won < math.sqrt(won + lost) else 0.0
    return float(none.mean()), float(some.mean())


def _log_likelihood(scores: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """The sum over rows (N, B) of log softmax of what is right."""
    top = scores.max(axis=1, keepdims=True, initial=NOWHERE)
    total = np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0]
    return float(np.where(right, scores, NOWHERE).max(axis=1, initial=NOWHERE).sum() - total.sum())


def _come_first(scores: NDArray[np.float64], right: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rows (N, B) have what is right at their highest score."""
    found: NDArray[np.bool_] = right[np.arange(len(right)), scores.argmax(axis=1)]
    return found


def _score(
    joint: JointNgram, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[Sequence[int]]]
) -> list[list[float]]:
    """The joint log-probability of each source with each of its targets."""
    rows = [source for source, every in zip(sources, targets, strict=True) for _ in every]
    logs = iter(joint.score(rows, [ids for every in targets for ids in every]).tolist())
    return [[next(logs) for _ in every] for every in targets]


def _penalty(ids: Sequence[int], alpha: float) -> float:
    return length_penalty(len(ids) + 1, alpha)  # the end counts
