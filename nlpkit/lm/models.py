"""The table of models: build one, and write it to and read it from a model folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nlpkit import modeldir
from nlpkit.device import seeded
from nlpkit.errors import NlpkitError
from nlpkit.lm.base import LanguageModel
from nlpkit.lm.feedforward import MLP, Bigram
from nlpkit.lm.gpt import GPT
from nlpkit.lm.ngram import NGram
from nlpkit.lm.recurrent import Recurrent
from nlpkit.lm.settings import ModelSettings
from nlpkit.nn.optimizers import Muon, adamw

CLASSES: dict[str, Any] = {
    "ngram": NGram,
    "bigram": Bigram,
    "mlp": MLP,
    "rnn": Recurrent,
    "lstm": Recurrent,
    "gru": Recurrent,
    "gpt": GPT,
}


def build_model(settings: ModelSettings, seed: int = 1) -> LanguageModel:
    """A new model with random weights.

    >>> build_model(ModelSettings(model="bigram", vocab_size=3)).count_parameters()
    9
    """
    model = empty_model(settings, seed)
    if isinstance(model, GPT):
        model.initialize(torch.Generator().manual_seed(seed))
    return model


def make_optimizers(
    model: nn.Module,
    *,
    optimizer: str,
    lr: float,
    weight_decay: float,
    muon_lr: float = 0.02,
) -> list[torch.optim.Optimizer]:
    """AdamW for all, or Muon for the matrices of a transformer's blocks and AdamW for the rest."""
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if optimizer == "adamw":
        return [adamw([p for _, p in trained], lr=lr, weight_decay=weight_decay)]
    matrices = [
        (p, 2 if name.endswith("qk.weight") else 1)
        for name, p in trained
        if "blocks." in name and p.dim() == 2
    ]
    inside = {id(p) for p, _ in matrices}
    rest = [p for _, p in trained if id(p) not in inside]
    optimizers: list[torch.optim.Optimizer] = []
    if matrices:
        optimizers.append(Muon(matrices, lr=muon_lr, weight_decay=weight_decay))
    if rest:
        optimizers.append(adamw(rest, lr=lr, weight_decay=weight_decay))
    return optimizers


def write_model(folder: Path, model: LanguageModel) -> None:
    """Write weights into a folder that ``modeldir.create`` gave; tied ones once."""
    tensors = model.state_dict()
    if model.settings.tied:
        tensors.pop("head.weight", None)
    modeldir.write_weights(folder, tensors)


def read_model(path: str | os.PathLike[str], settings: ModelSettings) -> LanguageModel:
    """Read the weights of a model folder into a model of these settings, ready to be used."""
    tensors = modeldir.read_weights(path)
    check_size(path, settings, tensors)
    return adopt_weights(empty_model(settings), tensors, path)


def empty_model(settings: ModelSettings, seed: int = 0) -> LanguageModel:
    """A model before its weights are read; a small one of another kind than GPT has random ones."""
    with seeded(seed, 0, torch.device("cpu")):
        model: LanguageModel = CLASSES[settings.model](settings)
    return model


def check_size(path: str | os.PathLike[str], settings: ModelSettings, tensors: Any) -> None:
    """A config that asks for more layers than there are tensors is damaged."""
    if settings.layers > len(tensors):
        raise NlpkitError(f"{path}: config.json and weights do not belong together")


def adopt_weights(
    model: LanguageModel, tensors: dict[str, torch.Tensor], path: str | os.PathLike[str]
) -> LanguageModel:
    """Make the tensors the weights of a model that has none yet."""
    if model.settings.tied and "embedding.weight" in tensors:
        tensors = {**tensors, "head.weight": tensors["embedding.weight"]}
    if isinstance(model, NGram):  # its tables are as long as the data made them
        for name, tensor in tensors.items():
            setattr(model, name, tensor)
    try:
        model.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        reason = str(error).split("\n")[1 if "\n" in str(error) else 0].strip()
        raise NlpkitError(
            f"{path}: weights do not fit the settings: {reason}", hint="copy the model again"
        ) from None
    if isinstance(model, GPT) and model.settings.tied:
        model.head.weight = model.embedding.weight
    model.requires_grad_(False)
    return model.eval()
