"""Matrix times vector on a CPU, for generating one token at a time with a large model.

Reading the weights is all the work there is, so the kernels read each once, at the full speed of
memory, in float32 or as 8-bit integers with a scale for each row. Many tokens at a time (a prompt)
are a matrix product, which torch does well.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.lm.base import LanguageModel

_FEW_ROWS = 4
_DEQUANTIZED_ROWS = 4096  # of an 8-bit matrix, turned into float32 at a time


@numba.njit(parallel=True, fastmath=True, cache=True)
def _multiply(weight: Any, x: Any, out: Any) -> None:
    """out[b, o] = sum of weight[o, i] x[b, i]."""
    for o in numba.prange(weight.shape[0]):
        for b in range(x.shape[0]):
            total = np.float32(0)
            for i in range(weight.shape[1]):
                total += np.float32(weight[o, i]) * x[b, i]
            out[b, o] = total


class FastLinear(nn.Module):
    """A linear layer for inference on a CPU, in float32 or with 8-bit weights.

    >>> layer = nn.Linear(8, 4)
    >>> x = torch.ones(1, 1, 8)
    >>> bool((FastLinear(layer, int8=False)(x) - layer(x)).abs().max() < 1e-5)
    True
    """

    def __init__(self, layer: nn.Linear, *, int8: bool) -> None:
        super().__init__()
        weight = layer.weight.detach()
        self.bias = None if layer.bias is None else layer.bias.detach()
        self.scale: Tensor | None = None
        if int8:
            scale = weight.abs().amax(dim=1).clamp_min(1e-12) / 127  # (out,)
            weight = (weight / scale[:, None]).round().to(torch.int8)
            self.scale = scale
        self.weight = weight.contiguous()

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.size(-1))  # (N, in)
        out = self._few(rows) if len(rows) <= _FEW_ROWS else self._many(rows)
        if self.scale is not None:
            out = out * self.scale
        if self.bias is not None:
            out = out + self.bias
        return out.view(*x.shape[:-1], -1)

    def _few(self, rows: Tensor) -> Tensor:
        out = torch.empty(len(rows), len(self.weight))
        _multiply(self.weight.numpy(), rows.contiguous().numpy(), out.numpy())
        return out

    def _many(self, rows: Tensor) -> Tensor:
        if self.scale is None:
            return F.linear(rows, self.weight)
        parts = self.weight.split(_DEQUANTIZED_ROWS)
        return torch.cat([F.linear(rows, part.float()) for part in parts], dim=1)


def use_fast_layers(model: LanguageModel, *, int8: bool) -> None:
    """Replace the linear layers of a model that will only be used, not trained.

    A head that is tied to the embedding gets weights of its own if they are of 8 bits.
    """
    numba.set_num_threads(min(torch.get_num_threads(), numba.get_num_threads()))
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, FastLinear(child, int8=int8))
