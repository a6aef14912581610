"""``nlpkit gpt train``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.frame import UsageError
from nlpkit.cli.output import Notes
from nlpkit.cli.progress_training import draw_training, prepare_torch
from nlpkit.tasks.lm.settings import GptSettings

if TYPE_CHECKING:
    from nlpkit.tasks.lm.model import GptModel
    from nlpkit.training.loop import Progress

DEFAULTS = GptSettings()


def train(
    text: options.Inputs = None,
    output: options.NewModel = ...,  # type: ignore[assignment]
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="char|byte|PATH",
            help="Characters, bytes, or the subwords of a tokenizer.json.",
            show_default="char, or that of --init",
        ),
    ] = None,
    recipe: Annotated[
        Literal["modern", "gpt2"] | None,
        typer.Option(
            "--recipe",
            help="What the model is made of; gpt2 can be exported to transformers.",
            show_default=f"{DEFAULTS.recipe}, or that of --init",
        ),
    ] = None,
    size: Annotated[
        str,
        typer.Option(
            "--size",
            help="nano, micro, mini, small or gpt2 (its sizes alone): sets the next five.",
        ),
    ] = DEFAULTS.size,
    layers: Annotated[
        int | None, typer.Option("--layers", min=1, max=limits.DEEPEST, help="Depth.")
    ] = None,
    heads: Annotated[
        int | None, typer.Option("--heads", min=1, max=limits.DEEPEST, help="Attention heads.")
    ] = None,
    dim: Annotated[
        int | None, typer.Option("--dim", min=2, max=limits.WIDEST, help="Width.")
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option("--block-size", min=2, max=limits.LONGEST, help="Longest context, in tokens."),
    ] = None,
    batch_size: options.BatchSize = None,
    dropout: options.Dropout = DEFAULTS.dropout,
    optimizer: Annotated[
        Literal["muon", "adamw"],
        typer.Option("--optimizer", help="muon: Muon for the matrices of blocks, AdamW else."),
    ] = DEFAULTS.optimizer,
    lr: options.LearningRate = DEFAULTS.lr,
    weight_decay: options.WeightDecay = DEFAULTS.weight_decay,
    warmup: Annotated[
        float,
        typer.Option("--warmup", min=0.0, max=1.0, help="Share of the run with a rising rate."),
    ] = DEFAULTS.warmup,
    schedule: Annotated[
        Literal["linear", "cosine", "constant"],
        typer.Option("--schedule", help="How the learning rate falls after that, to 0 or not."),
    ] = DEFAULTS.schedule,
    grad_clip: Annotated[
        float,
        typer.Option("--grad-clip", min=0.0, max=1e6, help="Longest gradient; 0 for any."),
    ] = DEFAULTS.grad_clip,
    grad_accum: Annotated[
        int, typer.Option("--grad-accum", min=1, max=100_000, help="Batches to a step.")
    ] = DEFAULTS.grad_accum,
    max_iters: Annotated[
        int | None,
        typer.Option(
            "--max-iters", min=1, max=limits.MANY, help="Steps, when there is no --max-time."
        ),
    ] = DEFAULTS.max_iters,
    max_time: options.MaxTime = None,
    eval_interval: Annotated[
        int | None,
        typer.Option(
            "--eval-interval",
            min=1,
            max=limits.MANY,
            help="Steps between evaluations.",
            show_default="20 in all",
        ),
    ] = None,
    val_fraction: Annotated[
        float,
        typer.Option(
            "--val-fraction",
            min=0.0,
            max=0.9,
            help="Last part of the text to hold out; 0 is none.",
        ),
    ] = DEFAULTS.val_fraction,
    sample_tokens: Annotated[
        int,
        typer.Option(
            "--sample", min=0, max=limits.LONGEST, help="Show so many tokens at each evaluation."
        ),
    ] = 0,
    dtype: Annotated[
        Literal["float32", "bfloat16"], typer.Option("--dtype", help="Of the arithmetic.")
    ] = DEFAULTS.dtype,
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile the model: pays in long runs.")
    ] = False,
    init: Annotated[
        str | None, typer.Option("--init", metavar="MODEL", help="Start from a model's weights.")
    ] = None,
    freeze: Annotated[
        int,
        typer.Option(
            "--freeze", min=0, max=limits.DEEPEST, help="Lowest layers of --init to leave alone."
        ),
    ] = DEFAULTS.freeze,
    seed: options.Seed = 1,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    force: options.Force = False,
    resume: options.Resume = False,
    config: options.Config = None,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Train a GPT on text.

    The last part of the text is held out; the loss on all of it is measured in the end. Under
    torchrun (torchrun --no-python nlpkit gpt train ...) the processes share the work: each step
    sees --batch-size windows of each.

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt train sample_corpora/world.txt -o world.gpt --size nano --max-iters 100
      $ nlpkit gpt train sample_corpora/tales.txt -o more.model --init tales.model --max-iters 20
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.gpt2 --recipe gpt2 --max-iters 100
    """
    from nlpkit.device import memory_advice
    from nlpkit.tasks.lm.model import GptModel
    from nlpkit.tasks.lm.stream import split_stream, tokenize_stream
    from nlpkit.tasks.lm.train import finish_training, new_model, prepare_training, recipe_of
    from nlpkit.text.codec import check_same_codec
    from nlpkit.training.distributed import Processes

    processes = Processes.from_environment()
    notes = Notes(quiet or not processes.is_first)
    if freeze and init is None:
        raise UsageError("--freeze needs --init")
    given: dict[str, Any] = {
        "recipe": recipe,
        "layers": layers,
        "heads": heads,
        "dim": dim,
        "block_size": block_size,
        "batch_size": batch_size,
        "dropout": dropout,
        "optimizer": optimizer,
        "lr": lr,
        "weight_decay": weight_decay,
        "warmup": warmup,
        "schedule": schedule,
        "grad_clip": grad_clip,
        "grad_accum": grad_accum,
        "max_iters": max_iters,
        "max_time": max_time,
        "eval_interval": eval_interval,
        "val_fraction": val_fraction,
        "dtype": dtype,
        "freeze": freeze,
    }
    given = {name: value for name, value in given.items() if value is not None}
    settings = GptSettings(size=size, compile=compile, seed=seed, **given).resolve()
    if processes.is_first:
        modeldir.check_new(output, force=force)
    chosen = processes.join(prepare_torch(device, threads, notes))
    start = None if init is None else GptModel.load(init)
    if start is not None:
        settings = replace(settings, recipe=recipe_of(start.model, recipe))
        if tokenizer is not None:
            check_same_codec(start.codec, tokenizer)
    blocks = textio.read_blocks(options.resolve_inputs(text), encoding=encoding, errors=errors)
    folder = os.path.dirname(os.path.abspath(output))
    codec, ids = tokenize_stream(
        blocks, tokenizer or "char", folder, errors, start.codec if start else None
    )
    if start is not None:
        model = start.model.requires_grad_(True)
        if any(name in given for name in ("layers", "heads", "dim", "block_size")):
            raise UsageError("--init brings its own --layers, --heads, --dim and --block-size")
    else:
        with memory_advice():
            model = new_model(settings, len(codec), chosen)
    model = model.to(chosen)
    training, validation = split_stream(ids, model.settings.block_size, settings.val_fraction)
    notes.say(
        f"{len(training):,} tokens to learn from, {len(validation):,} held out, "
        f"{len(codec):,} kinds; {model.count_parameters():,} parameters"
    )
    trainer = prepare_training(model, training, validation, settings, processes)
    gpt = GptModel(model, codec)
    data = modeldir.data_hash([ids.data.cast("B")])  # stays on disk
    run = {**vars(settings), "processes": processes.count, "init": init}
    checkpoint = modeldir.checkpoint_path(output)
    if resume:
        trainer.load(checkpoint, run, data)

    def show_sample(progress: Progress) -> None:
        if sample_tokens and progress.due:
            gpt.model.eval()
            notes.say(f"--- step {progress.step}\n{_sample_text(gpt, sample_tokens, seed)}")

    def write() -> None:
        loss = finish_training(gpt, trainer, validation, settings, data)
        gpt.save(output, force=force)
        measured = "" if loss is None else f"held-out loss {loss:.4f} nats per token; "
        notes.say(f"{measured}wrote {output}")

    if processes.is_first:
        draw_training(
            trainer,
            notes,
            write,
            checkpoint=checkpoint,
            settings=run,
            data_hash=data,
            on_progress=show_sample,
        )
    else:
        for _ in trainer.fit():
            pass
        trainer.keep_best()
    processes.leave()


def _sample_text(gpt: GptModel, tokens: int, seed: int) -> str:
    from nlpkit.generate.sampling import SamplingSettings

    steps = gpt.continue_prompts([""], tokens, SamplingSettings(temperature=0.8), seed)
    return "".join(new for step in steps for _, new in step)
