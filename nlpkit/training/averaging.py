"""The mean of the weights of the last part of a run (Izmailov et al., 2018; Vaswani et al., 2017).

Weights of late steps differ by noise that their mean has less of. The mean is kept in buffers
beside the model, so that checkpoints hold it and a resumed run goes on with it.
"""

from __future__ import annotations

import torch
from torch import nn


class Averaged(nn.Module):
    """A model and the running mean of its weights.

    >>> averaged = Averaged(nn.Linear(1, 1, bias=False))
    >>> for value in (1.0, 3.0):
    ...     _ = averaged.model.weight.data.fill_(value)
    ...     averaged.update()
    >>> averaged.adopt()
    >>> averaged.model.weight.item()
    2.0
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.count: torch.Tensor
        self.register_buffer("count", torch.zeros(()))
        self._names = [name for name, _ in model.named_parameters()]
        for place, (_, parameter) in enumerate(model.named_parameters()):
            self.register_buffer(f"mean{place}", torch.zeros_like(parameter.data))

    @torch.no_grad()
    def update(self) -> None:
        """Count the weights as they are now."""
        self.count += 1
        for place, parameter in enumerate(self.model.parameters()):
            mean = self.get_buffer(f"mean{place}")
            mean.lerp_(parameter.data, 1 / float(self.count))

    def means(self) -> list[torch.Tensor]:
        """The mean of each parameter so far; nothing if nothing was counted."""
        places = range(len(self._names) if float(self.count) else 0)
        return [self.get_buffer(f"mean{place}").clone() for place in places]

    @torch.no_grad()
    def adopt(self, means: list[torch.Tensor] | None = None) -> None:
        """Give the model the mean of what was counted, if anything was."""
        found = self.means() if means is None else means
        for parameter, mean in zip(self.model.parameters(), found, strict=False):
            parameter.copy_(mean)
