"""``nlpkit word2vec``: train vectors, and show what they are trained on."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nlpkit import modeldir
from nlpkit.cli import options
from nlpkit.cli.frame import Command, new_app
from nlpkit.cli.output import Notes, open_output
from nlpkit.cli.progress_training import ask_to_stop, stop_here, write_model
from nlpkit.errors import UsageError
from nlpkit.text.pipeline import Tokens, TokenSettings
from nlpkit.vectors.settings import Format
from nlpkit.word2vec.config import LIMITS, Arch, Loss, Word2VecConfig

if TYPE_CHECKING:
    from nlpkit.word2vec.model import Run
    from nlpkit.word2vec.train import EngineName

app = new_app("Word vectors by word2vec: train, and show training examples.")
DEFAULTS = Word2VecConfig()


def _range(name: str) -> dict[str, Any]:
    """The limits of a setting, for its option."""
    least, most = LIMITS[name]
    return {"min": least, "max": most}


ArchOption = Annotated[
    Arch,
    typer.Option("--arch", help="Predict the words around a word, or a word from those around it."),
]


@app.command(cls=Command)
def train(
    output: options.NewModel,
    inputs: options.Inputs = None,
    arch: ArchOption = DEFAULTS.arch,
    loss: Annotated[
        Loss,
        typer.Option(
            "--loss",
            help="ns: negative sampling; hs: hierarchical softmax over a Huffman tree; "
            "softmax: the whole formula, for small vocabularies.",
        ),
    ] = DEFAULTS.loss,
    dim: Annotated[
        int, typer.Option("--dim", **_range("dim"), help="Length of a vector.")
    ] = DEFAULTS.dim,
    window: Annotated[
        int, typer.Option("--window", **_range("window"), help="Words to each side, at most.")
    ] = DEFAULTS.window,
    shrink_windows: Annotated[
        bool,
        typer.Option(
            "--shrink-windows/--fixed-windows", help="Draw the size of each window from 1 on."
        ),
    ] = DEFAULTS.shrink_windows,
    negative: Annotated[
        int,
        typer.Option("--negative", **_range("negative"), help="Noise words to a true one, for ns."),
    ] = DEFAULTS.negative,
    ns_exponent: Annotated[
        float,
        typer.Option(
            "--ns-exponent",
            **_range("ns_exponent"),
            help="Noise words are drawn by count to this power.",
        ),
    ] = DEFAULTS.ns_exponent,
    cbow_mean: Annotated[
        bool, typer.Option("--cbow-mean/--cbow-sum", help="What CBOW makes of a window.")
    ] = DEFAULTS.cbow_mean,
    epochs: Annotated[
        int, typer.Option("--epochs", **_range("epochs"), help="Times to go through the text.")
    ] = DEFAULTS.epochs,
    min_count: Annotated[
        int,
        typer.Option(
            "--min-count", **_range("min_count"), help="Leave out words seen fewer times."
        ),
    ] = DEFAULTS.min_count,
    max_vocab: Annotated[
        int | None,
        typer.Option(
            "--max-vocab", **_range("max_vocab"), help="Keep the so many most frequent words."
        ),
    ] = DEFAULTS.max_vocab,
    sample: Annotated[
        float,
        typer.Option(
            "--sample",
            **_range("sample"),
            help="Thin out words with more than this share; 0 keeps all.",
        ),
    ] = DEFAULTS.sample,
    lr: Annotated[
        float | None,
        typer.Option(
            "--lr",
            **_range("lr"),
            help="Learning rate to start with.",
            show_default="0.025, 0.05 for cbow",
        ),
    ] = DEFAULTS.lr,
    min_lr: Annotated[
        float, typer.Option("--min-lr", **_range("min_lr"), help="Learning rate to end with.")
    ] = DEFAULTS.min_lr,
    phrases: Annotated[
        int,
        typer.Option(
            "--phrases", **_range("phrases"), help="Passes that join frequent pairs: new_york."
        ),
    ] = DEFAULTS.phrases,
    phrase_threshold: Annotated[
        float,
        typer.Option(
            "--phrase-threshold",
            **_range("phrase_threshold"),
            help="Join pairs so many times likelier than chance.",
        ),
    ] = DEFAULTS.phrase_threshold,
    tokenizer: options.TokenizerName = "whitespace",
    pattern: options.Pattern = None,
    lower: options.Lower = False,
    vocab: Annotated[
        str | None,
        typer.Option(
            "--vocab", "-V", metavar="FILE", help="Take words and counts from this vocabulary."
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            "--init", metavar="VECTORS", help="Start from trained vectors, of any known format."
        ),
    ] = None,
    seed: options.Seed = DEFAULTS.seed,
    threads: options.Threads = 0,
    device: options.Device = "auto",
    engine: Annotated[
        Literal["numba", "torch"] | None,
        typer.Option(
            "--engine",
            help="Compiled kernels for the CPU, or torch for any device.",
            show_default="numba on the CPU, else torch",
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(
            "--checkpoint-every",
            metavar="TIME",
            parser=options.parse_duration,
            help="Save a checkpoint this often: 90, 30s, 10m or 1h.",
        ),
    ] = "10m",  # type: ignore[assignment]
    resume: options.Resume = False,
    force: options.Force = False,
    config: options.Config = None,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Train word vectors on text, a sentence a line.

    Words are what stands between spaces; name a --tokenizer for raw text. The text is read once and
    kept as 4 bytes a word, on disk beyond 1 GB. The same seed and --threads 1 give the same bytes;
    more threads write to the same vectors without waiting for each other, so they do not. --resume
    goes on from MODEL.checkpoint with the flags that it was begun with, but for --threads; the text
    is in there and may be left out.

    Examples:
      $ nlpkit word2vec train sample_corpora/world.txt -o world.model --epochs 10 --force
      $ nlpkit word2vec train -t word --lower sample_corpora/tales.txt -o tales.model --arch cbow
      $ cat sample_corpora/world.txt | nlpkit word2vec train -o small.model --dim 50 --threads 1
    """
    from nlpkit.word2vec.train import pick_device

    notes = Notes(quiet)
    settings = Word2VecConfig(
        arch=arch,
        loss=loss,
        dim=dim,
        window=window,
        shrink_windows=shrink_windows,
        negative=negative,
        ns_exponent=ns_exponent,
        cbow_mean=cbow_mean,
        epochs=epochs,
        lr=lr,
        min_lr=min_lr,
        sample=sample,
        min_count=min_count,
        max_vocab=max_vocab,
        phrases=phrases,
        phrase_threshold=phrase_threshold,
        seed=seed,
        threads=threads or None,
    )
    tokens = TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower)
    modeldir.check_new(output, force=force)
    checkpoint = modeldir.checkpoint_path(output)
    chosen = pick_device(device)
    if resume:
        from nlpkit.word2vec.model import TOKEN_SETTINGS, load_checkpoint

        run = load_checkpoint(
            checkpoint,
            settings,
            {name: getattr(tokens, name) for name in TOKEN_SETTINGS},
            {"vocab": vocab, "init": init},
            data_hash=_hash_given(inputs, encoding, errors),
            device=chosen,
            engine=engine,
        )
    else:
        Tokens(tokens)
        if vocab is not None and (phrases or max_vocab):
            raise UsageError("--vocab says which words there are: no --phrases or --max-vocab")
        from nlpkit.word2vec.model import begin
        from nlpkit.word2vec.store import read_corpus

        blocks = options.read_inputs(inputs, encoding, errors)
        with notes.progress("reading", unit="MB") as bar:
            store, text_hash = read_corpus(
                blocks,
                settings,
                tokens,
                vocab=vocab,
                errors=errors,
                on_read=lambda size: bar.update(size / 1e6),
            )
        run = begin(
            store, text_hash, settings, tokens, vocab=vocab, init=init, device=chosen, engine=engine
        )
    _say_start(run, chosen, engine, notes)
    _draw(run, checkpoint, checkpoint_every, notes)
    write_model(
        lambda: run.vectors().save(output, Format.FOLDER, force=force),
        lambda: run.save_checkpoint(checkpoint),
        checkpoint,
        notes,
    )


