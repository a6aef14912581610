"""A GloVe run that was interrupted: its matrices in a folder, and what it must agree with."""

from __future__ import annotations

import os
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.npy import read_array
from nlpkit.vectors.settings import CountSettings

KIND = "glove-checkpoint"
ARRAYS = ("words", "nears", "word_squares", "near_squares")


def plain_settings(settings: CountSettings) -> dict[str, Any]:
    """Settings as JSON holds them."""
    values = asdict(settings).items()
    return {name: value.value if isinstance(value, Enum) else value for name, value in values}


def save(
    path: str | os.PathLike[str],
    state: dict[str, Any],
    settings: CountSettings,
    data_hash: str,
) -> None:
    """Write the state of a run."""
    recorded = {**plain_settings(settings), "epochs_done": state["epochs_done"]}
    config = modeldir.ModelConfig(
        kind=KIND, settings=recorded, seed=settings.seed, data_hash=data_hash
    )
    with modeldir.create(path, config, force=True) as folder:
        for name in ARRAYS:
            modeldir.write_array(folder / f"{name}.npy", state[name])


def load(path: str | os.PathLike[str], settings: CountSettings, data_hash: str) -> dict[str, Any]:
    """The state of a run with these settings on this text."""
    if not modeldir.is_model(path):
        raise NlpkitError(f"no checkpoint at {path}", hint="train without `resume`")
    saved = modeldir.load_config(path, kind=KIND)
    if saved.data_hash != data_hash:
        raise NlpkitError(f"{path} was made from other text", hint="the text of the first run")
    for name, value in plain_settings(settings).items():
        if name != "threads" and saved.settings.get(name) != value:
            raise NlpkitError(
                f"{path} was made with {name} {saved.settings.get(name)}, not {value}",
                hint="the flags of the first run, or start again without `resume`",
            )
    arrays = {
        name: np.array(read_array(Path(path) / f"{name}.npy", "f4", dimensions=2))
        for name in ARRAYS
    }
    return {**arrays, "epochs_done": saved.settings.get("epochs_done")}
