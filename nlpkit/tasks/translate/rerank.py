"""Answers of a beam search, ranked once more with a joint n-gram model beside the network.

log p + weight log q: p is the network's probability of an answer, q that of the counts. How much
they weigh is decided by held-out pairs, where it may turn out that they are worth nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nlpkit.generate.beam import Hypothesis, length_penalty
from nlpkit.models.joint_ngram import JointNgram

if TYPE_CHECKING:
    from nlpkit.tasks.translate.data import Pair
    from nlpkit.tasks.translate.model import Translator

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)  # that are tried


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


def choose_weight(joint: JointNgram, translator: Translator, pairs: Sequence[Pair]) -> list[float]:
    """Give the model the weight that puts most of the held-out targets first, the lowest if several
    do; the share of them for each of ``WEIGHTS``."""
    from nlpkit.tasks.translate.settings import PredictSettings

    settings = PredictSettings()
    settings = replace(settings, nbest=settings.beams)
    alpha = translator.length_penalty(settings)
    found = translator.predict([pair.source for pair in pairs], settings)
    sources = [row[:-1] for row in translator.encode_sources([pair.source for pair in pairs])]
    logs = _score(joint, sources, [[one.ids for one in every] for every in found])
    shares = []
    for weight in WEIGHTS:
        right = 0
        for pair, every, row in zip(pairs, found, logs, strict=True):
            scores = [
                one.score + log * weight / _penalty(one.ids, alpha)
                for one, log in zip(every, row, strict=True)
            ]
            right += every[scores.index(max(scores))].text == pair.target
        shares.append(right / len(pairs))
    joint.weight = WEIGHTS[shares.index(max(shares))]
    return shares


def _score(
    joint: JointNgram, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[Sequence[int]]]
) -> list[list[float]]:
    """The joint log-probability of each source with each of its targets."""
    rows = [source for source, every in zip(sources, targets, strict=True) for _ in every]
    logs = iter(joint.score(rows, [ids for every in targets for ids in every]).tolist())
    return [[next(logs) for _ in every] for every in targets]


def _penalty(ids: Sequence[int], alpha: float) -> float:
    return length_penalty(len(ids) + 1, alpha)  # the end counts
