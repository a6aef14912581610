"""BERT (Devlin et al., 2019): a transformer in which every token looks at all others.

The same ``nn.block`` as a GPT, without the causal mask. Token ids (B, T) become states (B, T, C);
heads on top of them predict masked tokens, or whether one sentence follows another. Two recipes:
``bert`` as in the paper (post-norm, learned positions, GELU; loads and saves Hugging Face's
weights) and ``modern`` (pre-norm, relative positions, squared ReLU, no biases), which learns faster
from little text.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.errors import NlpkitError
from nlpkit.models.bert_settings import BertSettings
from nlpkit.nn.attention import padding_mask
from nlpkit.nn.block import Block, BlockSettings
from nlpkit.nn.fused import linear_cross_entropy
from nlpkit.nn.layers import Embedding, Linear, Norm, activate
from nlpkit.nn.optimizers import Stacks
from nlpkit.nn.positions import RelativeBias

_STD = 0.02  # of initial weights


class Bert(nn.Module):
    """The encoder and, if its settings say so, its heads.

    >>> model = Bert(BertSettings(vocab_size=10, dim=16, heads=2, hidden=32, layers=1))
    >>> model.initialize(torch.Generator().manual_seed(1))
    >>> states = model(torch.tensor([[2, 5, 3]]))
    >>> states.shape, model.predict(states).shape
    (torch.Size([1, 3, 16]), torch.Size([1, 3, 10]))
    """

    def __init__(self, settings: BertSettings) -> None:
        super().__init__()
        self.settings = settings
        dim, learned = settings.dim, settings.positions == "learned"
        self.embedding = Embedding(settings.vocab_size, dim)
        self.position = Embedding(settings.block_size, dim) if learned else None
        self.segment = Embedding(settings.segments, dim) if settings.segments else None
        self.embedding_norm = self._norm()
        block = BlockSettings(
            dim=dim,
            heads=settings.heads,
            hidden=settings.hidden,
            norm=settings.norm,
            norm_gains=settings.norm_gains,
            norm_eps=settings.norm_eps,
            bias=settings.bias,
            activation=settings.activation,
            dropout=settings.dropout,
            attention_dropout=settings.dropout,
        )
        self.blocks = nn.ModuleList(Block(block, layer) for layer in range(settings.layers))
        self.relative = nn.ModuleList(
            RelativeBias(settings.heads, settings.reach)
            for _ in range(0 if learned else settings.layers)
        )
        self.norm = self._norm() if settings.norm == "pre" else None  # post-norm ends in one
        self.pooler = Linear(dim, dim) if settings.pooler else None
        self.next_sentence = Linear(dim, 2) if settings.next_sentence else None
        self.head = None if settings.head == "none" else MaskedHead(settings)
        self.dropout = nn.Dropout(settings.dropout)

    def _norm(self) -> Norm:
        settings = self.settings
        gains, eps = settings.norm_gains, settings.norm_eps
        return Norm(settings.dim, gains=gains, bias=settings.bias, eps=eps)

    def initialize(self, generator: torch.Generator) -> None:
        """Random weights. bert: all of one small deviation; modern: see ``GPT.initialize``."""
        modern = self.settings.recipe == "modern"
        part: Any
        for part in (self.embedding, self.position, self.segment):
            if part is not None:
                part.initialize(generator, _STD)
        for part in self.blocks:
            part.initialize(generator, None if modern else _STD, 0.0 if modern else _STD)
        for part in (self.embedding_norm, self.norm, *self.relative):
            if part is not None:
                part.initialize()
        for part in (self.pooler, self.next_sentence, self.head):
            if part is not None:
                part.initialize(generator, _STD)

    def matrices(self) -> Stacks:
        """What Muon trains: the matrices of the blocks."""
        blocks: Any = self.blocks
        return [stack for block in blocks for stack in block.matrices()]

    def count_parameters(self) -> int:
        """How many numbers are learned."""
        return sum(parameter.numel() for parameter in self.parameters())

    def embed(self, idx: Tensor, segments: Tensor | None = None) -> Tensor:
        """The residual stream that enters the first block (B, T, C)."""
        length = idx.size(1)
        if length > self.settings.block_size:
            raise NlpkitError(
                f"{length} tokens are more than the model's {self.settings.block_size} positions"
            )
        x: Tensor = self.embedding(idx)  # (B, T, C)
        if self.segment is not None:
            x = x + (self.segment.weight[0] if segments is None else self.segment(segments))
        if self.position is not None:
            x = x + self.position.weight[:length]
        dropped: Tensor = self.dropout(self.embedding_norm(x))
        return dropped

    def masks(self, x: Tensor, inside: Tensor | None = None) -> list[Tensor | None]:
        """What each layer adds to its scores: padding and, where learned, distances."""
        mask = None if inside is None else padding_mask(inside, like=x)  # (B, 1, 1, T)
        if not self.relative:
            return [mask] * len(self.blocks)
        biases = [relative(x.size(1)).to(x.dtype) for relative in self.relative]  # (H, T, T)
        return [bias[None] if mask is None else bias + mask for bias in biases]

    def layers(
        self, idx: Tensor, segments: Tensor | None = None, inside: Tensor | None = None
    ) -> list[Tensor]:
        """The embeddings and the states after each block, (B, T, C) each."""
        x = self.embed(idx, segments)
        found = [x]
        for block, mask in zip(self.blocks, self.masks(x, inside), strict=True):
            x = block(x, mask=mask)
            found.append(x)
        if self.norm is not None:
            found[-1] = self.norm(x)
        return found

    def forward(
        self,
        idx: Tensor,  # (B, T)
        segments: Tensor | None = None,  # (B, T): 0 in a first text, 1 in a second
        inside: Tensor | None = None,  # (B, T): true for tokens, false for padding
        places: Tensor | None = None,  # (B, K): the positions that are asked for, if not all
    ) -> Tensor:
        """States (B, T, C) of the last layer, or (B, K, C); those of padding mean nothing."""
        x = self.embed(idx, segments)
        last = self.blocks[-1]
        for block, mask in zip(self.blocks, self.masks(x, inside), strict=True):
            x = block(x, mask=mask, places=places if block is last else None)
        return x if self.norm is None else self.norm(x)

    def require_head(self) -> MaskedHead:
        """The head of the masked language model; sentence encoders are often saved without."""
        if self.head is None:
            raise NlpkitError(
                "the model has no head for masked tokens: it was saved without one",
                hint="a model of masked words, such as nlpkit bert train makes",
            )
        return self.head

    def predict(self, states: Tensor) -> Tensor:
        """Logits (..., V) of the token at each of the states (..., C)."""
        logits: Tensor = self.require_head()(states, self.embedding.weight)
        return logits

    def masked_loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of the tokens (N,) at states (N, C)."""
        head = self.require_head()
        table = self.embedding.weight if head.weight is None else head.weight
        return linear_cross_entropy(head.transformed(states), table, head.bias, targets)

    def pooled(self, states: Tensor) -> Tensor:
        """The pooler's view (B, C) of the state of [CLS]."""
        if self.pooler is None:
            raise NlpkitError("the model has no pooler: it was saved without one")
        return torch.tanh(self.pooler(states[:, 0]))

    def follows(self, states: Tensor) -> Tensor:
        """Logits (B, 2): the second text follows the first, or is from elsewhere."""
        if self.next_sentence is None:
            raise NlpkitError("the model has no head for next sentences")
        logits: Tensor = self.next_sentence(self.pooled(states))
        return logits


