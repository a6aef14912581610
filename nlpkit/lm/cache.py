"""The cache of a GPT: the keys and values of all positions so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from nlpkit.lm.gpt import GPT


class KeyValueCache:
    """Keys and values, (L, B, H, block_size, D) each, filled from the left."""

    def __init__(self, model: GPT, batch: int) -> None:
        settings = model.settings
        size = settings.dim // settings.heads
        shape = (settings.layers, batch, settings.heads, settings.block_size, size)
        self.keys = model.embedding.weight.new_empty(shape)
        self.values = model.embedding.weight.new_empty(shape)
        self.length = 0
        self.likeliest = 0  # of how many of the likeliest ids logits are needed; 0 is all
        self.pads: Tensor | None = None
        self.last_ids: Tensor | None = None  # (B, previous), for models that embed them

    def clear(self) -> None:
        """Forget everything, keep the room."""
        self.length = 0
        self.pads = self.last_ids = None

    def keep(self, ids: Tensor) -> None:
        """Count ids (N,) of the one row whose keys and values are there already."""
        self.length += len(ids)
        if self.last_ids is not None:
            count = self.last_ids.size(1)
            self.last_ids = torch.cat([self.last_ids, ids[None]], dim=1)[:, -count:]

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new keys and values of a layer, give all so far."""
        end = self.length + k.size(2)
        keys, values = self.keys[layer], self.values[layer]  # (B, H, block_size, D)
        keys[:, :, self.length : end] = k
        values[:, :, self.length : end] = v
        return keys[:, :, :end], values[:, :, :end]
