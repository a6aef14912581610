"""What a model or a file of one is made of: facts, layers with shapes and sizes, the curve.

Takes model folders and checkpoints, vectors in any format, vocabularies, and subword models. Of
weights the headers are read and nothing else.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from nlpkit import compression, modeldir
from nlpkit.errors import NlpkitError

LARGEST_HEADER = 100 << 20  # of a safetensors file, as that library has it


class Layer(NamedTuple):
    """A tensor of a model."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def parameters(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


@dataclass
class Description:
    """What there is to say of a model."""

    path: str
    kind: str
    bytes: int
    config: modeldir.ModelConfig | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # of what has no config
    layers: list[Layer] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    curve: list[dict[str, Any]] = field(default_factory=list)

    @property
    def parameters(self) -> int:
        """Numbers in all layers."""
        return sum(layer.parameters for layer in self.layers)

    def record(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        layers = [
            {**layer._asdict(), "shape": list(layer.shape), "parameters": layer.parameters}
            for layer in self.layers
        ]
        shared = {"files": self.files, "bytes": self.bytes, "curve": self.curve, "layers": layers}
        if self.config is None:
            return {"path": self.path, "kind": self.kind, **self.facts, **shared}
        return {**asdict(self.config), "parameters": self.parameters, **shared}


def describe(path: str) -> Description:
    """The description of a model folder, a checkpoint, or a file of vectors, words or subwords."""
    if not os.path.lexists(path) and modeldir.is_model(modeldir.checkpoint_path(path)):
        path = str(modeldir.checkpoint_path(path))
    if os.path.isdir(path):
        if not modeldir.is_model(path) and (Path(path) / "tokenizer.json").is_file():
            return _subwords(path)
        return _folder(path)
    if not os.path.exists(path):
        raise NlpkitError(f"no such model: {path}", hint="check the path")
    if not os.path.isfile(path):  # what is looked at several times must not be a pipe
        raise NlpkitError(f"{path} is neither a file nor a folder", hint="save it to a file first")
    if path.removesuffix(compression.ending(path)).endswith(".json"):
        return _subwords(path)
    if (found := _vocabulary(path)) is not None:
        return found
    return _vectors(path)


def _folder(path: str) -> Description:
    config = modeldir.load_config(path)
    files = dict(modeldir.describe_files(path))
    layers = [layer for name in files if "/" not in name for layer in _layers(Path(path) / name)]
    if config.kind.endswith("checkpoint"):
        # beside the weights it holds the best ones and the state of the optimizer
        layers = [layer for layer in layers if layer.name.startswith("model.")] or layers
    return Description(
        path,
        config.kind,
        sum(files.values()),
        config,
        layers=layers,
        files=files,
        curve=modeldir.read_metrics(path),
    )


def _layers(file: Path) -> list[Layer]:
    if file.suffix == ".npy":
        from nlpkit.npy import map_array

        array = map_array(file)
        return [Layer(file.stem, tuple(array.shape), str(array.dtype))]
    if file.suffix == ".safetensors":
        return [
            Layer(name, tuple(entry["shape"]), str(entry["dtype"]).lower())
            for name, entry in read_header(file).items()
            if name != "__metadata__"
        ]
    return []


def read_header(file: Path) -> dict[str, Any]:
    """Names, types and shapes of the tensors of a safetensors file."""
    try:
        with open(file, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= min(LARGEST_HEADER, file.stat().st_size):
                raise ValueError("its header is too long")
            header = json.loads(stream.read(length))
        shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
        if not all(type(size) is int and size >= 0 for shape in shapes for size in shape):
            raise ValueError("a shape is no list of sizes")
    except OSError as error:
        raise NlpkitError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NlpkitError(f"{file} is damaged: {error}") from None
    return dict(header)


def _subwords(path: str) -> Description:
    from nlpkit.text.subwords import Subwords

    model = Subwords.load(path)
    files = [path] if os.path.isfile(path) else [os.path.join(path, "tokenizer.json")]
    size = sum(os.path.getsize(file) for file in files)
    return Description(path, "subwords", size, facts={"entries": len(model)})


def _vocabulary(path: str) -> Description | None:
    """A vocabulary, if that is what the first line of a file is one of."""
    from nlpkit.text.vocab import Vocab
    from nlpkit.textio import read_blocks

    first = next(read_blocks([path]), None)
    fields = first.data.split(b"\n", 1)[0].rstrip(b"\r").split(b"\t") if first else []
    if len(fields) not in (2, 3) or not fields[1].isdigit():
        return None
    vocab = Vocab.load(path)
    counts = [count for count in vocab.counts if count]
    facts = {
        "entries": len(vocab),
        "specials": " ".join(vocab.specials),
        "types": len(counts),
        "tokens": sum(counts),
    }
    return Description(path, "vocabulary", os.path.getsize(path), facts=facts)


def _vectors(path: str) -> Description:
    from nlpkit.vectors.formats import load

    vectors = load(path)
    rows, dim = vectors.matrix.shape
    first = ", ".join(vectors.words[:5])
    facts = {"words": rows, "dim": dim, "first_words": first}
    layer = Layer("vectors", (rows, dim), str(vectors.matrix.dtype))
    return Description(path, "vectors", os.path.getsize(path), facts=facts, layers=[layer])
