"""``nlpkit vectors from-counts``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nlpkit import modeldir
from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.flags import with_settings
from nlpkit.cli.frame import UsageError
from nlpkit.cli.output import Notes
from nlpkit.text.pipeline import TokenSettings
from nlpkit.vectors.settings import COUNTS, CountMethod, CountSettings, Format

if TYPE_CHECKING:
    from nlpkit.vectors.store import Vectors
    from nlpkit.word2vec.store import IdStore


@with_settings(CountSettings)
def from_counts(
    output: shared.NewVectors,
    settings: CountSettings,
    inputs: options.Inputs = None,
    tokenizer: options.TokenizerName = "whitespace",
    pattern: options.Pattern = None,
    lower: options.Lower = False,
    seed: options.Seed = COUNTS.seed,
    threads: options.Threads = 0,
    to: shared.To = None,
    resume: options.Resume = False,
    force: options.Force = False,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Make vectors by counting: which words stand near which, factorised (svd) or learned (glove).

    svd trains nothing: positive PMI and its singular values. glove fits products of vectors to
    logarithms of counts; Ctrl-C saves OUTPUT.checkpoint, from which --resume goes on, with the same
    text. --threads 1 gives the same bytes for the same seed. A sentence a line, words between
    spaces; name a --tokenizer for raw text.

    Examples:
      $ nlpkit vectors from-counts sample_corpora/world.txt -o counts.model --dim 50
      $ nlpkit vectors from-counts sample_corpora/world.txt -o glove.model --method glove --dim 50
      $ nlpkit vectors from-counts raw.txt.gz -t word --lower --window 2 -o counts.txt
    """
    from nlpkit.word2vec.config import Word2VecConfig
    from nlpkit.word2vec.store import read_corpus

    notes = Notes(quiet)
    settings = replace(settings, seed=seed, threads=threads or None)
    if resume and settings.method is not CountMethod.GLOVE:
        raise UsageError("--resume is for --method glove: svd is done at once")
    shared.check_output(output, to, force)
    tokens = TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower)
    blocks = options.read_inputs(inputs, encoding, errors)
    rules = Word2VecConfig(min_count=settings.min_count, max_vocab=settings.max_vocab)
    corpus, text_hash = read_corpus(blocks, rules, tokens, errors=errors)
    if settings.method is CountMethod.GLOVE:
        _glove(corpus, text_hash, settings, output, to, resume, force, notes)
        return
    from nlpkit.vectors.counts import vectors_from_counts

    matrix = vectors_from_counts(corpus.ids, len(corpus.words), settings)
    _save(corpus, matrix, settings, output, to, force, notes)


def _vectors(corpus: IdStore, matrix: Any) -> Vectors:
    from nlpkit.vectors.store import Vectors
    from nlpkit.vectors.words import ListedWords

    return Vectors(ListedWords(corpus.words, corpus.counts), matrix)


def _save(
    corpus: IdStore,
    matrix: Any,
    settings: CountSettings,
    output: str,
    to: Format | None,
    force: bool,
    notes: Notes,
) -> None:
    from nlpkit.vectors.glove_checkpoint import plain_settings

    recorded = plain_settings(settings)
    shared.save_vectors(_vectors(corpus, matrix), output, to, force, notes, **recorded)


def _glove(
    corpus: IdStore,
    text_hash: str,
    settings: CountSettings,
    output: str,
    to: Format | None,
    resume: bool,
    force: bool,
    notes: Notes,
) -> None:
    from nlpkit.cli.progress_training import ask_to_stop, stop_here, write_model
    from nlpkit.textplot import sparkline
    from nlpkit.vectors import glove_checkpoint
    from nlpkit.vectors.cooccurrence import PairCounter
    from nlpkit.vectors.glove import GloveTrainer, Shards

    checkpoint = modeldir.checkpoint_path(os.fspath(output))
    state = glove_checkpoint.load(checkpoint, settings, text_hash) if resume else None
    counter = PairCounter(len(corpus.words), settings)
    counter.add(corpus.ids)
    shards = Shards(counter, settings)
    notes.say(f"{len(corpus.words):,} words, {shards.pairs:,} pairs")
    trainer = GloveTrainer(shards, len(corpus.words), settings, state)

    def save() -> None:
        glove_checkpoint.save(checkpoint, trainer.state(), settings, text_hash)

    losses = []
    with ask_to_stop() as stopped, notes.progress("training", total=settings.epochs) as bar:
        for record in trainer.train():
            losses.append(record.loss)
            speed = f"{record.pairs_per_second:,.0f} pairs/s"
            bar.update(record.epoch, f"epoch {record.epoch}  loss {record.loss:.4f}  {speed}")
            if stopped() and record.epoch < settings.epochs:
                save()
                break
    if trainer.epochs_done < settings.epochs:
        stop_here(checkpoint, notes, f" after epoch {trainer.epochs_done}")
    if losses:
        notes.say(f"{speed}  loss by epoch {sparkline(losses)} {losses[-1]:.4f}")
    write_model(
        lambda: _save(corpus, trainer.vectors(), settings, output, to, force, notes),
        save,
        checkpoint,
        notes,
    )
