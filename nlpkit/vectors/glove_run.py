"""A run of GloVe: from a corpus of ids to vectors, with a checkpoint to go on from."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

from nlpkit import modeldir
from nlpkit.errors import NlpkitError, plural
from nlpkit.npy import read_array
from nlpkit.training.run import Progress, Run
from nlpkit.vectors.cooccurrence import PairCounter
from nlpkit.vectors.formats import save
from nlpkit.vectors.glove import GloveTrainer, Shards
from nlpkit.vectors.settings import CountSettings, VectorFormat, plain_settings
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.words import ListedWords

KIND = "glove-checkpoint"
ARRAYS = ("words", "nears", "word_squares", "near_squares")


class GloveRun(Run):
    """Counts pairs and trains on them; a file of the vectors, or a folder, is what comes out."""

    unit = "pairs"
    noisy_loss = False

    def __init__(
        self,
        ids: np.ndarray,
        words: ListedWords,
        text_hash: str,
        settings: CountSettings,
        format: VectorFormat | None = None,
    ) -> None:
        self.settings, self.words, self._hash, self._format = settings, words, text_hash, format
        counter = PairCounter(len(words), settings)
        counter.add(ids)
        shards = Shards(counter, settings)
        self.glove = GloveTrainer(shards, len(words), settings)
        self.summary = f"{plural(len(words), 'word')}, {plural(shards.pairs, 'pair')}"

    def common_settings(self) -> dict[str, Any]:
        """All settings but the number of threads."""
        settings = plain_settings(self.settings)
        return {name: value for name, value in settings.items() if name != "threads"}

    def data_hash(self) -> str:
        """That of the text."""
        return self._hash

    def result(self) -> Vectors:
        """The vectors as they are."""
        return Vectors(self.words, self.glove.vectors())

    def steps(self) -> Generator[Progress, None, None]:
        """A record for each epoch."""
        epochs, seconds = self.settings.epochs, 0.0
        for record in self.glove.train():
            seconds += self.glove.pairs / record.pairs_per_second
            yield Progress(
                step=record.epoch,
                fraction=record.epoch / epochs,
                loss=record.loss,
                learning_rate=self.settings.lr,
                speed=record.pairs_per_second,
                seconds=seconds,
                due=True,
            )

    @property
    def finished(self) -> bool:
        """Whether the last epoch has ended."""
        return self.glove.epochs_done >= self.settings.epochs

    def where(self, progress: Progress) -> str:
        """How far the run is, in words."""
        return f"epoch {progress.step}"

    def save_model(self, model: Vectors, path: str | os.PathLike[str], force: bool) -> None:
        """A folder, or a file in another format."""
        settings = plain_settings(self.settings)
        save(model, os.fspath(path), self._format, settings=settings, force=force)

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Both matrices and their sums of squares, and the epoch."""
        state = self.glove.state()
        recorded = {**self.common_settings(), "epochs_done": state["epochs_done"]}
        config = modeldir.ModelConfig(
            kind=KIND, settings=recorded, seed=self.settings.seed, data_hash=self._hash
        )
        with modeldir.create(path, config, force=True) as folder:
            for name in ARRAYS:
                modeldir.write_array(folder / f"{name}.npy", state[name])

    def load_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint of the same settings and text."""
        modeldir.check_checkpoint(path)
        saved = modeldir.load_config(path, kind=KIND)
        if saved.data_hash != self._hash:
            raise NlpkitError(f"{path} was made from other text", hint="the text of the first run")
        for name, value in self.common_settings().items():
            if saved.settings.get(name) != value:
                raise NlpkitError(
                    f"{path} was made with {name} {saved.settings.get(name)}, not {value}",
                    hint="the flags of the first run, or start again without `resume`",
                )
        state: dict[str, Any] = {
            name: read_array(Path(path) / f"{name}.npy", "f4", dimensions=2) for name in ARRAYS
        }
        self.glove.restore({**state, "epochs_done": saved.settings.get("epochs_done")})
