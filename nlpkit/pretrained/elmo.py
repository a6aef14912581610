"""ELMo as AllenNLP keeps it: ``options.json`` and weights in HDF5 (of TensorFlow's variables).

Differences of form: TensorFlow's gates are in the order input, cell, forget, output and a forget
bias of 1 is added at run time; matrices are (in, out); its highway carries where ours transforms.
The words of its softmax are not in these files, so an imported model embeds and does not predict.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nlpkit import modeldir, registry, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.elmo import DIRECTIONS, ElmoArchitecture
from nlpkit.models.elmo_model import ElmoModel, build, read_architecture
from nlpkit.text.word_bytes import N_CHARACTERS

LARGEST = 1 << 28  # numbers in one array: that of the largest ELMo published is 2 ** 26
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class _CharEmbedding:
    dim: int


@dataclass(frozen=True)
class _CharCnn:
    embedding: _CharEmbedding
    filters: list[list[int]]
    n_highway: int
    n_characters: int = 262
    max_characters_per_token: int = 50
    activation: Literal["relu", "tanh"] = "relu"


@dataclass(frozen=True)
class _Lstm:
    n_layers: int
    projection_dim: int
    dim: int
    use_skip_connections: bool = True
    cell_clip: float | None = None
    proj_clip: float | None = None


@dataclass(frozen=True)
class _Options:
    char_cnn: _CharCnn
    lstm: _Lstm


def import_elmo(options: str | os.PathLike[str], weights: str | os.PathLike[str]) -> ElmoModel:
    """The model of an ``options.json`` and a ``weights.hdf5``."""
    h5py = _require_h5py()
    settings = read_options(Path(options))
    if not os.path.isfile(weights):
        raise NlpkitError(f"no such file: {weights}", hint="the weights, an .hdf5 file")
    try:
        with h5py.File(os.fspath(weights), "r") as file:
            tensors = read_tensors(file, settings, os.fspath(weights))
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise NlpkitError(f"{weights} is not an HDF5 file of weights: {reason}") from None
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise NlpkitError(f"{weights}: {name} holds NaN or infinity", hint=schema.AGAIN)
    model = build(settings, tensors, os.fspath(weights)).eval()
    config = modeldir.ModelConfig(
        kind=registry.ELMO, settings={"architecture": settings.to_dict(), "imported": "allennlp"}
    )
    return ElmoModel(model, None, config)


def find_files(folder: str) -> tuple[str, str]:
    """The options and weights of a folder: the .json that ends in options, and the one .hdf5."""
    path = Path(folder)
    options = sorted(path.glob("*options.json"))
    weights = [file for file in sorted(path.glob("*.hdf5")) if "weights" in file.name]
    if len(options) != 1 or len(weights) != 1:
        raise NlpkitError(
            f"{folder}: found {len(options)} *options.json and {len(weights)} *weights.hdf5",
            hint="name both files: elmo import options.json weights.hdf5",
        )
    return str(options[0]), str(weights[0])


def _require_h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise NlpkitError(
            "reading HDF5 needs the package h5py", hint='pip install "nlpkit[elmo]"'
        ) from None
    return h5py


def read_options(file: Path) -> ElmoArchitecture:
    """The architecture of an ``options.json``; what it asks for and we do not have is refused."""
    if not file.is_file():
        raise NlpkitError(f"no such file: {file}", hint="AllenNLP's options.json")
    raw = modeldir.read_json(file)
    if not isinstance(raw, dict) or not {"char_cnn", "lstm"} <= raw.keys():
        raise NlpkitError(f"{file} has no char_cnn and lstm", hint="AllenNLP's options.json")
    given = schema.read(
        _Options,
        {
            "char_cnn": _known(raw["char_cnn"], file),
            "lstm": _known(raw["lstm"], file),
        },
        str(file),
    )
    cnn, lstm = given.char_cnn, given.lstm
    if cnn.n_characters not in (N_CHARACTERS, N_CHARACTERS - 1):
        schema.refuse(f"{file}: char_cnn.n_characters", cnn.n_characters, "261 or 262")
    if any(len(pair) != 2 for pair in cnn.filters):
        schema.refuse(f"{file}: char_cnn.filters", cnn.filters, "pairs of width and number")
    asked = ElmoArchitecture(
        dim=lstm.projection_dim,
        hidden=lstm.dim,
        layers=lstm.n_layers,
        char_dim=cnn.embedding.dim,
        widths=[width for width, _ in cnn.filters],
        filters=[number for _, number in cnn.filters],
        highways=cnn.n_highway,
        longest_word=cnn.max_characters_per_token,
        activation=cnn.activation,
        residual=lstm.use_skip_connections,
        cell_clip=float(lstm.cell_clip or 0),
        projection_clip=float(lstm.proj_clip or 0),
    )
    return read_architecture(asked.to_dict(), str(file))


def _known(value: Any, file: Path) -> Any:
    """A table of options without what concerns TensorFlow's training alone."""
    if not isinstance(value, dict):
        schema.refuse(str(file), value, "a table")
    only_training = {"keep_prob", "n_tokens_vocab", "max_word_length", "dropout"}
    return {name: item for name, item in value.items() if name not in only_training}


