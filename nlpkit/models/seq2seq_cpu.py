"""A Transformer encoder-decoder made ready to read and write on a CPU by compiled ``kernels``.

The weights are copied, so the model itself stays as it is; of a quantised one they are 8-bit
integers again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from torch import Tensor

from nlpkit.kernels.decoder import (
    DecoderWeights,
    Source,
    advance,
    best_ids,
    choose_rows,
    log_sums,
)
from nlpkit.kernels.encoder import EncoderWeights, read_sources
from nlpkit.kernels.matmul import Packed, multiply, pack
from nlpkit.kernels.matvec import GELU, GELU_TANH, NONE, RELU, RELU2, SILU, Stack
from nlpkit.kernels.search import Rules, Trail, search
from nlpkit.models.gpt_cpu import as_array, norm_array
from nlpkit.models.seq2seq import Memory
from nlpkit.models.seq2seq_transformer import TransformerSeq2Seq
from nlpkit.nn.cache import KeyValueCache
from nlpkit.nn.quantized import round_rows

_AT_ONCE = 96  # tokens that the encoder reads together: what it makes of them stays in a cache
_ACTIVATIONS = {"relu": RELU, "relu2": RELU2, "gelu": GELU, "gelu_tanh": GELU_TANH, "silu": SILU}


class _Matrix(NamedTuple):
    """A linear layer as arrays."""

    weight: Tensor  # (out, in), float32 or int8
    scale: Tensor  # (out,)
    bias: Tensor  # (out,)


class CompiledDecoder:
    """Sources to a memory; the next ids and a cache to what the head scores; that to scores."""

    def __init__(self, model: TransformerSeq2Seq) -> None:
        settings = model.settings
        numba.set_num_threads(min(torch.get_num_threads(), numba.get_num_threads()))
        self.threads = numba.get_num_threads()
        self.activation = _ACTIVATIONS[settings.activation]
        self.post = settings.norm == "post"
        self.heads, self.size = settings.heads, settings.dim // settings.heads
        self.rotations = (
            as_array(model.rotary.rotations[:, 0])
            if model.rotary
            else np.empty((0, self.size // 2), np.complex64)
        )
        self.int8 = model.int8_head is not None
        self.encoder = self._read_encoder(model)
        self.weights = self._read_decoder(model)
        self._head = _stack([[_matrix(model.head_weights(), model.head_bias, self.int8)]])

    def _read_decoder(self, model: TransformerSeq2Seq) -> DecoderWeights:
        blocks: list[Any] = list(model.decoder)
        dim = model.settings.dim
        norms = [n for block in blocks for n in (block.norm_1, block.norm_cross, block.norm_2)]
        gains = [
            torch.stack([block.attention.gains, block.cross.gains])
            for block in blocks
            if block.attention.gains is not None
        ]
        return DecoderWeights(
            *_tables(model, model.target_table, model.target_position),
            self.rotations,
            _norms(norms, model.decoder_norm, dim),
            as_array(torch.stack(gains) if gains else torch.empty(0, 2, self.size)),
            self._pack([[b.attention.qk, b.attention.v] for b in blocks]),
            self._pack([[b.attention.output] for b in blocks]),
            self._pack([[b.cross.qk] for b in blocks], slice(dim)),
            self._pack([[b.cross.output] for b in blocks]),
            self._pack([[b.up] for b in blocks]),
            self._pack([[b.down] for b in blocks]),
        )

    def _read_encoder(self, model: TransformerSeq2Seq) -> EncoderWeights:
        blocks: list[Any] = list(model.encoder)
        across: list[Any] = [block.cross for block in model.decoder]
        dim = model.settings.dim
        gains = [b.attention.gains for b in blocks if b.attention.gains is not None]
        memory_gains = [cross.gains for cross in across if cross.gains is not None]
        nothing = torch.empty(0, self.size)
        return EncoderWeights(
            *_tables(model, model.source_table, model.source_position),
            self.rotations,
            _norms([n for b in blocks for n in (b.norm_1, b.norm_2)], model.encoder_norm, dim),
            as_array(torch.stack(gains) if gains else nothing),
            self._pack([[b.attention.qk, b.attention.v] for b in blocks]),
            self._pack([[b.attention.output] for b in blocks]),
            self._pack([[b.up] for b in blocks]),
            self._pack([[b.down] for b in blocks]),
            self._pack([[cross.qk, cross.v] for cross in across], slice(dim, None)),
            as_array(torch.stack(memory_gains) if memory_gains else nothing),
        )

    def _pack(self, layers: Sequence[Sequence[Any]], rows: slice = slice(None)) -> Packed:
        """Linear layers as ``_stack`` has them."""
        matrices = [[_matrix(p.weight, p.bias, self.int8) for p in parts] for parts in layers]
        return _stack(matrices, rows)

    def read(self, source: Tensor, inside: Tensor) -> Memory:
        """What the decoder looks at: states, keys and values of sources (N, S)."""
        count, longest = source.shape
        lengths = inside.sum(dim=1)
        layers = len(self.encoder.memory.weight)
        states = torch.zeros(count, longest, self.heads * self.size)
        keys = torch.zeros(count, layers, self.heads, longest, self.size)
        values = torch.zeros_like(keys)
        ends = lengths.cumsum(0).numpy()
        first = 0
        while first < count:
            begin = 0 if first == 0 else int(ends[first - 1])
            last = max(first + 1, int(np.searchsorted(ends, begin + _AT_ONCE, "right")))
            rows = slice(first, last)
            starts = np.concatenate([[0], ends[rows] - begin])
            read_sources(
                self.encoder,
                source[rows][inside[rows]].numpy(),
                starts,
                states[rows].numpy(),
                keys[rows].numpy(),
                values[rows].numpy(),
                self.post,
                self.activation,
                self.threads,
            )
            first = last
        parts = {"states": states, "keys": keys, "values": values, "lengths": lengths}
        return Memory(inside, parts)

    def step(self, ids: Tensor, cache: KeyValueCache, memory: Memory) -> Tensor:
        """What the head scores (R, C) after one more id of each hypothesis (R,)."""
        found = advance(
            self.weights,
            cache.keys.numpy(),
            cache.values.numpy(),
            np.repeat(np.arange(len(ids))[:, None], cache.length + 1, axis=1),
            cache.length,
            self._source(memory),
            ids.contiguous().numpy(),
            self.post,
            self.activation,
            self.threads,
        )
        return torch.from_numpy(found)

    def search(self, memory: Memory, rules: Rules) -> Trail:
        """All steps of a beam search at once."""
        trail: Trail = search(
            self.weights,
            self._head,
            self._source(memory),
            rules,
            self.post,
            self.activation,
            self.threads,
        )
        return trail

    @staticmethod
    def _source(memory: Memory) -> Source:
        parts = memory.parts
        if "lengths" not in parts:  # it was read before the model was made ready
            parts["lengths"] = memory.inside.sum(dim=1)
        keys, values, lengths = (parts[name].numpy() for name in ("keys", "values", "lengths"))
        return Source(keys, values, lengths, np.arange(len(memory)))

    def head(self, hidden: Tensor) -> Tensor:
        """Scores (..., V) of what the head is given (..., C)."""
        rows = hidden.reshape(-1, hidden.size(-1)).contiguous()
        out = torch.empty(len(rows), self._head.bias.shape[1])
        multiply(self._head, 0, rows.numpy(), out.numpy(), NONE, self.threads)
        return out.view(*hidden.shape[:-1], -1)

    @staticmethod
    def select(cache: KeyValueCache, rows: Tensor) -> None:
        """Go on with these rows (R,) of a cache, some of them perhaps several times."""
        layers, _, *rest = cache.keys.shape
        for name in ("keys", "values"):
            old = getattr(cache, name)
            new = old.new_empty((layers, len(rows), *rest))
            choose_rows(old.numpy(), new.numpy(), rows.numpy(), cache.length)
            setattr(cache, name, new)

    @staticmethod
    def log_sum(scores: Tensor) -> Tensor:
        """The logarithm of the sum of exp(score) (N, K, 1), for scores (N, K, V)."""
        found = log_sums(scores.flatten(0, 1).numpy())
        return torch.from_numpy(found).view(*scores.shape[:2], 1)

    @staticmethod
    def best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The highest scores (N, K, count) of (N, K, V) and their ids."""
        values, ids = best_ids(scores.flatten(0, 1).numpy(), count)
        shape = (*scores.shape[:2], count)
        return torch.from_numpy(values).view(shape), torch.from_numpy(ids).view(shape)


