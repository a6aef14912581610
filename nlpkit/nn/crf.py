"""A linear-chain conditional random field: scores a whole tag sequence, not one tag at a time.

The score of a path y over emissions e is

    start[y0] + e[0, y0] + sum over t > 0 of (transition[y(t-1), y(t)] + e[t, y(t)]) + end[y(last)]

and its probability is exp(score) over the sum of exp(score) of all paths, the partition function,
which the forward algorithm adds up step by step. Its gradient is how probable each tag and each
pair of tags is, which the same steps taken from the end tell: written out here, it takes a third of
the time that autograd needs. Finding the best path is in ``decoding``: it needs no gradient and no
torch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

FORBIDDEN = -1e4  # finite, so that a gradient through it is zero and not NaN


class _LogPartition(torch.autograd.Function):
    """Sums over paths as products, in 64 bits and scaled to 1 at every step, so none runs dry."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, scores: Tensor, lengths: Tensor) -> Tensor:
        n_rows, n_steps, _ = emissions.shape
        wide = torch.float32 if emissions.device.type == "mps" else torch.float64  # has no 64 bits
        weights = scores.to(wide).exp()  # (K+1, K+1); a forbidden pair weighs 0
        pairs, start, end = weights[:-1, :-1], weights[-1, :-1], weights[:-1, -1]
        tops = emissions.amax(dim=2, keepdim=True)  # (B, T, 1)
        emitted = (emissions - tops).to(wide).exp().transpose(0, 1)  # (T, B, K)
        inside = torch.arange(n_steps, device=lengths.device)[:, None] < lengths  # (T, B)
        full = ctx.full = bool(inside.all())  # no padding, no need to look out for it
        forward = torch.empty_like(emitted)
        sums = torch.ones_like(emitted[:, :, :1])
        state = start.expand(n_rows, -1)
        for step in range(n_steps):
            longer = (state @ pairs if step else state) * emitted[step]
            total = longer.sum(dim=1, keepdim=True)
            if full:
                state, sums[step] = longer / total, total
            else:
                here = inside[step, :, None]
                state = torch.where(here, longer / total, state)
                sums[step] = torch.where(here, total, sums[step])
            forward[step] = state
        ends = state @ end  # (B,)
        ctx.save_for_backward(weights, emitted, inside, forward, sums, ends)
        ctx.dtype = emissions.dtype
        found = sums.log().sum(dim=(0, 2)) + ends.log()
        return found.to(emissions.dtype) + (tops.squeeze(2) * inside.T).sum(dim=1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, emitted, inside, forward, sums, ends = ctx.saved_tensors
        pairs, end = weights[:-1, :-1], weights[:-1, -1]
        n_steps = len(forward)
        share = (gradients[0] / ends)[:, None]  # (B, 1)
        backward = torch.empty_like(forward)  # what follows weighs, for each tag of each step
        onward = torch.zeros_like(forward)  # the same before the tag of the step is left
        state = backward[-1] = share * end
        for step in range(n_steps - 1, 0, -1):
            here = inside[step, :, None]
            weighed = emitted[step] * state / sums[step]
            onward[step] = weighed if ctx.full else weighed * here
            before = onward[step] @ pairs.T
            state = backward[step - 1] = before if ctx.full else torch.where(here, before, state)
        tags = forward * backward * inside[:, :, None]  # (T, B, K)
        changed = torch.zeros_like(weights)
        changed[:-1, :-1] = pairs * torch.einsum("tbi,tbj->ij", forward[:-1], onward[1:])
        changed[-1, :-1] = tags[0].sum(dim=0)
        changed[:-1, -1] = (forward[-1] * share * end).sum(dim=0)
        return tags.transpose(0, 1).to(ctx.dtype), changed.to(ctx.dtype), None


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
