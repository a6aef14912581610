"""Squared ReLU with its gradient written by hand.

On a CPU a small transformer spends more time reading and writing activations than multiplying;
what autograd would do here in six passes over memory takes four.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class _ReluSquared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = F.relu(x)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (positive,) = ctx.saved_tensors
        return (gradient * positive).mul_(2)


def relu_squared(x: Tensor) -> Tensor:
    """max(0, x)^2.

    >>> relu_squared(torch.tensor([-2.0, 3.0]))
    tensor([0., 9.])
    """
    if not torch.is_grad_enabled():
        return F.relu(x).square()
    result: Tensor = _ReluSquared.apply(x)
    return result
