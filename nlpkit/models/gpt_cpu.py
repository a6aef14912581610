"""A GPT made ready to generate on a CPU: its weights stacked for the compiled step of ``kernels``.

The matrices of the model become views of the stacks, so memory holds them once. With 8-bit weights
the model can be used, not trained or saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nlpkit.kernels.matvec import (
    GELU,
    GELU_TANH,
    NONE,
    RELU2,
    Stack,
    largest_input,
    multiply,
)
from nlpkit.kernels.transformer import Weights, Where, step
from nlpkit.models.gpt import GPT
from nlpkit.nn.cache import KeyValueCache
from nlpkit.nn.quantized import round_rows

Floats = NDArray[np.float32]
_FEW_ROWS = 16  # beyond them a product is better left to torch
_LARGE_HEAD = 1 << 22  # weights of a head from which on a look at 8-bit ones first is quicker
_LARGE_BLOCKS = 1 << 24  # weights of blocks from which on drafts by 8-bit ones are worth while
_DEQUANTIZED_ROWS = 4096  # of an 8-bit matrix, turned into float32 at a time
_ACTIVATIONS = {"relu2": RELU2, "gelu": GELU, "gelu_tanh": GELU_TANH}


class QuantizedLinear(nn.Module):
    """A linear layer whose weights are one of a stack of 8-bit matrices (rows of it)."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        self.stack = stack  # of one matrix

    def forward(self, x: Tensor) -> Tensor:
        rows = x.detach().reshape(-1, x.size(-1)).contiguous()  # (N, in)
        weight, scale, bias = (torch.from_numpy(part[0]) for part in self.stack)
        if len(rows) <= _FEW_ROWS:
            out = torch.empty(len(rows), len(weight))
            threads = torch.get_num_threads()
            multiply(self.stack, 0, rows.numpy(), out.numpy(), NONE, threads)
        else:
            parts = [F.linear(rows, part.float()) for part in weight.split(_DEQUANTIZED_ROWS)]
            out = torch.cat(parts, dim=1) * scale + bias
        return out.view(*x.shape[:-1], -1)


