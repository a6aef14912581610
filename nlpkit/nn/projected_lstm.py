"""LSTMs with a projected state, several side by side (Sak et al., 2014; Peters et al., 2018).

The cell is as wide as one likes, what it hands on is a projection of its output. Cells and
projections can be clipped, as ELMo's are. The networks, one for each direction of reading, have
weights of their own and take their steps together, as one batched product.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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
        """Outputs (D, B, T, P) and cells (D, B, T, H) of all steps; cells have no gradient."""
        networks, batch, steps, width = inputs.shape
        rows = inputs.transpose(1, 2).reshape(networks, steps * batch, width)
        gates = torch.baddbmm(self.bias, rows, self.of_input).view(networks, steps, batch, -1)
        if state is None:
            state = LstmState(
                gates.new_zeros(networks, batch, self.dim),
                gates.new_zeros(networks, batch, self.hidden),
            )
        weights = (weight.to(gates.dtype) for weight in (self.of_state, self.projection))
        first = (part.detach().to(gates.dtype) for part in state)
        clips = (self.cell_clip or math.inf, self.projection_clip or math.inf)
        outputs, cells = Recurrence.apply(gates, *weights, *first, *clips)
        return outputs.transpose(1, 2), cells.transpose(1, 2)


class Recurrence(torch.autograd.Function):
    """All steps of ``ProjectedLstm``, with gradients written out.

        i, f, g, o = gates + output W;   cell = sigmoid(i) tanh(g) + sigmoid(f) cell, clipped
        output = (sigmoid(o) tanh(cell)) P, clipped

    Autograd would work out the gradient of W and of P at every step and add it up; here each is one
    product over all steps, which is what makes training twice as fast.
    """

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,  # (D, T, B, 4 H), what the inputs give; it is written over
        of_state: Tensor,  # (D, P, 4 H)
        projection: Tensor,  # (D, H, P)
        output: Tensor,  # (D, B, P), before the first step
        cell: Tensor,  # (D, B, H)
        cell_clip: float,
        projection_clip: float,
    ) -> tuple[Tensor, Tensor]:
        """Outputs (D, T, B, P) and cells (D, T, B, H)."""
        networks, steps, batch, _ = gates.shape
        hidden = projection.size(1)
        gates = gates.detach()
        outputs = gates.new_empty(networks, 1 + steps, batch, projection.size(2))
        cells = gates.new_empty(networks, 1 + steps, batch, hidden)
        outputs[:, 0], cells[:, 0] = output, cell
        tanh_cells = torch.empty_like(cells[:, 1:])  # tanh(cell)
        shown = torch.empty_like(tanh_cells)  # sigmoid(o) tanh(cell)
        for network in range(networks):
            for step in range(steps):
                now, here = gates[network, step], cells[network, 1 + step]
                now.addmm_(outputs[network, step], of_state[network])
                now[:, : 2 * hidden].sigmoid_()
                now[:, 2 * hidden : 3 * hidden].tanh_()
                now[:, 3 * hidden :].sigmoid_()
                enter, forget, new, leave = now.chunk(4, dim=-1)  # (B, H) each
                torch.mul(enter, new, out=here)
                here.addcmul_(forget, cells[network, step])
                if cell_clip < math.inf:
                    here.clamp_(-cell_clip, cell_clip)
                torch.tanh(here, out=tanh_cells[network, step])
                torch.mul(leave, tanh_cells[network, step], out=shown[network, step])
                there = outputs[network, 1 + step]
                torch.mm(shown[network, step], projection[network], out=there)
                if projection_clip < math.inf:
                    there.clamp_(-projection_clip, projection_clip)
        ctx.save_for_backward(gates, of_state, projection, outputs, cells, tanh_cells, shown)
        ctx.clips = cell_clip, projection_clip
        ctx.mark_non_differentiable(cells)
        return outputs[:, 1:], cells[:, 1:]

    @staticmethod
    def backward(ctx: Any, d_outputs: Tensor, _: Tensor) -> Any:
        gates, of_state, projection, outputs, cells, tanh_cells, shown = ctx.saved_tensors
        cell_clip, projection_clip = ctx.clips
        networks, steps, batch, _ = gates.shape
        d_gates = torch.empty_like(gates)
        d_outputs = d_outputs.clone(memory_format=torch.contiguous_format)
        for network in range(networks):
            back, up = of_state[network].mT, projection[network].mT
            d_cell = torch.zeros_like(cells[network, 0])
            for step in reversed(range(steps)):
                d_output = d_outputs[network, step]  # (B, P)
                if step + 1 < steps:
                    d_output.addmm_(d_gates[network, step + 1], back)
                if projection_clip < math.inf:
                    d_output *= outputs[network, 1 + step].abs() < projection_clip
                d_shown = torch.mm(d_output, up)  # (B, H)
                enter, forget, new, leave = gates[network, step].chunk(4, dim=-1)
                d_enter, d_forget, d_new, d_leave = d_gates[network, step].chunk(4, dim=-1)
                tanh_cell = tanh_cells[network, step]
                torch.mul(d_shown, tanh_cell, out=d_leave)
                d_cell += torch.ops.aten.tanh_backward(d_shown * leave, tanh_cell)
                if cell_clip < math.inf:
                    d_cell *= cells[network, 1 + step].abs() < cell_clip
                _gradient("sigmoid", d_cell * new, enter, d_enter)
                _gradient("sigmoid", d_cell * cells[network, step], forget, d_forget)
                _gradient("tanh", d_cell * enter, new, d_new)
                _gradient("sigmoid", d_leave, leave, d_leave)
                d_cell *= forget
        over = (networks, steps * batch, -1)
        before = outputs[:, :-1].reshape(over)
        d_of_state = torch.bmm(before.mT, d_gates.view(over))
        d_projection = torch.bmm(shown.view(over).mT, d_outputs.view(over))
        return d_gates, d_of_state, d_projection, None, None, None, None


def _gradient(name: str, d_after: Tensor, after: Tensor, into: Tensor) -> None:
    """The gradient before a non-linearity, from that behind it and from its value."""
    backward = {"sigmoid": torch.ops.aten.sigmoid_backward, "tanh": torch.ops.aten.tanh_backward}
    backward[name].grad_input(d_after, after, grad_input=into)
