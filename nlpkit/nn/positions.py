"""How a transformer knows where its tokens stand.

Learned positions are an ``Embedding`` of the position, added to that of the token; the others are
here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Rotary(nn.Module):
    """Turns pairs of numbers of a query or key by an angle that grows with its position.

    The product of a query and a key then depends on how far apart they are (Su et al., 2021).
    A pair is taken as a complex number, so that turning it is one multiplication.
    """

    def __init__(self, heads: int, head_dim: int, length: int, base: float = 10_000.0) -> None:
        super().__init__()
        # on the CPU even if the weights are on no device: arithmetic there loads half of torch
        steps = torch.arange(0, head_dim, 2, device="cpu") / head_dim
        angles = torch.outer(torch.arange(length, device="cpu"), base**-steps)  # (T, D/2)
        rotations = torch.polar(torch.ones_like(angles), angles)
        # repeated for all heads of q and k: a product without broadcasting inside is faster
        rotations = rotations[:, None].expand(-1, 2 * heads, -1).contiguous()  # (T, 2H, D/2)
        self.register_buffer("rotations", rotations, persistent=False)
        self.rotations: Tensor

    def forward(self, x: Tensor, first: int) -> Tensor:
        """Turn x (B, T, 2H, D) whose positions start at ``first``."""
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))  # (B, T, 2H, D/2)
        rotated = pairs * self.rotations[first : first + x.size(1)]
        return torch.view_as_real(rotated).flatten(-2).to(x.dtype)


class DistanceDecay(nn.Module):
    """What distance takes from the scores of each head, at rates that are learned.

    Tokens before and after the query have a rate each: that tells their order, too. Fixed rates,
    for tokens before only, are known as ALiBi (Press et al., 2022).
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.log_rates = nn.Parameter(torch.linspace(-1.0, 1.0, 2 * heads).view(2, heads))

    def forward(self, queries: int, keys: int) -> Tensor:
        """What is added to the scores of the last ``queries`` of ``keys`` tokens, (H, T, S)."""
        steps = torch.arange(keys, device=self.log_rates.device)
        distance = (steps - steps[keys - queries :, None]).float()  # (T, S)
        before, after = self.log_rates.exp()[:, :, None, None]
        return torch.where(distance < 0, distance * before, -distance * after)


class RelativeBias(nn.Module):
    """A learned number for each head and distance, added to its scores (Shaw et al., 2018; T5).

    Distances beyond ``reach`` count as ``reach``. Heads start by looking at one neighbour each:
    the first at the token before, the second at the one behind, the third two before, and so on.
    """

    START = 4.0  # what the neighbour's score is raised by: e^4 times the weight of any other

    def __init__(self, heads: int, reach: int) -> None:
        super().__init__()
        self.reach = reach
        self.table = nn.Parameter(torch.zeros(heads, 2 * reach + 1))  # distance -reach .. reach

    def initialize(self) -> None:
        """Each head has its neighbour."""
        nn.init.zeros_(self.table)
        with torch.no_grad():
            for head in range(len(self.table)):
                distance = min(head // 2 + 1, self.reach) * (-1 if head % 2 == 0 else 1)
                self.table[head, self.reach + distance] = self.START

    def forward(self, length: int) -> Tensor:
        """What is added to the scores of ``length`` tokens, (H, T, T)."""
        steps = torch.arange(length, device=self.table.device)
        distance = (steps - steps[:, None]).clamp(-self.reach, self.reach)  # (T, S)
        return self.table[:, distance + self.reach]


def sinusoidal(length: int, dim: int) -> Tensor:
    """Sines and cosines of the position, of ever longer waves (T, C) (Vaswani et al., 2017).

    >>> sinusoidal(2, 4)[1]  # sin 1, cos 1, sin 1/100, cos 1/100
    tensor([0.8415, 0.5403, 0.0100, 0.9999])
    """
    rates = 10_000.0 ** -(torch.arange(0, dim, 2) / dim)  # (C/2,)
    angles = torch.outer(torch.arange(length), rates)  # (T, C/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
