"""``nlpkit word2vec``: train vectors, and show what they are trained on."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nlpkit import modeldir
from nlpkit.cli import options
from nlpkit.cli.frame import Command, UsageError, new_app
from nlpkit.cli.output import Notes, open_output
from nlpkit.cli.progress_training import ask_to_stop
from nlpkit.tokenizers.pipeline import Tokens, TokenSettings
from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig

if TYPE_CHECKING:
    from nlpkit.word2vec.model import Run
    from nlpkit.word2vec.store import IdStore
    from nlpkit.word2vec.train import EngineName

app = new_app("Word vectors by word2vec: train, and show training examples.")
DEFAULTS = Word2VecConfig()
MOST_RECORDS = 200  # of the curve that is kept

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
    dim: Annotated[int, typer.Option("--dim", min=1, help="Length of a vector.")] = DEFAULTS.dim,
    window: Annotated[
        int, typer.Option("--window", min=1, help="Words to each side, at most.")
    ] = DEFAULTS.window,
    shrink_windows: Annotated[
        bool,
        typer.Option(
            "--shrink-windows/--fixed-windows", help="Draw the size of each window from 1 on."
        ),
    ] = DEFAULTS.shrink_windows,
    negative: Annotated[
        int, typer.Option("--negative", min=1, help="Noise words to a true one, for ns.")
    ] = DEFAULTS.negative,
    ns_exponent: Annotated[
        float, typer.Option("--ns-exponent", help="Noise words are drawn by count to this power.")
    ] = DEFAULTS.ns_exponent,
    cbow_mean: Annotated[
        bool, typer.Option("--cbow-mean/--cbow-sum", help="What CBOW makes of a window.")
    ] = DEFAULTS.cbow_mean,
    epochs: Annotated[
        int, typer.Option("--epochs", min=1, help="Times to go through the text.")
    ] = DEFAULTS.epochs,
    min_count: Annotated[
        int, typer.Option("--min-count", min=1, help="Leave out words seen fewer times.")
    ] = DEFAULTS.min_count,
    max_vocab: Annotated[
        int | None, typer.Option("--max-vocab", min=1, help="Keep the so many most frequent words.")
    ] = DEFAULTS.max_vocab,
    sample: Annotated[
        float,
        typer.Option("--sample", help="Thin out words with more than this share; 0 keeps all."),
    ] = DEFAULTS.sample,
    lr: Annotated[
        float | None,
        typer.Option(
            "--lr", help="Learning rate to start with.", show_default="0.025, 0.05 for cbow"
        ),
    ] = DEFAULTS.lr,
    min_lr: Annotated[
        float, typer.Option("--min-lr", help="Learning rate to end with.")
    ] = DEFAULTS.min_lr,
    phrases: Annotated[
        int, typer.Option("--phrases", min=0, help="Passes that join frequent pairs: new_york.")
    ] = DEFAULTS.phrases,
    phrase_threshold: Annotated[
        float,
        typer.Option("--phrase-threshold", help="Join pairs so many times likelier than chance."),
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
    goes on from MODEL.checkpoint with the settings, and the text, that it was begun with.

    Examples:
      $ nlpkit word2vec train sample_corpora/world.txt -o world.model --epochs 10 --force
      $ nlpkit word2vec train -t word --lower sample_corpora/tales.txt -o tales.model --arch cbow
      $ cat sample_corpora/world.txt | nlpkit word2vec train -o small.model --dim 50 --threads 1
    """
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
    chosen = _pick_device(device)
    from nlpkit.word2vec.model import load_checkpoint

    if resume:
        run = load_checkpoint(checkpoint, threads=threads or None, device=chosen, engine=engine)
    else:
        Tokens(tokens)
        if vocab is not None and (phrases or max_vocab):
            raise UsageError("--vocab says which words there are: no --phrases or --max-vocab")
        run = _begin(inputs, settings, tokens, vocab, init, chosen, engine, encoding, errors, notes)
    _say_start(run, chosen, engine, notes)
    _draw(run, checkpoint, checkpoint_every, notes)
    run.save_model(output, force=force)
    shutil.rmtree(checkpoint, ignore_errors=True)


def _pick_device(name: str) -> str:
    """The CPU kernels need no torch, and asking torch for a GPU costs two seconds: look first."""
    has_gpu = sys.platform == "darwin" or any(Path("/dev").glob("nvidia[0-9]*"))
    if name == "cpu" or (name == "auto" and not has_gpu):
        return "cpu"
    from nlpkit.device import pick_device

    return str(pick_device(name))


