"""A weighted mean of the layers of an encoder, learned with the task that uses it (ELMo's formula).

    mix = gamma * sum_j softmax(s)_j h_j

A task may want what a low layer knows (syntax) or what a high one knows (meaning); the weights s
and the scale gamma say which.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LayerMix(nn.Module):
    """Layers (L, ..., C) -> (..., C). All layers count the same at first.

    >>> LayerMix(3)(torch.tensor([[3.0], [6.0], [0.0]]))
    tensor([3.], grad_fn=<MulBackward0>)
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))

    @property
    def shares(self) -> list[float]:
        """How much each layer counts: they add up to 1."""
        shares: list[float] = self.scores.detach().softmax(dim=0).tolist()
        return shares

    def forward(self, layers: Tensor) -> Tensor:
        shares = self.scores.softmax(dim=0).to(layers.dtype)  # (L,)
        return self.gamma * torch.tensordot(shares, layers, dims=1)
