"""``nlpkit gpt train``: ``nlpkit lm train`` with the model given, and tasks by examples."""

from __future__ import annotations

import os
from typing import Any

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import flag, with_settings
from nlpkit.cli.lm_train import Init, SampleTokens, start_run
from nlpkit.errors import UsageError
from nlpkit.tasks.lm.settings import GptSettings, LmSettings
from nlpkit.text.records import Reading, row_lines


@with_settings(GptSettings, options.Training, Reading)
def train(
    *,
    settings: GptSettings,
    text: options.Inputs = None,
    output: options.NewModel,
    tokenizer: str | None = flag(
        None,
        "Characters, bytes, or the subwords of a tokenizer.json.",
        "--tokenizer",
        "-t",
        metavar="char|byte|PATH",
        show_default="char, or that of --init",
        rich_help_panel=limits.DATA,
    ),
    examples: str | None = flag(
        None,
        "Learn from JSON lines or CSV with prompt and completion instead of text.",
        metavar="FILE",
        rich_help_panel=limits.DATA,
    ),
    init: Init = None,
    sample_tokens: SampleTokens = 0,
    flags: options.Training,
    reading: Reading,
) -> None:
    """Train a GPT on text, or on prompts and their completions.

    The last part of the text is held out; the loss on all of it is measured in the end. Under
    torchrun (torchrun --no-python nlpkit gpt train ...) the processes share the work: each step
    sees --batch-size windows of each. With --examples only completions count in the loss.

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt train sample_corpora/world.txt -o world.gpt --size nano --max-iters 100
      $ nlpkit gpt train sample_corpora/tales.txt -o more.model --init tales.model --max-iters 20
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.gpt2 --recipe gpt2 --max-iters 100
    """
    from nlpkit.tasks.lm.examples import read_examples
    from nlpkit.tasks.lm.run import GptRun
    from nlpkit.tasks.lm.train_examples import ExamplesRun

    if examples is not None and text:
        raise UsageError("give a text or --examples, not both")

    def make(where: dict[str, Any]) -> Any:
        more = {"tokenizer": tokenizer, "init": init, **where}
        if examples is not None:
            (path,) = options.resolve_inputs([examples])
            lines = row_lines(path, ("prompt",), encoding=reading.encoding, errors=reading.errors)
            found = read_examples(lines, textio.source_name(examples))
            return ExamplesRun(found, LmSettings(**vars(settings)), **more)
        blocks = options.read_plain(text, reading)
        folder = os.path.dirname(os.path.abspath(output))
        return GptRun(blocks, settings, folder=folder, errors=reading.errors, **more)

    start_run(make, output, flags, sample_tokens)
