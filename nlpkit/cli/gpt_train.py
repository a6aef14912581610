"""``nlpkit gpt train``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.flags import with_settings
from nlpkit.cli.frame import UsageError
from nlpkit.cli.output import Notes
from nlpkit.cli.progress_training import draw_training, prepare_torch
from nlpkit.tasks.lm.settings import GptSettings

if TYPE_CHECKING:
    from nlpkit.tasks.lm.model import GptModel
    from nlpkit.training.loop import Progress


@with_settings(GptSettings)
def train(
    settings: GptSettings,
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
            rich_help_panel=limits.DATA,
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            "--init",
            metavar="MODEL",
            help="Start from a model's weights.",
            rich_help_panel=limits.MODEL,
        ),
    ] = None,
    sample_tokens: Annotated[
        int,
        typer.Option(
            "--sample", min=0, max=limits.LONGEST, help="Show so many tokens at each evaluation."
        ),
    ] = 0,
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
    if settings.freeze and init is None:
        raise UsageError("--freeze needs --init")
    sizes = (settings.layers, settings.heads, settings.dim, settings.block_size)
    wanted = settings.resolve()
    if processes.is_first:
        modeldir.check_new(output, force=force)
    chosen = processes.join(prepare_torch(device, threads, notes))
    start = None if init is None else GptModel.load(init)
    if start is not None:
        wanted = replace(wanted, recipe=recipe_of(start.model, settings.recipe))
        if tokenizer is not None:
            check_same_codec(start.codec, tokenizer)
    blocks = textio.read_blocks(options.resolve_inputs(text), encoding=encoding, errors=errors)
    folder = os.path.dirname(os.path.abspath(output))
    codec, ids = tokenize_stream(
        blocks, tokenizer or "char", folder, errors, start.codec if start else None
    )
    if start is not None:
        model = start.model.requires_grad_(True)
        if any(size is not None for size in sizes):
            raise UsageError("--init brings its own --layers, --heads, --dim and --block-size")
    else:
        with memory_advice():
            model = new_model(wanted, len(codec), chosen)
    model = model.to(chosen)
    training, validation = split_stream(ids, model.settings.block_size, wanted.val_fraction)
    notes.say(
        f"{len(training):,} tokens to learn from, {len(validation):,} held out, "
        f"{len(codec):,} kinds; {model.count_parameters():,} parameters"
    )
    trainer = prepare_training(model, training, validation, wanted, processes)
    gpt = GptModel(model, codec)
    data = modeldir.data_hash([ids.data.cast("B")])  # stays on disk
    run = {**vars(wanted), "processes": processes.count, "init": init}
    checkpoint = modeldir.checkpoint_path(output)
    if resume:
        trainer.load(checkpoint, run, data)

    def show_sample(progress: Progress) -> None:
        if sample_tokens and progress.due:
            gpt.model.eval()
            notes.say(f"--- step {progress.step}\n{_sample_text(gpt, sample_tokens, wanted.seed)}")

    def write() -> None:
        loss = finish_training(gpt, trainer, validation, wanted, data)
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
