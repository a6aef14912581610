"""Generating with a GPT: the cache, and one more token in as few calls of torch as it takes.

For a small model most of the time of a token goes into calling, not into computing. This is the
same arithmetic as ``GPT.forward`` with a cache, for one position: no modules in between, x kept as
(B, C), attention of one query.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

if TYPE_CHECKING:
    from nlpkit.lm.gpt import GPT, Norm

Layer = Callable[[Tensor], Tensor]


class KeyValueCache:
    """Keys and values of all layers, (B, H, block_size, D) each, filled from the left."""

    def __init__(self, model: GPT, batch: int) -> None:
        settings = model.settings
        weight = model.embedding.weight
        shape = (batch, settings.heads, settings.block_size, settings.dim // settings.heads)
        self.keys = [weight.new_empty(shape) for _ in range(settings.layers)]
        self.values = [weight.new_empty(shape) for _ in range(settings.layers)]
        self.length = 0
        self.pads: Tensor | None = None
        self.last_ids: Tensor | None = None  # (B, previous), for models that embed them
        self.step = make_step(model)

    def mask_of_pads(self, heads: int) -> Tensor | None:
        """For one new position: -inf on the pads, (B * H, 1, S)."""
        if self.pads is None:
            return None
        there = torch.arange(self.length + 1, device=self.pads.device)
        mask = torch.zeros(len(self.pads), 1, self.length + 1, device=self.pads.device)
        mask.masked_fill_(there < self.pads[:, None, None], float("-inf"))
        return mask.repeat_interleave(heads, dim=0)

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new keys and values of a layer, give all so far."""
        end = self.length + k.size(2)
        keys, values = self.keys[layer], self.values[layer]
        keys[:, :, self.length : end] = k
        values[:, :, self.length : end] = v
        return keys[:, :, :end], values[:, :, :end]


def _plain(layer: Any) -> Layer:
    """A linear layer as a function; other kinds (see ``matvec``) are called as they are."""
    if isinstance(layer, nn.Linear):
        return functools.partial(F.linear, weight=layer.weight, bias=layer.bias)
    return layer


def _norm(norm: Norm) -> Layer:
    return functools.partial(
        F.layer_norm, normalized_shape=norm.shape, weight=norm.weight, bias=norm.bias, eps=1e-5
    )


def make_step(model: GPT) -> Callable[[Tensor, KeyValueCache], Tensor]:
    """A function from the next stream (B, C) and the cache to logits (B, V)."""
    from nlpkit.lm.gpt import activate

    settings = model.settings
    heads, size = settings.heads, settings.dim // settings.heads
    turns = None if model.rotary is None else model.rotary.turns
    activation = settings.activation
    blocks: list[tuple[Any, ...]] = [
        (
            _norm(block.norm_1),  # type: ignore[arg-type]
            _plain(block.attention.qk),  # type: ignore[union-attr]
            _plain(block.attention.v),  # type: ignore[union-attr]
            block.attention.gains,  # type: ignore[union-attr]
            _plain(block.attention.output),  # type: ignore[union-attr]
            _norm(block.norm_2),  # type: ignore[arg-type]
            _plain(block.up),
            _plain(block.down),
        )
        for block in model.blocks
    ]
    scale = size**-0.5
    last_norm, head = _norm(model.norm), _plain(model.head)

    def step(x: Tensor, cache: KeyValueCache) -> Tensor:
        batch, here = x.size(0), cache.length
        mask = cache.mask_of_pads(heads)  # (B * H, 1, S)
        beta = 0 if mask is None else 1
        mask = x.new_zeros(1, 1, 1) if mask is None else mask
        turn = None if turns is None else turns[here]
        for layer, (norm_1, qk, v, gains, output, norm_2, up, down) in enumerate(blocks):
            h = norm_1(x)
            both = qk(h).view(batch, 2 * heads, size)
            if gains is not None:
                both = F.layer_norm(both, (size,), gains)
            if turn is not None:
                pairs = torch.view_as_complex(both.view(batch, 2 * heads, -1, 2))
                both = torch.view_as_real(pairs * turn).view(batch, 2 * heads, size)
            keys, values = cache.keys[layer].flatten(0, 1), cache.values[layer].flatten(0, 1)
            q, k = both[:, :heads].reshape(-1, 1, size), both[:, heads:].reshape(-1, size)
            keys[:, here] = k
            values[:, here] = v(h).view(-1, size)
            # three small products are quicker than the fused kernel, which is made for long texts
            scores = torch.baddbmm(mask, q, keys[:, : here + 1].mT, beta=beta, alpha=scale)
            mixed = torch.bmm(scores.softmax(-1), values[:, : here + 1])  # (B * H, 1, D)
            x = x + output(mixed.view(batch, -1))
            x = x + down(activate(up(norm_2(x)), activation))
        return head(last_norm(x))

    return step
