"""Training a GPT on a stream of ids, alone or as one of several processes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlpkit import modeldir, registry
from nlpkit.errors import NlpkitError
from nlpkit.models.base import LanguageModel
from nlpkit.models.build import build_model, check_training, make_optimizers
from nlpkit.models.gpt import GPT
from nlpkit.models.settings import Recipe
from nlpkit.tasks.lm.model import GptModel
from nlpkit.tasks.lm.settings import ResolvedGpt
from nlpkit.tasks.lm.stream import StreamBatches, windows
from nlpkit.training.distributed import Processes, Synchronized
from nlpkit.training.loop import Trainer

_EVAL_TOKENS = 8192  # of the validation part, at each evaluation but the last


def recipe_of(model: LanguageModel, given: Recipe | None) -> Recipe:
    """The recipe of a model to train further; another one that is asked for is refused."""
    recipe = model.settings.recipe
    if given not in (None, recipe):
        raise NlpkitError(
            f"a model of recipe {recipe} cannot be trained further with recipe {given}",
            hint=f"recipe {recipe}, or none: a model brings its own",
        )
    return recipe


def freeze_layers(model: LanguageModel, count: int) -> None:
    """Keep embeddings and the lowest ``count`` blocks as they are."""
    assert isinstance(model, GPT)
    if count > len(model.blocks):
        raise NlpkitError(f"`freeze` {count}: the model has {len(model.blocks)} layers")
    if count:
        for part in (model.embedding, model.previous, model.position, *model.blocks[:count]):
            if part is not None:
                part.requires_grad_(False)


def prepare_training(
    model: LanguageModel,
    train: np.ndarray,
    validation: np.ndarray,
    settings: ResolvedGpt,
    processes: Processes | None = None,
) -> Trainer:
    """A trainer for a model that is on its device. Without ``validation`` the last weights stay.

    >>> from nlpkit.tasks.lm.settings import GptSettings
    >>> ids = np.random.default_rng(1).integers(0, 9, 500)
    >>> settings = GptSettings(layers=1, dim=16, block_size=8, max_iters=3).resolve()
    >>> model = build_model(settings.architecture(9))
    >>> [progress.step for progress in prepare_training(model, ids, ids, settings).fit()]
    [1, 2, 3]
    """
    processes = processes or Processes()
    block = model.settings.block_size
    device = next(model.parameters()).device
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

    def evaluate() -> float:
        return stream_loss(model, validation, at_most=max(1, _EVAL_TOKENS // block))

    return Trainer(
        Synchronized(model, trained) if processes.count > 1 else model,
        optimizers,
        batch_loss,
        settings.loop(),
        evaluate=evaluate if len(validation) else None,
        clock=lambda: processes.agree(time.monotonic(), device),
    )


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


def finish_training(
    gpt: GptModel,
    trainer: Trainer,
    validation: np.ndarray,
    settings: ResolvedGpt,
    data_hash: str,
) -> float | None:
    """Keep the best weights and note how they came about; gives the held-out loss, if any."""
    trainer.keep_best()
    loss = stream_loss(gpt.model, validation) if len(validation) else None
    recorded = {name: value for name, value in vars(settings).items() if value is not None}
    for internal in ("muon_lr", "freeze"):
        recorded.pop(internal)
    gpt.config = modeldir.ModelConfig(
        kind=registry.GPT,
        settings={**recorded, "architecture": gpt.model.settings.to_dict()},
        seed=settings.seed,
        data_hash=data_hash,
        metrics={} if loss is None else {"heldout_loss": loss},
    )
    gpt.curve = trainer.counters.records
    return loss


def new_model(
    settings: ResolvedGpt, vocab_size: int, device: torch.device | None = None
) -> LanguageModel:
    """A GPT with random weights, if there is memory to train it on the ``device``."""
    architecture = settings.architecture(vocab_size)
    check_training(
        architecture, settings.batch_size, architecture.block_size, device or torch.device("cpu")
    )
    return build_model(architecture, settings.seed)
