"""A decoder-only transformer (GPT), in today's recipe and in GPT-2's.

The embeddings of tokens are the residual stream x (B, T, C) that ``nn.block`` adds to, layer by
layer. Attention lets a position look at itself and those before it in its text.
With a cache the keys and values of earlier positions are kept, and only new ones are computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from nlpkit.errors import NlpkitError
from nlpkit.models.base import LanguageModel, cross_entropy, text_begins
from nlpkit.models.settings import ModelSettings
from nlpkit.nn.attention import causal_mask
from nlpkit.nn.block import Block, BlockSettings
from nlpkit.nn.cache import KeyValueCache
from nlpkit.nn.layers import Embedding, Linear, Norm, normalize
from nlpkit.nn.optimizers import Stacks
from nlpkit.nn.positions import Rotary

if TYPE_CHECKING:
    from nlpkit.models.gpt_cpu import CompiledStep

_STD = 0.02  # of initial weights


class GPT(LanguageModel):
    """The whole model.

    >>> model = GPT(ModelSettings(vocab_size=10, dim=16, layers=1))
    >>> model.initialize(torch.Generator().manual_seed(1))
    >>> logits, loss = model(torch.tensor([[1, 2, 3]]), torch.tensor([[2, 3, 4]]))
    >>> logits.shape, round(loss.item(), 3)  # the head starts at zero: all ids are equally likely
    (torch.Size([1, 3, 10]), 2.303)
    """

    packed = True

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        self.embedding = Embedding(settings.vocab_size, settings.dim)
        self.previous = nn.ModuleList(
            Embedding(settings.vocab_size, settings.dim) for _ in range(settings.previous)
        )
        learned = settings.positions == "learned"
        self.position = Embedding(settings.block_size, settings.dim) if learned else None
        self.rotary = (
            None
            if learned
            else Rotary(settings.heads, settings.dim // settings.heads, settings.block_size)
        )
        block = BlockSettings(
            dim=settings.dim,
            heads=settings.heads,
            hidden=4 * settings.dim,
            causal=True,
            activation=settings.activation,
            norm_gains=settings.norm_gains,
            bias=settings.bias,
            qk_norm=settings.qk_norm,
            dropout=settings.dropout,
            attention_dropout=settings.dropout,
        )
        self.blocks = nn.ModuleList(Block(block, layer) for layer in range(settings.layers))
        self.dropout = nn.Dropout(settings.dropout)
        self.norm = Norm(settings.dim, gains=settings.norm_gains, bias=settings.bias)
        self.head = Linear(settings.dim, settings.vocab_size, bias=False)
        if settings.tied:
            self.head.weight = self.embedding.weight
        self.step: CompiledStep | None = None  # how to generate, if not by the modules

    def initialize(self, generator: torch.Generator) -> None:
        """Random weights, as the recipe has them.

        modern: linear layers keep the variance of what goes in; what ends in the residual stream
        or in the logits starts at zero. gpt2: all of one small deviation; the residual stream is
        a sum of 2 x layers projections, which are smaller by the root of that.
        """
        settings = self.settings
        std, residual_std, head_std = None, 0.0, 0.0
        if settings.recipe == "gpt2":
            std, residual_std, head_std = _STD, _STD / (2 * settings.layers) ** 0.5, _STD
        table_std = _STD if settings.tied or settings.recipe == "gpt2" else 1.0
        part: Any
        for part in (self.embedding, *self.previous, self.position):
            if part is not None:
                part.initialize(generator, table_std)
        for part in self.blocks:
            part.initialize(generator, std, residual_std)
        self.norm.initialize()
        if not settings.tied:
            self.head.initialize(generator, head_std)

    def layer_groups(self) -> dict[str, list[nn.Parameter]]:
        """The embedding, each block, the head."""
        groups = {"embedding": list(self.embedding.parameters())}
        for number, block in enumerate(self.blocks, 1):
            groups[f"layer {number}"] = list(block.parameters())
        return {**groups, "head": list(self.head.parameters())}

    def matrices(self) -> Stacks:
        """What Muon trains: the matrices of the blocks."""
        blocks: Any = self.blocks
        return [stack for block in blocks for stack in block.matrices()]

    def new_cache(self, batch: int, length: int | None = None) -> KeyValueCache:
        """Room for the keys and values of ``length`` positions, or of ``block_size``."""
        settings = self.settings
        size = settings.dim // settings.heads
        shape = (settings.layers, batch, settings.heads, length or settings.block_size, size)
        return KeyValueCache(shape, like=self.embedding.weight)

    def forward(
        self,
        idx: Tensor,  # (B, T)
        targets: Tensor | None = None,
        *,
        cache: KeyValueCache | None = None,
        pads: Tensor | None = None,  # (B,)
    ) -> tuple[Tensor, Tensor | None]:
        """Logits (B, T, V) and loss; with a cache, of the last position only (B, 1, V)."""
        first = 0 if cache is None else cache.length
        length = first + idx.size(1)
        if length > self.settings.block_size:
            raise NlpkitError(
                f"{length} tokens are more than the model's block size {self.settings.block_size}"
            )
        if cache is not None:
            pads = cache.pads = pads if first == 0 else cache.pads
            if self.step and 0 < first == length - 1 and len(idx) <= self.step.most_rows:
                logits = self.step(idx[:, 0], cache)[:, None]  # (B, 1, V)
                cache.length = length
                return logits, cross_entropy(logits, targets)
        # with a cache only prompts come in several tokens at once, and they hold one text a row
        starts = 0 if cache is not None else self.settings.starts
        begins = text_begins(idx, starts, pads)  # (B, T)
        x = self.embed(idx, first, begins, cache)
        mask = None
        if begins is not None or 0 < first < length - 1:
            mask = causal_mask(idx.size(1), first, begins, like=x)
        for block in self.blocks:
            x = block(x, self.rotary, mask, cache, cache is not None and block is self.blocks[-1])
        if cache is not None:
            cache.length = length
        logits = self.head(self.norm(x))
        return logits, cross_entropy(logits, targets)

    def embed(
        self,
        idx: Tensor,
        first: int = 0,
        begins: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """The residual stream that enters the first block (B, T, C)."""
        x: Tensor = self.embedding(idx)  # (B, T, C)
        here = torch.arange(first, first + idx.size(1), device=idx.device)
        if self.position is not None:
            x = x + self.position(here if begins is None else (here - begins).clamp_min(0))
        if self.previous:
            x = x + self._embed_previous(idx, here, begins, cache)
        if self.settings.embedding_norm:
            x = normalize(x)
        dropped: Tensor = self.dropout(x)
        return dropped

    def _embed_previous(
        self, idx: Tensor, here: Tensor, begins: Tensor | None, cache: KeyValueCache | None
    ) -> Tensor:
        """The sum of embeddings of the tokens 1, 2, ... places before, within the same text."""
        count = len(self.previous)
        if cache is None or cache.last_ids is None:
            before = idx.new_zeros(idx.size(0), count)
        else:
            before = cache.last_ids
        joined = torch.cat([before, idx], dim=1)  # (B, count + T)
        if cache is not None:
            cache.last_ids = joined[:, -count:]
        since = here if begins is None else here - begins  # positions since the text began
        total = torch.zeros((), device=idx.device)
        for distance, table in enumerate(self.previous, 1):
            shifted = joined[:, count - distance : joined.size(1) - distance]
            inside = (since >= distance).unsqueeze(-1)  # ([B,] T, 1)
            total = total + table(shifted) * inside
        return total
