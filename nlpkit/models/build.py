"""The table of models: build one, and write it to and read it from a model folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from nlpkit import modeldir, schema
from nlpkit.device import check_training_memory, seeded
from nlpkit.errors import NlpkitError
from nlpkit.models.base import LanguageModel
from nlpkit.models.feedforward import MLP, Bigram
from nlpkit.models.gpt import GPT
from nlpkit.models.ngram import NGram
from nlpkit.models.recurrent import Recurrent
from nlpkit.models.settings import ModelSettings
from nlpkit.nn.optimizers import Muon, Stacks, adamw

_POSITIONS = 1 << 28  # bytes of the table of positions that any model may have
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
    model.initialize(torch.Generator().manual_seed(seed))
    return model


def check_training(settings: ModelSettings, rows: int, length: int, device: torch.device) -> None:
    """Refuse a model whose training on batches of (rows, length) does not fit in memory."""
    # what a layer keeps of a token for the backward pass, at least, in multiples of its width
    kept = {"gpt": 12 * settings.layers, "mlp": settings.order + 4, "bigram": 0}
    of_token = kept.get(settings.model, 6 * settings.layers) * settings.dim
    angles = 2 * settings.block_size * settings.dim if settings.positions == "rotary" else 0
    check_training_memory(
        settings.count_parameters(),
        device,
        activations=rows * length * (of_token + 2 * settings.vocab_size)
        + (angles if settings.model == "gpt" else 0),
    )


class HasMatrices(Protocol):
    """A model that says which of its matrices Muon may train."""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def matrices(self) -> Stacks: ...


def make_optimizers(
    model: HasMatrices,
    *,
    optimizer: str,
    lr: float,
    weight_decay: float,
    muon_lr: float = 0.02,
    fast: Sequence[nn.Parameter] = (),
) -> list[torch.optim.Optimizer]:
    """AdamW for all, or Muon for the model's hidden matrices and AdamW for the rest.

    AdamW trains ``fast`` ones at a multiple of its rate.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if optimizer == "adamw":
        return [adamw(trained, lr=lr, weight_decay=weight_decay, fast=fast)]
    matrices = [(matrix, count) for matrix, count in model.matrices() if matrix.requires_grad]
    inside = {id(matrix) for matrix, _ in matrices}
    rest = [parameter for parameter in trained if id(parameter) not in inside]
    optimizers: list[torch.optim.Optimizer] = []
    if matrices:
        optimizers.append(Muon(matrices, lr=muon_lr, weight_decay=weight_decay))
    if rest:
        optimizers.append(adamw(rest, lr=lr, weight_decay=weight_decay, fast=fast))
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


def read_architecture(
    path: str | os.PathLike[str], config: modeldir.ModelConfig, training: type
) -> ModelSettings:
    """What ``config.json`` says of a model, checked; ``training`` are the settings beside it."""
    where = f"{Path(path) / modeldir.CONFIG}: settings"
    schema.read(training, config.settings, where, others=True)
    return ModelSettings.from_dict(config.settings.get("architecture"), f"{where}.architecture")


class NoRandomNumbers(TorchFunctionMode):
    """Modules without their random weights: drawing them on no device loads half of torch."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__name__", "").endswith(("uniform_", "normal_")):
            return None
        return func(*args, **(kwargs or {}))


def check_size(path: str | os.PathLike[str], settings: ModelSettings, tensors: Any) -> None:
    """Refuse a config that does not describe these tensors, before memory is asked for."""
    where = str(Path(path) / modeldir.WEIGHTS)
    parts = {
        "layers": settings.layers if CLASSES[settings.model] in (GPT, Recurrent) else 0,
        "previous": settings.previous if settings.model == "gpt" else 0,
        "order": settings.order if settings.model == "ngram" else 0,
    }
    for name, count in parts.items():  # or building them takes for ever, even without memory
        if count > len(tensors):
            raise NlpkitError(f"{where} has too few tensors for {name} {count}", hint=schema.AGAIN)
    rotary = settings.model == "gpt" and settings.positions == "rotary"
    shortened = replace(settings, block_size=2) if rotary else settings  # no tensor depends on it
    try:
        with torch.device("meta"), NoRandomNumbers():
            state = CLASSES[settings.model](shortened).state_dict()
    except NlpkitError as error:
        raise NlpkitError(f"{path}: {error.message}", hint=schema.AGAIN) from None
    expected: dict[str, schema.Shape] = {name: tuple(part.shape) for name, part in state.items()}
    if settings.tied:
        expected.pop("head.weight", None)
    if settings.model == "ngram":  # its tables are as long as the data made them
        expected = {name: (f"contexts of length {name.split('_')[1]}",) for name in expected}
    whole = [name for name, part in state.items() if not part.is_floating_point()]
    schema.check_tensors(tensors, expected, where, whole=whole)
    size = sum(tensor.nbytes for tensor in tensors.values())
    if rotary and 8 * settings.block_size * settings.dim > max(_POSITIONS, 8 * size):
        raise NlpkitError(
            f"{path}: block_size {settings.block_size} is out of proportion to {size} bytes of "
            f"weights",
            hint=schema.AGAIN,
        )


def adopt_weights(
    model: LanguageModel, tensors: dict[str, torch.Tensor], path: str | os.PathLike[str]
) -> LanguageModel:
    """Make the tensors the weights of a model that has none yet."""
    if model.settings.tied and "embedding.weight" in tensors:
        tensors = {**tensors, "head.weight": tensors["embedding.weight"]}
    if isinstance(model, NGram):  # its tables are as long as the data made them
        for name, tensor in tensors.items():
            setattr(model, name, tensor)
        model.check(str(path))
    try:
        model.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        reason = str(error).split("\n")[1 if "\n" in str(error) else 0].strip()
        raise NlpkitError(
            f"{path}: weights do not fit the settings: {reason}", hint="copy the model again"
        ) from None
    if isinstance(model, (GPT, Recurrent)) and model.settings.tied:
        model.head.weight = model.embedding.weight
    model.requires_grad_(False)
    return model.eval()
