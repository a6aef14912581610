"""A model on disk: one folder that holds all there is to know, written whole or not at all.

    MODEL/
      config.json          format version, kind, every setting, how and on what it was trained
      vocab.tsv, ...       vocabularies, as text
      weights.safetensors  tensors by name (word vectors are ``.npy`` files, to be memory-mapped)
      metrics.jsonl        one record a line: the training curve

Nothing here is ever unpickled, so a folder from a stranger can fail but cannot run code.
A checkpoint is the same kind of folder beside the model, ``MODEL.checkpoint``.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nlpkit
from nlpkit import textio
from nlpkit.errors import NlpkitError

FORMAT_VERSION = 1
CONFIG = "config.json"
METRICS = "metrics.jsonl"
WEIGHTS = "weights.safetensors"


@dataclass
class ModelConfig:
    """What ``config.json`` records. ``settings`` holds every setting of the engine.

    >>> ModelConfig(kind="word2vec", settings={"dim": 100}).kind
    'word2vec'
    """

    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    data_hash: str = ""  # of what the model was trained on, see data_hash()
    metrics: dict[str, Any] = field(default_factory=dict)  # the final ones
    command: list[str] = field(default_factory=lambda: ["nlpkit", *sys.argv[1:]])
    nlpkit_version: str = nlpkit.__version__
    created: str = field(
        default_factory=lambda: datetime.datetime.now(datetime.timezone.utc).isoformat(
            timespec="seconds"
        )
    )
    format_version: int = FORMAT_VERSION


def data_hash(parts: Iterable[bytes | memoryview]) -> str:
    """A short fingerprint of training data, to tell later what a model has seen.

    >>> data_hash([b"to be ", b"or not"]) == data_hash([b"to be or not"])
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether the path looks like a model folder."""
    return (Path(path) / CONFIG).is_file()


def checkpoint_path(path: str | os.PathLike[str]) -> Path:
    """Where the checkpoint of a model in the making lives."""
    path = Path(path)
    return path.with_name(path.name + ".checkpoint")


def check_new(path: str | os.PathLike[str], *, force: bool) -> None:
    """Before training: refuse a place that cannot be written or already holds something."""
    path = Path(path)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise NlpkitError(f"no such folder: {folder}", hint=f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK):
        raise NlpkitError(f"cannot write {path}: permission denied")
    if path.exists():
        if not is_model(path):
            raise NlpkitError(f"{path} exists and is not a model", hint="another name")
        if not force:
            raise NlpkitError(f"{path} exists already", hint="--force to replace it")


@contextlib.contextmanager
def create(
    path: str | os.PathLike[str], config: ModelConfig, *, force: bool = False
) -> Iterator[Path]:
    """Give a temporary folder to fill; it becomes the model when the block ends without an error.

    >>> with create("m.model", ModelConfig(kind="demo")) as folder:  # doctest: +SKIP
    ...     (folder / "vocab.tsv").write_text("the\\t12\\n")
    """
    path = Path(path)
    check_new(path, force=force)
    target = path.absolute()
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"))
    try:
        yield temporary
        text = json.dumps(vars(config), indent=2, ensure_ascii=False, allow_nan=False)
        (temporary / CONFIG).write_text(text + "\n", encoding="utf-8")
        for file in temporary.iterdir():
            with open(file, "rb") as handle:
                os.fsync(handle.fileno())
        temporary.chmod(0o777 & ~textio.umask())
        if target.exists():
            replaced = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.old"))
            os.replace(target, replaced)
            os.replace(temporary, target)
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            os.replace(temporary, target)
    except OSError as error:
        raise NlpkitError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def load_config(path: str | os.PathLike[str], *, kind: str | None = None) -> ModelConfig:
    """Read and check ``config.json``; ``kind`` is the kind of model the caller can use."""
    path = Path(path)
    if not path.exists():
        raise NlpkitError(f"no such model: {path}", hint="check the path")
    if not is_model(path):
        raise NlpkitError(f"{path} is not a model folder: it has no {CONFIG}")
    try:
        raw = textio.parse_json((path / CONFIG).read_text(encoding="utf-8"))
    except ValueError as error:
        raise NlpkitError(f"{path / CONFIG} is damaged: {error}") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
        raise NlpkitError(f"{path / CONFIG} does not describe an nlpkit model")
    version = raw.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise NlpkitError(
            f"{path} has format version {version}, this nlpkit reads up to {FORMAT_VERSION}",
            hint="a newer nlpkit",
        )
    known = {name: value for name, value in raw.items() if name in ModelConfig.__annotations__}
    config = ModelConfig(**known)
    for name, expected in (("settings", dict), ("metrics", dict), ("command", list)):
        if not isinstance(getattr(config, name), expected):
            raise NlpkitError(f"{path / CONFIG} is damaged: {name} is no {expected.__name__}")
    if kind is not None and config.kind != kind:
        raise NlpkitError(f"{path} is a {config.kind} model, this command needs a {kind} model")
    return config


def write_metrics(folder: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write the training curve into a folder that ``create`` gave."""
    lines = [json.dumps(dict(record), ensure_ascii=False) for record in records]
    (folder / METRICS).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def read_metrics(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The training curve, or nothing when there is none."""
    file = Path(path) / METRICS
    if not file.is_file():
        return []
    try:
        records = [textio.parse_json(line) for line in textio.read_lines(str(file)) if line]
    except ValueError as error:
        raise NlpkitError(f"{file} is damaged: {error}") from None
    if not all(isinstance(record, dict) for record in records):
        raise NlpkitError(f"{file} is damaged: expected an object a line")
    return records


def write_weights(folder: Path, tensors: Mapping[str, Any]) -> None:
    """Write named torch tensors as ``weights.safetensors``."""
    save_tensors(tensors, folder / WEIGHTS)


def save_tensors(
    tensors: Mapping[str, Any], file: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write named torch tensors; a full disk is an ``OSError``, as with any other file."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, file, metadata)
    except SafetensorError as error:
        found = re.search(r"os error (\d+)", str(error))
        number = int(found[1]) if found else errno.EIO
        raise OSError(number, os.strerror(number), str(file)) from None
    file.chmod(0o666 & ~textio.umask())  # the library writes for the owner's eyes only


def read_weights(path: str | os.PathLike[str], device: str = "cpu") -> dict[str, Any]:
    """Read ``weights.safetensors``; a missing, cut or foreign file is an error of one line."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = Path(path) / WEIGHTS
    if not file.is_file():
        raise NlpkitError(f"{path} has no {WEIGHTS}", hint="train or copy the model again")
    try:
        return load_file(file, device=device)
    except (SafetensorError, ValueError, KeyError) as error:
        raise NlpkitError(f"{file} is damaged: {error}", hint="copy the model again") from None


def describe_files(path: str | os.PathLike[str]) -> list[tuple[str, int]]:
    """The files of a model with their sizes in bytes, by name."""
    folder = Path(path)
    return sorted((file.name, file.stat().st_size) for file in folder.iterdir() if file.is_file())
