"""The last layer of a model with a large vocabulary, and two ways not to pay for all of it.

full      a logit for every word, for every word that is predicted
adaptive  the most frequent words and a few clusters of rare ones; the words of a cluster are looked
          at only where one of them comes next, through fewer numbers (Grave et al., 2017)
sampled   the words that come next somewhere in the batch and some drawn by chance stand for all;
          the logits of those that were drawn are corrected by how often that happens (Jean et al.,
          2015). To predict, all words are looked at.

Ids must go from frequent to rare words, as vocabularies here do.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.models.base import IGNORED, cross_entropy
from nlpkit.models.settings import Softmax

_DRAWN = 512  # words that stand for those which do not come next
_SHORTEST_LIST = 512  # of frequent words
_DIVISOR = 4.0  # each cluster has so many times fewer numbers to a word than the one before


def cutoffs(vocab_size: int) -> list[int]:
    """Where the clusters of rare words begin.

    >>> cutoffs(10_000), cutoffs(100)
    ([1250, 5000], [50])
    """
    if vocab_size <= 2 * _SHORTEST_LIST:
        return [max(1, vocab_size // 2)]
    first = max(_SHORTEST_LIST, vocab_size // 8)
    return [first, 4 * first] if 4 * first < vocab_size else [first]


def adaptive_parameters(vocab_size: int, dim: int) -> int:
    """How many numbers an adaptive softmax has."""
    with torch.device("meta"):
        layer = _adaptive(vocab_size, dim)
    return sum(parameter.numel() for parameter in layer.parameters())


def adaptive_softmax(
    dim: int, vocab_size: int, clusters: list[int], *, head_bias: bool = False
) -> nn.AdaptiveLogSoftmaxWithLoss:
    """torch's layer; where states are narrow, clusters shrink less, so that each keeps a number.

    >>> adaptive_softmax(2, 100, [20, 50]).tail[1][0].out_features
    1
    """
    divisor = min(_DIVISOR, 0.99 * dim ** (1 / len(clusters)))
    return nn.AdaptiveLogSoftmaxWithLoss(
        dim, vocab_size, clusters, div_value=divisor, head_bias=head_bias
    )


def _adaptive(vocab_size: int, dim: int) -> nn.AdaptiveLogSoftmaxWithLoss:
    return adaptive_softmax(dim, vocab_size, cutoffs(vocab_size), head_bias=True)


class OutputLayer(nn.Module):
    """From states (N, C) to the loss of targets (N,), or to logits (N, V).

    >>> layer = OutputLayer(8, 3000, "adaptive")
    >>> layer.logits(torch.zeros(2, 8)).shape
    torch.Size([2, 3000])
    """

    def __init__(self, dim: int, vocab_size: int, kind: Softmax) -> None:
        super().__init__()
        self.kind, self.vocab_size = kind, vocab_size
        if kind == "adaptive":
            self.adaptive = _adaptive(vocab_size, dim)
        else:
            self.weight = nn.Parameter(torch.empty(vocab_size, dim))
            self.bias = nn.Parameter(torch.zeros(vocab_size))
            nn.init.uniform_(self.weight, -1 / math.sqrt(dim), 1 / math.sqrt(dim))

    def logits(self, states: Tensor) -> Tensor:
        """Scores of all words (N, V); those of an adaptive softmax are log-probabilities."""
        if self.kind == "adaptive":
            return self.adaptive.log_prob(states.float())
        return F.linear(states, self.weight, self.bias)

    def loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """Mean negative log-likelihood in nats; of ``sampled``, an estimate."""
        counted = targets != IGNORED
        if not bool(counted.all()):
            states, targets = states[counted], targets[counted]
        if self.kind == "adaptive":
            return self.adaptive(states.float(), targets).loss
        if self.kind == "sampled" and self.training and self.vocab_size > 2 * _DRAWN:
            return self._sampled(states, targets)
        loss = cross_entropy(self.logits(states)[None], targets[None])
        assert loss is not None
        return loss

    def _sampled(self, states: Tensor, targets: Tensor) -> Tensor:
        """Shared candidates: the distinct targets of the batch, and words by a Zipf law of ids."""
        size = math.log(self.vocab_size + 1)
        drawn = torch.exp(torch.rand(_DRAWN, device=targets.device) * size).long() - 1
        drawn = drawn.clamp_(0, self.vocab_size - 1)
        candidates, places = torch.cat([targets, drawn]).unique(return_inverse=True)
        weight, bias = self.weight[candidates], self.bias[candidates]
        logits = F.linear(states, weight, bias).float()  # (N, K)
        # how likely a word is to be a candidate: as one of the drawn, or because it comes next here
        share = torch.log1p(1 / (candidates + 1.0)) / size
        present = 1 - (1 - share).pow(_DRAWN + len(targets))
        logits = logits - present.clamp_min(1e-12).log()
        return F.cross_entropy(logits, places[: len(targets)])
