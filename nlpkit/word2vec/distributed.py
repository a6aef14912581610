"""word2vec over several processes, as ``torchrun`` starts them: each reads its own part of the
text, all train one set of vectors, and the first one writes it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.records import Reading, token_keys
from nlpkit.training.distributed import Processes
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.engines import EngineName
from nlpkit.word2vec.exchange import Peers, merge_vocabularies
from nlpkit.word2vec.model import Word2VecRun, begin
from nlpkit.word2vec.resume import load_checkpoint
from nlpkit.word2vec.shards import plan_parts, read_parts
from nlpkit.word2vec.store import StoreBuilder, by_frequency, fill_store, read_vocab


def begin_shared(
    paths: Sequence[str],
    config: Word2VecConfig,
    tokens: TokenSettings,
    reading: Reading,
    processes: Processes,
    *,
    vocab: str | None = None,
    init: str | None = None,
    device: str = "cpu",
    engine: EngineName | None = None,
    trial: bool = False,
    checkpoint: Path | None = None,
) -> Word2VecRun:
    """A run of which this is one process; all are called alike. With a checkpoint it goes on."""
    if config.documents or config.phrases or config.deterministic:
        wrong = next(n for n in ("documents", "phrases", "deterministic") if getattr(config, n))
        raise NlpkitError(f"`{wrong}` is for one process", hint="no torchrun")
    if (device != "cpu" and not trial) or engine == "torch":
        raise NlpkitError("processes share the kernels of the CPU only", hint="`device` cpu")
    peers = Peers(processes)
    files = [(os.path.basename(path), os.path.getsize(path)) for path in paths if path != "-"]
    settings = {**config.to_settings(), "threads": None, "tokens": str(tokens)}
    peers.check_same("settings", json.dumps(settings, sort_keys=True, default=str))
    peers.check_same("texts", json.dumps(files))
    builder = StoreBuilder()
    parts = plan_parts(paths, peers.rank, peers.count, reading)
    blocks = read_parts(parts, reading, token_keys(tokens))
    text_hash = fill_store(builder, blocks, config, tokens, reading.errors)
    given = read_vocab(vocab)
    if given is None:
        words, counts = builder.counted()
        given = merge_vocabularies(
            peers,
            words,
            counts,
            lambda all_words, sums: by_frequency(
                all_words, sums, config.min_count, config.max_vocab
            ),
        )
    store = builder.finish(config, given)
    run = begin(store, text_hash, config, tokens, vocab=vocab, init=init)
    done = np.zeros(1, np.int64)
    if checkpoint is not None and peers.rank == 0:
        sources = {"vocab": vocab, "init": init}
        run = load_checkpoint(
            checkpoint, config, run.tokens, sources, data_hash=text_hash, device="cpu"
        )
    trainer = run.words_trainer
    trainer.join(peers, store.counts)
    if peers.rank == 0:
        done[0] = trainer.rounds_done
    peers.take_first(done)
    trainer.start_together(int(done[0]))
    run.processes = processes
    run.summary = f"{peers.count} processes, of which this one has " + run.summary
    return run
