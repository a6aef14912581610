"""Linear layers that are quicker to use: in 8-bit integers, in bfloat16, or packed as they are.

Weights are rounded to 8 bits, with a scale for each row; what comes in is scaled by its largest
number and rounded as it comes (dynamic quantisation), all of a batch alike or each row by itself.
Packed weights are the same numbers in the order in which oneDNN reads them. The result can be used,
not trained or saved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from nlpkit.device import check_bfloat16
from nlpkit.nn.block import Block

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

    def forward(self, x: Tensor) -> Tensor:
        return _multiply(x, self.packed)


class Int8Rows(nn.Module):
    """The same with each input row rounded by its own largest number.

    What is made of a row does not depend on the others, which costs a third more time.

    >>> layer = Int8Rows(torch.randn(64, 64), torch.randn(64))
    >>> x = torch.rand(3, 64)
    >>> torch.equal(layer(x)[1:2], layer(x[1:2]))
    True
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.packed = _pack(weight.detach().float(), None)
        self.bias = torch.zeros(()) if bias is None else bias.detach().float()
        self.range = torch.zeros(1, weight.size(1))  # of all rows, once they are scaled
        self.range[0, :2] = torch.tensor([1.0, -1.0])

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.size(-1))
        largest = rows.abs().amax(dim=1, keepdim=True).clamp_min(1e-30)
        found = _multiply(torch.cat([rows / largest, self.range]), self.packed)[:-1]
        return torch.addcmul(self.bias, found, largest).view(*x.shape[:-1], -1)


class PackedLinear(nn.Module):
    """A linear layer in float32 whose weights lie as oneDNN reads them, a tenth faster.

    What comes ``then``, a GELU, is computed as the results are written, not in a pass of its own.

    >>> layer = nn.Linear(64, 64)
    >>> x = torch.rand(3, 64)
    >>> torch.allclose(PackedLinear(layer)(x), layer(x), atol=1e-5)
    True
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer, self.then = layer, "none"
        self.weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach())

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.contiguous(), self.weight, self.layer.bias, self.then, [], "none"
        )
        return found


def round_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """8-bit integers (out, in) and the scale of each row (out,).

    >>> round_rows(torch.tensor([[1.0, -0.5]]))[0]
    tensor([[127, -64]], dtype=torch.int8)
    """
    scale = weight.abs().amax(dim=1).clamp_min(1e-12) / 127
    return (weight / scale[:, None]).round().to(torch.int8), scale


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


def quantize_rows(model: nn.Module) -> None:
    """Change a model on the CPU in place, so that what is made of a row depends on it alone."""
    _replace(model, lambda layer: Int8Rows(layer.weight, layer.bias))


def round_weights(model: nn.Module) -> None:
    """Change weights to what 8 bits can hold, and keep them as float32: no faster by itself."""
    for module in model.modules():
        if isinstance(module, nn.Linear) and min(module.weight.shape) >= SMALLEST:
            weight, scale = round_rows(module.weight.detach())
            module.weight = nn.Parameter(weight * scale[:, None], requires_grad=False)


def pack(model: nn.Module) -> None:
    """Change a model in place, to be quicker and just as exact; nothing where that cannot be."""
    first = next(model.parameters())
    if torch.backends.mkldnn.is_available() and first.device.type == "cpu":
        _replace(model, PackedLinear)
        for block in model.modules():
            if isinstance(block, Block):
                _fuse_gelu(block, block.up)


def _fuse_gelu(block: Block, layer: nn.Module) -> None:
    if isinstance(layer, PackedLinear) and block.activation == "gelu":
        block.activation, layer.then = None, "gelu"


def _replace(model: nn.Module, kind: Callable[[nn.Linear], nn.Module]) -> None:
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if not isinstance(child, nn.Linear) or child.weight.dtype != torch.float32:
                continue
            if min(child.weight.shape) >= SMALLEST:
                setattr(parent, name, kind(child))
