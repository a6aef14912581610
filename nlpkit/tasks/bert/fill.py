"""Filling in masked words: what a BERT holds likely at each [MASK] of a text.

Several masks are filled one after the other, each with those before it in place, so that they fit
together: ``best`` takes the mask of which the model is surest next, ``left`` the leftmost, and
``beam`` goes from left to right with several texts in hand. The probability of a filling is the
product of those of its tokens, each given what stood there when it was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from nlpkit.errors import NlpkitError
from nlpkit.models.bert_model import BertModel
from nlpkit.text.wordpiece import MASK

Order = Literal["best", "left", "beam"]


@dataclass(frozen=True)
class Filling:
    """A way to fill the masks of a text."""

    tokens: list[str]  # one for each mask, from left to right
    probability: float  # of all of them
    text: str  # with the masks filled


@dataclass(frozen=True)
class _Hypothesis:
    ids: list[int]
    log_probability: float


def masked_ids(bert: BertModel, text: str) -> list[int]:
    """Ids of a text with [CLS] and [SEP]; it must have a mask and fit into one reading."""
    bert.model.require_head()
    ids = bert.codec.wrap(bert.codec.encode(text))
    if bert.codec.mask_id not in ids:
        raise NlpkitError(
            f"no {MASK} in the text: {_short(text)}", hint=f"Paris is the {MASK} of France."
        )
    longest = bert.model.settings.block_size
    if len(ids) > longest:
        raise NlpkitError(
            f"{len(ids)} tokens, and the model reads {longest}: {_short(text)}",
            hint="a shorter text around the mask",
        )
    return ids


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


@torch.no_grad()
def log_probabilities(bert: BertModel, rows: Sequence[Sequence[int]]) -> list[Tensor]:
    """For each row the log-probabilities (M, V) at its masks; special tokens have none."""
    found: list[Tensor] = [torch.empty(0)] * len(rows)
    specials = bert.codec.special_ids
    for batch, states, _ in bert.states(rows):
        for number, state in zip(batch, states, strict=True):
            places = [i for i, index in enumerate(rows[number]) if index == bert.codec.mask_id]
            logits = bert.model.predict(state[places]).float()  # (M, V)
            logits[:, specials] = -torch.inf
            logits[:, len(bert.codec.vocabulary()) :] = -torch.inf  # padding of the embedding
            found[number] = logits.log_softmax(dim=-1).cpu()
    return found


def fill(
    bert: BertModel, text: str, top: int = 5, order: Order = "best", beam: int = 5
) -> list[Filling]:
    """The likeliest fillings of a text, best first: ``top`` of one mask or of a beam, else one."""
    ids = masked_ids(bert, text)
    masks = [place for place, index in enumerate(ids) if index == bert.codec.mask_id]
    several = max(beam, top) if order == "beam" else 1
    width = top if len(masks) == 1 else several
    hypotheses = [_Hypothesis(ids, 0.0)]
    for _ in masks:
        scores = log_probabilities(bert, [hypothesis.ids for hypothesis in hypotheses])
        grown: list[_Hypothesis] = []
        for hypothesis, table in zip(hypotheses, scores, strict=True):
            left = [i for i, index in enumerate(hypothesis.ids) if index == bert.codec.mask_id]
            which = int(table.max(dim=-1).values.argmax()) if order == "best" else 0
            best = table[which].topk(min(width, int(table[which].isfinite().sum())))
            for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                filled = list(hypothesis.ids)
                filled[left[which]] = index
                grown.append(_Hypothesis(filled, hypothesis.log_probability + score))
        hypotheses = sorted(grown, key=lambda one: -one.log_probability)[:width]
    return [_filling(bert, one, masks) for one in hypotheses[: max(1, top)]]


def _filling(bert: BertModel, hypothesis: _Hypothesis, masks: list[int]) -> Filling:
    tokens = bert.codec.tokens([hypothesis.ids[place] for place in masks])
    text = bert.codec.decode(hypothesis.ids[1:-1])
    return Filling(tokens, math.exp(hypothesis.log_probability), text)


def score_targets(bert: BertModel, text: str, targets: Sequence[str]) -> list[Filling]:
    """How likely each of the words is at the one mask of a text, likeliest first.

    A word of several pieces takes as many masks, which are filled from left to right.
    """
    ids = masked_ids(bert, text)
    mask = bert.codec.mask_id
    if ids.count(mask) > 1:
        raise NlpkitError(f"`targets` are for one {MASK}, and the text has {ids.count(mask)}")
    place = ids.index(mask)
    found = []
    for target in targets:
        pieces = bert.codec.encode(target)
        if not pieces or bert.codec.unk_id in pieces or mask in pieces:
            raise NlpkitError(f"`targets`: the vocabulary cannot write {target!r}")
        if len(ids) - 1 + len(pieces) > bert.model.settings.block_size:
            raise NlpkitError(f"`targets`: {target!r} makes the text too long for the model")
        total = 0.0
        for done in range(len(pieces)):
            row = [*ids[:place], *pieces[:done], *[mask] * (len(pieces) - done), *ids[place + 1 :]]
            total += float(log_probabilities(bert, [row])[0][0, pieces[done]])
        whole = bert.codec.decode([*ids[1:place], *pieces, *ids[place + 1 : -1]])
        found.append(Filling([target], math.exp(total), whole))
    return sorted(found, key=lambda filling: -filling.probability)


def blank_logs(bert: BertModel, text: str) -> tuple[list[str], np.ndarray]:
    """Every token that can stand at the one mask of a text, and its log-probability."""
    ids = masked_ids(bert, text)
    count = ids.count(bert.codec.mask_id)
    if count > 1:
        raise NlpkitError(f"{count} masks, and only one can be compared: {_short(text)}")
    logs = log_probabilities(bert, [ids])[0][0].numpy()
    possible = np.isfinite(logs).nonzero()[0]
    return bert.codec.tokens(possible.tolist()), logs[possible]
