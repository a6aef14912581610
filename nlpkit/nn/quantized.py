"""Linear layers that are quicker to use: in 8-bit integers, in bfloat16, or packed as they are.

Weights are rounded to 8 bits, with a scale for each row; what comes in is scaled by its largest
number and rounded as it comes (dynamic quantisation). Packed weights are the same numbers in the
order in which oneDNN reads them. The result can be used, not trained or saved.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import torch
from torch import Tensor, nn

from nlpkit.device import check_bfloat16
from nlpkit.nn.layers import Linear

Quantize = Literal["int8", "bfloat16"]
SMALLEST = 32  # a narrower layer is no faster in integers


class Int8Linear(nn.Module):
    """A linear layer whose weights are 8-bit integers.

    >>> layer = nn.Linear(64, 64)
    >>> x = torch.rand(3, 64)
    >>> bool((Int8Linear(layer)(x) - layer(x)).abs().max() < 0.05)
    True
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        weight = layer.weight.detach().float()
        bias = None if layer.bias is None else layer.bias.detach().float()
        self.packed = _pack(weight, bias)
        biases = (None, None) if bias is None else bias.chunk(2)
        self.halves: list[Any] = []
        if isinstance(layer, Linear) and len(weight) % 2 == 0:
            self.halves = [_pack(w, b) for w, b in zip(weight.chunk(2), biases, strict=True)]

    def forward(self, x: Tensor) -> Tensor:
        return _multiply(x, self.packed)

    def use_half(self, x: Tensor, number: int) -> Tensor:
        """What the upper or the lower half of the matrix makes of x."""
        return _multiply(x, self.halves[number])


class PackedLinear(nn.Module):
    """A linear layer in float32 whose weights lie as oneDNN reads them, a tenth faster.

    >>> layer = nn.Linear(64, 64)
    >>> x = torch.rand(3, 64)
    >>> torch.allclose(PackedLinear(layer)(x), layer(x), atol=1e-5)
    True
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer
        self.weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach())

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.contiguous(), self.weight, self.layer.bias, "none", [], ""
        )
        return found

    def use_half(self, x: Tensor, number: int) -> Tensor:
        """What the upper or the lower half of the matrix makes of x."""
        assert isinstance(self.layer, Linear)
        return self.layer.use_half(x, number)


def _pack(weight: Tensor, bias: Tensor | None) -> Any:
    scales = (weight.abs().amax(dim=1) / 127).clamp_min(1e-12).double()
    with warnings.catch_warnings():  # torch means to move this elsewhere
        warnings.simplefilter("ignore")
        zeros = torch.zeros(len(weight), dtype=torch.long)
        rounded = torch.quantize_per_channel(weight.contiguous(), scales, zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(rounded, bias)


def _multiply(x: Tensor, packed: Any) -> Tensor:
    found: Tensor = torch.ops.quantized.linear_dynamic(x.contiguous(), packed, True)
    return found


def quantize(model: nn.Module, kind: Quantize) -> None:
    """Change a model on the CPU in place; bfloat16 is refused where the processor lacks it."""
    if kind == "bfloat16":
        check_bfloat16()
        model.bfloat16()
        return
    _replace(model, Int8Linear)


def pack(model: nn.Module) -> None:
    """Change a model in place, to be quicker and just as exact; nothing where that cannot be."""
    first = next(model.parameters())
    if torch.backends.mkldnn.is_available() and first.device.type == "cpu":
        _replace(model, PackedLinear)


def _replace(model: nn.Module, kind: type[Int8Linear] | type[PackedLinear]) -> None:
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if not isinstance(child, nn.Linear) or child.weight.dtype != torch.float32:
                continue
            if min(child.weight.shape) >= SMALLEST:
                setattr(parent, name, kind(child))
