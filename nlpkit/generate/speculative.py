"""Speculative decoding: an 8-bit copy of a large model drafts, the model checks several at once.

What a token costs is to read all weights, and to check several tokens they are read just once; to
draft one takes a fifth of the time (Leviathan et al., 2023, "Fast Inference from Transformers via
Speculative Decoding"). Model and draft draw with the same keys (see ``sampling``), so the draft is
nearly always what the model draws. Where it is not, the model's draw counts and what was drafted
behind it is dropped: the text is the one that the model alone would write.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nlpkit.generate.sampling import SamplingSettings, draw_keys, sample_next
from nlpkit.nn.cache import KeyValueCache

if TYPE_CHECKING:
    from nlpkit.models.gpt_cpu import CompiledStep

MOST_DRAFT_TOKENS = 7


class Keys:
    """The keys of the steps to come, drawn in their order and kept until they are used."""

    def __init__(self, generator: torch.Generator, rows: int) -> None:
        self._generator, self._rows = generator, rows
        self._held: deque[Tensor] = deque()

    def of(self, step: int) -> Tensor:
        """The key (B, 1) of the step that is so many steps ahead."""
        while len(self._held) <= step:
            self._held.append(draw_keys(self._generator, self._rows))
        return self._held[step]

    def take(self, steps: int = 1) -> Tensor:
        """The keys (steps B, 1) of the next steps, which are then done."""
        self.of(steps - 1)
        return torch.cat([self._held.popleft() for _ in range(steps)])


class SpeculativeDecoder:
    """Drafts and checks of one text; the number of draft tokens follows how many were accepted."""

    def __init__(
        self, step: CompiledStep, settings: SamplingSettings, keys: Keys, vocab_size: int
    ) -> None:
        self.step, self.settings, self.keys, self.vocab_size = step, settings, keys, vocab_size
        self.draft_tokens = MOST_DRAFT_TOKENS

    def advance(self, last: Tensor, cache: KeyValueCache, room: int) -> tuple[Tensor, Tensor]:
        """The ids (n,) that follow the last one (1,), ``room`` + 1 at most, and logits (n, V)."""
        tokens = min(self.draft_tokens, room)
        ids = last
        for number in range(tokens):
            logits = self.step.follow(ids, cache, number, draft=True)[
                :, : self.vocab_size
            ]  # (1, V)
            drawn = sample_next(logits, self.settings, self.keys.of(number))
            ids = torch.cat([ids, drawn])
        logits = self.step.follow(ids, cache)[:, : self.vocab_size]  # (1 + tokens, V)
        keys = torch.cat([self.keys.of(number) for number in range(tokens + 1)])
        drawn = sample_next(logits, self.settings, keys)
        # a draft token is accepted if it and all before it are what the model draws
        kept = 1 + int((drawn[:-1] == ids[1:]).long().cumprod(0).sum())
        self.keys.take(kept)
        cache.keep(ids[:kept])
        self.draft_tokens = min(MOST_DRAFT_TOKENS, tokens + 2) if kept > tokens else max(1, kept)
        return drawn[:kept], logits[:kept]
