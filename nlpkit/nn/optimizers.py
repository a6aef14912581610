"""The two optimizers: AdamW with decay on matrices only, and Muon for hidden matrices.

Muon (Jordan et al., 2024) takes the momentum of a matrix and makes all its singular values about 1
before it steps: every direction the gradient names is followed equally, rare ones too. It is meant
for matrices inside a network; embeddings, heads and vectors stay with AdamW.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

FAST = 8.0  # times the rate: for numbers that are to move by whole units, not by hundredths
Stacks = Sequence[tuple[Tensor, int]]  # a matrix, and how many matrices it stacks


class OptimizerWithoutDynamo(torch.optim.Optimizer):
    """An optimizer that leaves torch's compiler alone, which takes two seconds to load.

    Torch wraps these methods so that they stay out of compiled code, and loads the compiler to do
    so. Here models are compiled and optimizers are not, so the methods are taken as they are.
    """

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


class AdamW(OptimizerWithoutDynamo, torch.optim.AdamW):
    """Torch's own."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


def adamw(
    parameters: Iterable[nn.Parameter],
    *,
    lr: float,
    weight_decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.99),
    fast: Sequence[nn.Parameter] = (),
) -> AdamW:
    """AdamW whose decay spares biases, gains and other vectors; ``fast`` ones learn ``FAST`` times
    as fast and are not pulled towards zero either.

    >>> optimizer = adamw(nn.Linear(2, 3).parameters(), lr=1e-3)
    >>> [(len(group["params"]), group["weight_decay"]) for group in optimizer.param_groups]
    [(1, 0.01), (1, 0.0)]
    """
    apart = {id(parameter) for parameter in fast}
    trained = [p for p in parameters if p.requires_grad and id(p) not in apart]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trained if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
        {"params": list(fast), "weight_decay": 0.0, "lr": FAST * lr},
    ]
    groups = [group for group in groups if group["params"]]
    return AdamW(groups, lr=lr, betas=betas, eps=1e-10, fused=True)


# a x + b x^3 + c x^5 for singular values x, the best for each step (Amsel et al., 2025, "The Polar
# Express"). Three steps leave most values between 0.5 and 2: more cost more time than they earn.
_POLYNOMIALS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
)


def orthogonalize(matrices: Tensor) -> Tensor:
    """The same matrices with singular values of about 1, by polynomials of them.

    >>> matrix = torch.randn(1, 64, 16, generator=torch.Generator().manual_seed(1))
    >>> values = torch.linalg.svdvals(orthogonalize(matrix))
    >>> bool(((values > 0.1) & (values < 2)).all())
    True
    """
    tall = matrices.size(-2) > matrices.size(-1)
    x = matrices.mT if tall else matrices  # (n, r, c) with r <= c
    x = x / (1.01 * x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for a, b, c in _POLYNOMIALS:
        gram = x @ x.mT  # (n, r, r)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Muon(OptimizerWithoutDynamo):
    """Nesterov momentum, orthogonalised; matrices of one shape are worked on together.

    A fused matrix (q, k and v in one) is given with its number of pieces and taken apart, for the
    singular values of a stack are not those of its parts. A parameter (n, from, to) holds n
    matrices that rows are multiplied by.
    """

    MOMENTUM = (0.85, 0.95)  # from, to
    MOMENTUM_STEPS = 300

    def __init__(self, matrices: Stacks, *, lr: float = 0.02, weight_decay: float = 0.0) -> None:
        by_shape: dict[tuple[int, ...], list[tuple[Tensor, int]]] = {}
        for parameter, pieces in matrices:
            shape = tuple(_apart(parameter, pieces).shape[1:])
            by_shape.setdefault(shape, []).append((parameter, pieces))
        groups: list[dict[str, Any]] = [
            {"params": [parameter for parameter, _ in members], "pieces": [n for _, n in members]}
            for members in by_shape.values()
        ]
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update from the gradients at hand."""
        for group in self.param_groups:
            parameters, pieces = group["params"], group["pieces"]
            state = self.state[parameters[0]]
            gradients = torch.cat(
                [_apart(parameter.grad, n) for parameter, n in zip(parameters, pieces, strict=True)]
            )  # (n, r, c)
            if not state:
                state["step"] = torch.zeros(())
                state["momentum"] = torch.zeros_like(gradients)
            first, last = self.MOMENTUM
            momentum = first + (last - first) * min(1.0, float(state["step"]) / self.MOMENTUM_STEPS)
            state["step"] += 1
            state["momentum"].lerp_(gradients, 1 - momentum)
            updates = orthogonalize(gradients.lerp(state["momentum"], momentum))
            # a tall matrix gets longer steps, so that its outputs change as much as a square one's
            stretch = max(1.0, gradients.size(-2) / gradients.size(-1)) ** 0.5
            changes = updates.split(pieces)
            for parameter, change in zip(parameters, changes, strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                _apart(parameter, len(change)).add_(change, alpha=-group["lr"] * stretch)


def _apart(stacked: Tensor, pieces: int) -> Tensor:
    """The matrices of a stack, (pieces, to, from), without a copy of them."""
    return stacked.mT if stacked.dim() == 3 else stacked.unflatten(0, (pieces, -1))
