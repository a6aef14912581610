"""Parts of a transformer with gradients written by hand: squared ReLU, attention with a learned
bias, and the softmax of a vocabulary.

On a CPU a small transformer spends more time reading and writing activations than multiplying;
what autograd would do here in many passes over memory takes few. All compute in the numbers of
autocast, if that is on.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

LOGIT_BYTES = 1 << 24  # of logits that are there at once: the C library keeps such memory


class _ReluSquared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = F.relu(x)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (positive,) = ctx.saved_tensors
        # 2 g max(0, x) in one pass
        return torch.addcmul(gradient.new_zeros(()), gradient, positive, value=2)


def relu_squared(x: Tensor) -> Tensor:
    """max(0, x)^2.

    >>> relu_squared(torch.tensor([-2.0, 3.0]))
    tensor([0., 9.])
    """
    if not torch.is_grad_enabled():
        return F.relu(x).square()
    result: Tensor = _ReluSquared.apply(x)
    return result


class _BiasedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        scale = q.size(-1) ** -0.5
        queries, keys, values = (x.reshape(-1, *x.shape[2:]) for x in (q, k, v))  # (B H, T, D)
        scores = torch.bmm(queries, keys.mT).view(*q.shape[:3], -1)  # (B, H, T, S)
        weights = torch.add(bias.to(scores.dtype), scores, alpha=scale).softmax(dim=-1)
        ctx.save_for_backward(queries, keys, values, weights)
        ctx.scale, ctx.bias = scale, (len(bias), bias.dtype)
        return torch.bmm(weights.flatten(0, 1), values).view_as(q)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        queries, keys, values, weights = ctx.saved_tensors
        shape = gradient.shape[:2]  # (B, H)
        mixed = gradient.reshape(-1, *gradient.shape[2:])  # (B H, T, D)
        flat = weights.flatten(0, 1)  # (B H, T, S)
        of_weights = torch.bmm(mixed, values.mT)
        of_scores = torch._softmax_backward_data(of_weights, flat, -1, flat.dtype)
        found = (
            torch.bmm(of_scores, keys).mul_(ctx.scale),
            torch.bmm(of_scores.mT, queries).mul_(ctx.scale),
            torch.bmm(flat.mT, mixed),
        )
        dq, dk, dv = (part.unflatten(0, shape) for part in found)
        of_bias = of_scores.unflatten(0, shape)  # (B, H, T, S)
        rows, dtype = ctx.bias
        if rows == 1:
            of_bias = of_bias.sum(dim=0, keepdim=True, dtype=dtype)
        return dq, dk, dv, of_bias.to(dtype)


def biased_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """softmax(QK^T / sqrt(D) + bias) V, (B, H, T, D), for a bias (1 or B, H, T, S) that is learned.

    Torch's own fused kernel cannot give the gradient of a bias.

    >>> q, k, v = (torch.rand(2, 3, 5, 4) for _ in range(3))
    >>> bias = torch.rand(1, 3, 5, 5)
    >>> expected = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    >>> torch.allclose(biased_attention(q, k, v, bias), expected, atol=1e-6)
    True
    """
    result: Tensor = _BiasedAttention.apply(q, k, v, bias)
    return result


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> Tensor:
        device = states.device.type
        dtype = states.dtype
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        ctx.dtype = states.dtype
        x, table, shift = (part.detach().to(dtype) for part in (states, weight, bias))
        of_x, of_weight, of_bias = (torch.zeros_like(part) for part in (x, weight, bias))
        total = torch.zeros((), device=x.device)  # float32
        at_once = max(1, LOGIT_BYTES // (len(table) * x.element_size()))
        with torch.autocast(device, enabled=False):
            for start in range(0, len(x), at_once):
                part, wanted = x[start : start + at_once], labels[start : start + at_once]
                rows = torch.arange(len(part), device=x.device)
                shares = torch.addmm(shift, part, table.T).softmax(dim=-1)  # (N, V)
                total -= shares[rows, wanted].float().clamp_min(1e-38).log().sum()
                shares[rows, wanted] -= 1  # now the gradient of the logits
                torch.mm(shares, table, out=of_x[start : start + at_once])
                of_weight += shares.T @ part
                of_bias += torch.mm(shares.new_ones(1, len(part)), shares)[0]
        ctx.count = max(1, len(x))
        ctx.save_for_backward(of_x, of_weight, of_bias)
        return total / ctx.count

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        scale = gradient / ctx.count
        of_x, of_weight, of_bias = ctx.saved_tensors
        return of_x.to(ctx.dtype) * scale, of_weight * scale, of_bias * scale, None


def linear_cross_entropy(states: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of labels (N,) by logits W x + b of states (N, C), never all there.

    >>> states, weight, bias = torch.rand(3, 4), torch.rand(7, 4), torch.rand(7)
    >>> labels = torch.tensor([0, 3, 6])
    >>> expected = F.cross_entropy(F.linear(states, weight, bias), labels)
    >>> torch.allclose(linear_cross_entropy(states, weight, bias, labels), expected)
    True
    """
    result: Tensor = _LinearCrossEntropy.apply(states, weight, bias, labels)
    return result
