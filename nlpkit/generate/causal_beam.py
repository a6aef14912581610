"""Beam search for models that read from left to right: the likeliest continuations of a prompt.

Several hypotheses are kept. A step scores every token behind each of them and keeps the best; one
that ends is put aside. The finished are ranked by log P / ((5 + length) / 6)^a (Wu et al., 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from nlpkit.generate.contexts import Contexts
from nlpkit.generate.sampling import adjust_logits
from nlpkit.generate.settings import SamplingSettings
from nlpkit.models.base import LanguageModel


@dataclass(frozen=True)
class Beam:
    """A continuation: its ids, how likely they are, and its rank by length."""

    ids: tuple[int, ...]
    log_probability: float
    score: float
    ended: bool


@torch.inference_mode()
def search_beams(
    model: LanguageModel,
    prompt: Sequence[int],
    max_tokens: int,
    *,
    beams: int = 4,
    length_penalty: float = 1.0,
    end: int | None = None,
    settings: SamplingSettings | None = None,
    vocab_size: int | None = None,
) -> list[Beam]:
    """The best continuations found, the best first; ``settings`` may bias and forbid tokens.

    >>> from nlpkit.models.build import ModelSettings, build_model
    >>> model = build_model(ModelSettings(model="bigram", vocab_size=3)).eval()
    >>> model.table.data = torch.tensor([[0.0, 5.0, 1.0], [0.0, 0.0, 9.0], [9.0, 0.0, 0.0]])
    >>> search_beams(model, [0], 2, beams=2)[0].ids
    (1, 2)
    """
    known = min(vocab_size or model.settings.vocab_size, model.settings.vocab_size)
    contexts = Contexts(model, [prompt], max_tokens)
    alive: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    done: list[Beam] = []
    for step in range(max_tokens):
        adjusted = adjust_logits(
            contexts.read()[:, :known].float(), settings or SamplingSettings(), contexts.idx
        )
        scores = torch.tensor([score for _, score in alive], device=adjusted.device)
        total = scores[:, None] + adjusted.log_softmax(dim=-1)  # (beams, V)
        best, places = total.flatten().topk(min(2 * beams, total.numel()))
        going: list[tuple[tuple[int, ...], float]] = []
        parents = []
        for score, place in zip(best.tolist(), places.tolist(), strict=True):
            if score == -torch.inf:
                continue
            ids = (*alive[place // known][0], place % known)
            if ids[-1] == end or step == max_tokens - 1:
                done.append(_finish(ids, score, length_penalty, ended=ids[-1] == end))
            elif len(going) < beams:
                going.append((ids, score))
                parents.append(place // known)
        alive = going
        if not alive or _settled(done, alive, beams, length_penalty, max_tokens):
            break
        contexts.select(torch.tensor(parents, device=total.device))
        contexts.extend(torch.tensor([ids[-1:] for ids, _ in alive], device=total.device))
    return sorted(done, key=lambda beam: -beam.score)[:beams]


def _finish(ids: tuple[int, ...], score: float, alpha: float, *, ended: bool) -> Beam:
    return Beam(ids[:-1] if ended else ids, score, score / ((5 + len(ids)) / 6) ** alpha, ended)


def _settled(
    done: list[Beam],
    alive: list[tuple[tuple[int, ...], float]],
    beams: int,
    alpha: float,
    longest: int,
) -> bool:
    """Whether nothing that goes on can still be among the best, however long it gets."""
    if len(done) < beams:
        return False
    worst = sorted((beam.score for beam in done), reverse=True)[beams - 1]
    best = max(score for _, score in alive)
    length = longest if alpha >= 0 else 1
    return best / ((5 + length) / 6) ** alpha < worst
