"""How far gradients reach: by layer, and by distance in time.

The loss of the last token is differentiated with respect to the embedding of every token before it.
In a vanilla RNN what is far away has next to no influence (Bengio et al., 1994: the vanishing
gradient); an LSTM's cells and a transformer's attention let it through.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from nlpkit.models.base import IGNORED, LanguageModel

DISTANCES = "gradient_by_distance"
LAYERS = "gradient_by_layer"


def gradient_flow(model: LanguageModel, idx: Tensor, targets: Tensor) -> dict[str, Any]:
    """Gradient norms of a batch (B, T): by distance from the last token, and by layer.

    >>> from nlpkit.models.build import ModelSettings, build_model
    >>> model = build_model(ModelSettings(model="rnn", vocab_size=5, dim=4, layers=1))
    >>> flow = gradient_flow(model, torch.ones(2, 3).long(), torch.ones(2, 3).long())
    >>> len(flow["gradient_by_distance"]), sorted(flow["gradient_by_layer"])
    (3, ['embedding', 'head', 'layer 1'])
    """
    kept: list[Tensor] = []
    embedding = model.get_submodule("embedding")

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        kept.append(output.detach().requires_grad_(True) if not output.requires_grad else output)
        return kept[-1]

    handle = embedding.register_forward_hook(keep)
    groups = model.layer_groups()
    parameters = [p for group in groups.values() for p in group if p.requires_grad]
    last = targets.clone()
    last[:, :-1] = IGNORED
    try:
        with torch.enable_grad():
            _, loss = model(idx, last)
            assert loss is not None
            found = torch.autograd.grad(loss, [kept[0], *parameters], allow_unused=True)
    finally:
        handle.remove()
    of_embeddings, *of_parameters = found
    # (B, T, C), or (B, T, n, C) where each position sees n embeddings
    norms = torch.zeros(idx.size(1)) if of_embeddings is None else _by_time(of_embeddings)
    squares = {
        id(p): float(g.float().pow(2).sum())
        for p, g in zip(parameters, of_parameters, strict=True)
        if g is not None
    }
    by_layer = {
        name: math.sqrt(sum(squares.get(id(p), 0.0) for p in group))
        for name, group in groups.items()
    }
    return {
        DISTANCES: [_short(float(value)) for value in norms.flip(0)],
        LAYERS: {name: _short(value) for name, value in by_layer.items()},
    }


def _by_time(gradient: Tensor) -> Tensor:
    """The norm at each position (T,), of the batch together."""
    if gradient.dim() == 4:  # the windows of an MLP: its n inputs, at the last position
        return gradient[:, -1].float().pow(2).sum(dim=(0, 2)).sqrt().cpu()
    return gradient.float().pow(2).sum(dim=(0, 2)).sqrt().cpu()


def _short(value: float) -> float:
    """Four digits are enough for a picture."""
    return float(f"{value:.4g}") if math.isfinite(value) else 0.0
