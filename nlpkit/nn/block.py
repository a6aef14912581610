"""The transformer block, of which all transformers here are made, each by its ``BlockSettings``.

A block adds to the residual stream x (B, T, C) what its attention, and then a network that looks at
each position alone, make of it. LayerNorm stands before each of them (pre-norm: the stream itself
is never normalised, which trains more easily) or after each sum (post-norm, as in the first paper).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from nlpkit.nn.attention import MultiHeadAttention, Pair, at_places
from nlpkit.nn.cache import KeyValueCache
from nlpkit.nn.layers import Activation, Linear, Norm, activate
from nlpkit.nn.optimizers import Stacks
from nlpkit.nn.positions import Rotary


@dataclass(frozen=True)
class BlockSettings:
    """What a block is; the defaults are an encoder's in the textbook, but for pre-norm.

    >>> BlockSettings(dim=64, heads=4, hidden=256, causal=True, qk_norm=True).norm
    'pre'
    """

    dim: int  # C
    heads: int
    hidden: int  # width of the feed-forward network
    causal: bool = False  # whether a position sees itself and those before it only
    cross: bool = False  # whether it looks at the states of an encoder, too
    norm: Literal["pre", "post"] = "pre"
    norm_gains: bool = True
    norm_eps: float = 1e-5
    bias: bool = True
    activation: Activation = "relu"
    qk_norm: bool = False
    decay: bool = False  # whether attention falls with distance, as is learned
    dropout: float = 0.0  # of what is added to the residual stream
    attention_dropout: float = 0.0


class Block(nn.Module):
    """Attention, then a wider network, each added to the residual stream."""

    def __init__(self, settings: BlockSettings, layer: int = 0) -> None:
        super().__init__()
        self.settings = settings
        self.norm_1, self.norm_2 = self._norm(), self._norm()
        self.attention = self._attention(layer, causal=settings.causal, decay=settings.decay)
        self.norm_cross = self._norm() if settings.cross else None
        self.cross = self._attention(layer) if settings.cross else None
        self.up = Linear(settings.dim, settings.hidden, bias=settings.bias)
        self.activation: Activation | None = settings.activation  # None: it is in ``up``
        self.down = Linear(settings.hidden, settings.dim, bias=settings.bias)
        self.dropout = nn.Dropout(settings.dropout)

    def _norm(self) -> Norm:
        settings = self.settings
        gains, eps = settings.norm_gains, settings.norm_eps
        return Norm(settings.dim, gains=gains, bias=settings.bias, eps=eps)

    def _attention(
        self, layer: int, *, causal: bool = False, decay: bool = False
    ) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.settings.dim,
            self.settings.heads,
            causal=causal,
            bias=self.settings.bias,
            qk_norm=self.settings.qk_norm,
            decay=decay,
            dropout=self.settings.attention_dropout,
            layer=layer,
        )

    def initialize(
        self, generator: torch.Generator, std: float | None = None, residual_std: float = 0.0
    ) -> None:
        """Random weights; those that write into the residual stream are of ``residual_std``."""
        for norm in (self.norm_1, self.norm_2, self.norm_cross):
            if norm is not None:
                norm.initialize()
        for attention in (self.attention, self.cross):
            if attention is not None:
                attention.initialize(generator, std, residual_std)
        self.up.initialize(generator, std)
        self.down.initialize(generator, residual_std)

    def matrices(self) -> Stacks:
        """What Muon trains."""
        across = () if self.cross is None else self.cross.matrices()
        return [*self.attention.matrices(), *across, (self.up.weight, 1), (self.down.weight, 1)]

    def forward(
        self,
        x: Tensor,  # (B, T, C)
        rotary: Rotary | None = None,
        mask: Tensor | None = None,  # broadcast to (B, H, T, S); a causal one replaces ``causal``
        cache: KeyValueCache | None = None,
        last: bool = False,  # whether only the last position is asked for
        memory: Tensor | Pair | None = None,  # (B, S, C), or keys and values made of it
        memory_mask: Tensor | None = None,  # (B, 1, 1, S)
        places: Tensor | None = None,  # (B, K): the positions that are asked for, if not all
    ) -> Tensor:
        post = self.settings.norm == "post"
        inputs = x if post else self.norm_1(x)
        found = self.attention(inputs, rotary, mask, cache, last, places=places)
        if places is not None:
            x = at_places(x, places)
        x = (x[:, -1:] if last else x) + self.dropout(found)
        if post:
            x = self.norm_1(x)
        if self.cross is not None and self.norm_cross is not None:
            asking = x if post else self.norm_cross(x)
            if isinstance(memory, tuple):  # several rows of one token each may share a memory
                asking = asking.view(len(memory[0]), -1, self.settings.dim)
            found = self.cross(asking, mask=memory_mask, memory=memory)
            x = x + self.dropout(found).view_as(x)
            if post:
                x = self.norm_cross(x)
        wide = self.up(x if post else self.norm_2(x))
        if self.activation is not None:
            wide = activate(wide, self.activation)
        x = x + self.dropout(self.down(wide))
        return self.norm_2(x) if post else x

    def attention_weights(
        self, x: Tensor, rotary: Rotary | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """What its attention to x itself looks at, (B, H, T, S)."""
        post = self.settings.norm == "post"
        return self.attention.weights(x if post else self.norm_1(x), rotary, mask)

    def cross_weights(
        self,
        x: Tensor,  # (B, T, C)
        rotary: Rotary | None,
        memory: Tensor | Pair,
        memory_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """What its attention to the memory looks at, (B, H, T, S)."""
        assert self.cross is not None
        assert self.norm_cross is not None
        post = self.settings.norm == "post"
        x = x + self.attention(x if post else self.norm_1(x), rotary, cache=cache)
        asking = self.norm_1(x) if post else self.norm_cross(x)
        if isinstance(memory, tuple):
            asking = asking.view(len(memory[0]), -1, self.settings.dim)
        return self.cross.weights(asking, mask=memory_mask, memory=memory)
