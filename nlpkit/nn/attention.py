"""Multi-head attention (Vaswani et al., 2017): each position takes a weighted mean of others.

``attention()`` is the equation, written out. ``MultiHeadAttention`` makes queries, keys and values
of its inputs and leaves the equation to torch's fused kernel; its ``weights()`` shows what it looks
at. Masks are added to the scores: 0 where a query may look at a key, -inf where it may not.

Shapes: B rows, T queries, S keys, H heads of D numbers each, C = H D.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.nn.cache import KeyValueCache
from nlpkit.nn.fused import biased_attention
from nlpkit.nn.layers import Linear
from nlpkit.nn.optimizers import Stacks
from nlpkit.nn.positions import DistanceDecay, Rotary

_SHORT = 256  # keys: for more of them the scores of all pairs take too much memory
Pair = tuple[Tensor, Tensor]  # keys and values, (B, H, S, D) each


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """softmax(QK^T / sqrt(D)) V: the mixed values (B, H, T, D) and the weights (B, H, T, S).

    >>> q, k = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 2, 4)  # no key fits better than another
    >>> mixed, weights = attention(q, k, torch.tensor([[[[1.0], [3.0]]]]))
    >>> weights.flatten().tolist(), mixed.item()
    ([0.5, 0.5], 2.0)
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (B, H, T, S): how well a key fits
    if mask is not None:
        scores = scores + mask
    weights = scores.softmax(dim=-1)  # (B, H, T, S): those of each query add up to 1
    if dropout:
        weights = F.dropout(weights, dropout)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    """Attention of a sequence to itself, or (cross-attention) to another one, its ``memory``."""

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,  # whether a position sees itself and those before it only
        bias: bool = True,
        qk_norm: bool = False,  # whether queries and keys are normalised
        decay: bool = False,  # whether scores fall with distance, as is learned
        dropout: float = 0.0,  # of the weights
        layer: int = 0,  # its place in a cache
    ) -> None:
        super().__init__()
        self.layer, self.heads, self.causal, self.dropout = layer, heads, causal, dropout
        self.qk = Linear(dim, 2 * dim, bias=bias)  # queries above keys
        self.v = Linear(dim, dim, bias=bias)
        self.output = Linear(dim, dim, bias=bias)
        # normalised q and k need another temperature than 1/sqrt(D): their gains learn it
        self.gains = nn.Parameter(torch.ones(dim // heads)) if qk_norm else None
        self.decay = DistanceDecay(heads) if decay else None

    def initialize(
        self, generator: torch.Generator, std: float | None = None, residual_std: float = 0.0
    ) -> None:
        """Random weights; those that write into the residual stream are of ``residual_std``."""
        self.qk.initialize(generator, std)
        self.v.initialize(generator, std)
        self.output.initialize(generator, residual_std)
        if self.gains is not None:
            nn.init.ones_(self.gains)

    def matrices(self) -> Stacks:
        """What Muon trains: q and k are two matrices in one."""
        return [(self.qk.weight, 2), (self.v.weight, 1), (self.output.weight, 1)]

    def project(
        self, x: Tensor, first: int, rotary: Rotary | None, memory: Tensor | Pair | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q (B, H, T, D), k and v (B, H, S, D); x (B, T, C) starts at position ``first``."""
        if memory is not None:
            return self._project_across(x, memory)
        shape = (x.size(0), x.size(1), -1, x.size(2) // self.heads)
        qk = self.qk(x).view(shape)  # (B, T, 2H, D)
        if self.gains is not None:
            qk = F.layer_norm(qk, qk.shape[-1:], self.gains)
        if rotary is not None:
            qk = rotary(qk, first)
        q, k = qk.transpose(1, 2).split(self.heads, dim=1)
        return q, k, self.v(x).view(shape).transpose(1, 2)

    def _project_across(self, x: Tensor, memory: Tensor | Pair) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of x (B, T, C), keys and values of the memory (B, S, C)."""
        k, v = memory if isinstance(memory, tuple) else self.read_memory(memory)
        return self._half(x, 0), k, v

    def read_memory(self, memory: Tensor) -> Pair:
        """Keys and values (B, H, S, D) of a memory (B, S, C), to be used for many queries."""
        v = self.v(memory).unflatten(-1, (self.heads, -1))
        return self._half(memory, 1), v.transpose(1, 2)

    def _half(self, x: Tensor, half: int) -> Tensor:
        """Queries (half 0) or keys (half 1) of x (B, T, C) alone: (B, H, T, D)."""
        part = self.qk.use_half(x, half).unflatten(-1, (self.heads, -1))
        if self.gains is not None:
            part = F.layer_norm(part, part.shape[-1:], self.gains)
        return part.transpose(1, 2)

    def forward(
        self,
        x: Tensor,  # (B, T, C)
        rotary: Rotary | None = None,
        mask: Tensor | None = None,  # broadcast to (B, H, T, S); a causal one replaces ``causal``
        cache: KeyValueCache | None = None,
        last: bool = False,
        memory: Tensor | Pair | None = None,  # (B, S, C), or what ``read_memory`` made of it
        places: Tensor | None = None,  # (B, K)
    ) -> Tensor:
        """(B, T, C), or only the last position of it (B, 1, C), or ``places`` (B, K, C)."""
        q, k, v = self.project(x, 0 if cache is None else cache.length, rotary, memory)
        if cache is not None:
            k, v = cache.extend(self.layer, k, v)
        if last:
            q = q[:, :, -1:]
            mask = None if mask is None else mask[..., -1:, :]
        if self.decay is not None:
            mask = self._decayed(q, k, mask)
        if places is not None:
            rows = places[:, None, :, None]  # (B, 1, K, 1)
            q = q.gather(2, rows.expand(-1, q.size(1), -1, q.size(3)))
            if mask is not None and mask.size(-2) > 1:
                mask = mask.expand(len(q), -1, -1, -1)
                mask = mask.gather(2, rows.expand(-1, mask.size(1), -1, mask.size(3)))
        mixed = self._mix(q, k, v, mask)
        projected: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return projected

    def _mix(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """The equation: by torch's fused kernel, or written out where that is faster."""
        dropout = self.dropout if self.training else 0.0
        if mask is not None and mask.requires_grad and not dropout and q.device.type == "cpu":
            return biased_attention(q, k, v, mask[None] if mask.dim() == 3 else mask)
        causal = self.causal and mask is None and q.size(2) > 1
        halves = q.dtype == torch.bfloat16 or torch.is_autocast_enabled("cpu")
        if q.requires_grad and q.device.type == "cpu" and halves and k.size(2) <= _SHORT:
            # gradients of the fused kernel in bfloat16 take a CPU seven times as long
            mask = causal_mask(q.size(2), k.size(2) - q.size(2), like=q) if causal else mask
            return attention(q, k, v, mask, dropout)[0]
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, dropout_p=dropout
        )

    def weights(
        self,
        x: Tensor,
        rotary: Rotary | None = None,
        mask: Tensor | None = None,
        memory: Tensor | Pair | None = None,
    ) -> Tensor:
        """What each head looks at, (B, H, T, S)."""
        q, k, v = self.project(x, 0, rotary, memory)
        if self.causal and mask is None:
            mask = causal_mask(q.size(2), like=q)
        if self.decay is not None:
            mask = self._decayed(q, k, mask)
        return attention(q, k, v, mask)[1]

    def _decayed(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """The mask with what distance adds to the scores."""
        assert self.decay is not None
        if self.causal and mask is None:
            mask = causal_mask(q.size(2), k.size(2) - q.size(2), like=q)
        bias: Tensor = self.decay(q.size(2), k.size(2))  # (H, T, S)
        return bias if mask is None else bias + mask


def at_places(x: Tensor, places: Tensor) -> Tensor:
    """Some positions (B, K, C) of each row of x (B, T, C), by their numbers (B, K).

    >>> at_places(torch.tensor([[[5.0], [6.0], [7.0]]]), torch.tensor([[2, 0]])).flatten().tolist()
    [7.0, 5.0]
    """
    return x.gather(1, places[:, :, None].expand(-1, -1, x.size(-1)))


def causal_mask(
    length: int, first: int = 0, begins: Tensor | None = None, *, like: Tensor
) -> Tensor:
    """What ``length`` positions from ``first`` on may look at: their text up to themselves.

    ``begins`` (B, T) says for each position where its text begins, if a row holds several.

    >>> causal_mask(2, like=torch.zeros(1))
    tensor([[0., -inf],
            [0., 0.]])
    """
    here = torch.arange(first, first + length, device=like.device)[:, None]  # (T, 1)
    there = torch.arange(first + length, device=like.device)  # (S,)
    allowed = there <= here  # (T, S)
    if begins is not None:
        # a pad looks at itself, so that its softmax is not empty; nobody looks at a pad
        allowed = (allowed & (there >= begins[:, :, None])) | (there == here)  # (B, T, S)
        allowed = allowed[:, None]
    return _additive(allowed, like)


def padding_mask(inside: Tensor, *, like: Tensor) -> Tensor:
    """The mask (B, 1, 1, S) that hides padding: ``inside`` (B, S) is true for tokens.

    >>> padding_mask(torch.tensor([[True, False]]), like=torch.zeros(1)).flatten()
    tensor([0., -inf])
    """
    return _additive(inside[:, None, None], like)


def _additive(allowed: Tensor, like: Tensor) -> Tensor:
    return torch.zeros_like(allowed, dtype=like.dtype).masked_fill_(~allowed, -math.inf)
