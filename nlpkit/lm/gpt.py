"""A decoder-only transformer (GPT), in today's recipe and in GPT-2's.

Each block adds to a stream x (B, T, C) what its attention and then its two-layer network make of
the normalised stream. Attention lets a position look at itself and those before it in its text.
With a cache the keys and values of earlier positions are kept, and only new ones are computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.errors import NlpkitError
from nlpkit.lm.base import LanguageModel, cross_entropy, text_begins
from nlpkit.lm.cache import KeyValueCache
from nlpkit.lm.settings import ModelSettings
from nlpkit.nn.fused import relu_squared

if TYPE_CHECKING:
    from nlpkit.lm.compiled import CompiledStep

_STD = 0.02  # of initial weights


class Linear(nn.Linear):
    """A linear layer whose weights come from ``initialize()`` or a file, not from its making."""

    def reset_parameters(self) -> None:
        """Nothing to do."""


class Embedding(nn.Embedding):
    """A table whose rows come from ``initialize()`` or a file, not from its making."""

    def reset_parameters(self) -> None:
        """Nothing to do."""


class Norm(nn.Module):
    """LayerNorm, with gains and biases if the settings say so."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.shape = (settings.dim,)
        gains, biases = settings.norm_gains, settings.norm_gains and settings.bias
        self.weight = nn.Parameter(torch.ones(self.shape)) if gains else None
        self.bias = nn.Parameter(torch.zeros(self.shape)) if biases else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.shape, self.weight, self.bias, eps=1e-5)


def normalize(x: Tensor) -> Tensor:
    """Every vector brought to mean 0 and variance 1."""
    return F.layer_norm(x, x.shape[-1:])


class Rotary(nn.Module):
    """Turns pairs of numbers of a query or key by an angle that grows with its position.

    The product of a query and a key then depends on how far apart they are (Su et al., 2021).
    A pair is taken as a complex number, so that turning it is one multiplication.
    """

    def __init__(self, heads: int, head_dim: int, length: int, base: float = 10_000.0) -> None:
        super().__init__()
        steps = torch.arange(0, head_dim, 2) / head_dim
        angles = torch.outer(torch.arange(length), base**-steps)  # (T, D/2)
        turns = torch.polar(torch.ones_like(angles), angles)
        # repeated for all heads of q and k: a product without broadcasting inside is faster
        turns = turns[:, None].expand(-1, 2 * heads, -1).contiguous()  # (T, 2H, D/2)
        self.register_buffer("turns", turns, persistent=False)
        self.turns: Tensor

    def forward(self, x: Tensor, first: int) -> Tensor:
        """Turn x (B, T, 2H, D) whose positions start at ``first``."""
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))  # (B, T, 2H, D/2)
        turned = pairs * self.turns[first : first + x.size(1)]
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)


