"""Encoders: from a vector for each token to a vector for each token in its context.

All take and give (B, T, C). In a batch of sequences of several lengths the shorter ones are padded
at their end, and ``mask`` (B, T) is true for tokens: they get what they would get without padding,
and what padding gets means nothing. ``one_way`` lets a token see only what stands before it. The
same arithmetic for prediction, without torch, is in ``inference``.
"""

from __future__ import annotations

import math
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nlpkit.nn.attention import causal_mask, padding_mask
from nlpkit.nn.block import Block, BlockSettings
from nlpkit.nn.inference import HEAD_SIZE, KERNEL, encoder_shapes
from nlpkit.nn.layers import initialize_uniform
from nlpkit.nn.positions import sinusoidal

EncoderKind = Literal["lstm", "gru", "cnn", "transformer"]
Positions = Literal["decay", "sinusoidal"]  # of a transformer
NormPlace = Literal["pre", "post"]


class Recurrent(nn.Module):
    """Stacked LSTM or GRU; both directions side by side unless ``one_way``."""

    def __init__(
        self, kind: str, n_in: int, hidden: int, layers: int, dropout: float, one_way: bool
    ) -> None:
        super().__init__()
        make = nn.LSTM if kind == "lstm" else nn.GRU
        self.rnn = make(
            n_in,
            hidden,
            layers,
            batch_first=True,
            bidirectional=not one_way,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.size = hidden if one_way else 2 * hidden

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return self.rnn(inputs)[0]
        # the second direction must begin at each sequence's own last token
        lengths = mask.sum(dim=1).cpu()
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        states, _ = self.rnn(packed)
        return pad_packed_sequence(states, batch_first=True, total_length=inputs.size(1))[0]


class Convolutions(nn.Module):
    """Residual convolutions of width 3, each looking twice as far as the one before."""

    def __init__(self, n_in: int, hidden: int, layers: int, dropout: float, one_way: bool) -> None:
        super().__init__()
        self.one_way = one_way
        self.size = hidden
        self.first = nn.Linear(n_in, hidden)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(hidden, hidden, KERNEL, dilation=2**depth) for depth in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        states = self.first(inputs)
        for depth, (convolution, norm) in enumerate(
            zip(self.convolutions, self.norms, strict=True)
        ):
            reach = 2**depth
            left, right = (2 * reach, 0) if self.one_way else (reach, reach)
            normal = norm(states)
            if mask is not None:  # beyond its end a sequence has zeros, padded or not
                normal = normal * mask.unsqueeze(-1)
            padded = F.pad(normal.transpose(1, 2), (left, right))  # (B, C, T + 2 reach)
            states = states + self.dropout(F.relu(convolution(padded)).transpose(1, 2))
        return states


class Transformer(nn.Module):
    """Transformer blocks. The batch should be short: memory grows with the square of T.

    The textbook's (Vaswani et al., 2017) has sinusoidal positions and post-norm.
    """

    def __init__(
        self,
        n_in: int,
        hidden: int,
        layers: int,
        dropout: float,
        one_way: bool,
        positions: Positions = "decay",
        norm: NormPlace = "pre",
    ) -> None:
        super().__init__()
        self.size, self.one_way, self.positions = hidden, one_way, positions
        settings = BlockSettings(
            dim=hidden,
            heads=max(1, hidden // HEAD_SIZE),
            hidden=2 * hidden,
            causal=one_way,
            norm=norm,
            decay=positions == "decay",
            dropout=dropout,
        )
        self.first = nn.Linear(n_in, hidden)
        self.blocks = nn.ModuleList(Block(settings) for _ in range(layers))
        # with post-norm the last block normalises what it gives
        self.norm = nn.LayerNorm(hidden) if norm == "pre" else None
        self.initialize()

    def initialize(self) -> None:
        """Random weights of the blocks, by torch's generator."""
        for block in self.blocks:
            assert isinstance(block, Block)
            initialize_uniform(block.attention.qk, block.attention.v)
            for layer in (block.attention.output, block.up, block.down):
                initialize_uniform(layer)

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        states = self.first(inputs)
        length = states.size(1)
        if self.positions == "sinusoidal":
            # as large as positions are, as in the paper
            table = sinusoidal(length, self.size).to(states)
            states = states * math.sqrt(self.size) + table
        added = None if mask is None else padding_mask(mask, like=states)  # (B, 1, 1, T)
        if added is not None and self.one_way:
            added = added + causal_mask(length, like=states)  # (B, 1, T, T)
        for block in self.blocks:
            states = block(states, None, added)
        return states if self.norm is None else self.norm(states)


Encoder = Recurrent | Convolutions | Transformer


def make_encoder(
    kind: EncoderKind,
    n_in: int,
    hidden: int,
    layers: int,
    dropout: float,
    one_way: bool,
    *,
    positions: Positions = "decay",
    norm: NormPlace = "pre",
) -> Encoder:
    """An encoder by name. ``hidden`` is the width of each direction of a recurrent one.

    >>> import torch
    >>> make_encoder("lstm", 8, 16, 1, 0.0, False)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 32])
    """
    if kind in ("lstm", "gru"):
        return Recurrent(kind, n_in, hidden, layers, dropout, one_way)
    width = 2 * hidden if not one_way else hidden
    if kind == "cnn":
        return Convolutions(n_in, width, layers, dropout, one_way)
    width = math.ceil(width / HEAD_SIZE) * HEAD_SIZE
    return Transformer(n_in, width, layers, dropout, one_way, positions, norm)


def count_parameters(
    kind: EncoderKind,
    n_in: int,
    hidden: int,
    layers: int,
    one_way: bool,
    *,
    positions: Positions = "decay",
    norm: NormPlace = "pre",
) -> int:
    """How many numbers an encoder learns, without making it.

    >>> count_parameters("lstm", 8, 16, 1, False)
    3328
    """
    shapes, _ = encoder_shapes(
        kind, n_in, hidden, layers, one_way=one_way, positions=positions, norm=norm
    )
    return sum(math.prod(int(size) for size in shape) for shape in shapes.values())
