"""Training on prompts and completions, and answering prompts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.generate.settings import SamplingSettings
from nlpkit.models.build import make_optimizers
from nlpkit.tasks.lm.examples import END, Example, ExampleBatches, end_token, example_ids
from nlpkit.tasks.lm.model import TextModel
from nlpkit.tasks.lm.settings import ResolvedLm
from nlpkit.tasks.lm.train import freeze_layers
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Bytes, Codec
from nlpkit.text.subwords import Subwords
from nlpkit.training.distributed import Processes
from nlpkit.training.loop import Trainer


def codec_for_examples(examples: Sequence[Example], tokenizer: str) -> Codec:
    """Characters, bytes, or subwords that have an end-of-text mark."""
    if tokenizer == "byte":
        return Bytes()
    if tokenizer == "char":
        texts = [f"{one.prompt}{one.completion}" for one in examples]
        return Characters.from_text([*texts, END])
    codec = Subwords.load(tokenizer)
    end_token(codec)
    return codec


def split_examples(
    examples: Sequence[Example], fraction: float, seed: int
) -> tuple[list[Example], list[Example]]:
    """Examples to learn from and some held out, by chance."""
    order = np.random.default_rng(seed).permutation(len(examples)).tolist()
    held = round(fraction * len(examples))
    if held >= len(examples):
        raise NlpkitError(f"{len(examples)} examples are too few to hold {held} out")
    return [examples[i] for i in order[held:]], [examples[i] for i in order[:held]]


def prepare_examples(
    found: TextModel,
    train: Sequence[Example],
    heldout: Sequence[Example],
    settings: ResolvedLm,
    processes: Processes | None = None,
) -> Trainer:
    """A trainer whose loss counts completions only."""
    processes = processes or Processes()
    model, device = found.model, found.device
    freeze_layers(model, settings.freeze)
    sizes = {"batch_size": settings.batch_size, "block_size": model.settings.block_size}
    batches = ExampleBatches(example_ids(train, found.codec), seed=settings.seed, **sizes)
    optimizers = make_optimizers(
        model,
        optimizer=settings.optimizer,
        lr=settings.lr,
        muon_lr=settings.muon_lr,
        weight_decay=settings.weight_decay,
    )
    trained: Any = processes.wrap(torch.compile(model) if settings.compile else model)

    def batch_loss(number: int) -> tuple[Tensor, int]:
        idx, targets = batches[number * processes.count + processes.rank]
        _, loss = trained(idx.to(device), targets.to(device))
        return loss, idx.numel() * processes.count

    return Trainer(
        model,
        optimizers,
        batch_loss,
        settings.loop(),
        evaluate=(lambda: examples_loss(found, heldout)) if heldout else None,
        clock=lambda: processes.agree(time.monotonic(), device),
    )


@torch.no_grad()
def examples_loss(found: TextModel, examples: Sequence[Example]) -> float:
    """Mean loss in nats of the tokens of completions."""
    block = found.model.settings.block_size
    batches = ExampleBatches(
        example_ids(examples, found.codec), batch_size=32, block_size=block, seed=0
    )
    total, count = 0.0, 0
    for number in range(batches.per_epoch):
        idx, targets = (part.to(found.device) for part in batches[number])
        total += float(found.model.token_losses(idx, targets).sum())
        count += int((targets >= 0).sum())
    return total / max(1, count)


def finish_examples(
    found: TextModel,
    trainer: Trainer,
    heldout: Sequence[Example],
    settings: ResolvedLm,
    data_hash: str,
) -> float | None:
    """Keep the best weights and note how they came about; gives the held-out loss, if any."""
    trainer.keep_best()
    loss = examples_loss(found, heldout) if heldout else None
    recorded = {name: value for name, value in vars(settings).items() if value is not None}
    for internal in ("muon_lr", "freeze"):
        recorded.pop(internal)
    end = found.codec.decode([end_token(found.codec)])
    found.config = modeldir.ModelConfig(
        kind=found.kind,
        settings={**recorded, "end": end, "architecture": found.model.settings.to_dict()},
        seed=settings.seed,
        data_hash=data_hash,
        metrics={} if loss is None else {"heldout_loss": loss},
    )
    found.curve = trainer.counters.records
    return loss


def answer_prompts(
    found: TextModel, prompts: Sequence[str], max_tokens: int, stop: Sequence[str] = ()
) -> list[str]:
    """The likeliest continuation of each prompt, token by token, up to its end."""
    greedy = SamplingSettings(temperature=0.0)
    rows: list[str] = []
    for step in found.continue_prompts(prompts, max_tokens, greedy, 1, stop=stop):
        rows = [row.text.strip() for row, _ in step]
    return rows
