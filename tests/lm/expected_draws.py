"""The distribution that draws must have, written out id by id."""

from __future__ import annotations

import torch
from torch import Tensor

from nlpkit.generate.sampling import SamplingSettings


def expected_shares(logits: Tensor, settings: SamplingSettings) -> Tensor:
    """The probability of each id (V,) that logits (V,) and settings ask for."""
    shares = (logits.double() / settings.temperature).softmax(-1)
    order = shares.argsort(descending=True).tolist()
    order = order[: settings.top_k or None]
    total = sum(float(shares[index]) for index in order)
    kept, before = [], 0.0
    for index in order:
        share = float(shares[index]) / total
        if not kept or (
            before < settings.top_p
            and float(shares[index]) >= settings.min_p * float(shares[order[0]])
        ):
            kept.append(index)
        before += share
    found = torch.zeros_like(shares)
    found[kept] = shares[kept] / shares[kept].sum()
    return found
