"""A Transformer encoder-decoder made ready to write on a CPU, by the compiled step of ``kernels``.

Only the decoder and the head are: the encoder reads a sentence once, which torch does as well. The
weights are copied, so the model itself stays as it is; of one with 8-bit weights those are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from torch import Tensor

from nlpkit.kernels.decoder import DecoderWeights, Source, advance, best_ids
from nlpkit.kernels.matvec import GELU, GELU_TANH, NONE, RELU, RELU2, SILU, Stack, multiply
from nlpkit.models.gpt_cpu import as_array, norm_array
from nlpkit.models.seq2seq import Memory
from nlpkit.models.seq2seq_transformer import TransformerSeq2Seq
from nlpkit.nn.cache import KeyValueCache
from nlpkit.nn.quantized import Int8Linear

_ACTIVATIONS = {"relu": RELU, "relu2": RELU2, "gelu": GELU, "gelu_tanh": GELU_TANH, "silu": SILU}


class _Matrix(NamedTuple):
    """A linear layer as arrays."""

    weight: Tensor  # (out, in), float32 or int8
    scale: Tensor  # (out,)
    bias: Tensor  # (out,)


class CompiledDecoder:
    """From the next ids and a cache to what the head scores, and from that to scores."""

    def __init__(self, model: TransformerSeq2Seq) -> None:
        settings = model.settings
        numba.set_num_threads(min(torch.get_num_threads(), numba.get_num_threads()))
        self.threads = numba.get_num_threads()
        self.activation = _ACTIVATIONS[settings.activation]
        self.post = settings.norm == "post"
        blocks: list[Any] = list(model.decoder)
        size = settings.dim // settings.heads
        norms = [n for block in blocks for n in (block.norm_1, block.norm_cross, block.norm_2)]
        norms += [] if model.decoder_norm is None else [model.decoder_norm]
        gains = [
            torch.stack([block.attention.gains, block.cross.gains])
            for block in blocks
            if block.attention.gains is not None
        ]
        position = model.waves if model.target_position is None else model.target_position.weight
        factor = settings.dim**0.5 if settings.scale_embedding else 1.0
        self.weights = DecoderWeights(
            as_array(model.target_table.weight * factor),
            as_array(torch.empty(0, settings.dim) if position is None else position),
            as_array(model.rotary.rotations[:, 0])
            if model.rotary
            else np.empty((0, size // 2), np.complex64),
            np.stack([norm_array(norm, settings.dim) for norm in norms]),
            as_array(torch.stack(gains) if gains else torch.empty(0, 2, size)),
            _stack([[b.attention.qk, b.attention.v] for b in blocks]),
            _stack([[b.attention.output] for b in blocks]),
            _stack([[b.cross.qk] for b in blocks], rows=settings.dim),
            _stack([[b.cross.output] for b in blocks]),
            _stack([[b.up] for b in blocks]),
            _stack([[b.down] for b in blocks]),
        )
        head = model.int8_head
        if not isinstance(head, Int8Linear):
            head = torch.nn.Linear(1, 1, device="meta")
            head.weight = torch.nn.Parameter(model.head_weights().detach())
            bias = model.head_bias
            head.bias = torch.nn.Parameter(torch.zeros(len(head.weight)) if bias is None else bias)
        self._head = _stack([[head]])

    def step(self, ids: Tensor, cache: KeyValueCache, memory: Memory) -> Tensor:
        """What the head scores (R, C) after one more id of each hypothesis (R,)."""
        parts = memory.parts
        if "lengths" not in parts:
            parts["lengths"] = memory.inside.sum(dim=1)
        source = Source(*(parts[name].numpy() for name in ("keys", "values", "lengths")))
        found = advance(
            self.weights,
            cache.keys.numpy(),
            cache.values.numpy(),
            cache.length,
            source,
            ids.contiguous().numpy(),
            self.post,
            self.activation,
            self.threads,
        )
        return torch.from_numpy(found)

    def head(self, hidden: Tensor) -> Tensor:
        """Scores (..., V) of what the head is given (..., C)."""
        rows = hidden.reshape(-1, hidden.size(-1)).contiguous()
        out = torch.empty(len(rows), self._head.weight.shape[1])
        multiply(self._head, 0, rows.numpy(), out.numpy(), NONE, self.threads)
        return out.view(*hidden.shape[:-1], -1)

    @staticmethod
    def best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The highest scores (N, K, count) of (N, K, V) and their ids."""
        values, ids = best_ids(scores.flatten(0, 1).numpy(), count)
        shape = (*scores.shape[:2], count)
        return torch.from_numpy(values).view(shape), torch.from_numpy(ids).view(shape)


def _matrix(layer: Any) -> _Matrix:
    if isinstance(layer, Int8Linear):
        weight, bias = torch.ops.quantized.linear_unpack(layer.packed)
        numbers, scale = weight.int_repr(), weight.q_per_channel_scales().float()
    else:
        numbers, bias = layer.weight.detach(), layer.bias
        scale = torch.ones(len(numbers))
    return _Matrix(numbers, scale, torch.zeros(len(numbers)) if bias is None else bias.detach())


def _stack(layers: Sequence[Sequence[Any]], rows: int | None = None) -> Stack:
    """The matrices of all layers; each may be made of several, one above the other.

    ``rows`` are those that are wanted of each layer, if not all.
    """
    stacked = [[_matrix(part) for part in parts] for parts in layers]
    return Stack(
        *(
            as_array(torch.stack([torch.cat(kind)[:rows] for kind in kinds]))
            for kinds in zip(*([*zip(*parts, strict=True)] for parts in stacked), strict=True)
        )
    )
