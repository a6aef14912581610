"""Encoders: tokens in, a state for each token in its context and a mask out.

``TokenEncoder`` is the protocol of what reads tokens themselves (words of a sentence): whatever a
model is made of, a tagger on top of it sees states (B, T, C) and a mask (B, T). There are two: word
vectors, characters and affixes under an encoder of this file (``tasks/tag/model.py``), and the
words of a BERT, ELMo or GPT (``models/finetune_words.py``).

The encoders of this file stand on vectors: they take (B, T, n_in) and give (B, T, size). Shorter
sequences of a batch are padded at their end, and ``mask`` (B, T) is true for tokens: they get what
they would get without padding, and what padding gets means nothing. A causal one lets a token see
only what stands before it. The same arithmetic for prediction, without torch, is in ``inference``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.nn.attention import causal_mask, padding_mask
from nlpkit.nn.block import Block, BlockSettings
from nlpkit.nn.encoder_config import HEAD_SIZE, KERNEL, EncoderConfig
from nlpkit.nn.layers import initialize_uniform
from nlpkit.nn.positions import sinusoidal


class Encoded(NamedTuple):
    """What an encoder gives for a batch of sentences."""

    states: Tensor  # (B, T, C)
    mask: Tensor  # (B, T), true for tokens


class TokenEncoder(Protocol):
    """Anything that gives states for tokens.

    A token gets one state, however many subwords or characters it has. It may be a module with
    weights to learn; then what stands on it holds it as a part of its own.
    """

    size: int  # C, the width of a state

    def encode(self, sentences: Sequence[Sequence[str]]) -> Encoded:
        """The states of all tokens; T is the length of the longest sentence."""
        ...


class RecurrentEncoder(nn.Module):
    """Stacked LSTM or GRU; both directions side by side unless it is causal."""

    def __init__(self, settings: EncoderConfig, dropout: float) -> None:
        super().__init__()
        self.size, self.dropout = settings.size, dropout
        make = nn.LSTM if settings.kind == "lstm" else nn.GRU
        self.rnn = make(
            settings.n_in,
            settings.hidden,
            settings.layers,
            batch_first=True,
            bidirectional=not settings.causal,
            dropout=dropout if settings.layers > 1 else 0.0,
        )

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None or not self.rnn.bidirectional:
            return self.rnn(inputs)[0]
        return read_both_ways(self.rnn, inputs, mask)


def read_both_ways(rnn: nn.LSTM | nn.GRU, inputs: Tensor, mask: Tensor) -> Tensor:
    """A bidirectional network over padded sequences (B, T, C): none reads padding before tokens.

    Each sequence is reversed by its own length for the second direction. Packed sequences would do
    as well, but torch has no fast path for them on the CPU.

    >>> rnn, inputs = nn.GRU(2, 3, batch_first=True, bidirectional=True), torch.rand(1, 4, 2)
    >>> mask = torch.tensor([[True, True, True, False]])
    >>> torch.allclose(read_both_ways(rnn, inputs, mask)[:, :3], rnn(inputs[:, :3])[0], atol=1e-6)
    True
    """
    steps = torch.arange(inputs.size(1), device=inputs.device)
    lengths = mask.sum(dim=1, keepdim=True)
    mirrored = torch.where(mask, lengths - 1 - steps, steps).unsqueeze(2)  # (B, T, 1)
    run: Any = torch.lstm if isinstance(rnn, nn.LSTM) else torch.gru
    zeros = inputs.new_zeros(1, len(inputs), rnn.hidden_size)
    start = (zeros, zeros) if isinstance(rnn, nn.LSTM) else zeros
    for layer in range(rnn.num_layers):
        if layer:
            inputs = F.dropout(inputs, rnn.dropout, rnn.training)
        back = mirrored.expand_as(inputs)
        both = []
        for way, states in (("", inputs), ("_reverse", inputs.gather(1, back))):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weights = [getattr(rnn, f"{name}_l{layer}{way}") for name in names]
            # one layer, one direction, batch first
            both.append(run(states, start, weights, True, 1, 0.0, rnn.training, False, True)[0])
        turned = both[1].gather(1, mirrored.expand_as(both[1]))
        inputs = torch.cat([both[0], turned], dim=2)
    return inputs


class ConvolutionalEncoder(nn.Module):
    """Residual convolutions of width 3, each looking twice as far as the one before."""

    def __init__(self, settings: EncoderConfig, dropout: float) -> None:
        super().__init__()
        self.causal = settings.causal
        self.size = size = settings.size
        self.first = nn.Linear(settings.n_in, size)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, size, KERNEL, dilation=2**depth) for depth in range(settings.layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(settings.layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        states = self.first(inputs)
        for depth, (convolution, norm) in enumerate(
            zip(self.convolutions, self.norms, strict=True)
        ):
            reach = 2**depth
            left, right = (2 * reach, 0) if self.causal else (reach, reach)
            normal = norm(states)
            if mask is not None:  # beyond its end a sequence has zeros, padded or not
                normal = normal * mask.unsqueeze(-1)
            padded = F.pad(normal.transpose(1, 2), (left, right))  # (B, C, T + 2 reach)
            states = states + self.dropout(F.relu(convolution(padded)).transpose(1, 2))
        return states


class TransformerEncoder(nn.Module):
    """Transformer blocks. The batch should be short: memory grows with the square of T.

    The textbook's (Vaswani et al., 2017) has sinusoidal positions and post-norm.
    """

    def __init__(self, settings: EncoderConfig, dropout: float) -> None:
        super().__init__()
        self.size, self.causal = settings.size, settings.causal
        self.positions = settings.positions
        block = BlockSettings(
            dim=self.size,
            heads=max(1, self.size // HEAD_SIZE),
            hidden=2 * self.size,
            causal=settings.causal,
            norm=settings.norm,
            decay=settings.positions == "decay",
            dropout=dropout,
        )
        self.first = nn.Linear(settings.n_in, self.size)
        self.blocks = nn.ModuleList(Block(block) for _ in range(settings.layers))
        # with post-norm the last block normalises what it gives
        self.norm = nn.LayerNorm(self.size) if settings.norm == "pre" else None
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
        if added is not None and self.causal:
            added = added + causal_mask(length, like=states)  # (B, 1, T, T)
        for block in self.blocks:
            states = block(states, None, added)
        return states if self.norm is None else self.norm(states)


Encoder = RecurrentEncoder | ConvolutionalEncoder | TransformerEncoder


def make_encoder(settings: EncoderConfig, dropout: float = 0.0) -> Encoder:
    """An encoder with random weights.

    >>> make_encoder(EncoderConfig("lstm", n_in=8, hidden=16))(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 32])
    """
    if settings.kind in ("lstm", "gru"):
        return RecurrentEncoder(settings, dropout)
    kind = ConvolutionalEncoder if settings.kind == "cnn" else TransformerEncoder
    return kind(settings, dropout)
