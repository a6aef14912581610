"""A linear-chain conditional random field: scores a whole tag sequence, not one tag at a time.

The score of a path y over emissions e is

    start[y0] + e[0, y0] + sum over t > 0 of (transition[y(t-1), y(t)] + e[t, y(t)]) + end[y(last)]

and its probability is exp(score) over the sum of exp(score) of all paths, the partition function,
which the forward algorithm adds up step by step. Its gradient is how probable each tag and each
pair of tags is, which the same steps taken from the end tell: written out here, it takes a fraction
of the time that autograd needs. Finding the best path is in ``decoding``: it needs no gradient and
no torch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

FORBIDDEN = -1e4  # finite, so that a gradient through it is zero and not NaN


class _LogPartition(torch.autograd.Function):
    """Sums over paths as products, in 64 bits and scaled to 1 at every step, so none runs dry.

    Two chains are followed at once, one from the start and one from the end: they differ in the
    direction of the pairs alone. Where they meet, at each tag of each step, their product is how
    probable that tag is.
    """

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, scores: Tensor, lengths: Tensor) -> Tensor:
        steps = torch.arange(emissions.shape[1], device=lengths.device)
        inside = steps < lengths[:, None]  # (B, T)
        wide = torch.float32 if emissions.device.type == "mps" else torch.float64  # has no 64 bits
        weights = scores.to(wide).exp()  # (K+1, K+1); a forbidden pair weighs 0
        pairs, start, end = weights[:-1, :-1], weights[-1, :-1], weights[:-1, -1]
        tops = emissions.amax(dim=2, keepdim=True)  # (B, T, 1)
        emitted = (emissions - tops).to(wide).exp().masked_fill(~inside[:, :, None], 1)  # (B, T, K)
        # where each step is when a sequence is read from its end; padding stays where it is
        mirrored = torch.where(inside, lengths[:, None] - 1 - steps, steps)
        there_and_back = torch.stack([emitted, _pick(emitted, mirrored)])  # (2, B, T, K)
        links = torch.stack([pairs, pairs.T])
        state = torch.stack([start, end])[:, None].expand(-1, len(emitted), -1)
        states, sums = [], []
        for step, here in enumerate(there_and_back.unbind(2)):
            longer = (torch.bmm(state, links) if step else state) * here  # (2, B, K)
            total = longer.sum(dim=2, keepdim=True)
            state = longer.div_(total)
            states.append(state)
            sums.append(total)
        ahead, behind = torch.stack(states, dim=2)  # (B, T, K) each
        behind = _pick(behind, mirrored)
        ctx.save_for_backward(weights, ahead, behind, inside, lengths)
        ctx.dtype = emissions.dtype
        last = _pick(ahead, (lengths - 1)[:, None]).squeeze(1)
        grown = torch.cat(sums, dim=2)[0].log()  # (B, T)
        found = ((grown + tops.squeeze(2)) * inside).sum(dim=1) + (last @ end).log()
        return found.to(emissions.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, ahead, behind, inside, lengths = ctx.saved_tensors
        pairs, start = weights[:-1, :-1], weights[-1, :-1]
        reached = torch.cat([start.expand(len(ahead), 1, -1), ahead[:, :-1] @ pairs], dim=1)
        together = (reached * behind).sum(dim=2, keepdim=True)
        # times how far a tag was reached from the start, this is how probable it is
        shares = behind * (gradients[0][:, None] * inside)[:, :, None] / together  # (B, T, K)
        tags = reached * shares
        changed = torch.zeros_like(weights)
        changed[:-1, :-1] = pairs * torch.tensordot(ahead[:, :-1], shares[:, 1:], ([0, 1], [0, 1]))
        changed[-1, :-1] = tags[:, 0].sum(dim=0)
        changed[:-1, -1] = _pick(tags, (lengths - 1)[:, None]).sum(dim=(0, 1))
        return tags.to(ctx.dtype), changed.to(ctx.dtype), None


def _pick(values: Tensor, steps: Tensor) -> Tensor:
    """Some steps of each sequence, (B, T, K) and (B, S) -> (B, S, K)."""
    return values.gather(1, steps[:, :, None].expand(-1, -1, values.shape[2]))


class CRF(nn.Module):
    """Learned scores of tag pairs. ``legal`` (K+1, K+1) forbids some; its last row and column are
    the start and the end.

    >>> crf = CRF(3)
    >>> emissions, tags = torch.zeros(2, 4, 3), torch.zeros(2, 4, dtype=torch.long)
    >>> lengths = torch.tensor([4, 2])
    >>> (crf.log_partition(emissions, lengths) / torch.log(torch.tensor(3.0))).round().tolist()
    [4.0, 2.0]
    """

    allowed: Tensor

    def __init__(self, n_tags: int, legal: list[list[bool]] | None = None) -> None:
        super().__init__()
        size = n_tags + 1
        self.scores = nn.Parameter(torch.zeros(size, size))  # the last row is start, column end
        allowed = torch.ones(size, size, dtype=torch.bool) if legal is None else torch.tensor(legal)
        self.register_buffer("allowed", allowed, persistent=False)

    def pair_scores(self) -> Tensor:
        """Scores (K+1, K+1) of tag pairs with the illegal ones pushed down."""
        return self.scores.masked_fill(~self.allowed, FORBIDDEN)

    def log_partition(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """Log of the sum of exp(score) over all paths, (B, T, K) and (B,) -> (B,)."""
        result: Tensor = _LogPartition.apply(emissions, self.pair_scores(), lengths)
        return result

    def path_score(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """The score of one path for each sequence, (B, T, K) and (B, T) -> (B,)."""
        scores = self.pair_scores()
        steps = torch.arange(emissions.shape[1], device=emissions.device)
        inside = steps < lengths.unsqueeze(1)  # (B, T)
        emitted = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        stepped = scores[tags[:, :-1], tags[:, 1:]]  # (B, T-1)
        last = tags.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)
        return (
            scores[-1, tags[:, 0]]
            + (emitted * inside).sum(1)
            + (stepped * inside[:, 1:]).sum(1)
            + scores[last, -1]
        )

    def loss(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """Mean negative log-likelihood a token of the given paths."""
        gap = self.log_partition(emissions, lengths) - self.path_score(emissions, tags, lengths)
        return gap.sum() / lengths.sum()
