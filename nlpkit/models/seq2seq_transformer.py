"""The Transformer (Vaswani et al., 2017): attention within the source, within the target so far,
and from the target to the source, in the blocks that all transformers here are made of.

By default with pre-norm, rotary positions and normalised queries and keys, which learn faster;
post-norm and sinusoidal positions are the first paper's, and Marian's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nlpkit.errors import NlpkitError
from nlpkit.models.seq2seq import DecoderState, EncoderDecoder, Memory
from nlpkit.models.seq2seq_settings import Seq2SeqArchitecture
from nlpkit.nn.attention import padding_mask
from nlpkit.nn.block import Block, BlockSettings
from nlpkit.nn.cache import KeyValueCache
from nlpkit.nn.layers import Embedding, Norm
from nlpkit.nn.optimizers import Stacks
from nlpkit.nn.positions import Rotary, sinusoidal


class TransformerState(DecoderState):
    """Keys and values of what was written, and those of the memory for each layer."""

    def __init__(self, cache: KeyValueCache, compiled: Any = None) -> None:
        self.cache, self.compiled = cache, compiled

    def select(self, rows: Tensor) -> None:
        if self.compiled is not None:
            self.compiled.select(self.cache, rows)
        else:
            self.cache.select(rows)


class TransformerSeq2Seq(EncoderDecoder):
    """The whole model."""

    waves: Tensor | None  # (T, C), of sinusoidal positions

    def __init__(self, settings: Seq2SeqArchitecture) -> None:
        super().__init__(settings)
        common: dict[str, Any] = {
            "dim": settings.dim,
            "heads": settings.heads,
            "hidden": settings.wide,
            "norm": settings.norm,
            "norm_gains": settings.norm_gains,
            "bias": settings.bias,
            "activation": settings.activation,
            "qk_norm": settings.qk_norm,
            "dropout": settings.dropout,
        }
        self.encoder = nn.ModuleList(
            Block(BlockSettings(**common), layer) for layer in range(settings.layers)
        )
        self.decoder = nn.ModuleList(
            Block(BlockSettings(**common, causal=True, cross=True), layer)
            for layer in range(settings.depth)
        )
        pre = settings.norm == "pre"
        self.encoder_norm, self.decoder_norm = (
            Norm(settings.dim, gains=settings.norm_gains, bias=settings.bias) if pre else None
            for _ in range(2)
        )
        size = settings.dim // settings.heads
        length = settings.max_length
        rotary = settings.positions == "rotary"
        self.rotary = Rotary(settings.heads, size, length) if rotary else None
        learned = settings.positions == "learned"
        self.source_position = Embedding(length, settings.dim) if learned else None
        self.target_position = Embedding(length, settings.dim) if learned else None
        waves = None
        if settings.positions == "sinusoidal":
            with torch.device("cpu"):
                waves = sinusoidal(length, settings.dim)  # (T, C)
            if settings.halves:
                waves = torch.cat([waves[:, 0::2], waves[:, 1::2]], dim=1)
        self.register_buffer("waves", waves, persistent=False)

    def initialize(self, generator: torch.Generator) -> None:
        """Post-norm needs what is added to the residual stream at once; pre-norm starts at zero."""
        super().initialize(generator)
        residual = 0.0
        if self.settings.norm == "post":
            residual = self.settings.dim**-0.5
        part: Any
        for part in (*self.encoder, *self.decoder):
            part.initialize(generator, None, residual)
        for part in (self.encoder_norm, self.decoder_norm):
            if part is not None:
                part.initialize()
        for part in (self.source_position, self.target_position):
            if part is not None:
                part.initialize(generator, self.settings.dim**-0.5)

    def matrices(self) -> Stacks:
        """The matrices of the blocks."""
        blocks: Any = [*self.encoder, *self.decoder]
        return [stack for block in blocks for stack in block.matrices()]

    def quantize(self) -> None:
        """Only compiled functions are faster with such weights; torch has the same ones in float32,
        so that what is written does not depend on which of them is used."""
        from nlpkit.nn.quantized import round_rows, round_weights

        round_weights(self)
        weight, scale = round_rows(self.head_weights())
        rounded, bias = weight * scale[:, None], self.head_bias
        self.int8_head = lambda hidden: nn.functional.linear(hidden, rounded, bias)

    def embed(
        self, ids: Tensor, table: Embedding, positions: Embedding | None, first: int = 0
    ) -> Tensor:
        """The residual stream that enters the first block (B, T, C), from position ``first`` on."""
        end = first + ids.size(1)
        if end > self.settings.max_length:
            raise NlpkitError(f"{end} tokens are more than the model's {self.settings.max_length}")
        x: Tensor = table(ids)
        if self.settings.scale_embedding:
            x = x * self.settings.dim**0.5
        if positions is not None:
            x = x + positions(torch.arange(first, end, device=ids.device))
        if self.waves is not None:
            x = x + self.waves[first:end]
        dropped: Tensor = self.dropout(x)
        return dropped

    def encode(self, source: Tensor, inside: Tensor) -> Memory:
        if self.compiled is not None and source.size(1) <= self.settings.max_length:
            read: Memory = self.compiled.read(source, inside)
            return read
        x = self.embed(source, self.source_table, self.source_position)
        mask = None if bool(inside.all()) else padding_mask(inside, like=x)
        for block in self.encoder:
            x = block(x, self.rotary, mask)
        if self.encoder_norm is not None:
            x = self.encoder_norm(x)
        return Memory(inside, {"states": x})

    def hidden(self, target: Tensor, memory: Memory) -> Tensor:
        x = self._read(target, memory, len(self.decoder))
        return x if self.decoder_norm is None else self.decoder_norm(x)

    def _read(self, target: Tensor, memory: Memory, blocks: int) -> Tensor:
        """The residual stream (B, T, C) behind so many blocks of the decoder."""
        x = self.embed(target, self.target_table, self.target_position)
        mask = _memory_mask(memory, x)
        for block in self.decoder[:blocks]:
            x = block(x, self.rotary, memory=memory.parts["states"], memory_mask=mask)
        return x

    def alignment(self, target: Tensor, memory: Memory) -> Tensor:
        last: Any = self.decoder[-1]
        x = self._read(target, memory, len(self.decoder) - 1)
        states = memory.parts["states"]
        return last.cross_weights(x, self.rotary, states, _memory_mask(memory, x)).mean(dim=1)

    def start(self, memory: Memory, beams: int, longest: int) -> TransformerState:
        """Keys and values of the source are made here, once for all beams and steps."""
        blocks: Any = self.decoder
        if "keys" not in memory.parts:
            pairs = [block.cross.read_memory(memory.parts["states"]) for block in blocks]
            keys, values = zip(*pairs, strict=True)  # (N, H, S, D) each
            memory.parts |= {"keys": torch.stack(keys, 1), "values": torch.stack(values, 1)}
        settings = self.settings
        size = settings.dim // settings.heads
        room = min(longest, settings.max_length)
        shape = (settings.depth, len(memory) * beams, settings.heads, room, size)
        cache = KeyValueCache(shape, like=memory.parts["states"])
        return TransformerState(cache, self.compiled)

    def step(
        self, ids: Tensor, state: TransformerState, memory: Memory, look: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        cache = state.cache
        if self.compiled is not None and not look:
            found = self.compiled.step(ids.flatten(), cache, memory)  # (N K, C)
            cache.length += 1
            return found.view(*ids.shape, -1), None
        x = self.embed(
            ids.reshape(-1, 1), self.target_table, self.target_position, cache.length
        )  # (N K, 1, C)
        mask = _memory_mask(memory, x)
        weights = None
        blocks: Any = self.decoder
        for layer, block in enumerate(blocks):
            pair = memory.parts["keys"][:, layer], memory.parts["values"][:, layer]
            if look and layer == len(blocks) - 1:
                found = block.cross_weights(x, self.rotary, pair, mask, cache)  # (N, H, K, S)
                weights = found.mean(dim=1)
            x = block(x, self.rotary, cache=cache, memory=pair, memory_mask=mask)
        cache.length += 1
        if self.decoder_norm is not None:
            x = self.decoder_norm(x)
        return x.view(*ids.shape, -1), weights


def _memory_mask(memory: Memory, like: Tensor) -> Tensor | None:
    if "mask" not in memory.parts:
        memory.parts["mask"] = padding_mask(memory.inside, like=like)  # (N, 1, 1, S)
    return memory.parts["mask"]
