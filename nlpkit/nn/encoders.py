"""Encoders: from a vector for each token to a vector for each token in its context.

All take and give (B, T, C). A batch holds sequences of one length, so there is no padding and no
mask: batches by exact length are quicker and cannot leak padding into a result. ``one_way`` lets a
token see only what stands before it. The same arithmetic for prediction, without torch and over
sequences of any lengths, is in ``inference``.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EncoderKind = Literal["lstm", "gru", "cnn", "transformer"]
KERNEL = 3  # width of a convolution over tokens
HEAD_SIZE = 32


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

    def forward(self, inputs: Tensor) -> Tensor:
        return self.rnn(inputs)[0]


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

    def forward(self, inputs: Tensor) -> Tensor:
        states = self.first(inputs)
        for depth, (convolution, norm) in enumerate(
            zip(self.convolutions, self.norms, strict=True)
        ):
            reach = 2**depth
            left, right = (2 * reach, 0) if self.one_way else (reach, reach)
            padded = F.pad(norm(states).transpose(1, 2), (left, right))  # (B, C, T + 2 reach)
            states = states + self.dropout(F.relu(convolution(padded)).transpose(1, 2))
        return states


class Attention(nn.Module):
    """One transformer block: attention with a learned decay by distance, then an MLP."""

    def __init__(self, hidden: int, dropout: float, one_way: bool) -> None:
        super().__init__()
        self.heads = max(1, hidden // HEAD_SIZE)
        self.one_way = one_way
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        # how fast each head forgets with distance, before and after the token: tells the order
        self.decay = nn.Parameter(torch.linspace(-1.0, 1.0, 2 * self.heads).view(2, self.heads))
        self.mlp_in, self.mlp_out = nn.Linear(hidden, 2 * hidden), nn.Linear(2 * hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def bias(self, length: int) -> Tensor:
        """What distance adds to the attention scores, (H, T, T)."""
        steps = torch.arange(length, device=self.decay.device)
        distance = (steps[None, :] - steps[:, None]).float()  # (T query, T key)
        before, after = self.decay.exp()[:, :, None, None]
        bias = torch.where(distance < 0, distance * before, -distance * after)
        return bias.masked_fill(distance > 0, -math.inf) if self.one_way else bias

    def forward(self, states: Tensor) -> Tensor:
        n_rows, length, hidden = states.shape
        qkv = self.qkv(self.norm1(states)).view(n_rows, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, H, T, C/H)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias(length))
        mixed = mixed.transpose(1, 2).reshape(n_rows, length, hidden)
        states = states + self.dropout(self.out(mixed))
        return states + self.dropout(self.mlp_out(F.relu(self.mlp_in(self.norm2(states)))))


class Transformer(nn.Module):
    """Blocks of attention. The batch should be short: memory grows with the square of T."""

    def __init__(self, n_in: int, hidden: int, layers: int, dropout: float, one_way: bool) -> None:
        super().__init__()
        self.size = hidden
        self.first = nn.Linear(n_in, hidden)
        self.blocks = nn.ModuleList(Attention(hidden, dropout, one_way) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, inputs: Tensor) -> Tensor:
        states = self.first(inputs)
        for block in self.blocks:
            states = block(states)
        return self.norm(states)


Encoder = Recurrent | Convolutions | Transformer


def make_encoder(
    kind: EncoderKind, n_in: int, hidden: int, layers: int, dropout: float, one_way: bool
) -> Encoder:
    """An encoder by name. ``hidden`` is the width of each direction of a recurrent one.

    >>> make_encoder("lstm", 8, 16, 1, 0.0, False)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 32])
    """
    if kind in ("lstm", "gru"):
        return Recurrent(kind, n_in, hidden, layers, dropout, one_way)
    width = 2 * hidden if not one_way else hidden
    if kind == "cnn":
        return Convolutions(n_in, width, layers, dropout, one_way)
    width = math.ceil(width / HEAD_SIZE) * HEAD_SIZE
    return Transformer(n_in, width, layers, dropout, one_way)
