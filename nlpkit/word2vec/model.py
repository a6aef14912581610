"""word2vec on disk: the model folder, and the checkpoint that a run can be resumed from.

Both hold ``vocab.tsv``, ``vectors.npy`` (the words as inputs) and ``context.npy`` (as outputs). A
checkpoint also holds the corpus as ids, so that a run on text from a pipe can be resumed too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.vectors.folder import MATRIX, NORMS, VOCAB
from nlpkit.vectors.store import row_norms
from nlpkit.vocab import Vocab
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.store import IdStore
from nlpkit.word2vec.train import EngineName, Trainer, TrainState

if TYPE_CHECKING:
    from numpy.typing import NDArray

KIND = "word2vec"
CHECKPOINT_KIND = "word2vec-checkpoint"
CONTEXT = "context.npy"
IDS = "ids.npy"
_ROWS = 1 << 14  # written at a time, so that saving takes no second copy of a matrix


@dataclass
class Run:
    """A training run: what it reads, its state, and what it has recorded."""

    store: IdStore
    config: Word2VecConfig
    trainer: Trainer
    data_hash: str
    tokens: dict[str, Any]  # how text became tokens
    records: list[dict[str, Any]]

    def save_model(self, path: str, *, force: bool) -> None:
        """Write the finished model."""
        with modeldir.create(path, self._config(KIND, {}), force=force) as folder:
            self._write_common(folder)
            matrix = np.load(folder / MATRIX, mmap_mode="r")
            np.save(folder / NORMS, row_norms(matrix), allow_pickle=False)

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write the state; the corpus is written once and then linked from one to the next."""
        state = self.trainer.state()
        position = {
            "pieces_done": state.pieces_done,
            "loss_sum": state.loss_sum,
            "loss_count": state.loss_count,
            "text_words": self.store.text_words,
        }
        config = self._config(CHECKPOINT_KIND, {"position": position})
        with modeldir.create(path, config, force=True) as folder:
            self._write_common(folder)
            earlier = Path(path) / IDS
            if earlier.exists():
                os.link(earlier, folder / IDS)
            else:
                _save_rows(folder / IDS, self.store.ids)

    def _config(self, kind: str, extra: dict[str, Any]) -> modeldir.ModelConfig:
        return modeldir.ModelConfig(
            kind=kind,
            settings={**self.config.to_settings(), **self.tokens, **extra},
            seed=self.config.seed,
            data_hash=self.data_hash,
            metrics=self.records[-1] if self.records else {},
        )

    def _write_common(self, folder: Path) -> None:
        state = self.trainer.state()
        vocab = Vocab(self.store.words, self.store.counts.tolist())
        (folder / VOCAB).write_text(vocab.dumps(), encoding="utf-8", newline="\n")
        _save_rows(folder / MATRIX, state.input)
        _save_rows(folder / CONTEXT, state.output)
        modeldir.write_metrics(folder, self.records)


def load_checkpoint(
    path: str | os.PathLike[str],
    *,
    threads: int | None,
    device: str,
    engine: EngineName | None = None,
) -> Run:
    """A run that goes on exactly where it stopped (on one thread; more are never exact)."""
    if not modeldir.is_model(path):
        raise NlpkitError(f"no checkpoint at {path}", hint="train without --resume")
    saved = modeldir.load_config(path, kind=CHECKPOINT_KIND)
    folder = Path(path)
    settings = dict(saved.settings)
    try:
        position = settings.pop("position")
        tokens = {name: settings.pop(name) for name in TOKEN_SETTINGS}
        config = replace(Word2VecConfig.from_settings(settings), threads=threads)
        vocab = Vocab.load(str(folder / VOCAB))
        ids = np.load(folder / IDS, mmap_mode="r", allow_pickle=False).view(np.ndarray)
        counts = np.array(vocab.counts, dtype=np.int64)
        store = IdStore(ids, vocab.tokens, counts, position["text_words"])
        state = TrainState(
            np.load(folder / MATRIX, allow_pickle=False),
            np.load(folder / CONTEXT, allow_pickle=False),
            position["pieces_done"],
            position["loss_sum"],
            position["loss_count"],
        )
        trainer = Trainer(store, config, device=device, engine=engine, resume=state)
    except (OSError, ValueError, KeyError) as error:
        raise NlpkitError(f"{path} is damaged: {error}", hint="train without --resume") from None
    records = modeldir.read_metrics(path)
    return Run(store, config, trainer, saved.data_hash, tokens, records)


TOKEN_SETTINGS = ("tokenizer", "pattern", "lower")


def read_context(path: str) -> NDArray[np.float32] | None:
    """The output matrix of a word2vec folder, or nothing where vectors come without one."""
    file = Path(path) / CONTEXT
    return np.load(file, mmap_mode="r", allow_pickle=False) if file.is_file() else None


def _save_rows(path: Path, array: NDArray[Any]) -> None:
    written = np.lib.format.open_memmap(path, mode="w+", dtype=array.dtype, shape=array.shape)
    for start in range(0, len(array), _ROWS):
        written[start : start + _ROWS] = array[start : start + _ROWS]
    written.flush()
