"""What learns on a pre-trained encoder, and how fast: frozen layers, rates that fall with depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from nlpkit import registry
from nlpkit.errors import NlpkitError
from nlpkit.models.finetune import PretrainedEncoder
from nlpkit.models.finetune_settings import NEW_LEARNS


def parse_freeze(value: str | None, encoder: PretrainedEncoder) -> int:
    """How many stages stay as they are: ``all``, or so many layers and what is below them.

    None is what suits the encoder: all of an ELMo, nothing of a transformer.
    """
    stages = len(encoder.stages())
    if value is None:
        return stages if encoder.kind == registry.ELMO else 0
    if value == "all":
        return stages
    if not (value.isascii() and value.isdigit()):
        raise NlpkitError(f"`freeze` is {value!r}", hint=f"all, or 0 to {stages - 1}")
    if int(value) >= stages:
        raise NlpkitError(
            f"`freeze` {value}: the model has {stages - 1} layers",
            hint=f"all, or 0 to {stages - 1}",
        )
    return int(value) + 1 if int(value) else 0


def layer_rates(
    encoder: PretrainedEncoder,
    head: nn.Module | None,
    *,
    frozen: int,
    lr: float,
    decay: float,
    weight_decay: float = 0.01,
) -> list[dict[str, Any]]:
    """Groups of parameters for AdamW: the head learns fastest, each layer ``decay`` times as fast
    as the one above it, frozen ones not at all."""
    stages = encoder.stages()
    groups: list[dict[str, Any]] = []
    for depth, stage in enumerate(stages):
        for parameter in stage:
            parameter.requires_grad_(depth >= frozen)
        if depth >= frozen:
            rate = lr * decay ** (len(stages) - 1 - depth)
            groups += _by_dimension(stage, rate, weight_decay)
    if head is not None:
        rate = lr * (NEW_LEARNS if frozen < len(stages) else 1)
        groups += _by_dimension(list(head.parameters()), rate, weight_decay)
    return groups


def _by_dimension(
    parameters: Sequence[nn.Parameter], lr: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Matrices are pulled towards zero, vectors are not."""
    matrices = [parameter for parameter in parameters if parameter.dim() >= 2]
    vectors = [parameter for parameter in parameters if parameter.dim() < 2]
    return [
        {"params": some, "lr": lr, "weight_decay": decay}
        for some, decay in ((matrices, weight_decay), (vectors, 0.0))
        if some
    ]
