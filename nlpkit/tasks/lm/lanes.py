"""Truncated back-propagation through time: lanes of text side by side, read on from step to step.

The text is cut into as many lanes as a batch has rows. Each step reads the next block of every
lane, beginning with the state in which the block before ended; gradients flow within the block
only. The state is part of the checkpoint, so a resumed run goes on with the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpkit.models.recurrent import Recurrent, StateCache
from nlpkit.training.batches import cut_windows


class CarriedState(nn.Module):
    """A recurrent model with the state of each lane, which a checkpoint keeps."""

    state: Tensor

    def __init__(self, model: Recurrent, rows: int) -> None:
        super().__init__()
        self.model = model
        first = model.first_state
        self.register_buffer("state", first.detach().expand(-1, -1, rows, -1).clone())

    def loss(self, trained: Any, idx: Tensor, targets: Tensor, *, fresh: bool) -> Tensor:
        """The loss of a block; the state behind it is kept for the next one."""
        parts = self.state.to(idx.device)
        state = (parts[0], parts[1]) if len(parts) == 2 else parts[0]
        cache = StateCache(None if fresh else state)
        _, loss = trained(idx, targets, cache=cache)
        after = cache.state
        assert after is not None
        together = torch.stack(list(after) if isinstance(after, tuple) else [after])
        self.state = together.detach().float()
        return loss


@torch.no_grad()
def lane_loss(
    model: Recurrent, ids: np.ndarray, *, rows: int = 16, at_most: int | None = None
) -> float:
    """Mean loss in nats of a text that is read in a few lanes, each with its state carried on."""
    device = model.first_state.device
    rows = max(1, min(rows, (len(ids) - 1) // 64))
    lane = (len(ids) - 1) // rows
    length = lane if at_most is None else max(1, min(lane, at_most // rows))
    begins = np.arange(rows) * lane
    cache = model.new_cache(rows)
    total = 0.0
    for start in range(0, length, 256):
        idx, targets = cut_windows(ids, begins + start, min(256, length - start))
        total += float(model.token_losses(idx.to(device), targets.to(device), cache).sum())
    return total / (rows * length)
