"""Training a GPT on a stream of ids, alone or as one of several processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpkit import modeldir, registry
from nlpkit.device import memory_advice
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.models.base import LanguageModel
from nlpkit.models.build import build_model, check_training, make_optimizers
from nlpkit.models.gpt import GPT
from nlpkit.models.settings import Recipe
from nlpkit.tasks.lm.model import GptModel
from nlpkit.tasks.lm.settings import GptSettings, ResolvedGpt
from nlpkit.tasks.lm.stream import StreamBatches, split_stream, tokenize_stream, windows
from nlpkit.text.codec import Codec, check_same_codec
from nlpkit.textio import Block
from nlpkit.training.distributed import Processes
from nlpkit.training.loop import Trainer
from nlpkit.training.run import Run

_EVAL_TOKENS = 8192  # of the validation part, at each evaluation but the last


class GptRun(Run):
    """One training of a GPT: text in, a ``GptModel`` out.

    >>> text = [Block(b"to be or not to be\\n" * 50, "-", 1)]
    >>> settings = GptSettings(layers=1, dim=16, block_size=8, max_iters=3)
    >>> GptRun(text, settings).train()
    <GptModel: 8,736 parameters, 1 layers, 2 heads, width 16, context 8, vocabulary 8>
    """

    processes: Processes

    def __init__(
        self,
        blocks: Iterable[Block],
        settings: GptSettings,
        *,
        tokenizer: str | Codec | None = None,  # char, byte, a tokenizer.json, or what encodes
        init: str | os.PathLike[str] | None = None,
        device: torch.device | None = None,
        processes: Processes | None = None,
        folder: str | None = None,  # for a file of ids that has no name
        errors: str = "strict",
    ) -> None:
        self.init = None if init is None else os.fspath(init)
        self.processes = processes or Processes()
        self.settings = settings.resolve()
        device = device or torch.device("cpu")
        named = isinstance(tokenizer, str)
        start = None if init is None else _start(init, settings, tokenizer)
        if start is not None:
            self.settings = replace(self.settings, recipe=start.model.settings.recipe)
        elif settings.freeze:
            raise UsageError("`freeze` needs `init`")
        codec, self.ids = tokenize_stream(
            blocks,
            tokenizer if named else "char",  # type: ignore[arg-type]
            folder or tempfile.gettempdir(),
            errors,
            start.codec if start else None if named else tokenizer,  # type: ignore[arg-type]
        )
        if start is not None:
            model = start.model.requires_grad_(True)
        else:
            with memory_advice():
                model = new_model(self.settings, len(codec), device)
        model = model.to(device)
        block_size = model.settings.block_size
        train, self.validation = split_stream(self.ids, block_size, self.settings.val_fraction)
        self.summary = (
            f"{len(train):,} tokens to learn from, {len(self.validation):,} held out, "
            f"vocabulary of {len(codec):,}; {model.count_parameters():,} parameters"
        )
        self.gpt = GptModel(model, codec)
        self.trainer = prepare_training(
            model, train, self.validation, self.settings, self.processes
        )

    def common_settings(self) -> dict[str, Any]:
        """All settings, the number of processes, and the model it began with."""
        return {**vars(self.settings), "processes": self.processes.count, "init": self.init}

    def data_hash(self) -> str:
        """A fingerprint of the ids, which stay on disk."""
        return modeldir.data_hash([self.ids.data.cast("B")])

    def result(self) -> GptModel:
        """The model, its loss on all of the held-out part, and how it came about."""
        held_out = len(self.validation) > 0
        loss = stream_loss(self.gpt.model, self.validation) if held_out else None
        recorded = {name: value for name, value in vars(self.settings).items() if value is not None}
        for internal in ("muon_lr", "freeze"):
            recorded.pop(internal)
        self.gpt.config = modeldir.ModelConfig(
            kind=registry.GPT,
            settings={**recorded, "architecture": self.gpt.model.settings.to_dict()},
            seed=self.settings.seed,
            data_hash=self.data_hash(),
            metrics={} if loss is None else {"heldout_loss": loss},
        )
        self.outcome = "" if loss is None else f"held-out loss {loss:.4f} nats per token; "
        self.gpt.model.requires_grad_(False)
        return self.gpt


def _start(init: Any, settings: GptSettings, tokenizer: str | Codec | None) -> GptModel:
    """The model to train further, if nothing that was asked for contradicts it."""
    sizes = [name for name in ("layers", "heads", "dim", "block_size") if getattr(settings, name)]
    if sizes:
        raise UsageError(f"`init` brings its own `{sizes[0]}`")
    start = GptModel.load(init)
    recipe_of(start.model, settings.recipe)
    if isinstance(tokenizer, str):
        check_same_codec(start.codec, tokenizer)
    elif tokenizer is not None:
        raise UsageError("`init` brings its own `tokenizer`")
    return start


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
        _Synchronized(model, trained) if processes.count > 1 else model,
        optimizers,
        batch_loss,
        settings.loop(),
        evaluate=evaluate if len(validation) else None,
        clock=processes.clock(device),
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


def new_model(
    settings: ResolvedGpt, vocab_size: int, device: torch.device | None = None
) -> LanguageModel:
    """A GPT with random weights, if there is memory to train it on the ``device``."""
    architecture = settings.architecture(vocab_size)
    check_training(
        architecture, settings.batch_size, architecture.block_size, device or torch.device("cpu")
    )
    return build_model(architecture, settings.seed)