class MaskedHead(nn.Module):
    """From states to logits over the vocabulary, by the embedding's own matrix if it is tied."""

    def __init__(self, settings: BertSettings) -> None:
        super().__init__()
        whole = settings.head == "transform"
        dim, eps = settings.dim, settings.norm_eps
        self.activation = settings.activation
        self.transform = Linear(dim, dim) if whole else None
        self.norm = Norm(dim, gains=True, bias=True, eps=eps) if whole else None
        self.weight = None if settings.tied else nn.Parameter(torch.empty(settings.vocab_size, dim))
        self.bias = nn.Parameter(torch.zeros(settings.vocab_size))

    def initialize(self, generator: torch.Generator, std: float) -> None:
        """Random weights; the bias is zero."""
        if self.transform is not None and self.norm is not None:
            self.transform.initialize(generator, std)
            self.norm.initialize()
        if self.weight is not None:
            nn.init.normal_(self.weight, std=std, generator=generator)
        nn.init.zeros_(self.bias)

    def transformed(self, states: Tensor) -> Tensor:
        """What the matrix of the vocabulary is applied to."""
        if self.transform is None or self.norm is None:
            return states
        found: Tensor = self.norm(activate(self.transform(states), self.activation))
        return found

    def forward(self, states: Tensor, embedding: Tensor) -> Tensor:
        table = embedding if self.weight is None else self.weight
        return F.linear(self.transformed(states), table, self.bias)