def _begin(
    inputs: list[str] | None,
    settings: Word2VecConfig,
    tokens: TokenSettings,
    vocab: str | None,
    init: str | None,
    device: str,
    engine: EngineName | None,
    encoding: str,
    errors: str,
    notes: Notes,
) -> Run:
    from nlpkit.word2vec.model import TOKEN_SETTINGS, Run
    from nlpkit.word2vec.train import Trainer

    store, data_hash = _read(inputs, settings, tokens, vocab, encoding, errors, notes)
    start = outputs = None
    if init is not None:
        from nlpkit.vectors.formats import load
        from nlpkit.word2vec.model import read_context

        vectors = load(init)
        start, outputs = (list(vectors.words), vectors.matrix), read_context(init)
    trainer = Trainer(
        store, settings, device=device, engine=engine, init=start, init_output=outputs
    )
    how = {name: getattr(tokens, name) for name in TOKEN_SETTINGS}
    return Run(store, settings, trainer, data_hash, how, [])


def _read(
    inputs: list[str] | None,
    settings: Word2VecConfig,
    tokens: TokenSettings,
    vocab: str | None,
    encoding: str,
    errors: str,
    notes: Notes,
) -> tuple[IdStore, str]:
    """The text as ids, and its hash."""
    from nlpkit.vocab import Vocab
    from nlpkit.word2vec.store import StoreBuilder

    given = None
    if vocab is not None:
        loaded = Vocab.load(vocab)
        special = len(loaded.specials)
        given = (loaded.tokens[special:], loaded.counts[special:])
    digest = hashlib.blake2b(digest_size=16)
    builder = StoreBuilder()
    pipeline = Tokens(tokens)
    size = 0
    with notes.progress("reading", unit="MB") as bar:
        for block in options.read_inputs(inputs, encoding, errors):
            text = block.text(errors)  # says where bytes are not UTF-8
            if not tokens.is_plain_split:
                for line in block.lines(errors):
                    builder.add_sentence(pipeline.shown(line))
            else:
                builder.add_block(block.data if errors == "strict" else text.encode("utf-8"))
            digest.update(block.data)
            size += len(block.data)
            bar.update(size / 1e6)
    return builder.finish(settings, given), digest.hexdigest()


def _say_start(run: Run, device: str, engine: EngineName | None, notes: Notes) -> None:
    config = run.config
    by_kernels = device == "cpu" and engine != "torch"
    workers = f"{config.workers} threads" if by_kernels else f"torch on {device}"
    notes.say(
        f"{run.store.text_words:,} words, {len(run.store.words):,} in the vocabulary; "
        f"{config.arch.value} with {config.loss.value}, {config.dim} dimensions, {workers}"
    )
    if by_kernels:
        from nlpkit.compiling import FIRST_TIME
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
            share = progress.words_done / progress.words_total
            record = {
                "epoch": progress.epoch,
                "words": progress.words_done,
                "loss": progress.loss,
                "lr": progress.lr,
                "words_per_second": round(progress.words_per_second),
            }
            if progress.epoch_ended or share * MOST_RECORDS >= len(run.records):
                run.records.append(record)
            bar.update(
                share,
                f"epoch {progress.epoch}/{progress.epochs}  loss {progress.loss:.4f}  "
                f"lr {progress.lr:.4f}  {progress.words_per_second:,.0f} words/s",
            )
            unfinished = share < 1
            if unfinished and (stopped() or time.monotonic() - last_save > every):
                run.save_checkpoint(checkpoint)
                last_save = time.monotonic()
                if stopped():
                    break
    if unfinished:
        command = ["nlpkit", *(word for word in sys.argv[1:] if word != "--resume"), "--resume"]
        notes.say(f"stopped, saved {checkpoint}")
        notes.say(f"resume with: {shlex.join(command)}")
        raise typer.Exit(130)
    if run.records:
        losses = [record["loss"] for record in run.records]
        speed = run.records[-1]["words_per_second"]
        notes.say(f"{speed:,} words/s  loss {sparkline(losses)} {losses[-1]:.4f}")


@app.command(cls=Command)
def examples(
    inputs: options.Inputs = None,
    arch: ArchOption = DEFAULTS.arch,
    window: Annotated[
        int, typer.Option("--window", min=1, help="Words to each side of the centre.")
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
