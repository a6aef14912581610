"""Training a GPT on a stream of ids, alone or as one of several processes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpkit.errors import NlpkitError
from nlpkit.lm.base import LanguageModel
from nlpkit.lm.distributed import Processes
from nlpkit.lm.gpt import GPT
from nlpkit.lm.models import build_model, make_optimizers
from nlpkit.lm.recipes import GptSettings
from nlpkit.lm.stream import StreamBatches, windows
from nlpkit.training import Trainer

_EVAL_TOKENS = 8192  # of the validation part, at each evaluation but the last


def freeze_layers(model: LanguageModel, count: int) -> None:
    """Keep embeddings and the lowest ``count`` blocks as they are."""
    assert isinstance(model, GPT)
    if count > len(model.blocks):
        raise NlpkitError(f"--freeze {count}: the model has {len(model.blocks)} layers")
    if count:
        for part in (model.embedding, model.previous, model.position, *model.blocks[:count]):
            if part is not None:
                part.requires_grad_(False)


def prepare_training(
    model: LanguageModel,
    train: np.ndarray,
    validation: np.ndarray,
    settings: GptSettings,
    processes: Processes | None = None,
) -> Trainer:
    """A trainer for a model that is on its device.

    >>> ids = np.random.default_rng(1).integers(0, 9, 500)
    >>> settings = GptSettings(layers=1, dim=16, block_size=8, max_iters=3).resolve()
    >>> model = build_model(settings.architecture(9))
    >>> [progress.step for progress in prepare_training(model, ids, ids, settings).fit()]
    [1, 2, 3]
    """
    processes = processes or Processes()
    block = model.settings.block_size
    device = next(model.parameters()).device
    assert settings.batch_size is not None
    batches = StreamBatches(
        train, batch_size=settings.batch_size, block_size=block, seed=settings.seed
    )
    freeze_layers(model, settings.freeze)
    optimizers = make_optimizers(
        model,
        optimizer=settings.optimizer,
        lr=settings.lr,
        muon_lr=settings.muon_lr,
        weight_decay=settings.weight_decay,
    )
    trained: Any = torch.compile(model) if settings.compile else model
    trained = processes.wrap(trained)

    def batch_loss(number: int) -> tuple[Tensor, int]:
        # the processes take turns, so that together they see what one would with more batches
        idx, targets = batches[number * processes.count + processes.rank]
        _, loss = trained(idx.to(device), targets.to(device))
        return loss, idx.numel() * processes.count

    return Trainer(
        _Synchronized(model, trained) if processes.count > 1 else model,
        optimizers,
        batch_loss,
        settings.training(),
        evaluate=lambda: stream_loss(model, validation, at_most=max(1, _EVAL_TOKENS // block)),
        clock=lambda: processes.agree(time.monotonic(), device),
    )


class _Synchronized(nn.Module):
    """The plain model, whose gradients another module averages over the processes."""

    def __init__(self, model: nn.Module, wrapper: Any) -> None:
        super().__init__()
        self.model = model
        self.no_sync = wrapper.no_sync


@torch.no_grad()
def stream_loss(
    model: LanguageModel, ids: np.ndarray, *, batch_size: int = 32, at_most: int | None = None
) -> float:
    """Mean negative log-likelihood in nats, in windows of the block size that do not overlap."""
    device = next(model.parameters()).device
    total = count = 0.0
    for idx, targets in windows(ids, model.settings.block_size, batch_size, at_most):
        _, loss = model(idx.to(device), targets.to(device))
        assert loss is not None
        total += loss.item() * targets.numel()
        count += targets.numel()
    return total / count


def new_model(settings: GptSettings, vocab_size: int) -> LanguageModel:
    """A GPT with random weights."""
    return build_model(settings.architecture(vocab_size), settings.seed)
