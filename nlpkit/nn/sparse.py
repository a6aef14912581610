"""Adagrad for embedding tables: a step touches the rows its batch looked at and no others.

An optimizer that goes over a whole table in every step spends most of its time on words that are
not there. Adagrad needs no such pass: a row's step depends on the sum of its own squared gradients,
so a rare word takes large steps and a frequent one small steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from nlpkit.nn.optimizers import OptimizerWithoutDynamo


class SparseAdagrad(OptimizerWithoutDynamo):
    """Adagrad over tables with sparse gradients. Torch's own complains about tensors it makes.

    >>> table = torch.nn.Embedding(3, 1, sparse=True)
    >>> optimizer = SparseAdagrad(table.parameters(), lr=0.5)
    >>> before = table.weight.detach().clone()
    >>> table(torch.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> (before != table.weight).flatten().tolist()
    [False, True, False]
    """

    def __init__(
        self, tables: Iterable[Tensor], lr: float, penalties: Tensor | None = None
    ) -> None:
        """With ``penalties`` (rows,), half of each times the squares of its row is to stay low too,
        which counts whenever the row is looked at."""
        super().__init__(tables, {"lr": lr})
        self.penalties = penalties
        for group in self.param_groups:
            for table in group["params"]:
                self.state[table]["squares"] = torch.zeros_like(table)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                gradient = table.grad.coalesce()
                rows, values = gradient.indices()[0], gradient.values()
                if self.penalties is not None:
                    penalties = self.penalties.index_select(0, rows).unsqueeze(1)
                    values = values + penalties * table.index_select(0, rows)
                squares = self.state[table]["squares"]
                of_rows = squares.index_select(0, rows).addcmul_(values, values)
                squares.index_copy_(0, rows, of_rows)
                update = values / of_rows.sqrt_().add_(1e-10)
                table.index_add_(0, rows, update, alpha=-group["lr"])