class Attention(nn.Module):
    """softmax(QK^T / sqrt(D)) V over several heads, causal."""

    def __init__(self, settings: ModelSettings, layer: int) -> None:
        super().__init__()
        dim, bias = settings.dim, settings.bias
        self.layer, self.heads, self.dropout = layer, settings.heads, settings.dropout
        self.qk = Linear(dim, 2 * dim, bias=bias)
        self.v = Linear(dim, dim, bias=bias)
        self.output = Linear(dim, dim, bias=bias)
        # normalised q and k need another temperature than 1/sqrt(D): their gains learn it
        gains = torch.ones(dim // settings.heads)
        self.gains = nn.Parameter(gains) if settings.qk_norm else None

    def project(
        self, x: Tensor, first: int, rotary: Rotary | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q, k, v (B, H, T, D) of a stretch (B, T, C) that starts at position ``first``."""
        shape = (x.size(0), x.size(1), -1, x.size(2) // self.heads)
        qk = self.qk(x).view(shape)  # (B, T, 2H, D)
        if self.gains is not None:
            qk = F.layer_norm(qk, qk.shape[-1:], self.gains)
        if rotary is not None:
            qk = rotary(qk, first)
        q, k = qk.transpose(1, 2).split(self.heads, dim=1)
        return q, k, self.v(x).view(shape).transpose(1, 2)

    def forward(
        self,
        x: Tensor,  # (B, T, C)
        rotary: Rotary | None,
        mask: Tensor | None,  # (B, 1, T, S): 0 where position t may look at s, else -inf
        cache: KeyValueCache | None,
        last: bool = False,
    ) -> Tensor:
        """(B, T, C), or only the last position of it (B, 1, C)."""
        q, k, v = self.project(x, 0 if cache is None else cache.length, rotary)
        if cache is not None:
            k, v = cache.extend(self.layer, k, v)
        if last:
            q = q[:, :, -1:]
            mask = None if mask is None else mask[..., -1:, :]
        mixed = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            is_causal=mask is None and q.size(2) > 1,
            dropout_p=self.dropout if self.training else 0.0,
        )
        projected: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return projected


class Block(nn.Module):
    """Attention, then a network four times as wide, each added to the stream."""

    def __init__(self, settings: ModelSettings, layer: int) -> None:
        super().__init__()
        dim = settings.dim
        self.norm_1, self.norm_2 = Norm(settings), Norm(settings)
        self.attention = Attention(settings, layer)
        self.up = Linear(dim, 4 * dim, bias=settings.bias)
        self.down = Linear(4 * dim, dim, bias=settings.bias)
        self.activation = settings.activation
        self.dropout = nn.Dropout(settings.dropout)

    def forward(
        self,
        x: Tensor,
        rotary: Rotary | None,
        mask: Tensor | None,
        cache: KeyValueCache | None,
        last: bool = False,  # whether only the last position is asked for
    ) -> Tensor:
        found = self.attention(self.norm_1(x), rotary, mask, cache, last)
        x = (x[:, -1:] if last else x) + self.dropout(found)
        hidden = activate(self.up(self.norm_2(x)), self.activation)  # (B, T, 4C)
        added: Tensor = self.dropout(self.down(hidden))
        return x + added


def activate(x: Tensor, name: str) -> Tensor:
    """The network's non-linearity."""
    if name == "relu2":
        return relu_squared(x)
    return F.gelu(x, approximate="tanh" if name == "gelu_tanh" else "none")


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
        self.blocks = nn.ModuleList(Block(settings, layer) for layer in range(settings.layers))
        self.dropout = nn.Dropout(settings.dropout)
        self.norm = Norm(settings)
        self.head = Linear(settings.dim, settings.vocab_size, bias=False)
        if settings.tied:
            self.head.weight = self.embedding.weight
        self.step: CompiledStep | None = None  # how to generate, if not by the modules

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Random weights; what ends in the stream or in the logits starts at zero."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() < 2:
                nn.init.ones_(parameter)
            elif "embedding" in name or "previous" in name or "position" in name:
                std = _STD if self.settings.tied else 1.0
                nn.init.normal_(parameter, std=std, generator=generator)
            elif name.endswith(("output.weight", "down.weight", "head.weight")):
                nn.init.zeros_(parameter)
            else:
                bound = (3 / parameter.size(1)) ** 0.5
                nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def new_cache(self, batch: int) -> KeyValueCache:
        """Room for the keys and values of ``block_size`` positions."""
        return KeyValueCache(self, batch)

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
        mask = _mask(begins, first, idx.size(1), x.dtype)
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
        """The stream that enters the first block (B, T, C)."""
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


def _mask(begins: Tensor | None, first: int, length: int, dtype: torch.dtype) -> Tensor | None:
    """What each new position may look at: from where its text begins up to itself."""
    if begins is None and (first == 0 or length == 1):
        return None
    device = None if begins is None else begins.device
    here = torch.arange(first, first + length, device=device)[:, None]  # (T, 1)
    there = torch.arange(first + length, device=device)  # (S,)
    allowed = there <= here  # (T, S)
    if begins is not None:
        # a pad looks at itself, so that its softmax is not empty; nobody looks at a pad
        allowed = (allowed & (there >= begins[:, :, None])) | (there == here)  # (B, T, S)
        allowed = allowed[:, None]
    return torch.zeros_like(allowed, dtype=dtype).masked_fill_(~allowed, float("-inf"))
