"""What encoders say of many readings: batches of like length, and all of it kept in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nlpkit.memory import check_memory
from nlpkit.models.finetune import PretrainedEncoder, Reading
from nlpkit.openmp import sharing_cores
from nlpkit.training.batches import Ragged, plan

BATCH_TOKENS = 512  # what fits into the caches of a core: more is slower


def padded_batches(
    encoder: PretrainedEncoder, readings: Sequence[Reading], device: torch.device
) -> Iterator[tuple[NDArray[np.int64], Tensor, Tensor, Tensor]]:
    """Readings of like length together: which rows, ids, segments and mask, (B, T) each."""
    ids = Ragged([reading.ids for reading in readings])
    segments = Ragged([reading.segments for reading in readings])
    for rows in sharing_cores(plan(ids.lengths, BATCH_TOKENS)):
        idx, mask = ids.pad(rows, encoder.pad_id).tensors(device)
        yield rows, idx, segments.pad(rows).tensors(device)[0], mask


class CachedStates:
    """The states of all tokens of all readings, (L, N, C), read once."""

    def __init__(self, states: Tensor, lengths: NDArray[np.int64]) -> None:
        self.states, self.starts = states, np.cumsum(lengths) - lengths

    def pad(self, rows: NDArray[np.int64], mask: Tensor) -> Tensor:
        """Those of some readings, (L, B, T, C); padding has those of some other token."""
        steps = torch.arange(mask.size(1), device=mask.device)
        starts = torch.from_numpy(self.starts[rows]).to(mask.device)
        places = torch.where(mask, starts[:, None] + steps, 0)
        return self.states[:, places]


def room_for_states(
    encoder: PretrainedEncoder, lengths: NDArray[np.int64], device: torch.device
) -> CachedStates:
    """Zeros for the states of sequences of these lengths."""
    shape = (encoder.layers, int(lengths.sum()), encoder.size)
    check_memory(
        4 * float(np.prod(shape)),
        "what a frozen encoder says of all texts",
        hint="fewer texts, or `freeze` fewer layers",
    )
    return CachedStates(torch.zeros(shape, device=device), lengths)


@torch.no_grad()
def cache_states(
    encoder: PretrainedEncoder, readings: Sequence[Reading], device: torch.device
) -> CachedStates:
    """Read everything once, for an encoder that does not change."""
    lengths = np.array([len(reading.ids) for reading in readings], np.int64)
    found = room_for_states(encoder, lengths, device)
    encoder.eval()
    for rows, idx, segments, mask in padded_batches(encoder, readings, device):
        layers = encoder(idx, segments, mask)
        for place, row in enumerate(rows.tolist()):
            begin, count = int(found.starts[row]), int(lengths[row])
            found.states[:, begin : begin + count] = layers[:, place, :count]
    return found
