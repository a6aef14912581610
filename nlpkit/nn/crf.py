"""A linear-chain conditional random field: scores a whole tag sequence, not one tag at a time.

The score of a path y over emissions e is

    start[y0] + e[0, y0] + sum over t > 0 of (transition[y(t-1), y(t)] + e[t, y(t)]) + end[y(last)]

and its probability is exp(score) over the sum of exp(score) of all paths, the partition function,
which the forward algorithm adds up step by step. Its gradient is how probable each tag and each
pair of tags is, which the backward algorithm tells: written out, it takes a fraction of the time
that autograd needs. Both, and finding the best path, are in ``decoding``, in numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpkit.nn.decoding import forward_backward

FORBIDDEN = -1e4  # finite, so that a gradient through it is zero and not NaN


class _LogPartition(torch.autograd.Function):
    """The log of the partition function; its gradient is how probable each tag and pair is."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, scores: Tensor, lengths: Tensor) -> Tensor:
        given = (value.detach().cpu().numpy() for value in (emissions, scores, lengths))
        ctx.chain, ctx.like = forward_backward(*given), emissions.new_empty(0)
        return torch.from_numpy(ctx.chain.log_partition).to(emissions)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        alpha, beta, weights, inside, _ = chain = ctx.chain
        reached = chain.reached()
        scale = gradients[0].double().cpu().numpy()[:, None] * inside  # (B, T)
        shares = beta * (scale / (reached * beta).sum(axis=2))[:, :, None]
        tags = reached * shares  # (B, T, K)
        changed = np.zeros_like(weights)
        joint = np.tensordot(alpha[:, :-1], shares[:, 1:], ([0, 1], [0, 1]))
        changed[:-1, :-1] = weights[:-1, :-1] * joint
        changed[-1, :-1] = tags[:, 0].sum(axis=0)
        changed[:-1, -1] = tags[np.arange(len(tags)), inside.sum(axis=1) - 1].sum(axis=0)
        like = ctx.like
        return torch.from_numpy(tags).to(like), torch.from_numpy(changed).to(like), None


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
