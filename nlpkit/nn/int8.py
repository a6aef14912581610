"""Linear layers with 8-bit weights, for models that are used on a CPU.

Each row of a matrix is kept as whole numbers from -127 to 127 and a scale; what goes in is brought
to 8 bits by its own range at each call, and the products are added up as whole numbers. A matrix is
then a quarter to read, and processors add several of these products at once.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from nlpkit.errors import NlpkitError
from nlpkit.nn.layers import Linear


class Int8Linear(nn.Module):
    """A linear layer that can be used, not trained.

    >>> layer = Linear(2, 2, bias=False)
    >>> _ = layer.weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    >>> Int8Linear(layer.weight, None)(torch.tensor([[3.0, 1.0]])).round()
    tensor([[3., 2.]])
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self._pack = _pack(weight.detach(), bias)
        halves = weight.detach().chunk(2)
        biases = (None, None) if bias is None else bias.detach().chunk(2)
        self._halves = [_pack(w, b) for w, b in zip(halves, biases, strict=True)]

    def forward(self, x: Tensor) -> Tensor:
        return _multiply(x, self._pack)

    def use_half(self, x: Tensor, number: int) -> Tensor:
        """What the upper or the lower half of the matrix makes of x."""
        return _multiply(x, self._halves[number])


def _pack(weight: Tensor, bias: Tensor | None) -> Any:
    scales = weight.abs().amax(dim=1).clamp_min(1e-12).double() / 127
    zeros = torch.zeros(len(weight), dtype=torch.long)
    bias = None if bias is None else bias.detach().float()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a removal, which is answered below
            whole = torch.quantize_per_channel(
                weight.float().contiguous(), scales, zeros, 0, torch.qint8
            )
            return torch.ops.quantized.linear_prepack(whole, bias)
    except (AttributeError, RuntimeError, NotImplementedError):
        raise NlpkitError(
            "this build of torch has no 8-bit linear layers", hint="without `quantize`"
        ) from None


def _multiply(x: Tensor, pack: Any) -> Tensor:
    found: Tensor = torch.ops.quantized.linear_dynamic(x.contiguous(), pack, reduce_range=True)
    return found


def quantize_linears(module: nn.Module) -> None:
    """Put an ``Int8Linear`` in the place of every linear layer."""
    for name, child in module.named_children():
        if isinstance(child, Linear):
            setattr(module, name, Int8Linear(child.weight, child.bias))
        else:
            quantize_linears(child)