def _hash_given(inputs: list[str] | None, encoding: str, errors: str) -> str | None:
    """The hash of the text that is given with ``--resume``, which needs none."""
    if not inputs and (sys.stdin is None or sys.stdin.isatty()):
        return None
    blocks = options.read_inputs(inputs, encoding, errors)
    found = modeldir.data_hash(block.data for block in blocks)
    return found if inputs or found != modeldir.data_hash([]) else None


def _say_start(run: Run, device: str, engine: EngineName | None, notes: Notes) -> None:
    config = run.config
    by_kernels = device == "cpu" and engine != "torch"
    workers = f"{config.workers} threads" if by_kernels else f"torch on {device}"
    notes.say(
        f"{run.store.text_words:,} words, {len(run.store.words):,} in the vocabulary; "
        f"{config.arch.value} with {config.loss.value}, {config.dim} dimensions, {workers}"
    )
    if by_kernels:
        from nlpkit.kernels.compiling import FIRST_TIME
        from nlpkit.word2vec.cpu import kernels_are_compiled

        if not kernels_are_compiled(config):
            notes.say(FIRST_TIME)
    run.trainer.compile()


def _draw(run: Run, checkpoint: Path, every: float, notes: Notes) -> None:
    """Train to the end, or stop when asked, save and exit with 130."""
    from nlpkit.textplot import sparkline

    last_save = time.monotonic()
    unfinished = False
    with ask_to_stop() as stopped, notes.progress("training", total=1.0) as bar:
        for progress in run.trainer.train():
            run.record(progress)
            bar.update(
                progress.fraction,
                f"epoch {progress.epoch}/{progress.epochs}  loss {progress.loss:.4f}  "
                f"lr {progress.lr:.4f}  {progress.words_per_second:,.0f} words/s",
            )
            unfinished = progress.fraction < 1
            if unfinished and (stopped() or time.monotonic() - last_save > every):
                run.save_checkpoint(checkpoint)
                last_save = time.monotonic()
                if stopped():
                    break
    if unfinished:
        stop_here(checkpoint, notes)
    if run.records:
        losses = [record["loss"] for record in run.records]
        speed = run.records[-1]["words_per_second"]
        notes.say(f"{speed:,} words/s  loss {sparkline(losses)} {losses[-1]:.4f}")