# --- tensors ------------------------------------------------------------------------------------


def read_tensors(file: Any, settings: ElmoArchitecture, where: str) -> dict[str, Tensor]:
    """Our tensors from the arrays of an open HDF5 file."""

    def array(name: str, *shape: int) -> Floats:
        return _read(file, name, shape, where)

    total = sum(settings.filters)
    found: dict[str, Floats] = {
        "words.embedding": array("char_embed", N_CHARACTERS - 1, settings.char_dim)
    }
    for number, (width, count) in enumerate(zip(settings.widths, settings.filters, strict=True)):
        kernel = array(f"CNN/W_cnn_{number}", 1, width, settings.char_dim, count)
        found[f"words.convolutions.{number}.weight"] = kernel[0].transpose(2, 1, 0)
        found[f"words.convolutions.{number}.bias"] = array(f"CNN/b_cnn_{number}", count)
    for number in range(settings.highways):
        for theirs, ours in (("carry", "gate"), ("transform", "transform")):
            weight = array(f"CNN_high_{number}/W_{theirs}", total, total)
            found[f"words.highways.{number}.{ours}.weight"] = weight.T
            bias = array(f"CNN_high_{number}/b_{theirs}", total)
            found[f"words.highways.{number}.{ours}.bias"] = bias
    found["words.projection.weight"] = array("CNN_proj/W_proj", total, settings.dim).T
    found["words.projection.bias"] = array("CNN_proj/b_proj", settings.dim)
    for depth in range(settings.layers):
        parts = [_read_cell(array, way, depth, settings) for way in range(DIRECTIONS)]
        for name in parts[0]:
            found[f"lstms.{depth}.{name}"] = np.stack([part[name] for part in parts])
    return {name: torch.from_numpy(np.array(value, np.float32)) for name, value in found.items()}


def _read_cell(array: Any, way: int, depth: int, settings: ElmoArchitecture) -> dict[str, Floats]:
    """An LSTM of one direction: its gates in our order, the constant of its forget gate added."""
    dim, hidden = settings.dim, settings.hidden
    place = f"RNN_{way}/RNN/MultiRNNCell/Cell{depth}/LSTMCell"
    order = np.r_[0:hidden, 2 * hidden : 3 * hidden, hidden : 2 * hidden, 3 * hidden : 4 * hidden]
    weight = array(f"{place}/W_0", 2 * dim, 4 * hidden)[:, order]
    bias = array(f"{place}/B", 4 * hidden)[order]
    bias[hidden : 2 * hidden] += 1.0
    return {
        "of_input": weight[:dim],
        "of_state": weight[dim:],
        "bias": bias[None],
        "projection": array(f"{place}/W_P_0", hidden, dim),
    }


def _read(file: Any, name: str, shape: tuple[int, ...], where: str) -> Floats:
    """An array of the file, if it has the shape that the options say: checked before it is read."""
    import h5py

    data = file.get(name)
    if not isinstance(data, h5py.Dataset):
        raise NlpkitError(f"{where}: {name} is missing", hint="the weights of these options")
    if data.shape != shape or data.dtype.kind != "f":
        found = f"{data.dtype} {tuple(data.shape)}"
        raise NlpkitError(
            f"{where}: {name} is {found}, not float32 {shape}, as the options have it",
            hint="the weights of these options",
        )
    if math.prod(shape) > LARGEST:
        raise NlpkitError(f"{where}: {name} has {math.prod(shape):,} numbers: too many")
    read: Floats = np.array(data[()], np.float32)
    return read
