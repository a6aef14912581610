"""``nlpkit lm train``, and the one way in which every language model of text is trained."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.flags import with_settings
from nlpkit.cli.frame import UsageError
from nlpkit.cli.output import Notes
from nlpkit.cli.progress_training import draw_training, prepare_torch
from nlpkit.errors import NlpkitError
from nlpkit.tasks.lm.settings import LmSettings

if TYPE_CHECKING:
    import numpy as np

    from nlpkit.tasks.lm.model import TextModel
    from nlpkit.tasks.lm.settings import ResolvedLm
    from nlpkit.text.codec import Codec
    from nlpkit.training.distributed import Processes
    from nlpkit.training.loop import Progress

Init = Annotated[
    str | None,
    typer.Option(
        "--init",
        metavar="MODEL",
        help="Start from a model's weights.",
        rich_help_panel=limits.MODEL,
    ),
]
SampleTokens = Annotated[
    int,
    typer.Option(
        "--sample", min=0, max=limits.LONGEST, help="Show so many tokens at each evaluation."
    ),
]


@dataclass(frozen=True)
class Run:
    """What a training command was told besides its settings."""

    text: list[str] | None
    output: str
    tokenizer: str | None
    init: str | None
    sample_tokens: int
    device: str
    threads: int
    force: bool
    resume: bool
    encoding: str
    errors: str
    quiet: bool
    examples: str | None = None


@with_settings(LmSettings)
def train(
    settings: LmSettings,
    text: options.Inputs = None,
    output: options.NewModel = ...,  # type: ignore[assignment]
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="char|byte|word|whitespace|PATH",
            help="Characters, bytes, words, or the subwords of a tokenizer.json.",
            show_default="char, or that of --init",
            rich_help_panel=limits.DATA,
        ),
    ] = None,
    init: Init = None,
    sample_tokens: SampleTokens = 0,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    force: options.Force = False,
    resume: options.Resume = False,
    config: options.Config = None,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Train a language model on text: n-grams, an MLP, an RNN, LSTM, GRU or GPT.

    The last part of the text is held out; the loss on all of it is measured in the end. N-grams are
    counted in constant memory, by sorted runs in temporary files beside the model. Recurrent models
    carry their state over from block to block of the text (truncated back-propagation through
    time). Gradient norms by layer and by distance in time are written to the metrics, which
    info --json shows. Under torchrun the processes share the work.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm train sample_corpora/tales.txt -o lstm.model --model lstm --max-time 30s
      $ nlpkit lm train sample_corpora/tales.txt -o rnn.model --model rnn --dim 64 --max-iters 100
      $ nlpkit lm train sample_corpora/tales.txt -o mlp.model --model mlp --direct --max-iters 100
    """
    run_training(
        settings,
        Run(
            text,
            output,
            tokenizer,
            init,
            sample_tokens,
            device,
            threads,
            force,
            resume,
            encoding,
            errors,
            quiet,
        ),
    )


def run_training(settings: LmSettings, run: Run) -> None:
    """Read the text, train the model, write it."""
    from nlpkit.training.distributed import Processes

    processes = Processes.from_environment()
    notes = Notes(run.quiet or not processes.is_first)
    if settings.freeze and run.init is None:
        raise UsageError("--freeze needs --init")
    if settings.model == "ngram" and (run.init or run.resume):
        raise UsageError("n-grams are counted at once: there is nothing to go on from")
    start = _open_init(settings, run)
    if start is not None:
        settings = replace(settings, model=start.config.settings.get("model", "gpt"))
    wanted = settings.resolve_lm(run.tokenizer or _kind_of(start))
    if processes.is_first:
        modeldir.check_new(run.output, force=run.force)
    chosen = processes.join(prepare_torch(run.device, run.threads, notes))
    if start is not None:
        wanted = _go_on(wanted, settings, start, run)
    if run.examples is not None:
        from nlpkit.cli.gpt_examples import train_on_examples

        train_on_examples(wanted, run, start, notes, processes, chosen)
        return
    folder = os.path.dirname(os.path.abspath(run.output))
    codec, ids = _read_text(wanted, run, folder, start)
    data = modeldir.data_hash([ids.data.cast("B")])  # stays on disk
    if wanted.model == "ngram":
        _count(wanted, run, codec, ids, data, folder, notes)
        return
    model = start.model.requires_grad_(True) if start else _new_model(wanted, codec, chosen)
    found = as_text_model(model.to(chosen), codec, wanted)
    _fit(found, ids, wanted, run, notes, processes, data)


def as_text_model(model: Any, codec: Codec, wanted: ResolvedLm) -> TextModel:
    """The object of a model in training."""
    from nlpkit.tasks.lm.model import GptModel, TextModel

    kind = GptModel if wanted.model == "gpt" else TextModel
    return kind(model, codec, unit=wanted.unit)


def _open_init(settings: LmSettings, run: Run) -> TextModel | None:
    from nlpkit.tasks.lm.model import GptModel, TextModel

    if run.init is None:
        return None
    start = (GptModel if settings.model == "gpt" else TextModel).load(run.init)
    if start.model.settings.model == "ngram":
        raise NlpkitError(f"{run.init} holds n-grams, which are not trained further")
    return start


