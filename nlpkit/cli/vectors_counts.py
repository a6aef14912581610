"""``nlpkit vectors from-counts``."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.output import Notes
from nlpkit.text.pipeline import TokenSettings, read_tokens
from nlpkit.vectors.settings import COUNTS, CountSettings, Weighting


def from_counts(
    output: shared.NewVectors,
    inputs: options.Inputs = None,
    dim: Annotated[
        int, typer.Option("--dim", min=1, max=limits.WIDEST, help="Numbers in a vector.")
    ] = COUNTS.dim,
    window: Annotated[
        int,
        typer.Option(
            "--window", min=1, max=1_000, help="Words to each side that count as neighbours."
        ),
    ] = COUNTS.window,
    weighting: Annotated[
        Weighting,
        typer.Option("--weighting", help="Near neighbours count more (linear) or all alike."),
    ] = COUNTS.weighting,
    min_count: Annotated[
        int,
        typer.Option(
            "--min-count", min=1, max=limits.MANY, help="Leave out words seen fewer times."
        ),
    ] = COUNTS.min_count,
    max_vocab: Annotated[
        int | None,
        typer.Option("--max-vocab", min=1, max=limits.MANY, help="Keep so many words at most."),
    ] = COUNTS.max_vocab,
    smoothing: Annotated[
        float,
        typer.Option("--smoothing", min=0.0, max=10.0, help="Exponent of the context counts."),
    ] = COUNTS.smoothing,
    shift: Annotated[
        float,
        typer.Option("--shift", min=1.0, max=1e6, help="Its logarithm is taken off each PMI."),
    ] = COUNTS.shift,
    power: Annotated[
        float,
        typer.Option("--power", min=0.0, max=10.0, help="Exponent of the singular values."),
    ] = COUNTS.power,
    tokenizer: options.TokenizerName = "whitespace",
    pattern: options.Pattern = None,
    lower: options.Lower = False,
    seed: options.Seed = COUNTS.seed,
    to: shared.To = None,
    force: options.Force = False,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Make vectors by counting: which words stand near which (PPMI), factorised (SVD).

    Nothing is trained; compare with word2vec on the same text. A sentence a line, words between
    spaces; name a --tokenizer for raw text.

    Examples:
      $ nlpkit vectors from-counts sample_corpora/world.txt -o counts.model --dim 50
      $ nlpkit vectors from-counts raw.txt.gz -t word --lower --window 2 -o counts.txt
    """
    shared.check_output(output, to, force)
    tokens = TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower)
    blocks = options.read_inputs(inputs, encoding, errors)
    settings = CountSettings(
        dim=dim,
        window=window,
        weighting=weighting,
        min_count=min_count,
        max_vocab=max_vocab,
        smoothing=smoothing,
        shift=shift,
        power=power,
        seed=seed,
    )
    from nlpkit.vectors.counts import vectors_from_counts
    from nlpkit.vectors.store import Vectors
    from nlpkit.vectors.words import ListedWords
    from nlpkit.word2vec.config import Word2VecConfig
    from nlpkit.word2vec.store import StoreBuilder

    builder = StoreBuilder()
    if tokens.is_plain_split:
        for block in blocks:
            builder.add_block(block.text(errors).encode())
    else:
        for lines in read_tokens(blocks, tokens, errors):
            for line in lines:
                builder.add_sentence(line)
    corpus = builder.finish(Word2VecConfig(min_count=min_count, max_vocab=max_vocab))
    matrix = vectors_from_counts(corpus.ids, len(corpus.words), settings)
    vectors = Vectors(ListedWords(corpus.words, corpus.counts), matrix)
    recorded = {**dataclasses.asdict(settings), "weighting": weighting.value}
    shared.save_vectors(vectors, output, to, force, Notes(quiet), **recorded)
