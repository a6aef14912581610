"""LSTMs with a projected state, several side by side (Sak et al., 2014; Peters et al., 2018).

The cell is as wide as one likes, what it hands on is a projection of its output. Cells and
projections can be clipped, as ELMo's are. The networks, one for each direction of reading, have
weights of their own and take their steps together, as one batched product.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class LstmState(NamedTuple):
    """What an LSTM hands from one step, or one call, to the next."""

    output: Tensor  # (D, B, P)
    cell: Tensor  # (D, B, H)


class ProjectedLstm(nn.Module):
    """``networks`` LSTMs, each from (B, T, n_in) to (B, T, dim), side by side as (D, B, T, ...).

    Gates are in the order input, forget, cell, output. A clip of 0 is none.

    >>> lstm = ProjectedLstm(2, n_in=3, hidden=8, dim=3)
    >>> lstm.initialize(torch.Generator().manual_seed(1))
    >>> lstm(torch.zeros(2, 4, 5, 3))[0].shape
    torch.Size([2, 4, 5, 3])
    """

    def __init__(
        self,
        networks: int,
        n_in: int,
        hidden: int,
        dim: int,
        *,
        cell_clip: float = 0.0,
        projection_clip: float = 0.0,
    ) -> None:
        super().__init__()
        self.networks, self.hidden, self.dim = networks, hidden, dim
        self.cell_clip, self.projection_clip = cell_clip, projection_clip
        self.of_input = nn.Parameter(torch.empty(networks, n_in, 4 * hidden))
        self.of_state = nn.Parameter(torch.empty(networks, dim, 4 * hidden))
        self.bias = nn.Parameter(torch.empty(networks, 1, 4 * hidden))
        self.projection = nn.Parameter(torch.empty(networks, hidden, dim))

    def initialize(self, generator: torch.Generator) -> None:
        """Uniform weights that keep the variance; forget gates start open."""
        for weight in (self.of_input, self.of_state, self.projection):
            bound = (3 / weight.size(1)) ** 0.5
            nn.init.uniform_(weight, -bound, bound, generator=generator)
        with torch.no_grad():
            self.of_state.mul_(0.5)  # input and state share the variance of a gate
            self.bias.zero_()
            self.bias[..., self.hidden : 2 * self.hidden] = 1.0

    def forward(self, inputs: Tensor, state: LstmState | None = None) -> tuple[Tensor, Tensor]:
        """Outputs (D, B, T, P) and cells (D, B, T, H) of all steps."""
        networks, batch, steps, width = inputs.shape
        rows = inputs.transpose(1, 2).reshape(networks, steps * batch, width)
        gates = torch.baddbmm(self.bias, rows, self.of_input).view(networks, steps, batch, -1)
        if state is None:
            output = inputs.new_zeros(networks, batch, self.dim)
            cell = inputs.new_zeros(networks, batch, self.hidden)
        else:
            output, cell = state
        outputs, cells = [], []
        first = state is None  # its state is zero: nothing to multiply
        for step in gates.unbind(1):  # (D, B, 4 H)
            if not first:
                step = torch.baddbmm(step, output, self.of_state)
            first = False
            output, cell = self._step(step, cell)
            outputs.append(output)
            cells.append(cell)
        return torch.stack(outputs, dim=2), torch.stack(cells, dim=2)

    def _step(self, gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        opened, forget, new, shown = gates.chunk(4, dim=-1)  # (D, B, H) each
        cell = opened.sigmoid() * new.tanh() + forget.sigmoid() * cell
        if self.cell_clip:
            cell = cell.clamp(-self.cell_clip, self.cell_clip)
        output = torch.bmm(shown.sigmoid() * cell.tanh(), self.projection)
        if self.projection_clip:
            output = output.clamp(-self.projection_clip, self.projection_clip)
        return output, cell
