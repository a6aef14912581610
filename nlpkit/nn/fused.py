"""Two steps of a transformer with their gradients written by hand.

On a CPU a small transformer spends more time reading and writing activations than multiplying;
what autograd would do here in a dozen passes over memory takes half as many.
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


def _turn(x: Tensor, cos: Tensor, sin: Tensor, sign: float) -> Tensor:
    half = x.size(-1) // 2
    turned = x * cos
    turned[..., :half].addcmul_(x[..., half:], sin, value=-sign)
    turned[..., half:].addcmul_(x[..., :half], sin, value=sign)
    return turned


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turn(x, cos, sin, 1.0)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _turn(gradient, cos, sin, -1.0), None, None  # turned back by the same angle


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the pairs (x[i], x[i + D/2]) of vectors (..., T, D); cos is (T, D), sin is (T, D/2).

    >>> rotate(torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2), torch.ones(1, 1))
    tensor([[0., 1.]])
    """
    if not torch.is_grad_enabled():
        return _turn(x, cos, sin, 1.0)
    result: Tensor = _Rotate.apply(x, cos, sin)
    return result
