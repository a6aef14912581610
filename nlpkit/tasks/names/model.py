"""A generator of names on disk, and the scores it gives (``sample.py`` draws names from it)."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nlpkit import modeldir, schema, textio
from nlpkit.errors import NlpkitError
from nlpkit.models.base import IGNORED, LanguageModel
from nlpkit.models.build import read_architecture, read_model, write_model
from nlpkit.registry import NAMES
from nlpkit.tasks.names.data import END, Alphabet, Name
from nlpkit.tasks.names.settings import NamesSettings
from nlpkit.text.codec import save_codec

_NAMES = "names.txt"


class NamesModel(modeldir.Model):
    """A model with its alphabet and the names it was trained on.

    >>> NamesModel.load("en.model").sample(3, prefix="Mar")  # doctest: +SKIP
    ['Marina', 'Marlene', 'Mark']
    """

    def __init__(
        self,
        model: LanguageModel,
        alphabet: Alphabet,
        trained_on: Sequence[Name],
        config: modeldir.ModelConfig | None = None,
    ) -> None:
        self.model, self.alphabet, self.trained_on = model, alphabet, list(trained_on)
        self.config = config or modeldir.ModelConfig(
            kind=NAMES, settings={"architecture": model.settings.to_dict()}
        )

    def __repr__(self) -> str:
        sizes = f"{self.model.count_parameters():,} parameters, {len(self.alphabet)} characters"
        return f"<NamesModel: {self.model.settings.model}, {sizes}>"

    def sample(self, n: int = 20, *, seed: int = 1, **wishes: Any) -> list[str]:
        """So many new names; ``wishes`` are the fields of ``Constraints`` and of
        ``SamplingSettings``: prefix, label, novel, temperature...
        """
        from nlpkit.tasks.names.sample import constraints_of, sample_names

        return [name.text for name in sample_names(self, n, constraints_of(**wishes), seed)]

    @property
    def longest(self) -> int:
        """The most characters a name can have."""
        return self.model.settings.block_size - 1

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(iter([*self.model.parameters(), *self.model.buffers()])).device

    def work(self, characters: int) -> int:
        """About how many multiply-adds it takes to read or write so many characters."""
        return characters * self.model.count_parameters()

    # --- files ----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write everything but ``config.json`` into a folder that ``modeldir.create`` gave."""
        save_codec(self.alphabet, folder)
        lines = ["\t".join(filter(None, name)) + "\n" for name in self.trained_on]
        modeldir.write_text(folder / _NAMES, "".join(lines))
        write_model(folder, self.model)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: torch.device | str = "cpu") -> NamesModel:
        """Read a model folder."""
        path = modeldir.find_model(path)
        config = modeldir.load_config(path, kind=NAMES)
        settings = read_architecture(path, config, NamesSettings)
        alphabet = Alphabet.read(Path(path) / Alphabet.file)
        lines = list(textio.read_lines(str(Path(path) / _NAMES)))
        if len(alphabet) != settings.vocab_size:
            raise NlpkitError(
                f"{path}: the alphabet has {len(alphabet)} ids, the model {settings.vocab_size}",
                hint="copy the model again",
            )
        if alphabet.starts != settings.starts:
            where = f"{Path(path) / modeldir.CONFIG}: settings.architecture.starts"
            schema.refuse(where, settings.starts, f"the {alphabet.starts} of {Alphabet.file}")
        names = [Name(*line.split("\t", 1)) for line in lines]
        return cls(read_model(path, settings).to(device), alphabet, names, config)

    # --- scores ---------------------------------------------------------------------------------

    def nats(self, names: Sequence[Name]) -> list[float]:
        """The negative log-likelihood of each name, its end included."""
        return [float(losses.sum()) for losses in self._losses(names)]

    def open_nats(self, names: Sequence[Name]) -> list[float]:
        """The same of names that may go on: without the end."""
        return [float(losses[:-1].sum()) for losses in self._losses(names)]

    @torch.no_grad()
    def _losses(self, names: Sequence[Name], batch_size: int = 256) -> list[np.ndarray]:
        """The negative log-likelihood of each character of each name, and of its end."""
        longest = max((len(name.text) for name in names), default=0)
        if longest > self.longest:
            raise NlpkitError(
                f"a name of {longest} characters; this model knows names of up to {self.longest}"
            )
        found: list[np.ndarray] = [np.zeros(0)] * len(names)
        order = sorted(range(len(names)), key=lambda i: len(names[i].text))
        for start in range(0, len(order), batch_size):
            members = order[start : start + batch_size]
            idx, targets = self._rows([names[i] for i in members])
            logits, _ = self.model(idx)
            losses = F.cross_entropy(
                logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none"
            )
            for i, row in zip(members, losses.view(targets.shape).cpu().numpy(), strict=True):
                found[i] = row[: len(names[i].text) + 1].astype(np.float64)
        return found

    def _rows(self, names: Sequence[Name]) -> tuple[Tensor, Tensor]:
        """Ids and targets (B, T), one name per row, padded on the right."""
        rows = [
            [self.alphabet.start(name.label), *self.alphabet.encode(name.text)] for name in names
        ]
        width = max(map(len, rows))
        idx = [row + [END] * (width - len(row)) for row in rows]
        targets = [[*row[1:], END] + [IGNORED] * (width - len(row)) for row in rows]
        return torch.tensor(idx, device=self.device), torch.tensor(targets, device=self.device)

    def loss(self, names: Sequence[Name]) -> float:
        """Mean negative log-likelihood per character, ends included."""
        return sum(self.nats(names)) / count_characters(names)

    def label_counts(self) -> dict[str, int]:
        """How often each label was there in training."""
        return dict(Counter(name.label for name in self.trained_on))


def count_characters(names: Sequence[Name]) -> int:
    """Characters to learn, ends included."""
    return sum(len(name.text) + 1 for name in names)


def bits_per_character(nats: float, text: str) -> float:
    """The score of a name for each of its characters and its end."""
    return nats / math.log(2) / (len(text) + 1)
