"""The classifiers with an encoder as a torch module, for training: embeddings of words, the encoder
over the text, pooling over its tokens, a linear layer. Prediction is in ``predictor``, in numpy.

It gives scores (B, K): a softmax makes them probabilities of labels that exclude each other, a
sigmoid those of labels that do not.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nlpkit.nn.encoder import make_encoder
from nlpkit.tasks.classify.settings import ResolvedClassifier


class SequenceModel(nn.Module):
    """Scores of texts, (B, T) word ids -> (B, K)."""

    vectors: Tensor

    def __init__(
        self,
        settings: ResolvedClassifier,
        n_words: int,
        n_labels: int,
        vectors: NDArray[np.float32] | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.embedding = nn.Embedding(n_words, settings.dim)
        nn.init.normal_(self.embedding.weight, std=0.1)
        width = settings.dim
        self.has_vectors = vectors is not None
        if vectors is not None:
            table = torch.from_numpy(vectors)
            if settings.fine_tune:
                self.vectors = nn.Parameter(table)
            else:
                self.register_buffer("vectors", table)
            width += vectors.shape[1]
        self.encoder = make_encoder(settings.encoder_config(width), settings.dropout)
        self.dropout = nn.Dropout(settings.dropout)
        self.output = nn.Linear(self.encoder.size, n_labels)

    def forward(self, words: Tensor, rows: Tensor, mask: Tensor) -> Tensor:
        """Word ids (B, T), rows of the given vectors (B, T), 0 for none, and which are tokens."""
        parts = [self.embedding(words)]
        if self.has_vectors:
            parts.append(F.embedding(rows, self.vectors))
        inputs = self.dropout(torch.cat(parts, dim=2))
        states = self.encoder(inputs, None if mask.all() else mask)  # (B, T, C)
        return self.output(self.dropout(self._pool(states, mask)))

    def _pool(self, states: Tensor, mask: Tensor) -> Tensor:
        inside, lengths = mask.unsqueeze(2), mask.sum(dim=1)
        if self.settings.pooling == "max":
            return states.masked_fill(~inside, -torch.inf).amax(dim=1)
        if self.settings.pooling == "average":
            return (states * inside).sum(dim=1) / lengths.unsqueeze(1)
        last = states[torch.arange(len(states), device=states.device), lengths - 1]
        if self.settings.model not in ("lstm", "gru"):
            return last
        # each direction has read the whole text at its own end
        half = states.shape[2] // 2
        return torch.cat([last[:, :half], states[:, 0, half:]], dim=1)


def label_loss(scores: Tensor, targets: Tensor, *, multi_label: bool) -> Tensor:
    """Cross-entropy against targets (B, K) of 0 and 1."""
    if multi_label:
        return F.binary_cross_entropy_with_logits(scores, targets)
    return F.cross_entropy(scores, targets.argmax(dim=1))
