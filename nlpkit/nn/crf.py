"""A linear-chain conditional random field: scores a whole tag sequence, not one tag at a time.

The score of a path y over emissions e is

    start[y0] + e[0, y0] + sum over t > 0 of (transition[y(t-1), y(t)] + e[t, y(t)]) + end[y(last)]

and its probability is exp(score) over the sum of exp(score) of all paths, the partition function,
which the forward algorithm adds up step by step. Finding the best path is in ``decoding``: it
needs no gradient and no torch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

FORBIDDEN = -1e4  # finite, so that a gradient through it is zero and not NaN


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
        scores = self.pair_scores()
        pairs, start, end = scores[:-1, :-1], scores[-1, :-1], scores[:-1, -1]
        forward = start + emissions[:, 0]  # (B, K)
        for step in range(1, emissions.shape[1]):
            longer = torch.logsumexp(forward.unsqueeze(2) + pairs, dim=1) + emissions[:, step]
            inside = (step < lengths).unsqueeze(1)
            forward = torch.where(inside, longer, forward)
        return torch.logsumexp(forward + end, dim=1)

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
