"""A vector for a word from its characters: convolutions of several widths, highways, a projection.

Each filter looks at so many characters in a row and keeps its strongest response in the word (Kim
et al., 2016; Peters et al., 2018).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.nn.layers import Linear


class Highway(nn.Module):
    """A gate between a layer and its input (Srivastava et al., 2015): g relu(W x) + (1 - g) x.

    >>> highway = Highway(3)
    >>> highway.initialize(torch.Generator().manual_seed(1))
    >>> highway(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = Linear(dim, dim)
        self.gate = Linear(dim, dim)

    def initialize(self, generator: torch.Generator) -> None:
        """At first the input mostly passes through."""
        self.transform.initialize(generator)
        self.gate.initialize(generator, std=0.01)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate(x).sigmoid()
        return gate * F.relu(self.transform(x)) + (1 - gate) * x


class CharacterCnn(nn.Module):
    """Rows of characters (U, L) -> vectors (U, C); 0 is no character and has no vector.

    ``filters`` are pairs of width and number.

    >>> cnn = CharacterCnn(262, 4, [(1, 4), (2, 8)], highways=1, dim=6)
    >>> cnn.initialize(torch.Generator().manual_seed(1))
    >>> cnn(torch.ones(3, 10, dtype=torch.long)).shape
    torch.Size([3, 6])
    """

    def __init__(
        self,
        characters: int,
        char_dim: int,
        filters: Sequence[tuple[int, int]],
        *,
        highways: int,
        dim: int,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.activate = F.relu if activation == "relu" else torch.tanh
        self.embedding = nn.Parameter(torch.empty(characters - 1, char_dim))  # 0 has no row
        self.convolutions = nn.ModuleList(
            nn.utils.skip_init(nn.Conv1d, char_dim, count, width) for width, count in filters
        )
        total = sum(count for _, count in filters)
        self.highways = nn.ModuleList(Highway(total) for _ in range(highways))
        self.projection = Linear(total, dim)

    def initialize(self, generator: torch.Generator) -> None:
        """Random weights."""
        nn.init.normal_(self.embedding, std=1.0, generator=generator)
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv1d)
            fan_in = convolution.in_channels * convolution.kernel_size[0]
            nn.init.normal_(convolution.weight, std=fan_in**-0.5, generator=generator)
            assert convolution.bias is not None
            nn.init.zeros_(convolution.bias)
        for highway in self.highways:
            assert isinstance(highway, Highway)
            highway.initialize(generator)
        self.projection.initialize(generator)

    def forward(self, characters: Tensor) -> Tensor:
        table = F.pad(self.embedding, (0, 0, 1, 0))  # (characters, D), the first row is zero
        letters = F.embedding(characters, table).transpose(1, 2)  # (U, D, L)
        responses = [convolution(letters).max(dim=2).values for convolution in self.convolutions]
        states = self.activate(torch.cat(responses, dim=1))  # (U, filters)
        for highway in self.highways:
            states = highway(states)
        projected: Tensor = self.projection(states)
        return projected
