"""A model on disk: one folder that holds all there is to know, written whole or not at all.

    MODEL/
      config.json          format version, kind, every setting, how and on what it was trained,
                           and the manifest: size and hash of all other files
      vocab.tsv, ...       vocabularies, as text
      weights.safetensors  tensors by name (word vectors are ``.npy`` files, to be memory-mapped)
      metrics.jsonl        one record a line: the training curve

Nothing here is ever unpickled, so a folder from a stranger can fail but cannot run code, and every
value is checked against the types of its settings (``schema``) before it is used.
A checkpoint is the same kind of folder beside the model, ``MODEL.checkpoint``. In it, the folder
``model`` is the model as it was at that step, so that it can be used before training has ended.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import nlpkit
from nlpkit import folders, manifest, schema, textio
from nlpkit.errors import NlpkitError, NlpkitNote, with_article
from nlpkit.faults import step
from nlpkit.manifest import FileRecord

FORMAT_VERSION = 1
CONFIG = "config.json"
METRICS = "metrics.jsonl"
CHECKPOINT = "checkpoint"  # kind of the state of a run; those of other engines end in it
UNFINISHED = "model"  # in a checkpoint: the model as it was
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
    manifest: dict[str, FileRecord] | None = None  # of all other files; 0.1.0 wrote none

    RANGES: ClassVar[schema.Ranges] = {"seed": schema.SEED}


class Model:
    """The object of a model folder: it knows how it came about, and saves itself.

    Its class has ``load(path)``, the opposite of ``save``, and stands in the registry.
    """

    config: ModelConfig
    curve: list[dict[str, Any]] | None = None  # of the training, unless it was loaded or imported

    def write(self, folder: Path) -> None:
        """Everything but ``config.json`` and the curve into a folder that ``create`` gave."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model folder, whole or not at all; ``force`` replaces a model."""
        with create(path, self.config, force=force) as folder:
            self._write_files(folder)

    def save_inside(self, folder: Path) -> None:
        """Write the model folder within another that ``create`` gave."""
        step("mkdir")
        folder.mkdir()
        self._write_files(folder)
        _write_config(folder, self.config, manifest.make(folder))

    def _write_files(self, folder: Path) -> None:
        self.write(folder)
        if self.curve is not None:
            write_metrics(folder, self.curve)


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
    """Whether the path looks like a model folder, and not like one in the making."""
    folders.recover(path)
    return os.path.isfile(Path(path) / CONFIG) and not folders.is_temporary(path)


def checkpoint_path(path: str | os.PathLike[str]) -> Path:
    """Where the checkpoint of a model in the making lives."""
    path = Path(path)
    return path.parent / f"{path.name}.checkpoint"


def check_checkpoint(path: str | os.PathLike[str]) -> None:
    """Before a run goes on: refuse a place where there is no checkpoint."""
    if not is_model(path):
        raise NlpkitError(f"no checkpoint to resume: {path}", hint="leave out `resume`")


def check_new(path: str | os.PathLike[str], *, force: bool) -> None:
    """Before training: refuse a place that cannot be written or already holds something."""
    _check_free(path, force)
    folders.check_place(path)
    checkpoint = checkpoint_path(path)
    try:
        os.lstat(checkpoint)
    except FileNotFoundError:
        return
    except OSError as error:
        raise NlpkitError(f"cannot write {checkpoint}: {error.strerror}") from None
    if not is_model(checkpoint):
        raise NlpkitError(f"{checkpoint} exists and is not a checkpoint", hint="another name")


def _check_free(path: str | os.PathLike[str], force: bool) -> None:
    if not os.fspath(path):  # which would be the current folder
        raise NlpkitError("a folder needs a name, not an empty one", hint="the path of a new one")
    folders.recover(path)
    if os.path.exists(path):
        if not is_model(path):
            raise NlpkitError(f"{path} exists and is not a model", hint="another name")
        if not force:
            raise NlpkitError(f"{path} exists already", hint="`force` to replace it")


@contextlib.contextmanager
def create(
    path: str | os.PathLike[str], config: ModelConfig, *, force: bool = False
) -> Iterator[Path]:
    """Give a temporary folder to fill; it becomes the model when the block ends without an error.

    >>> with create("m.model", ModelConfig(kind="demo")) as folder:  # doctest: +SKIP
    ...     (folder / "vocab.tsv").write_text("the\\t12\\n")
    """
    _check_free(path, force)
    with folders.atomic_folder(path) as temporary:
        yield temporary
        target = folders.resolve(path)
        _write_config(temporary, config, manifest.make(temporary, target, _known_files(target)))


def _write_config(folder: Path, config: ModelConfig, files: manifest.Manifest) -> None:
    config.manifest = dict(files)
    text = json.dumps(asdict(config), indent=2, ensure_ascii=False, allow_nan=False)
    # half a character, as a path that is not UTF-8 has, becomes the escape that JSON knows
    write_text(folder / CONFIG, text + "\n", errors="backslashreplace")


