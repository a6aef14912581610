"""Attention of a decoder to an encoder's states, by the six scores of the literature.

A score says how well the state of the decoder, the query q, fits each state of the encoder, a key
k. Softmax turns the scores of a query into weights that add up to 1: the soft alignment of a target
token with the source (Bahdanau et al., 2015; Luong et al., 2015; Graves et al., 2014).

Shapes: B rows, T queries, S keys, C numbers in each.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.nn.layers import Linear
from nlpkit.nn.optimizers import Stacks

Score = Literal["cosine", "additive", "location", "general", "dot", "scaled-dot"]


def alignment_scores(
    name: Score, q: Tensor, k: Tensor, weight: Tensor | None = None, vector: Tensor | None = None
) -> Tensor:
    """How well each query (B, T, C) fits each key (B, S, C): (B, T, S).

        cosine      q k / (|q| |k|)       content-based (Graves et al.)
        additive    v tanh(W [q; k])      (Bahdanau et al.); W (C, 2C), v (C,)
        location    W q                   of the place of a key alone (Luong et al.); W (most S, C)
        general     q W k                 (Luong et al.); W (C, C)
        dot         q k                   (Luong et al.)
        scaled-dot  q k / sqrt(C)         (Vaswani et al.)

    >>> q, k = torch.tensor([[[3.0, 4.0]]]), torch.tensor([[[3.0, 4.0], [4.0, -3.0]]])
    >>> alignment_scores("dot", q, k).tolist(), alignment_scores("cosine", q, k).tolist()
    ([[[25.0, 0.0]]], [[[1.0, 0.0]]])
    """
    if name == "location":
        assert weight is not None
        return F.linear(q, weight[: k.size(1)])
    if name == "additive":
        assert weight is not None
        assert vector is not None
        for_query, for_key = weight.chunk(2, dim=1)
        # W [q; k] is the sum of two products, of which each state needs its own just once
        both = F.linear(q, for_query).unsqueeze(2) + F.linear(k, for_key).unsqueeze(1)
        return torch.tanh(both) @ vector.to(both.dtype)  # (B, T, S, C) -> (B, T, S)
    if name == "cosine":
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    elif name == "general":
        assert weight is not None
        k = F.linear(k, weight)
    elif name == "scaled-dot":
        q = q / math.sqrt(q.size(-1))
    return q @ k.transpose(1, 2)


class Alignment(nn.Module):
    """Weights of the keys and the mean of the values by them, for each query."""

    SHARPEST = 8.0  # a cosine is at most 1, which softmax hardly tells from 0

    def __init__(self, name: Score, dim: int, longest: int) -> None:
        super().__init__()
        self.name: Score = name
        shapes = {"additive": (2 * dim, dim), "location": (dim, longest), "general": (dim, dim)}
        self.weight = Linear(*shapes[name], bias=False) if name in shapes else None
        self.vector = nn.Parameter(torch.zeros(dim)) if name == "additive" else None
        # the strength of Graves et al., learned
        self.strength = nn.Parameter(torch.tensor(self.SHARPEST)) if name == "cosine" else None

    def initialize(self, generator: torch.Generator) -> None:
        """Random weights."""
        if self.weight is not None:
            self.weight.initialize(generator)
        if self.vector is not None:
            nn.init.normal_(self.vector, std=self.vector.numel() ** -0.5, generator=generator)
        if self.strength is not None:
            nn.init.constant_(self.strength, self.SHARPEST)

    def matrices(self) -> Stacks:
        """What Muon trains: rows of ``location`` are places, no hidden matrix."""
        if self.weight is None or self.name == "location":
            return []
        return [(self.weight.weight, 1)]

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Mixed values (B, T, D) and weights (B, T, S); mask (B, 1, S) is -inf for padding."""
        weight = None if self.weight is None else self.weight.weight
        scores = alignment_scores(self.name, q, k, weight, self.vector)
        if self.strength is not None:
            scores = scores * self.strength
        weights = (scores + mask).softmax(dim=-1)
        return weights.to(v.dtype) @ v, weights
