"""``nlpkit word2vec``: train vectors, and show what they are trained on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

import typer

from nlpkit import modeldir
from nlpkit.cli import options
from nlpkit.cli.flags import flag_of
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Writer, open_output, rows_format, write_rows
from nlpkit.cli.progress_training import check_place, draw_run
from nlpkit.text.pipeline import Tokens
from nlpkit.text.records import TOKEN_KEYS, Reading, token_keys
from nlpkit.word2vec.config import Arch, Word2VecConfig

app = new_app("Word vectors by word2vec: train, and show training examples.")

Vocab = Annotated[
    str | None,
    typer.Option(
        "--vocab", "-V", metavar="FILE", help="Take words and counts from this vocabulary."
    ),
]
Init = Annotated[
    str | None,
    typer.Option(
        "--init", metavar="VECTORS", help="Start from trained vectors, of any known format."
    ),
]
Engine = Annotated[
    Literal["numba", "torch"] | None,
    typer.Option(
        "--engine",
        help="Compiled kernels for the CPU, or torch for any device.",
        show_default="numba on the CPU, torch elsewhere; the faster in a trial for --device auto",
    ),
]


@app.command()
def train(
    *,
    settings: Word2VecConfig,
    reading: Reading,
    output: options.NewModel,
    inputs: options.Inputs = None,
    tokenizing: options.Tokenizing,
    vocab: Vocab = None,
    init: Init = None,
    engine: Engine = None,
    checkpoint_every: options.CheckpointEvery = "10m",  # type: ignore[assignment]
    flags: options.Training,
) -> None:
    """Train word vectors on text, one sentence per line.

    Words are what stands between spaces; name a --tokenizer for raw text. The text is read once and
    kept as 4 bytes a word, on disk beyond 1 GB. The same seed and --threads 1 give the same bytes;
    more threads write to the same vectors without waiting for each other, so they do not, unless
    --deterministic gives each its own copy. --resume goes on from MODEL.checkpoint with the flags
    that it was begun with, but for --threads; the text is in there and may be left out.

    Under torchrun (torchrun --no-python nlpkit word2vec train ...) each process reads its own part
    of the files; see docs/scale.md.

    With --documents each line or record gets a vector too (paragraph vectors), and an id: its
    number, or what --id-key names. All vectors commands take them as MODEL/documents, and
    nlpkit vectors embed --method infer gives vectors of new texts.

    Examples:
      $ nlpkit word2vec train sample_corpora/world.txt -o world.model --epochs 10 --force
      $ nlpkit word2vec train -t word --lower sample_corpora/tales.txt -o tales.model --arch cbow
      $ cat sample_corpora/world.txt | nlpkit word2vec train -o small.model --dim 50 --threads 1
      $ nlpkit word2vec train sample_corpora/tales.txt --documents -o lines.model --min-count 2
    """
    from nlpkit.word2vec.model import begin_text
    from nlpkit.word2vec.resume import resume_run
    from nlpkit.word2vec.train import pick_device

    processes = None
    if os.environ.get("WORLD_SIZE", "1") != "1":
        from nlpkit.training.distributed import Processes

        processes = Processes.from_environment()
    notes = check_place(output, flags, processes)
    settings = replace(settings, threads=flags.threads or None)
    tokens = tokenizing.settings
    given: dict[str, Any] = {
        "vocab": vocab,
        "init": init,
        "device": pick_device(flags.device),
        "engine": engine,
        "trial": flags.device == "auto",
    }
    checkpoint = modeldir.checkpoint_path(output) if flags.resume else None
    if processes is not None:
        from nlpkit.word2vec.distributed import begin_shared

        paths = options.resolve_inputs(inputs)
        run = begin_shared(
            paths, settings, tokens, reading, processes, checkpoint=checkpoint, **given
        )
    elif checkpoint is not None:
        alone = not inputs and (sys.stdin is None or sys.stdin.isatty())
        blocks = None if alone else options.read_records(inputs, reading, token_keys(tokens))
        run = resume_run(checkpoint, settings, tokens, blocks, named=bool(inputs), **given)
    else:
        Tokens(tokens)  # a wrong setting fails here, before the text is read
        blocks = options.read_records(inputs, reading, token_keys(tokens))
        with notes.progress("reading", unit="MB") as bar:
            run = begin_text(
                blocks,
                settings,
                tokens,
                errors=reading.errors,
                on_read=lambda size: bar.update(size / 1e6),
                **given,
            )
    run.save_seconds = checkpoint_every
    draw_run(run, output, notes, force=flags.force)


@app.command()
def examples(
    *,
    inputs: options.Inputs = None,
    arch: flag_of(Word2VecConfig, "arch") = Arch.SKIPGRAM,  # type: ignore[valid-type]
    window: flag_of(Word2VecConfig, "window") = 2,  # type: ignore[valid-type]
    tokenizing: options.Tokenizing,
    format: options.RowsFormat = None,
    output: options.Output = "-",
    reading: Reading,
) -> None:
    """Print the examples that training on a text would see, one pair per line.

    Skip-gram gives centre<TAB>context, a pair for each word of the window; cbow gives the context,
    words between spaces, <TAB> centre. Nothing is left to chance here: windows have their full size
    and no word is subsampled. jsonl has the keys centre and context.

    Examples:
      $ echo "The quick brown fox jumps over the lazy dog" | nlpkit word2vec examples --window 2
      $ echo "The quick brown fox jumps" | nlpkit word2vec examples --arch cbow --json
    """
    from nlpkit.word2vec.examples import cbow_examples, skipgram_examples

    shown = rows_format(format)
    pipeline = Tokens(tokenizing.settings)
    blocks = options.read_plain(inputs, reading, TOKEN_KEYS)
    skipgram = arch is Arch.SKIPGRAM

    def found(out: Writer) -> Iterator[tuple[Any, Any]]:
        for block in blocks:
            for line in block.lines(reading.errors):
                words = pipeline.shown(line)
                if skipgram:
                    yield from skipgram_examples(words, window)
                    continue
                for context, centre in cbow_examples(words, window):
                    yield context if shown == "jsonl" else " ".join(context), centre
            out.flush()

    with open_output(output) as out:
        columns = ("centre", "context") if skipgram else ("context", "centre")
        write_rows(out, columns, found(out), shown)