def _tables(model: TransformerSeq2Seq, table: Any, learned: Any) -> tuple[Any, Any]:
    """Embeddings as the first layer is given them, and those of positions."""
    settings = model.settings
    position = model.waves if learned is None else learned.weight
    factor = settings.dim**0.5 if settings.scale_embedding else 1.0
    nothing = torch.empty(0, settings.dim)
    return as_array(table.weight * factor), as_array(nothing if position is None else position)


def _norms(norms: list[Any], last: Any, dim: int) -> Any:
    return np.stack([norm_array(norm, dim) for norm in [*norms, *([last] if last else [])]])


def _matrix(weight: Tensor, bias: Tensor | None, int8: bool) -> _Matrix:
    offset = torch.zeros(len(weight)) if bias is None else bias.detach()
    if int8:
        return _Matrix(*round_rows(weight.detach()), offset)
    return _Matrix(weight.detach(), torch.ones(len(weight)), offset)


def _stack(matrices: Sequence[Sequence[_Matrix]], rows: slice = slice(None)) -> Packed:
    """The matrices of all layers; each may be made of several, one above the other.

    ``rows`` are those that are wanted of each layer, if not all.
    """
    arrays = (
        as_array(torch.stack([torch.cat(kind)[rows] for kind in kinds]))
        for kinds in zip(*([*zip(*parts, strict=True)] for parts in matrices), strict=True)
    )
    return pack(Stack(*arrays))
