"""``nlpkit vectors info``, ``convert``, ``normalize``, ``merge``, ``pca``, ``export-projector``."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from nlpkit import modeldir
from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.output import Notes, facts, open_output, rows_format, write_report
from nlpkit.errors import UsageError, plural
from nlpkit.text.records import TOKEN_KEYS, Reading
from nlpkit.vectors.settings import COUNTS, CountMethod, CountSettings, MergeMethod, plain_settings


def info(
    vectors: shared.VectorsArgument,
    format: options.RowsFormat = None,
    errors: options.Errors = "strict",
) -> None:
    """Show how many words a set of vectors has, how long they are, and the first words.

    jsonl has the keys words, dim, kind, tokens (counted occurrences, or null), mean_length,
    subwords and first.

    Examples:
      $ nlpkit vectors info world.model
      $ nlpkit vectors info glove.6B.50d.txt --json
    """
    loaded = shared.open_vectors(vectors, Notes(), errors)
    counts = loaded.words.counts
    record = {
        "words": len(loaded),
        "dim": loaded.dim,
        "kind": _kind(vectors),
        "tokens": None if counts is None else int(counts.sum()),
        "mean_length": float(loaded.norms.mean()),
        "subwords": loaded.subwords is not None,
        "first": loaded.words[:10],
    }
    with open_output("-") as out:
        shown = facts(
            ("words", record["words"]),
            ("dim", record["dim"]),
            ("kind", record["kind"]),
            ("tokens", "not counted" if counts is None else record["tokens"]),
            ("length", record["mean_length"], "mean of all vectors"),
            ("subwords", "yes" if record["subwords"] else "no"),
            ("first", " ".join(loaded.words[:10])),
        )
        write_report(out, [shown], record, rows_format(format))


def _kind(path: str) -> str:
    if not os.path.isdir(path):
        return "file"
    return modeldir.load_config(path).kind if modeldir.is_model(path) else "spacy"


def convert(
    vectors: shared.VectorsArgument,
    output: shared.NewVectors,
    to: shared.To = None,
    restrict: shared.Restrict = None,
    force: options.Force = False,
    errors: options.Errors = "strict",
) -> None:
    """Convert vectors between formats; what is read is told by content.

    A model folder answers fastest: its matrix is memory-mapped and not read as a whole. The n-grams
    of fastText's .bin, which give vectors to unknown words, are kept in a folder and in .bin; other
    formats have no place for them, and a note says so.

    Examples:
      $ nlpkit vectors convert glove.6B.300d.txt -o glove.model
      $ nlpkit vectors convert world.model -o world.bin
      $ nlpkit vectors convert world.model -o top.txt --to glove --restrict 1000
    """
    notes = Notes()
    shared.check_output(output, to, force)
    loaded = shared.open_vectors(vectors, notes, errors, trained=True)
    if restrict is not None:
        from nlpkit.vectors.transform import restrict as keep_first

        loaded = keep_first(loaded, restrict)
    shared.save_vectors(loaded, output, to, force, notes, source=vectors)


def normalize(
    vectors: shared.VectorsArgument,
    output: shared.NewVectors,
    to: shared.To = None,
    force: options.Force = False,
) -> None:
    """Scale every vector to length 1, so that a dot product is a cosine.

    Examples:
      $ nlpkit vectors normalize world.model -o unit.model
    """
    from nlpkit.vectors import transform

    notes = Notes()
    shared.check_output(output, to, force)
    scaled = transform.normalize(shared.open_vectors(vectors, notes))
    shared.save_vectors(scaled, output, to, force, notes, source=vectors, transform="normalize")


def merge(
    *,
    vectors: list[str] = argument(
        ..., "Two or more sets of vectors, in any format.", metavar="VECTORS"
    ),
    output: shared.NewVectors,
    method: MergeMethod = flag(
        MergeMethod.CONCATENATE, "Side by side, or the mean (of equal length)."
    ),
    to: shared.To = None,
    force: options.Force = False,
) -> None:
    """Join sets of vectors on the words they share.

    Every vector is scaled to length 1 first, so that each set has the same say. Words come in the
    order of the first set.

    Examples:
      $ nlpkit vectors merge world.model counts.model -o both.model
      $ nlpkit vectors merge seed1.model seed2.model -o mean.model --method average
    """
    from nlpkit.vectors import transform

    if len(vectors) < 2:
        raise UsageError("merging needs at least two sets of vectors")
    pipes = [path for path in vectors if Path(path).is_fifo()]
    if len(set(pipes)) < len(pipes):
        raise UsageError("a pipe can be read only once")
    notes = Notes()
    shared.check_output(output, to, force)
    sets = [shared.open_vectors(path, notes) for path in vectors]
    merged = transform.merge(sets, method)
    shared.save_vectors(merged, output, to, force, notes, sources=vectors, method=method.value)


def pca(
    vectors: shared.VectorsArgument,
    output: shared.NewVectors,
    dim: int = flag(..., "Numbers to keep for a word.", min=1, max=limits.WIDEST),
    to: shared.To = None,
    force: options.Force = False,
) -> None:
    """Shorten vectors to the directions in which they differ most.

    Examples:
      $ nlpkit vectors pca world.model -o small.model --dim 20
    """
    from nlpkit.vectors import transform

    notes = Notes()
    shared.check_output(output, to, force)
    reduced = transform.pca(shared.open_vectors(vectors, notes), dim)
    shared.save_vectors(reduced, output, to, force, notes, source=vectors, transform="pca", dim=dim)


def export_projector(
    vectors: shared.VectorsArgument,
    output: str = flag(
        ..., "Where to write both files; made if need be.", "--output", "-o", metavar="FOLDER"
    ),
    restrict: shared.Restrict = None,
    errors: options.Errors = "strict",
) -> None:
    """Write vectors.tsv and metadata.tsv for the TensorFlow Embedding Projector.

    metadata.tsv has a header line only when it has two columns, that is when words have counts.

    Examples:
      $ nlpkit vectors export-projector world.model -o projector --restrict 1000
    """
    from nlpkit.vectors.projector import METADATA, VECTORS, check_place, write_projector

    notes = Notes()
    check_place(output)
    write_projector(shared.open_vectors(vectors, notes, errors), output, restrict)
    notes.say(f"{VECTORS} and {METADATA} to {output}")


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
    if resume:
        modeldir.check_checkpoint(modeldir.checkpoint_path(output))
    blocks = options.read_plain(inputs, reading, TOKEN_KEYS)
    rules = Word2VecConfig(min_count=settings.min_count, max_vocab=settings.max_vocab)
    corpus, text_hash = read_corpus(blocks, rules, tokenizing.settings, errors=reading.errors)
    words = ListedWords(corpus.words, corpus.counts)
    if settings.method is CountMethod.GLOVE:
        from nlpkit.vectors.glove_run import GloveRun

        run = GloveRun(corpus.ids, words, text_hash, settings, to)
        vectors = draw_run(run, output, notes, resume=resume, force=force)
        notes.say(f"{plural(len(vectors), 'word')} of {vectors.dim} numbers to {output}")
        return
    matrix = vectors_from_counts(corpus.ids, len(corpus.words), settings)
    recorded = plain_settings(settings)
    shared.save_vectors(Vectors(words, matrix), output, to, force, notes, **recorded)
