"""From the states of tokens to tags: a linear layer, and a softmax or a CRF over the sentence.

The head of every tagger, whatever encoder gives the states (B, T, C).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.nn.crf import CRF
from nlpkit.nn.encoder import make_encoder
from nlpkit.nn.encoder_config import EncoderConfig


class TagParts(nn.Module):
    """Adds up the scores of the parts of tags, (..., n P) -> (..., n K); without parts P is K.

    >>> parts = TagParts(2, [[True, False], [False, True], [True, True]])
    >>> parts(torch.tensor([1.0, 2.0, 10.0])).tolist()
    [11.0, 12.0]
    """

    matrix: Tensor | None

    def __init__(self, n_tags: int, parts: list[list[bool]] | None) -> None:
        super().__init__()
        self.n_tags = n_tags
        self.count = n_tags if parts is None else len(parts)
        matrix = None if parts is None else torch.tensor(parts).float()
        self.register_buffer("matrix", matrix, persistent=False)  # (P, K)

    def forward(self, scores: Tensor) -> Tensor:
        if self.matrix is None:
            return scores
        return (scores.unflatten(-1, (-1, self.count)) @ self.matrix).flatten(-2)


class TagHead(nn.Module):
    """States (B, T, C) -> scores of tags (B, T, K), and the loss of scores.

    ``context`` reads states in their context once more before tags are scored: a recurrent,
    convolutional or transformer encoder on top of one that stays as it is.
    """

    def __init__(
        self,
        size: int,
        n_tags: int,
        dropout: nn.Module,
        *,
        crf: bool,
        legal: list[list[bool]] | None = None,
        parts: list[list[bool]] | None = None,
        context: EncoderConfig | None = None,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.context = None if context is None else make_encoder(context)
        self.parts = TagParts(n_tags, parts)
        self.output = nn.Linear(size if context is None else context.size, self.parts.count)
        self.crf = CRF(n_tags, legal) if crf else None

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        states = self.dropout(states)
        if self.context is not None:
            padding = None if mask.all() else mask  # encoders are faster without
            states = self.dropout(self.context(states, padding))
        scores: Tensor = self.parts(self.output(states))
        return scores.float()  # whatever the arithmetic of the layers below

    def loss(self, scores: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Mean loss a token against the right tags (B, T)."""
        if self.crf is None:
            return F.cross_entropy(scores[mask], tags[mask])
        return self.crf.loss(scores, tags, mask.sum(dim=1))