def _kind_of(start: TextModel | None) -> str:
    """The name of the tokenizer of a model to go on from."""
    return getattr(start.codec, "kind", "char") if start is not None else "char"


def _go_on(wanted: ResolvedLm, settings: LmSettings, start: TextModel, run: Run) -> ResolvedLm:
    """Settings with what a model brings along."""
    from nlpkit.tasks.lm.train import recipe_of
    from nlpkit.text.codec import check_same_codec

    if run.tokenizer is not None:
        check_same_codec(start.codec, run.tokenizer)
    if any(
        size is not None
        for size in (settings.layers, settings.heads, settings.dim, settings.block_size)
    ):
        raise UsageError("--init brings its own --layers, --heads, --dim and --block-size")
    if settings.unit not in (None, start.unit):
        raise UsageError(f"--init was trained with --unit {start.unit}")
    recipe = recipe_of(start.model, settings.recipe)
    return replace(wanted, recipe=recipe, unit=start.unit)


def _new_model(wanted: ResolvedLm, codec: Codec, device: Any) -> Any:
    from nlpkit.device import memory_advice
    from nlpkit.tasks.lm.train import new_model

    with memory_advice():
        return new_model(wanted, len(codec), device)


def _read_text(
    wanted: ResolvedLm, run: Run, folder: str, start: TextModel | None
) -> tuple[Codec, np.ndarray]:
    from nlpkit.tasks.lm.stream import tokenize_stream
    from nlpkit.tasks.lm.words import join_documents

    paths = options.resolve_inputs(run.text)
    blocks = textio.read_blocks(paths, encoding=run.encoding, errors=run.errors)
    if wanted.unit == "documents":
        blocks = join_documents(blocks)
    return tokenize_stream(
        blocks,
        run.tokenizer or "char",
        folder,
        run.errors,
        start.codec if start else None,
        vocab_size=wanted.vocab_size,
        min_count=wanted.min_count,
    )


def _count(
    wanted: ResolvedLm,
    run: Run,
    codec: Codec,
    ids: np.ndarray,
    data: str,
    folder: str,
    notes: Notes,
) -> None:
    from nlpkit.tasks.lm.stream import split_stream
    from nlpkit.tasks.lm.train import train_ngram

    training, validation = split_stream(ids, wanted.order, wanted.val_fraction)
    notes.say(
        f"{len(training):,} tokens to count, {len(validation):,} held out, "
        f"vocabulary of {len(codec):,}"
    )
    found = train_ngram(training, validation, codec, wanted, data, folder)
    found.save(run.output, force=run.force)
    loss = found.config.metrics.get("heldout_loss")
    measured = "" if loss is None else f"held-out loss {loss:.4f} nats per token; "
    sizes = found.config.settings["levels"]
    notes.say(f"{sizes[-1] - 1:,} n-grams; {measured}wrote {run.output}")


def _fit(
    found: TextModel,
    ids: np.ndarray,
    wanted: ResolvedLm,
    run: Run,
    notes: Notes,
    processes: Processes,
    data: str,
) -> None:
    from nlpkit.tasks.lm.stream import split_stream
    from nlpkit.tasks.lm.train import finish_training, prepare_training

    training, validation = split_stream(ids, found.model.settings.block_size, wanted.val_fraction)
    notes.say(
        f"{len(training):,} tokens to learn from, {len(validation):,} held out, "
        f"vocabulary of {len(found.codec):,}; {found.model.count_parameters():,} parameters"
    )
    trainer = prepare_training(
        found.model, training, validation, wanted, processes, mark=found.mark
    )

    def write() -> None:
        loss = finish_training(found, trainer, validation, wanted, data)
        found.save(run.output, force=run.force)
        measured = "" if loss is None else f"held-out loss {loss:.4f} nats per token; "
        notes.say(f"{measured}wrote {run.output}")

    fit_and_write(found, trainer, wanted, run, notes, processes, data, write)


def fit_and_write(
    found: TextModel,
    trainer: Any,
    wanted: ResolvedLm,
    run: Run,
    notes: Notes,
    processes: Processes,
    data: str,
    write: Any,
) -> None:
    """Run a trainer to the end in every process; the first one draws, saves and writes."""
    told = {**vars(wanted), "processes": processes.count, "init": run.init}
    checkpoint = modeldir.checkpoint_path(run.output)
    if run.resume:
        trainer.load(checkpoint, told, data)

    def show_sample(progress: Progress) -> None:
        if run.sample_tokens and progress.due:
            found.model.eval()
            text = _sample_text(found, run.sample_tokens, wanted.seed)
            notes.say(f"--- step {progress.step}\n{text}")

    if processes.is_first:
        draw_training(
            trainer,
            notes,
            write,
            checkpoint=checkpoint,
            settings=told,
            data_hash=data,
            on_progress=show_sample,
        )
    else:
        for _ in trainer.fit():
            pass
        trainer.keep_best()
    processes.leave()


def _sample_text(found: TextModel, tokens: int, seed: int) -> str:
    from nlpkit.generate.settings import SamplingSettings

    steps = found.continue_prompts([""], tokens, SamplingSettings(temperature=0.8), seed)
    return "".join(new for step in steps for _, new in step)