def find_model(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The folder to read a model from: of a checkpoint, that of the model in it, with a note.

    A model that is not there yet is looked for in the checkpoint of its run.
    """
    folders.recover(path)
    if os.fspath(path) and not os.path.lexists(path) and is_model(checkpoint_path(path)):
        path = checkpoint_path(path)
    inner = Path(path) / UNFINISHED
    if not os.path.isfile(inner / CONFIG) or not is_model(path):
        return path
    config = load_config(path)
    if config.kind != CHECKPOINT:
        return path
    note_unfinished(path, config.metrics.get("progress"))
    return inner


def note_unfinished(path: str | os.PathLike[str], progress: Any) -> None:
    """Say that what is about to be used is of a run that has not ended."""
    where = f": {schema.plain(progress)}" if isinstance(progress, str) else ""
    warnings.warn(f"{path} is an unfinished training{where}", NlpkitNote, stacklevel=4)


def load_config(
    path: str | os.PathLike[str], *, kind: str | None = None, check_files: bool = True
) -> ModelConfig:
    """Read and check ``config.json``, and the other files against its manifest.

    ``kind`` is the kind of model the caller can use.
    """
    path = Path(path)
    folders.recover(path)
    if not os.path.exists(path):
        raise NlpkitError(f"no such model: {path}", hint="check the path")
    if os.path.isdir(path) and not os.access(path, os.R_OK | os.X_OK):
        raise NlpkitError(f"cannot read {path}: permission denied")
    if not is_model(path):
        raise NlpkitError(f"{path} is not a model folder: it has no {CONFIG}")
    file = path / CONFIG
    raw = read_json(file)
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
        raise NlpkitError(f"{file} does not describe an nlpkit model")
    version = raw.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise NlpkitError(
            f"{path} has format version {schema.plain(str(version))}, "
            f"this nlpkit reads up to {FORMAT_VERSION}",
            hint="a newer nlpkit",
        )
    config = schema.read(ModelConfig, raw, str(file), others=True)
    if kind is not None and config.kind != kind:
        found = schema.plain(config.kind)
        if found.endswith(CHECKPOINT) and not kind.endswith(CHECKPOINT):
            raise NlpkitError(
                f"{path} is {with_article(found)} with no model in it to use",
                hint="its training again with `resume`, to the end",
            )
        raise NlpkitError(f"{path} is {with_article(found)} model, not {with_article(kind)} model")
    if check_files:
        manifest.check(path, config.manifest)
    return config


def write_text(file: Path, text: str, errors: str = "strict") -> None:
    """Write text into a folder that ``create`` gave."""
    step("write")
    file.write_bytes(text.encode("utf-8", errors))


def write_array(file: Path, array: Any) -> None:
    """Write a numpy array into a folder that ``create`` gave."""
    step("write")
    with open(file, "wb") as out:
        textio.save_array(out, array)


def _known_files(path: Path) -> manifest.Manifest | None:
    """The manifest of a folder that is about to be replaced, if it has one to rely on."""
    with contextlib.suppress(NlpkitError):
        return load_config(path).manifest
    return None


def read_bytes(file: Path) -> bytes:
    """A small file of a model; a missing one is an error of one line."""
    if not file.is_file():
        raise NlpkitError(f"{file.parent} has no {file.name}", hint=schema.AGAIN)
    try:
        return file.read_bytes()
    except OSError as error:
        raise NlpkitError(f"cannot read {file}: {error.strerror}") from None


def read_text(file: Path) -> str:
    """A text file of a model; one that is not UTF-8 is an error of one line."""
    try:
        return read_bytes(file).decode("utf-8")
    except ValueError as error:
        raise NlpkitError(f"{file} is damaged: {error}", hint=schema.AGAIN) from None


def read_json(file: Path) -> Any:
    """What a JSON file of a model holds."""
    try:
        return textio.parse_json(read_text(file))
    except ValueError as error:
        raise NlpkitError(f"{file} is damaged: {error}", hint=schema.AGAIN) from None


def write_metrics(folder: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write the training curve into a folder that ``create`` gave."""
    lines = [json.dumps(dict(record), ensure_ascii=False) for record in records]
    write_text(folder / METRICS, "".join(line + "\n" for line in lines))


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
        raise NlpkitError(f"{file} is damaged: expected one object per line")
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

    step("write")
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

    file = Path(path) / WEIGHTS
    if not file.is_file():
        raise NlpkitError(f"{path} has no {WEIGHTS}", hint="train or copy the model again")
    try:
        tensors = load_tensors(file, device)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise NlpkitError(f"{file} is damaged: {error}", hint="copy the model again") from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.numel() and tensor.itemsize > 1:
            low, high = tensor.aminmax()  # both are NaN where any number is
            if not (low.isfinite() and high.isfinite()):
                what = f"{file}: the tensor {schema.plain(name)}"
                raise NlpkitError(f"{what} holds NaN or infinity", hint=schema.AGAIN)
    return tensors


def load_tensors(file: Path, device: str = "cpu") -> dict[str, Any]:
    """Named torch tensors of a file; the library itself takes no path that is not UTF-8."""
    from safetensors.torch import load, load_file

    try:
        str(file).encode()
    except UnicodeEncodeError:
        return {name: tensor.to(device) for name, tensor in load(file.read_bytes()).items()}
    return load_file(file, device=device)


def describe_files(path: str | os.PathLike[str]) -> list[tuple[str, int]]:
    """The files of a model with their sizes in bytes, by name."""
    folder = Path(path)
    files = [file for file in folder.rglob("*") if file.is_file()]
    return sorted((file.relative_to(folder).as_posix(), file.stat().st_size) for file in files)