class CompiledStep:
    """From the next ids and a cache to logits, for up to so many rows.

    If only the ``likeliest`` ids of a cache matter, the others get rough logits: the head of a
    large vocabulary, a third of a small GPT-2, is then read in 8-bit numbers first, and as it is
    only where that leaves a doubt. A large model has a ``draft`` too, itself with 8-bit weights.
    """

    most_rows = _FEW_ROWS
    draft: Weights | None = None

    def __init__(self, model: GPT, *, int8: bool) -> None:
        settings = model.settings
        numba.set_num_threads(min(torch.get_num_threads(), numba.get_num_threads()))
        self.threads = numba.get_num_threads()
        self.activation = _ACTIVATIONS[settings.activation]
        self.embedding_norm = settings.embedding_norm
        blocks: list[Any] = list(model.blocks)
        size = settings.dim // settings.heads
        tables = [table.detach().numpy() for table in model.previous.parameters()]
        gains = [block.attention.gains for block in blocks if block.attention.gains is not None]
        norms = [norm for block in blocks for norm in (block.norm_1, block.norm_2)]
        kinds: list[list[Sequence[tuple[nn.Module, str]]]] = [
            [[(block.attention, "qk"), (block.attention, "v")] for block in blocks],
            [[(block.attention, "output")] for block in blocks],
            [[(block, "up")] for block in blocks],
            [[(block, "down")] for block in blocks],
            [[(model, "head")]],
        ]
        large = model.head.weight.numel() >= _LARGE_HEAD and not int8
        screen, doubt = _screen(model.head.weight.detach()[: None if large else 0])
        qkv, output, up, down, head = (_stack(layers, int8=int8) for layers in kinds)
        self.weights = Weights(
            as_array(model.embedding.weight),
            np.stack(tables) if tables else np.empty((0, 1, settings.dim), np.float32),
            as_array(model.position.weight if model.position else torch.empty(0, settings.dim)),
            as_array(model.rotary.rotations[:, 0])
            if model.rotary
            else np.empty((0, size // 2), np.complex64),
            np.stack([norm_array(norm, settings.dim) for norm in [*norms, model.norm]]),
            as_array(torch.stack(gains) if gains else torch.empty(0, size)),
            qkv,
            output,
            up,
            down,
            head,
            screen,
            doubt,
        )

        blocks_size = sum(stack.weight.size for stack in (qkv, output, up, down))
        if blocks_size >= _LARGE_BLOCKS and not int8:
            nothing = Stack(*(part[:, :0] for part in screen))
            self.draft = self.weights._replace(
                qkv=_in_8_bits(qkv),
                output=_in_8_bits(output),
                up=_in_8_bits(up),
                down=_in_8_bits(down),
                head=screen if screen.weight.size else _in_8_bits(head),
                screen=nothing,
            )

    def __call__(self, ids: Tensor, cache: KeyValueCache) -> Tensor:
        """Logits (B, V) after one more id of each row (B,)."""
        before = np.zeros((len(ids), 1), np.int64)
        if cache.last_ids is not None:
            before = cache.last_ids.contiguous().numpy()
            cache.last_ids = torch.cat([cache.last_ids[:, 1:], ids[:, None]], dim=1)
        places = np.full(len(ids), cache.length)
        return self._run(self.weights, ids, before, np.arange(len(ids)), places, cache)

    def follow(
        self, ids: Tensor, cache: KeyValueCache, since: int = 0, *, draft: bool = False
    ) -> Tensor:
        """Logits (N - since, V) after ids that follow each other in the one row of a cache, (N,).

        Those before ``since`` have been read. The cache holds them all then, but does not count
        them: ``keep`` does.
        """
        weights = self.draft if draft else self.weights
        assert weights is not None
        places = np.arange(cache.length + since, cache.length + len(ids))
        before = np.zeros((len(places), 1), np.int64)
        if cache.last_ids is not None:
            joined = torch.cat([cache.last_ids[0], ids])
            windows = joined.unfold(0, cache.last_ids.size(1), 1)  # those before each id, and after
            before = windows[since : len(ids)].contiguous().numpy()
        rows = np.zeros(len(places), np.int64)
        return self._run(weights, ids[since:], before, rows, places, cache)

    def _run(
        self,
        weights: Weights,
        ids: Tensor,
        before: NDArray[np.int64],
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
        cache: KeyValueCache,
    ) -> Tensor:
        pads = np.zeros(cache.keys.size(1), np.int64) if cache.pads is None else cache.pads.numpy()
        logits = step(
            weights,
            cache.keys.numpy(),
            cache.values.numpy(),
            ids.contiguous().numpy(),
            before,
            Where(rows, places, pads),
            self.embedding_norm,
            self.activation,
            cache.likeliest,
            self.threads,
        )
        return torch.from_numpy(logits)


def compile_step(model: GPT, *, int8: bool = False) -> None:
    """Let a model on a CPU, which will only be used, generate by the compiled step."""
    model.step = CompiledStep(model, int8=int8)
    with torch.inference_mode():  # the first call loads the compiled code, or compiles it
        cache = model.new_cache(1)
        model.step(torch.zeros(1, dtype=torch.long), cache)


def _screen(head: Tensor) -> tuple[Stack, Floats]:
    """The head in 8-bit numbers, and by how much its products with a vector of length 1 can be off.

    The product of two vectors is at most that of their lengths: the length of what rounding took
    from a row bounds the error. The rounding of the inputs and of the sums adds the rest.
    """
    weight, scale = round_rows(head)
    size = head.size(1)
    inputs = size**0.5 / 2 / largest_input(size) + size * 2.0**-23
    doubt = (head - weight * scale[:, None]).norm(dim=1) + inputs * head.norm(dim=1)
    biases = torch.zeros(len(head))
    return Stack(*(as_array(part)[None] for part in (weight, scale, biases))), as_array(doubt)


def _in_8_bits(stack: Stack) -> Stack:
    """The same matrices with 8-bit weights."""
    weights = np.empty(stack.weight.shape, np.int8)
    scales = np.empty(stack.scale.shape, np.float32)
    for layer, matrix in enumerate(stack.weight):
        weight, scale = round_rows(torch.from_numpy(matrix))
        weights[layer], scales[layer] = weight.numpy(), scale.numpy()
    return Stack(weights, scales, stack.bias)


def as_array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().contiguous().numpy()
    return array


def norm_array(norm: Any, dim: int) -> Floats:
    """Gains and biases (2, C), those of a norm without any too."""
    gains = torch.ones(dim) if norm.weight is None else norm.weight
    biases = torch.zeros(dim) if norm.bias is None else norm.bias
    return as_array(torch.stack([gains, biases]))


def _stack(layers: list[Sequence[tuple[nn.Module, str]]], *, int8: bool) -> Stack:
    """One array of the matrices of all layers; each may be made of several, one above the other."""
    first = [getattr(owner, name) for owner, name in layers[0]]
    shape = (len(layers), sum(part.out_features for part in first), first[0].in_features)
    alone = len(layers) == len(first) == 1 and not int8
    stack = Stack(
        as_array(first[0].weight)[None]
        if alone
        else np.empty(shape, np.int8 if int8 else np.float32),
        np.ones(shape[:2], np.float32),
        np.zeros(shape[:2], np.float32),
    )
    for number, parts in enumerate(layers):
        end = 0
        for owner, name in parts:
            layer = getattr(owner, name)
            begin, end = end, end + layer.out_features
            piece = Stack(*(array[number : number + 1, begin:end] for array in stack))
            if layer.bias is not None:
                piece.bias[0] = layer.bias.detach().numpy()
            if int8:
                weight, scale = round_rows(layer.weight.detach())
                piece.weight[0], piece.scale[0] = weight.numpy(), scale.numpy()
                setattr(owner, name, QuantizedLinear(piece))
            elif not alone:
                piece.weight[0] = layer.weight.detach().numpy()
                layer.weight = nn.Parameter(torch.from_numpy(piece.weight[0]), requires_grad=False)
    return stack
