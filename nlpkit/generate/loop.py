"""One ``generate()`` for every model: prompts in, ids out as they come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from nlpkit.errors import NlpkitError
from nlpkit.generate.sampling import SamplingSettings, sample_next
from nlpkit.generate.speculative import Keys, SpeculativeDecoder
from nlpkit.models.base import LanguageModel


def pad_left(
    prompts: Sequence[Sequence[int]], device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor | None]:
    """Prompts as one matrix (B, T) and how much each is padded (B,), if any is.

    >>> pad_left([[1, 2], [3]])
    (tensor([[1, 2],
            [3, 3]]), tensor([0, 1]))
    """
    longest = max(map(len, prompts))
    rows = [[prompt[0]] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    idx = torch.tensor(rows, device=device)
    if all(len(prompt) == longest for prompt in prompts):
        return idx, None
    return idx, torch.tensor([longest - len(prompt) for prompt in prompts], device=device)


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

    When the block size is full, the older half of the context is let go and the newer half is
    read again, so a text can go on for ever. Ids from ``vocab_size`` on, with which an embedding
    was padded, are never drawn, and have no logits. ``allowed`` may change the logits (B, V) of a
    step: it gets them and the number of ids drawn so far. Without ``every_logit`` only those that a
    draw can come from need to be right, which some models work out faster.

    >>> from nlpkit.models.build import ModelSettings, build_model
    >>> model = build_model(ModelSettings(vocab_size=4, dim=8, layers=1, heads=2)).eval()
    >>> steps = generate(model, [[1], [2]], 3, SamplingSettings(), torch.Generator())
    >>> [ids.shape for ids, _ in steps]
    [torch.Size([2]), torch.Size([2]), torch.Size([2])]
    """
    if not prompts or not all(prompts):
        raise NlpkitError("a prompt needs at least one token")
    size = model.settings.vocab_size
    known = size if vocab_size is None else min(vocab_size, size)
    settings.check_vocab(known)
    device = next(iter([*model.parameters(), *model.buffers()])).device
    # a state that is carried on holds what came before, however long ago
    block = sys.maxsize if model.carries_state else model.settings.block_size
    prompts = [prompt[-block:] for prompt in prompts]
    idx, pads = pad_left(prompts, device)
    cache, new = model.new_cache(len(prompts)), idx
    if settings.likeliest and not every_logit:
        cache.likeliest = settings.likeliest + size - known  # padding may be among the likeliest
    keys = Keys(generator, len(prompts))
    decoder = None
    if allowed is None and len(prompts) == 1 and not settings.looks_back:
        step = getattr(model, "step", None)
        if step and step.draft:
            decoder = SpeculativeDecoder(step, settings, keys, known)
    number = 0
    while number < max_tokens:
        if idx.size(1) > block:
            keep = max(1, block // 2)
            pads = None if pads is None else (pads - (idx.size(1) - keep)).clamp_min(0)
            new = idx = idx[:, -keep:]
            cache.clear()
        room = min(max_tokens - number - 1, block - idx.size(1))
        if decoder is not None and room and cache.length > 0:
            drawn, last = decoder.advance(idx[0, -1:], cache, room)
            for place in range(len(drawn)):
                yield drawn[place : place + 1], last[place : place + 1]
            drawn = drawn[None]  # (1, n)
        else:
            logits, _ = model(new, cache=cache, pads=pads)
            last = logits[:, -1, :known].float()  # (B, V)
            if allowed is not None:
                last = allowed(last, number)
            drawn = sample_next(last, settings, keys.take(), idx)[:, None]  # (B, 1)
            yield drawn[:, 0], last
        number += drawn.size(1)
        new = drawn[:, -1:]
        idx = torch.cat([idx, drawn], dim=1)
