"""The two simplest neural models: a table of what follows what, and Bengio's network of 2003."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nlpkit.models.base import ContextCache, LanguageModel, cross_entropy, text_begins
from nlpkit.models.settings import ModelSettings
from nlpkit.nn.optimizers import Stacks


class Bigram(LanguageModel):
    """The logits of the next character are a row of a table, chosen by the last one.

    >>> Bigram(ModelSettings(model="bigram", vocab_size=5))(torch.tensor([[1, 2]]))[0].shape
    torch.Size([1, 2, 5])
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        self.table = nn.Parameter(torch.zeros(settings.vocab_size, settings.vocab_size))

    def forward(
        self,
        idx: Tensor,
        targets: Tensor | None = None,
        *,
        cache: ContextCache | None = None,
        pads: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        logits = self.table[idx if cache is None else idx[:, -1:]]  # (B, T, V)
        return logits, cross_entropy(logits, targets)


class MLP(LanguageModel):
    """Embeddings of the last n tokens side by side, a tanh layer, a softmax (Bengio 2003).

    The paper's y = b + Wx + U tanh(d + Hx): W are the ``direct`` connections, which it found to
    help on one corpus and not on the other.

    >>> MLP(ModelSettings(model="mlp", vocab_size=5))(torch.tensor([[1, 2]]))[0].shape
    torch.Size([1, 2, 5])
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        # one more id than there are characters: what stands before the beginning
        self.embedding = nn.Embedding(settings.vocab_size + 1, settings.dim)
        inputs, units = settings.order * settings.dim, settings.hidden or 4 * settings.dim
        self.hidden = nn.Linear(inputs, units)
        self.dropout = nn.Dropout(settings.dropout)
        self.head = nn.Linear(units, settings.vocab_size)
        self.direct = (
            nn.Linear(inputs, settings.vocab_size, bias=False) if settings.direct else None
        )

    def initialize(self, generator: torch.Generator) -> None:
        """Direct connections begin at 0: the layer learns first."""
        if self.direct is not None:
            nn.init.zeros_(self.direct.weight)

    def matrices(self) -> Stacks:
        """The one that is inside."""
        return [(self.hidden.weight, 1)]

    def forward(
        self,
        idx: Tensor,
        targets: Tensor | None = None,
        *,
        cache: ContextCache | None = None,
        pads: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        if cache is not None:
            idx, pads = cache.extend(idx, pads)
        before = self.settings.vocab_size
        windows = context_windows(idx, self.settings.order, before, self.settings.starts, pads)
        if cache is not None:
            windows = windows[:, -1:]
        x = self.embedding(windows).flatten(2)  # (B, T, n * C)
        logits = self.head(self.dropout(torch.tanh(self.hidden(x))))  # (B, T, V)
        if self.direct is not None:
            logits = logits + self.direct(x)
        return logits, cross_entropy(logits, targets)


def context_windows(
    idx: Tensor, order: int, before: int, starts: int, pads: Tensor | None
) -> Tensor:
    """For each position its own id and the n - 1 before it, oldest first (B, T, n).

    What lies outside of the text is ``before``.

    >>> context_windows(torch.tensor([[4, 5, 6]]), 2, 9, 0, None)
    tensor([[[9, 4],
             [4, 5],
             [5, 6]]])
    """
    padded = torch.nn.functional.pad(idx, (order - 1, 0), value=before)
    windows = padded.unfold(1, order, 1)  # (B, T, n)
    begins = text_begins(idx, starts, pads)
    if begins is None:
        return windows
    here = torch.arange(idx.size(1), device=idx.device)
    age = torch.arange(order - 1, -1, -1, device=idx.device)
    outside = age > (here - begins).unsqueeze(-1)  # (B, T, n)
    return windows.masked_fill(outside, before)
