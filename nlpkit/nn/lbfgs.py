"""L-BFGS (Liu and Nocedal, 1989) for smooth convex problems, several side by side.

A step is one pass over all data. No value of the loss is asked for: a step went too far when the
slope along its direction has turned uphill by nearly as much as it led down, and is then shortened
to where a straight line between the two slopes crosses zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nlpkit.nn.optimizers import OptimizerWithoutDynamo

PAIRS = 5  # of a step and the change of the gradient over it that are remembered
KEPT = 2 * PAIRS + 3  # numbers for each weight: those pairs, the last point, gradient, direction
TOO_FAR = 0.9  # of the slope at the beginning


class LBFGS(OptimizerWithoutDynamo):
    """Minimises a sum of problems that share nothing; ``weights`` (P, N) has one in each row.

    >>> weights = torch.nn.Parameter(torch.zeros(2, 3))
    >>> optimizer, centre = LBFGS(weights), torch.tensor([[1.0, 2, 3], [-50, 0, 50]])
    >>> scale = torch.tensor([1.0, 10, 100])
    >>> for _ in range(20):
    ...     weights.grad = (weights.detach() - centre) * scale
    ...     optimizer.step()
    >>> bool((weights - centre).abs().max() < 1e-3)
    True
    """

    def __init__(self, weights: Tensor) -> None:
        super().__init__([weights], {"lr": 1.0})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        (weights,) = self.param_groups[0]["params"]
        gradient, state = weights.grad, self.state[weights]
        if not state:
            state["from"], state["gradient"] = weights.clone(), gradient.clone()
            state["direction"] = -gradient
            state["length"] = gradient.new_ones(len(weights), 1)
            state["steps"] = gradient.new_zeros(PAIRS, *weights.shape)
            state["changes"] = state["steps"].clone()
            state["oldest"] = gradient.new_zeros(())
            weights.sub_(gradient)
            return
        before = _dot(state["direction"], state["gradient"])
        after = _dot(state["direction"], gradient)
        far = after > -TOO_FAR * before
        crossing = (before / (before - after)).nan_to_num(1.0).clamp(0.1, 0.9)
        # problems that went too far take the same way again; the others go on from where they are
        place = int(state["oldest"])
        step, change = state["steps"][place], state["changes"][place]
        torch.sub(weights, state["from"], out=step).masked_fill_(far, 0.0)
        torch.sub(gradient, state["gradient"], out=change).masked_fill_(far, 0.0)
        state["oldest"].fill_((place + 1) % PAIRS)
        state["length"] = torch.where(far, state["length"] * crossing, 1.0)
        order = [(place + 1 + number) % PAIRS for number in range(PAIRS)]
        steps, changes = ([state[name][at] for at in order] for name in ("steps", "changes"))
        direction = _direction(gradient, steps, changes)
        state["direction"] = torch.where(far, state["direction"], direction)
        state["from"] = torch.where(far, state["from"], weights)
        state["gradient"] = torch.where(far, state["gradient"], gradient)
        weights.copy_(state["from"] + state["length"] * state["direction"])


def _dot(one: Tensor, other: Tensor) -> Tensor:
    """The product of each row of one with that of the other, (P, 1)."""
    return (one * other).sum(dim=1, keepdim=True)


def _direction(gradient: Tensor, steps: list[Tensor], changes: list[Tensor]) -> Tensor:
    """The two loops: the gradient times an estimate of the inverse Hessian, downhill."""
    found, scale, parts = -gradient, torch.ones_like(gradient[:, :1]), []
    curvatures = [_dot(step, change) for step, change in zip(steps, changes, strict=True)]
    pairs = list(zip(steps, changes, curvatures, strict=True))  # a problem may lack some
    for step, change, curvature in reversed(pairs):
        parts.append(torch.where(curvature > 0, _dot(step, found) / curvature, 0.0))
        found -= parts[-1] * change
    for _, change, curvature in pairs:  # the newest that says it
        scale = torch.where(curvature > 0, curvature / _dot(change, change), scale)
    found *= scale
    for (step, change, curvature), part in zip(pairs, reversed(parts), strict=True):
        back = torch.where(curvature > 0, _dot(change, found) / curvature, 0.0)
        found += (part - back) * step
    return found
