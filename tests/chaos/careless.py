"""A writer of models with the mistakes that chaos is there to find."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def write_in_place() -> None:
    """From now on a model is written where the old one was, which is deleted first."""
    from nlpkit import modeldir

    @contextlib.contextmanager
    def create(
        path: str | os.PathLike[str], config: modeldir.ModelConfig, **_: Any
    ) -> Iterator[Path]:
        shutil.rmtree(path, ignore_errors=True)
        Path(path).mkdir()
        (Path(path) / modeldir.CONFIG).write_text(json.dumps(vars(config)))
        yield Path(path)

    modeldir.create = create


def forget_optimizers() -> None:
    """From now on a checkpoint holds no state of the optimizers."""
    from nlpkit import modeldir

    write = modeldir.write_weights

    def write_weights(folder: Path, tensors: dict[str, Any]) -> None:
        write(folder, {n: t for n, t in tensors.items() if not n.startswith("optimizer.")})

    modeldir.write_weights = write_weights  # type: ignore[assignment]


def lose_count() -> None:
    """The loss of word2vec is no number."""
    from nlpkit.word2vec.train import Word2VecTrainer

    run_round = Word2VecTrainer._run_round

    def broken(self: Word2VecTrainer, *arguments: Any) -> None:
        run_round(self, *arguments)
        self._loss_sum = float("nan")

    Word2VecTrainer._run_round = broken  # type: ignore[method-assign]
