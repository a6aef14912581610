"""The cache of a transformer that generates: the keys and values of all positions so far."""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValueCache:
    """Keys and values, (L, B, H, block_size, D) each, filled from the left.

    >>> cache = KeyValueCache((1, 2, 4, 10, 8), like=torch.zeros(1))
    >>> keys, values = cache.extend(0, torch.ones(2, 4, 3, 8), torch.ones(2, 4, 3, 8))
    >>> keys.shape
    torch.Size([2, 4, 3, 8])
    """

    def __init__(self, shape: tuple[int, int, int, int, int], like: Tensor) -> None:
        self.keys, self.values = like.new_empty(shape), like.new_empty(shape)
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

    def select(self, rows: Tensor) -> None:
        """Go on with these rows (R,), some of them perhaps several times."""
        for name in ("keys", "values"):
            old: Tensor = getattr(self, name)
            layers, _, heads, room, size = old.shape
            new = old.new_empty((layers, len(rows), heads, room, size))
            new[:, :, :, : self.length] = old[:, :, :, : self.length].index_select(1, rows)
            setattr(self, name, new)
        self.pads = None if self.pads is None else self.pads[rows]
        self.last_ids = None if self.last_ids is None else self.last_ids[rows]
