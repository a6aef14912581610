"""Training a classifier on a pre-trained encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from nlpkit.device import check_training_memory, seeded
from nlpkit.errors import NlpkitError, UsageError, plural
from nlpkit.models.finetune import PretrainedEncoder, open_encoder
from nlpkit.models.finetune_rates import layer_rates, parse_freeze
from nlpkit.models.finetune_states import cache_states
from nlpkit.nn.optimizers import AdamW
from nlpkit.tasks.classify.data import Example, two_texts
from nlpkit.tasks.classify.model import label_loss
from nlpkit.tasks.classify.pretrained import (
    PretrainedClassifier,
    TextNetwork,
    pick_pooling,
    read_texts,
)
from nlpkit.tasks.classify.settings import ClassifierSettings, TextTuning
from nlpkit.tasks.classify.train import (
    AnyClassifierRun,
    ClassifierRun,
    has_pairs,
    label_targets,
)
from nlpkit.text.vocab import Vocab
from nlpkit.training.batches import Batches
from nlpkit.training.loop import Trainer


class PretrainedRun(AnyClassifierRun):
    """One training of a classifier on an encoder."""

    def __init__(
        self,
        examples: Sequence[Example],
        encoder: PretrainedEncoder,
        settings: TextTuning,
        *,
        dev: Sequence[Example] = (),
        device: torch.device | None = None,
    ) -> None:
        self.examples, self.dev = examples, dev
        pooling = pick_pooling(settings.pooling, encoder)
        pairs = has_pairs(examples, settings.pairs)
        several = settings.multi_label or any(len(example.labels) != 1 for example in examples)
        self.settings = replace(settings, pooling=pooling, pairs=pairs, multi_label=several)
        self.device = device or torch.device("cpu")
        counts = Counter(label for example in examples for label in example.labels)
        if len(counts) < 2 and not several:
            only = next(iter(counts), "none")
            raise NlpkitError(f"one label only, {only}: nothing to tell apart", hint="more labels")
        self.labels = Vocab.from_counts(counts, specials=())
        self.targets = label_targets(examples, self.labels)
        check_training_memory(sum(p.numel() for p in encoder.parameters()), self.device)
        with seeded(settings.seed, 0, torch.device("cpu")):
            network = TextNetwork(encoder, pooling, len(self.labels), settings.dropout)
        self.network = network.to(self.device)
        frozen = parse_freeze(settings.freeze, encoder)
        if frozen == 0:
            texts = (two_texts(example.texts) for example in examples)
            encoder.learn_words(text for pair in texts for text in pair if text is not None)
        readings, self.cut = read_texts(encoder, [example.texts for example in examples])
        self.all_frozen = frozen == len(encoder.stages())
        self._batches = Batches(
            [reading.ids for reading in readings],
            [reading.segments for reading in readings],
            tokens=2**31,
            most_rows=settings.batch_size,
            seed=settings.seed,
            fill=(encoder.pad_id, 0),
        )
        groups = layer_rates(
            encoder,
            self.network.head,
            frozen=frozen,
            lr=settings.rate(encoder.size, frozen=self.all_frozen),
            decay=settings.layer_decay,
            weight_decay=settings.weight_decay,
        )
        self._cache = cache_states(encoder, readings, self.device) if self.all_frozen else None
        trained: nn.Module = self.network.head if self.all_frozen else self.network
        kind = "multi-label" if several else "one label each"
        self.summary = (
            f"{plural(len(examples), 'text')}, {plural(len(self.labels), 'label')}, {kind}; "
            f"{encoder.kind}, {frozen} of {len(encoder.stages())} stages frozen"
        )
        per_epoch = self._batches.per_epoch
        self.trainer = Trainer(
            trained,
            [AdamW(groups, betas=(0.9, 0.99), fused=True)],
            self._loss,
            settings.loop(settings.passes(per_epoch) * per_epoch, eval_interval=per_epoch),
            evaluate=self._error if dev else None,
        )

    def warnings(self) -> list[str]:
        """What the user should know before training."""
        texts = plural(len(self.examples), "text")
        cut = [f"{self.cut:,} of {texts} are longer than the encoder reads, and are cut"]
        return [*super().warnings(), *(cut if self.cut else [])]

    def _loss(self, number: int) -> tuple[Tensor, int]:
        batch = self._batches[number]
        targets = torch.from_numpy(self.targets[batch.rows]).to(self.device)
        idx, mask = batch.columns[0].tensors(self.device)
        if self._cache is not None:
            scores = self.network.head(self._cache.pad(batch.rows, mask), mask)
        else:
            scores = self.network(idx, batch.columns[1].tensors(self.device)[0], mask)
        return label_loss(scores, targets, multi_label=self.settings.multi_label), len(batch.rows)

    def classifier(self) -> PretrainedClassifier:
        """The model as it is now, ready to predict."""
        return PretrainedClassifier(self.network, self.settings, self.labels)


def classifier_run(
    examples: Sequence[Example],
    settings: ClassifierSettings,
    *,
    dev: Sequence[Example] = (),
    vectors: Any = None,
    device: torch.device | None = None,
) -> ClassifierRun | PretrainedRun:
    """The training that the settings ask for: on an encoder, or from scratch."""
    if settings.pretrained is None:
        return ClassifierRun(examples, settings, dev=dev, vectors=vectors, device=device)
    if vectors is not None:
        raise UsageError("`vectors` and `pretrained` contradict each other")
    tuning = settings.tuning()
    encoder = open_encoder(settings.pretrained)
    return PretrainedRun(examples, encoder, tuning, dev=dev, device=device)
