"""The texts that a search or a sampler writes on, each token of which a model reads once."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from nlpkit.errors import NlpkitError
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


class Contexts:
    """Rows of ids and the cache of a model that has read them.

    When the block size is full, the older half of the context is let go and the newer half is
    read again, so a text can go on for ever. ``most`` is how many tokens may be added to a prompt.

    >>> from nlpkit.models.build import ModelSettings, build_model
    >>> model = build_model(ModelSettings(model="bigram", vocab_size=3)).eval()
    >>> contexts = Contexts(model, [[0, 1]], most=2)
    >>> contexts.read().shape
    torch.Size([1, 3])
    >>> contexts.select(torch.tensor([0, 0]))
    >>> contexts.extend(torch.tensor([[1], [2]]))
    >>> contexts.idx
    tensor([[0, 1, 1],
            [0, 1, 2]])
    """

    def __init__(self, model: LanguageModel, prompts: Sequence[Sequence[int]], most: int) -> None:
        if not prompts or not all(prompts):
            raise NlpkitError("a prompt needs at least one token")
        device = next(iter([*model.parameters(), *model.buffers()])).device
        # a state that is carried on holds what came before, however long ago
        self.block = sys.maxsize if model.carries_state else model.settings.block_size
        self.model = model
        self.idx, self.pads = pad_left([prompt[-self.block :] for prompt in prompts], device)
        self.cache = model.new_cache(len(prompts), min(self.block, self.idx.size(1) + most))
        self._new = self.idx

    def make_room(self) -> int:
        """Tokens that fit behind those there are, after the older half was let go if need be."""
        if self.idx.size(1) > self.block:
            keep = max(1, self.block // 2)
            if self.pads is not None:
                self.pads = (self.pads - (self.idx.size(1) - keep)).clamp_min(0)
            self._new = self.idx = self.idx[:, -keep:]
            self.cache.clear()
        return self.block - self.idx.size(1)

    def read(self) -> Tensor:
        """The logits behind each row (B, V)."""
        self.make_room()
        logits, _ = self.model(self._new, cache=self.cache, pads=self.pads)
        return logits[:, -1]

    def select(self, rows: Tensor) -> None:
        """Go on with these rows (R,), which were read, some of them perhaps several times."""
        self.idx = self.idx[rows]
        self.pads = None if self.pads is None else self.pads[rows]
        self.cache.select(rows)

    def extend(self, ids: Tensor) -> None:
        """Add ids (B, N) to the rows, of which the model has read all but the last."""
        self._new = ids[:, -1:]
        self.idx = torch.cat([self.idx, ids], dim=1)
