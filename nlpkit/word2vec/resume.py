"""Going on with an interrupted run of word2vec: reading its checkpoint, and refusing another's."""

from __future__ import annotations

import os
import tokenize
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.vocab import Vocab, read_words
from nlpkit.textio import TextBlock
from nlpkit.vectors.folder import BUCKETS, CONTEXT, DOCUMENT_NAMES, MATRIX, VOCAB
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.documents import Documents
from nlpkit.word2vec.engines import EngineName
from nlpkit.word2vec.model import (
    CHECKPOINT_KIND,
    IDS,
    OF_SENTENCE,
    TOKEN_SETTINGS,
    Word2VecRun,
    hash_rows,
    identity,
)
from nlpkit.word2vec.state import TrainState
from nlpkit.word2vec.store import IdStore
from nlpkit.word2vec.train import Word2VecTrainer


def resume_run(
    path: str | os.PathLike[str],
    config: Word2VecConfig,
    tokens: TokenSettings,
    blocks: Iterable[TextBlock] | None,
    *,
    named: bool,
    vocab: str | None,
    init: str | None,
    device: str,
    engine: EngineName | None,
    trial: bool = False,
) -> Word2VecRun:
    """Go on from a checkpoint; a text that is there must be the one of the run.

    Unless it was ``named``, an empty text is none. Where a ``trial`` chose the engine, it stays.
    """
    found = None if blocks is None else modeldir.data_hash(block.data for block in blocks)
    if not named and found == modeldir.data_hash([]):
        found = None
    how = {name: getattr(tokens, name) for name in TOKEN_SETTINGS}
    sources = {"vocab": vocab, "init": init}
    return load_checkpoint(
        path, config, how, sources, data_hash=found, device=device, engine=engine, trial=trial
    )


def load_checkpoint(
    path: str | os.PathLike[str],
    config: Word2VecConfig,
    tokens: dict[str, Any],
    sources: dict[str, str | None],
    *,
    data_hash: str | None = None,
    device: str,
    engine: EngineName | None = None,
    trial: bool = False,
) -> Word2VecRun:
    """A run that goes on exactly where it stopped (on one thread, or if it is deterministic).

    All settings must be those of the run, but for ``threads`` if it is not deterministic, and so
    must the hash of the text, if there is one.
    """
    modeldir.check_checkpoint(path)
    saved = modeldir.load_config(path, kind=CHECKPOINT_KIND)
    folder = Path(path)
    position = saved.settings.pop("position", None)
    if config.deterministic and config.threads is None:
        config = replace(config, threads=saved.settings.get("threads"))
    now = {**config.to_settings(), **tokens, **sources}
    free = set() if config.deterministic else {"threads"}
    earlier = Word2VecConfig().to_settings()  # what a version that had no such setting did
    for name in sorted((saved.settings.keys() | now.keys()) - free):
        before = saved.settings.get(name, earlier.get(name))
        if before != now.get(name):
            raise NlpkitError(
                f"{path} was made with {name} {before}, not {now.get(name)}",
                hint="the flags of the first run, or start again without `resume`",
            )
    if data_hash is not None and data_hash != saved.data_hash:
        raise NlpkitError(f"{path} was made from other text", hint="the text of the first run")
    if not isinstance(position, dict) or "ids_hash" not in position:
        raise NlpkitError(f"{path} is of another version of nlpkit", hint="train without `resume`")
    if trial and engine is None and position.get("engine") == "numba":
        engine, device = "numba", "cpu"
    try:
        vocab = Vocab.load(str(folder / VOCAB))
        ids = _load_rows(folder / IDS)
        ids_file = identity(folder / IDS)
        counts = np.array(vocab.counts, dtype=np.int64)
        documents = None
        if config.documents:
            names = read_words(folder / DOCUMENT_NAMES)
            documents = Documents(names, _load_rows(folder / OF_SENTENCE))
        store = IdStore(ids, vocab.tokens, counts, int(position["text_words"]), documents)
        state = TrainState(
            _load_rows(folder / MATRIX),
            _load_rows(folder / CONTEXT),
            position["pieces_done"],
            position["loss_sum"],
            position["loss_count"],
        )
        buckets = None
        if config.subwords is not None:
            buckets = _load_rows(folder / BUCKETS)
            if buckets.ndim != 1 or buckets.dtype != np.int64 or (np.diff(buckets) <= 0).any():
                raise NlpkitError(f"{BUCKETS} has been changed")
        trainer = Word2VecTrainer(
            store, config, device=device, engine=engine, resume=state, buckets=buckets
        )
        if hash_rows(ids) != position["ids_hash"]:
            raise NlpkitError(f"{IDS} has been changed")
    except (OSError, ValueError, KeyError, TypeError, OverflowError, NlpkitError) as error:
        reason = error.message if isinstance(error, NlpkitError) else error
        raise NlpkitError(f"{path} is damaged: {reason}", hint="train without `resume`") from None
    records = modeldir.read_metrics(path)
    return Word2VecRun(store, config, trainer, saved.data_hash, tokens, records, sources, ids_file)


def _load_rows(path: Path) -> NDArray[Any]:
    """An array on disk, memory-mapped, so that a false header cannot ask for memory."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (EOFError, SyntaxError, tokenize.TokenError) as error:  # headers are read as Python
        raise ValueError(f"{path.name}: {error}") from None
    return array
