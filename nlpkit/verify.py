"""A thorough look at a model folder: every hash of its manifest, every number of its weights."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.manifest import Damage, Manifest, find_damage


@dataclass(frozen=True)
class Verdict:
    """What was looked at and, if anything, what is wrong."""

    files: int
    bytes: int
    unlisted: list[str]  # what lies in the folder and is not in the manifest
    damage: Damage | None


def verify(path: str | os.PathLike[str]) -> Verdict:
    """Check all files of a model; the first that is wrong ends the search."""
    config = modeldir.load_config(path, check_files=False)
    manifest, folder = config.manifest, Path(path)
    if manifest is None:
        raise NlpkitError(
            f"{path} has no manifest to be verified by",
            hint="train or convert it again: nlpkit 0.1.0 wrote none",
        )
    damage = find_damage(folder, manifest) or _find_no_number(folder, manifest)
    found = [name for name, _ in modeldir.describe_files(folder)]
    unlisted = [name for name in found if name not in manifest and name != modeldir.CONFIG]
    total = sum(record.size for record in manifest.values())
    return Verdict(len(manifest), total, unlisted, damage)


def _find_no_number(folder: Path, manifest: Manifest) -> Damage | None:
    for name in manifest:
        try:
            if name.endswith(".npy"):
                _check_array(folder / name)
            elif name == modeldir.WEIGHTS:
                _check_tensors(folder / name)
        except NlpkitError as error:
            return Damage(name, error.message)
    return None


def _check_array(file: Path) -> None:
    from nlpkit.npy import check_finite, map_array

    check_finite(map_array(file), "it")


def _check_tensors(file: Path) -> None:
    from safetensors import SafetensorError, safe_open

    from nlpkit.npy import check_finite
    from nlpkit.schema import plain

    try:
        with safe_open(file, framework="numpy") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - it is no dictionary
                check_finite(tensors.get_tensor(name), f"the tensor {plain(name)}")
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise NlpkitError(str(error)) from None
