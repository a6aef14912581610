"""The small parts that transformers are made of: linear layers, tables, LayerNorm, non-linearities.

Their weights come from the model that holds them or from a file, never from their making: a model
that is about to be read needs no random numbers.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.nn.fused import relu_squared

Activation = Literal["relu", "relu2", "gelu", "gelu_tanh", "silu"]


class Linear(nn.Linear):
    """A linear layer whose weights come from ``initialize()`` or a file, not from its making."""

    def reset_parameters(self) -> None:
        """Nothing to do."""

    def initialize(self, generator: torch.Generator, std: float | None = None) -> None:
        """Normal weights of ``std``, or uniform ones that keep the variance; biases are zero."""
        if std is None:
            bound = (3 / self.in_features) ** 0.5
            nn.init.uniform_(self.weight, -bound, bound, generator=generator)
        elif std:
            nn.init.normal_(self.weight, std=std, generator=generator)
        else:
            nn.init.zeros_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def use_half(self, x: Tensor, number: int) -> Tensor:
        """What the upper or the lower half of the matrix makes of x."""
        bias = None if self.bias is None else self.bias.chunk(2)[number]
        return F.linear(x, self.weight.chunk(2)[number], bias)


class Embedding(nn.Embedding):
    """A table whose rows come from ``initialize()`` or a file, not from its making."""

    def reset_parameters(self) -> None:
        """Nothing to do."""

    def initialize(self, generator: torch.Generator, std: float = 1.0) -> None:
        """Normal rows."""
        nn.init.normal_(self.weight, std=std, generator=generator)


def initialize_uniform(*layers: nn.Linear) -> None:
    """Random weights and biases as torch gives them to a new layer; several start as one does."""
    for layer in layers:
        nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5))
    for layer in layers:
        bound = 1 / math.sqrt(layer.in_features)
        nn.init.uniform_(layer.bias, -bound, bound)


class Norm(nn.Module):
    """LayerNorm, with gains and biases if wanted.

    >>> Norm(4, gains=False, bias=False)(torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().abs() < 1e-6
    tensor(True)
    """

    def __init__(self, dim: int, *, gains: bool, bias: bool, eps: float = 1e-5) -> None:
        super().__init__()
        self.shape, self.eps = (dim,), eps
        self.weight = nn.Parameter(torch.ones(self.shape)) if gains else None
        self.bias = nn.Parameter(torch.zeros(self.shape)) if gains and bias else None

    def initialize(self) -> None:
        """Gains of one, biases of zero."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.shape, self.weight, self.bias, eps=self.eps)


def normalize(x: Tensor) -> Tensor:
    """Every vector brought to mean 0 and variance 1."""
    return F.layer_norm(x, x.shape[-1:])


def activate(x: Tensor, name: Activation) -> Tensor:
    """The non-linearity of a feed-forward network.

    >>> activate(torch.tensor([-2.0, 3.0]), "relu2")
    tensor([0., 9.])
    """
    if name == "relu2":
        return relu_squared(x)
    if name == "relu":
        return F.relu(x)
    if name == "silu":
        return F.silu(x)
    return F.gelu(x, approximate="tanh" if name == "gelu_tanh" else "none")
