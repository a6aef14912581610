"""``nlpkit vectors from-counts``."""

from __future__ import annotations

from dataclasses import replace

from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.flags import with_settings
from nlpkit.cli.frame import UsageError
from nlpkit.cli.output import Notes
from nlpkit.text.records import TOKEN_KEYS, Reading
from nlpkit.vectors.settings import COUNTS, CountMethod, CountSettings, plain_settings


@with_settings(CountSettings, options.Tokenizing, Reading)
def from_counts(
    *,
    output: shared.NewVectors,
    settings: CountSettings,
    inputs: options.Inputs = None,
    tokenizing: options.Tokenizing,
    seed: options.Seed = COUNTS.seed,
    threads: options.Threads = 0,
    to: shared.To = None,
    resume: options.Resume = False,
    force: options.Force = False,
    reading: Reading,
) -> None:
    """Make vectors by counting: which words stand near which, factorised (svd) or learned (glove).

    svd trains nothing: positive PMI and its singular values. glove fits products of vectors to
    logarithms of counts; Ctrl-C saves OUTPUT.checkpoint, from which --resume goes on, with the same
    text. --threads 1 gives the same bytes for the same seed. One sentence per line, words between
    spaces; name a --tokenizer for raw text.

    Examples:
      $ nlpkit vectors from-counts sample_corpora/world.txt -o counts.model --dim 50
      $ nlpkit vectors from-counts sample_corpora/world.txt -o glove.model --method glove --dim 50
      $ nlpkit vectors from-counts raw.txt.gz -t word --lower --window 2 -o counts.txt
    """
    from nlpkit.cli.progress_training import draw_run
    from nlpkit.vectors.counts import vectors_from_counts
    from nlpkit.vectors.store import Vectors
    from nlpkit.vectors.words import ListedWords
    from nlpkit.word2vec.config import Word2VecConfig
    from nlpkit.word2vec.store import read_corpus

    notes = Notes()
    settings = replace(settings, seed=seed, threads=threads or None)
    if resume and settings.method is not CountMethod.GLOVE:
        raise UsageError("--resume is for --method glove: svd is done at once")
    shared.check_output(output, to, force)
    blocks = options.read_plain(inputs, reading, TOKEN_KEYS)
    rules = Word2VecConfig(min_count=settings.min_count, max_vocab=settings.max_vocab)
    corpus, text_hash = read_corpus(blocks, rules, tokenizing.settings, errors=reading.errors)
    words = ListedWords(corpus.words, corpus.counts)
    if settings.method is CountMethod.GLOVE:
        from nlpkit.vectors.glove_run import GloveRun

        run = GloveRun(corpus.ids, words, text_hash, settings, to)
        vectors = draw_run(run, output, notes, resume=resume, force=force)
        notes.say(f"{len(vectors):,} words of {vectors.dim} numbers to {output}")
        return
    matrix = vectors_from_counts(corpus.ids, len(corpus.words), settings)
    recorded = plain_settings(settings)
    shared.save_vectors(Vectors(words, matrix), output, to, force, notes, **recorded)
