"""The manifest of a model: size and SHA-256 of every file of its folder, kept in ``config.json``.

It tells a model that arrived whole from one that was cut, edited or mixed up with another. It is no
signature: whoever changes a file can change the manifest, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from nlpkit.errors import NlpkitError
from nlpkit.schema import Ranges, plain

SMALL = 1 << 20  # bytes: files up to this size are hashed whenever a model is loaded
_CHUNK = 1 << 20


@dataclass(frozen=True)
class FileRecord:
    """What a file was when the model was written."""

    size: int
    sha256: str

    RANGES: ClassVar[Ranges] = {"size": (0, 2**63 - 1)}


Manifest = Mapping[str, FileRecord]


class Damage(NamedTuple):
    """A file of a model and what is wrong with it."""

    file: str
    reason: str  # nothing if the file is not there

    def error(self, folder: Path) -> NlpkitError:
        """As a command says it."""
        name = plain(self.file)
        what = f"{folder / name} is damaged: {self.reason}"
        return NlpkitError(
            what if self.reason else f"{folder} has no {name}",
            hint='copy the model again, or take "manifest" out of config.json if it was meant',
        )


def make(folder: Path, earlier: Path | None = None, known: Manifest | None = None) -> Manifest:
    """The manifest of all files of a folder; a model within it has its own.

    A file that is linked from ``earlier``, whose manifest is ``known``, is not read again: the text
    in word2vec's checkpoints goes from one to the next.
    """
    records = {}
    for file in sorted(inner for inner in folder.iterdir() if inner.is_file()):
        record = (known or {}).get(file.name)
        if earlier is None or record is None or not _is_link(file, earlier / file.name, record):
            record = FileRecord(file.stat().st_size, sha256(file))
        records[file.name] = record
    return records


def _is_link(file: Path, other: Path, record: FileRecord) -> bool:
    with contextlib.suppress(OSError):
        return file.stat().st_size == record.size and file.samefile(other)
    return False


def sha256(file: Path) -> str:
    """The SHA-256 of a file, chunk by chunk."""
    digest = hashlib.sha256()
    with open(file, "rb", buffering=0) as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def check(folder: Path, manifest: Manifest | None) -> None:
    """Before a model is loaded: sizes of all files, hashes of small ones."""
    damage = find_damage(folder, manifest, hash_up_to=SMALL)
    if damage is not None:
        raise damage.error(folder)


def find_damage(
    folder: Path, manifest: Manifest | None, hash_up_to: float = float("inf")
) -> Damage | None:
    """The first file that is not what the manifest says, or nothing.

    Names in a manifest are only ever compared with names in the folder, never opened as paths.
    """
    try:
        found = {entry.name: entry for entry in folder.iterdir()}
    except OSError as error:
        raise NlpkitError(f"cannot read {folder}: {error.strerror}") from None
    for name in manifest or {}:
        if name not in found:
            return Damage(name, "")
    for name, file in sorted(found.items()):
        record = None if manifest is None else manifest.get(name)
        try:
            status = file.stat()
        except OSError as error:
            if record is None:
                continue
            return Damage(name, error.strerror or str(error))
        plain_file = stat.S_ISREG(status.st_mode)
        if not plain_file and (record is not None or not stat.S_ISDIR(status.st_mode)):
            return Damage(name, "it is no plain file")
        if record is None:
            continue
        if status.st_size != record.size:
            return Damage(name, f"it has {status.st_size} bytes, and once had {record.size}")
        if record.size <= hash_up_to and _hash_of(file) != record.sha256:
            return Damage(name, "its SHA-256 is not the one in config.json")
    return None


def _hash_of(file: Path) -> str:
    try:
        return sha256(file)
    except OSError as error:
        raise NlpkitError(f"cannot read {file}: {error.strerror}") from None
