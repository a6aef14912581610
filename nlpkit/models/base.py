"""The contract of every language model here.

``forward(idx, targets=None) -> (logits, loss)``: for ids (B, T) the scores of what comes next after
each of them, and the mean negative log-likelihood of ``targets`` if given (-1 is not counted).
With a ``cache`` from ``new_cache()`` only new ids are given, and logits are of the last position.
Rows of unequal length are padded on the left: ``pads`` (B,) says by how much.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.models.settings import ModelSettings
from nlpkit.nn.optimizers import Stacks

IGNORED = -1


class LanguageModel(nn.Module):
    """What ``generate()``, training and scoring rely on."""

    settings: ModelSettings
    packed = False  # whether rows may hold several independent texts one after the other
    carries_state = False  # whether a cache holds all that came before, however long ago

    def forward(
        self,
        idx: Tensor,  # (B, T)
        targets: Tensor | None = None,  # (B, T)
        *,
        cache: Any = None,
        pads: Tensor | None = None,  # (B,)
    ) -> tuple[Tensor, Tensor | None]:
        """Logits (B, T, V), and the loss if there are targets.

        A model that has a quicker way to the loss of a large vocabulary leaves the logits empty
        while it is trained.
        """
        raise NotImplementedError

    def token_losses(self, idx: Tensor, targets: Tensor, cache: Any = None) -> Tensor:
        """The negative log-likelihood of each target (B, T); 0 where it is not counted.

        A ``cache`` (of a model that carries its state) holds what came before ``idx``.
        """
        if cache is not None:
            raise TypeError("this model carries no state from text to text")
        logits, _ = self(idx)
        return token_cross_entropy(logits, targets)

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the first weights; torch's own layers did that when they were made."""

    def matrices(self) -> Stacks:
        """The hidden matrices, which Muon can train; AdamW trains all others."""
        return []

    def layer_groups(self) -> dict[str, list[nn.Parameter]]:
        """The parameters by layer, from the input to the output."""
        return {name: list(child.parameters()) for name, child in self.named_children()}

    def new_cache(self, batch: int, length: int | None = None) -> Any:
        """Room for what the model remembers of ``batch`` rows while it generates.

        Rows get no longer than ``length``. A cache has ``clear()`` and ``select(rows)``.
        """
        return ContextCache()

    def count_parameters(self) -> int:
        """Numbers that training changes; tied ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())


class ContextCache:
    """The last ids of each row: all that a model of a fixed context remembers."""

    def __init__(self) -> None:
        self.ids: Tensor | None = None
        self.pads: Tensor | None = None

    def clear(self) -> None:
        """Forget everything."""
        self.ids = self.pads = None

    def select(self, rows: Tensor) -> None:
        """Go on with these rows (R,), some of them perhaps several times."""
        self.ids = None if self.ids is None else self.ids[rows]
        self.pads = None if self.pads is None else self.pads[rows]

    def extend(self, idx: Tensor, pads: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """All ids so far, the new ones at the end."""
        self.pads = pads if self.ids is None else self.pads
        self.ids = idx if self.ids is None else torch.cat([self.ids, idx], dim=1)
        return self.ids, self.pads


def cross_entropy(logits: Tensor, targets: Tensor | None) -> Tensor | None:
    """Mean negative log-likelihood in nats, positions of target -1 left out."""
    if targets is None:
        return None
    return F.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten().long(), ignore_index=IGNORED
    )


def token_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """The negative log-likelihood of each target (B, T), 0 where a target is -1."""
    flat = F.cross_entropy(
        logits.flatten(0, 1).float(),
        targets.flatten().long(),
        ignore_index=IGNORED,
        reduction="none",
    )
    return flat.view_as(targets)


def text_begins(idx: Tensor, starts: int, pads: Tensor | None) -> Tensor | None:
    """For each position, where its text begins in the row (B, T); nothing if always at 0.

    >>> text_begins(torch.tensor([[0, 5, 6, 0, 7]]), starts=1, pads=None)
    tensor([[0, 0, 0, 3, 3]])
    """
    if not starts:
        return None if pads is None else pads[:, None].expand_as(idx)
    here = torch.arange(idx.size(1), device=idx.device)
    begins = torch.where(idx < starts, here, 0).cummax(dim=1).values
    return begins if pads is None else begins.maximum(pads[:, None])
