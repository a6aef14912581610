"""``nlpkit gpt train``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.flags import with_settings
from nlpkit.cli.output import Notes
from nlpkit.cli.progress_training import draw_run, prepare_torch
from nlpkit.tasks.lm.settings import GptSettings
from nlpkit.training.run import Progress


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
    from nlpkit.tasks.lm.train import GptRun
    from nlpkit.training.distributed import Processes

    processes = Processes.from_environment()
    notes = Notes(quiet or not processes.is_first)
    if processes.is_first:
        modeldir.check_new(output, force=force)
    run = GptRun(
        textio.read_blocks(options.resolve_inputs(text), encoding=encoding, errors=errors),
        settings,
        tokenizer=tokenizer,
        init=init,
        device=processes.join(prepare_torch(device, threads, notes)),
        processes=processes,
        folder=os.path.dirname(os.path.abspath(output)),
        errors=errors,
    )

    def show_sample(progress: Progress) -> None:
        if sample_tokens and progress.due:
            run.gpt.model.eval()
            written = run.gpt.sample("", sample_tokens, seed=settings.seed)
            notes.say(f"--- step {progress.step}\n{written}")

    draw_run(run, output, notes, resume=resume, force=force, on_progress=show_sample)
