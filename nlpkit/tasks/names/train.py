"""Training a generator of names: names in, progress records out, a ``NamesModel`` in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nlpkit import modeldir
from nlpkit.errors import plural
from nlpkit.models.build import build_model, check_training, make_optimizers
from nlpkit.models.ngram import NGram
from nlpkit.models.settings import ModelSettings
from nlpkit.registry import NAMES
from nlpkit.tasks.names.data import Alphabet, Name, NameBatches, split_names
from nlpkit.tasks.names.model import NamesModel, count_characters
from nlpkit.tasks.names.settings import NamesSettings
from nlpkit.training.loop import Trainer
from nlpkit.training.run import Run


class NamesRun(Run):
    """One training of a generator of names; an n-gram model is ready at once.

    Without names ``heldout`` some of the others are, see ``split_names``.

    >>> names = [Name(text) for text in ["Anna", "Hanna", "Nana", "Ana"] * 10]
    >>> run = NamesRun(names, NamesSettings(dim=16, layers=1, epochs=2), heldout=names[:4])
    >>> run.train()
    <NamesModel: gpt, 3,268 parameters, 6 characters>
    """

    unit = "characters"

    def __init__(
        self,
        names: Sequence[Name],
        settings: NamesSettings,
        *,
        heldout: Sequence[Name] | None = None,
        fraction: float | None = None,  # of the names to hold out
        size: int | None = None,  # names to hold out
        device: torch.device | None = None,
    ) -> None:
        if heldout is None:
            names, heldout = split_names(names, seed=settings.seed, fraction=fraction, size=size)
        self.names, self.heldout = names, heldout
        self.device = device or torch.device("cpu")
        self.settings = settings.resolve(count_characters(names))
        rows = self.settings.batch_size
        architecture = self._architecture(Alphabet.from_names([*names, *heldout]))
        check_training(architecture, rows, 32, self.device)
        model = build_model(architecture, settings.seed).to(self.device)
        self.batches = NameBatches(
            names,
            self.alphabet,
            # an unpacked row holds one name of about seven characters
            batch_size=rows * (1 if model.packed else 4),
            packed=model.packed,
            seed=settings.seed,
        )
        self.named = NamesModel(model, self.alphabet, names)
        if isinstance(model, NGram):
            model.count(self._batch(number) for number in range(self.batches.per_epoch))
        else:
            self.trainer = self._make_trainer()
        size = model.count_parameters()
        of = f" of {size:,} parameters" if size else ""  # n-grams are counted, not learned
        self.summary = (
            f"{plural(len(names), 'name')} to learn from, {len(heldout):,} held out, "
            f"{len(self.alphabet):,} characters; {settings.model}{of}"
        )

    def _architecture(self, alphabet: Alphabet) -> ModelSettings:
        self.alphabet = alphabet
        shared = ("model", "layers", "heads", "dim", "dropout", "order")
        longest = max(len(name.text) for name in [*self.names, *self.heldout])
        return ModelSettings(
            vocab_size=len(alphabet),
            block_size=max(32, longest + 1),
            starts=alphabet.starts,
            **{name: getattr(self.settings, name) for name in shared},
        )

    def _make_trainer(self) -> Trainer:
        settings, model = self.settings, self.named.model
        optimizers = make_optimizers(
            model,
            optimizer="muon" if settings.model == "gpt" else "adamw",
            lr=settings.lr,
            muon_lr=settings.muon_lr,
            weight_decay=settings.weight_decay,
        )
        return Trainer(
            model,
            optimizers,
            self._loss,
            settings.loop(max(1, round(settings.epochs * self.batches.per_epoch))),
            evaluate=lambda: self.named.loss(self.heldout),
        )

    def _loss(self, number: int) -> tuple[Tensor, int]:
        idx, targets = self._batch(number)
        _, loss = self.named.model(idx, targets)
        return loss, int(targets.numel())

    def _batch(self, number: int) -> tuple[Tensor, Tensor]:
        idx, targets = (torch.from_numpy(part).to(self.device) for part in self.batches[number])
        return idx, targets

    def common_settings(self) -> dict[str, Any]:
        """All settings, and how many names are held out."""
        return {**vars(self.settings), "names held out": len(self.heldout)}

    def data_hash(self) -> str:
        """A fingerprint of the names."""
        return modeldir.data_hash(f"{name}\n".encode() for name in [*self.names, *self.heldout])

    def result(self) -> NamesModel:
        """The model, its loss on the names held out, and how it came about."""
        loss = self.named.loss(self.heldout)
        self._describe({"heldout_loss": loss})
        self.named.curve = []
        self.outcome = f"held-out loss {loss:.4f} nats per character; "
        self.named.model.requires_grad_(False)
        return self.named

    def unfinished(self) -> NamesModel:
        """The model as it is, its held-out loss not measured."""
        self._describe({})
        return self.named

    def _describe(self, metrics: dict[str, float]) -> None:
        # by the names of settings, so that the file serves as a file of settings
        recorded = {name: value for name, value in vars(self.settings).items() if value is not None}
        recorded.pop("muon_lr")
        self.named.config = self.model_config(
            NAMES, {**recorded, "architecture": self.named.model.settings.to_dict()}, metrics
        )
