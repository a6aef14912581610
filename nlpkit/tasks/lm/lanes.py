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

from nlpkit.errors import NlpkitError
from nlpkit.models.recurrent import Recurrent, StateCache


class LaneBatches:
    """Batches by number: the next block (B, T) of every lane, and its targets, one further on.

    >>> lanes = LaneBatches(np.arange(20), batch_size=2, block_size=4, seed=1)
    >>> [lanes[n][0][0].tolist() for n in range(2)]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """

    def __init__(self, ids: np.ndarray, *, batch_size: int, block_size: int, seed: int) -> None:
        self._ids, self._block, self._seed = ids, block_size, seed
        self.lane = (len(ids) - 1) // batch_size
        if self.lane < block_size:
            raise NlpkitError(
                f"{len(ids):,} tokens are too few for {batch_size} lanes of {block_size}",
                hint="more text, a smaller `batch_size` or a smaller `block_size`",
            )
        self._begins = np.arange(batch_size) * self.lane
        self.per_epoch = self.lane // block_size

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        start = number % self.per_epoch * self._block
        places = self._begins[:, None] + start + np.arange(self._block + 1)
        batch = torch.from_numpy(self._ids[places].astype(np.int64))  # (B, T + 1)
        return batch[:, :-1], batch[:, 1:]

    def is_fresh(self, number: int) -> bool:
        """Whether a batch begins its lanes: there is no state to go on from."""
        return number % self.per_epoch == 0


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
    begins = np.arange(rows)[:, None] * lane
    cache = model.new_cache(rows)
    total = 0.0
    for start in range(0, length, 256):
        stop = min(start + 256, length)
        batch = torch.from_numpy(ids[begins + np.arange(start, stop + 1)].astype(np.int64))
        batch = batch.to(device)
        total += float(model.token_losses(batch[:, :-1], batch[:, 1:], cache).sum())
    return total / (rows * length)
