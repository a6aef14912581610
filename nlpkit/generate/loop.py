"""One ``generate()`` for every model: prompts in, ids out as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from nlpkit.generate.contexts import Contexts
from nlpkit.generate.sampling import SamplingSettings, sample_next
from nlpkit.generate.speculative import Keys, SpeculativeDecoder
from nlpkit.models.base import LanguageModel
from nlpkit.openmp import CoreSharing


@torch.inference_mode()
def generate(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    max_tokens: int,
    settings: SamplingSettings,
    generator: torch.Generator,
    *,
    vocab_size: int | None = None,
    allowed: Callable[[Tensor, int], Tensor] | None = None,
    every_logit: bool = True,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, a step at a time, the next id of every row (B,) and the logits it was drawn from.

    Ids from ``vocab_size`` on, with which an embedding was padded, are never drawn, and have no
    logits. ``allowed`` may change the logits (B, V) of a step: it gets them and the number of ids
    drawn so far. Without ``every_logit`` only those that a draw can come from need to be right,
    which some models work out faster.

    >>> from nlpkit.models.build import ModelSettings, build_model
    >>> model = build_model(ModelSettings(vocab_size=4, dim=8, layers=1, heads=2)).eval()
    >>> steps = generate(model, [[1], [2]], 3, SamplingSettings(), torch.Generator())
    >>> [ids.shape for ids, _ in steps]
    [torch.Size([2]), torch.Size([2]), torch.Size([2])]
    """
    size = model.settings.vocab_size
    known = size if vocab_size is None else min(vocab_size, size)
    settings.check_vocab(known)
    contexts = Contexts(model, prompts, max_tokens)
    if settings.likeliest and not every_logit:
        # padding may be among the likeliest
        contexts.cache.likeliest = settings.likeliest + size - known
    keys = Keys(generator, len(prompts))
    decoder = None
    if allowed is None and len(prompts) == 1 and not settings.looks_back:
        step = getattr(model, "step", None)
        if step and step.draft:
            decoder = SpeculativeDecoder(step, settings, keys, known)
    number = 0
    with CoreSharing() as cores:
        while number < max_tokens:
            cores.check()
            room = min(max_tokens - number - 1, contexts.make_room())
            if decoder is not None and room and contexts.cache.length > 0:
                drawn, last = decoder.advance(contexts.idx[0, -1:], contexts.cache, room)
                for place in range(len(drawn)):
                    yield drawn[place : place + 1], last[place : place + 1]
                drawn = drawn[None]  # (1, n)
            else:
                last = contexts.read()[:, :known].float()  # (B, V)
                if allowed is not None:
                    last = allowed(last, number)
                drawn = sample_next(last, settings, keys.take(), contexts.idx)[:, None]  # (B, 1)
                yield drawn[:, 0], last
            number += drawn.size(1)
            contexts.extend(drawn)
