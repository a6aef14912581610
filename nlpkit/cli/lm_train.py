"""``nlpkit lm train``, and the one way in which every language model of text is trained."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.flags import flag, with_settings
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.errors import UsageError
from nlpkit.tasks.lm.settings import LmSettings
from nlpkit.text.records import Reading
from nlpkit.training.run import Progress

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
    typer.Option("--sample", min=0, max=10_000, help="Show so many tokens at each evaluation."),
]


@with_settings(LmSettings, options.Training, Reading)
def train(
    *,
    settings: LmSettings,
    text: options.Inputs = None,
    output: options.NewModel,
    tokenizer: str | None = flag(
        None,
        "Characters, bytes, words, or the subwords of a tokenizer.json.",
        "--tokenizer",
        "-t",
        metavar="char|byte|word|whitespace|PATH",
        show_default="char, or that of --init",
        rich_help_panel=limits.DATA,
    ),
    init: Init = None,
    sample_tokens: SampleTokens = 0,
    flags: options.Training,
    reading: Reading,
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
    from nlpkit.tasks.lm.run import LmRun

    start_run(
        lambda where: LmRun(
            options.read_plain(text, reading),
            settings,
            tokenizer=tokenizer,
            init=init,
            folder=os.path.dirname(os.path.abspath(output)),
            errors=reading.errors,
            **where,
        ),
        output,
        flags,
        sample_tokens,
    )


def start_run(
    make: Callable[[dict[str, Any]], Any], output: str, flags: options.Training, sample_tokens: int
) -> None:
    """Make a run for the device and process at hand, and see it to its end."""
    from nlpkit.training.distributed import Processes

    processes = Processes.from_environment()
    notes = check_place(output, flags, processes)
    chosen = processes.join(prepare_torch(flags, notes))
    run = make({"device": chosen, "processes": processes})
    if flags.resume and run.trainer is None:
        raise UsageError("n-grams are counted at once: there is nothing to resume")

    def show_sample(progress: Progress) -> None:
        if sample_tokens and progress.due:
            run.model.model.eval()
            written = run.model.sample("", sample_tokens, seed=run.settings.seed)
            notes.say(f"--- step {progress.step}\n{written}")

    draw_run(run, output, notes, resume=flags.resume, force=flags.force, on_progress=show_sample)