@app.command(cls=Command)
def examples(
    inputs: options.Inputs = None,
    arch: ArchOption = DEFAULTS.arch,
    window: Annotated[
        int, typer.Option("--window", **_range("window"), help="Words to each side of the centre.")
    ] = 2,
    tokenizer: options.TokenizerName = "whitespace",
    pattern: options.Pattern = None,
    lower: options.Lower = False,
    format: Annotated[
        Literal["tsv", "jsonl"] | None,
        typer.Option("--format", "-f", help="How to show rows.", show_default="tsv"),
    ] = None,
    json: options.Json = False,
    output: options.Output = "-",
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Print the examples that training on a text would see, a pair a line.

    Skip-gram gives centre<TAB>context, a pair for each word of the window; cbow gives the context,
    words between spaces, <TAB> centre. Nothing is left to chance here: windows have their full size
    and no word is thinned out. jsonl has the keys centre and context.

    Examples:
      $ echo "The quick brown fox jumps over the lazy dog" | nlpkit word2vec examples --window 2
      $ echo "The quick brown fox jumps" | nlpkit word2vec examples --arch cbow --json
    """
    from nlpkit.word2vec.examples import cbow_examples, skipgram_examples

    chosen = options.pick_format(format, json, "tsv")
    pipeline = Tokens(TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower))
    blocks = options.read_inputs(inputs, encoding, errors)
    with open_output(output) as out:
        for block in blocks:
            for line in block.lines(errors):
                words = pipeline.shown(line)
                if arch is Arch.SKIPGRAM:
                    for centre, word in skipgram_examples(words, window):
                        if chosen == "jsonl":
                            out.write_json({"centre": centre, "context": word})
                        else:
                            out.write(f"{centre}\t{word}\n")
                else:
                    for context, centre in cbow_examples(words, window):
                        if chosen == "jsonl":
                            out.write_json({"centre": centre, "context": context})
                        else:
                            out.write(f"{' '.join(context)}\t{centre}\n")
            out.flush()
