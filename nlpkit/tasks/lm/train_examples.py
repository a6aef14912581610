"""Training on prompts and completions, and answering prompts."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import torch

from nlpkit import modeldir
from nlpkit.errors import NlpkitError, plural
from nlpkit.generate.settings import SamplingSettings
from nlpkit.tasks.lm.examples import (
    END,
    Example,
    ExampleBatches,
    end_token,
    example_ids,
    examples_hash,
)
from nlpkit.tasks.lm.model import TextModel
from nlpkit.tasks.lm.run import LmRun, open_start, resolve
from nlpkit.tasks.lm.settings import LmSettings, ResolvedLm
from nlpkit.tasks.lm.train import make_trainer
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


class ExamplesRun(LmRun):
    """One training on prompts and completions: the loss counts completions only."""

    def __init__(
        self,
        examples: Sequence[Example],
        settings: LmSettings,
        *,
        tokenizer: str | None = None,  # char, byte or a tokenizer.json
        init: str | os.PathLike[str] | None = None,
        device: torch.device | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.init = None if init is None else os.fspath(init)
        self.processes = processes or Processes()
        device = device or torch.device("cpu")
        start = None if init is None else open_start(init, settings, tokenizer)
        self.settings = resolve(settings, start, tokenizer)
        self.examples = list(examples)
        codec = start.codec if start else codec_for_examples(examples, tokenizer or "char")
        self._make_model(codec, start, device)
        train, self.heldout = split_examples(
            examples, self.settings.val_fraction, self.settings.seed
        )
        self.summary = (
            f"{plural(len(train), 'example')} to learn from, {len(self.heldout):,} held out, "
            f"vocabulary of {len(codec):,}; {self.model.model.count_parameters():,} parameters"
        )
        self.trainer = prepare_examples(
            self.model, train, self.heldout, self.settings, self.processes
        )

    def data_hash(self) -> str:
        """A fingerprint of the examples."""
        return modeldir.data_hash([examples_hash(self.examples)])

    def result(self) -> TextModel:
        """The model, its loss on held-out completions, and how it came about."""
        loss = examples_loss(self.model, self.heldout) if self.heldout else None
        self._describe(loss, self._end())
        self.model.model.requires_grad_(False)
        return self.model

    def unfinished(self) -> TextModel:
        """The model as it is, its held-out loss not measured."""
        self._describe(None, self._end())
        return self.model

    def _end(self) -> dict[str, str]:
        return {"end": self.model.codec.decode([end_token(self.model.codec)])}


def prepare_examples(
    found: TextModel,
    train: Sequence[Example],
    heldout: Sequence[Example],
    settings: ResolvedLm,
    processes: Processes,
) -> Trainer:
    """A trainer whose loss counts completions only."""
    model = found.model
    sizes = {"batch_size": settings.batch_size, "block_size": model.settings.block_size}
    batches = ExampleBatches(example_ids(train, found.codec), seed=settings.seed, **sizes)
    evaluate = (lambda: examples_loss(found, heldout)) if heldout else None
    return make_trainer(model, batches, settings, processes, evaluate)


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


def answer_prompts(
    found: TextModel, prompts: Sequence[str], max_tokens: int, stop: Sequence[str] = ()
) -> list[str]:
    """The likeliest continuation of each prompt, token by token, up to its end."""
    greedy = SamplingSettings(temperature=0.0)
    rows: list[str] = []
    for step in found.continue_prompts(prompts, max_tokens, greedy, 1, stop=stop):
        rows = [row.text.strip() for row, _ in step]
    return rows
