"""``nlpkit gpt``: train, sample, score, answer, evaluate, import, export, attention."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import inspect_output, lm_score, lm_use, options
from nlpkit.cli.flags import argument, flag, flag_field
from nlpkit.cli.frame import new_app
from nlpkit.cli.lm_use import Init, SampleTokens, start_run
from nlpkit.cli.output import Notes, facts, open_output, rows_format, write_report
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.generate.settings import SamplingSettings
from nlpkit.tasks.lm.settings import GptSettings, LmSettings, WritingSettings
from nlpkit.text.records import Reading, row_lines, with_record

if TYPE_CHECKING:
    from nlpkit.tasks.lm.examples import Example

app = new_app("GPT models: train, sample, score, answer, import, export, attention.")


@app.command()
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


@app.command(defaults={"temperature": 0.8})
def sample(
    sampling: SamplingSettings,
    writing: WritingSettings,
    model: options.Model,
    request: lm_use.Request,
    use: options.Use,
    reading: Reading,
) -> None:
    """Let a model write.

    Prompts on standard input, one per line, are continued together. Beyond its block size a model
    forgets the older half of its context. A text ends at --max-tokens, at --stop or where the model
    ends it (the end-of-text mark of subwords). Keys of --json: prompt, text, tokens, logprobs
    (natural logarithms, by token), finish (length or stop); with --beams score and logprob.

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt sample tales.model "Once upon a time" -n 100
      $ nlpkit gpt sample tales.model "The " --samples 3 --stop . --temperature 0.5 --json
      $ printf 'One day\\nAt night\\n' | nlpkit gpt sample tales.model - -n 40
      $ nlpkit gpt sample tales.model "The king" -n 20 --beams 4 --samples 2 --json
    """
    lm_use.run_sample(model, request, use, reading, sampling, writing, gpt=True)


@app.command()
def score(
    *,
    model: options.Model,
    inputs: options.Inputs = None,
    scoring: lm_score.Scoring,
    use: options.Use,
    reading: Reading,
) -> None:
    """Say how well a model predicts text: perplexity, bits per token and byte.

    Every token is predicted from at least half a block of context where there is so much. Columns
    and keys: perplexity, bits_per_token, bits_per_byte, tokens, bytes, perplexity_per_word, words
    (between white space); with --lines also text.

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt score tales.model sample_corpora/tales.txt
      $ printf 'Once upon a time.\\nxqz jjv\\n' | nlpkit gpt score tales.model --lines
      $ printf 'Once upon a time.\\n' | nlpkit gpt score tales.model --tokens
    """
    lm_score.run_score(model, inputs, scoring, use, reading, gpt=True)


_AT_ONCE = 64  # prompts


@dataclass(frozen=True)
class Asking:
    """Flags of both commands."""

    template: str | None = flag_field(
        None,
        "Make prompts of the keys of each object: {question}; examples may come before.",
        metavar="FILE",
    )
    max_tokens: int = flag_field(
        100, "Longest answer.", "--max-tokens", "-n", low=1, high=limits.MANY
    )
    stop: list[str] | None = flag_field(
        None, "End before this text; may be repeated.", metavar="TEXT"
    )


@app.command()
def answer(
    *,
    model: options.Model,
    prompts: str = argument(
        textio.STDIN, "JSON lines, CSV or TSV with prompt; - is standard input.", metavar="PROMPTS"
    ),
    format: options.TextFormat = None,
    asking: Asking,
    use: options.Use,
) -> None:
    """Answer prompts: the likeliest text up to the end-of-text token, one answer per prompt.

    Prompts may have several lines each. With --template FILE the prompt is made of the other keys;
    few-shot examples stand in the template before the question. Keys of --json: prompt, answer.

    Examples:
      $ nlpkit gpt train --examples sample_corpora/prompts.jsonl -o qa.model --max-iters 30
      $ echo '{"prompt": "Question: Where is Oslo?\\nAnswer:"}' | nlpkit gpt answer qa.model
    """
    with open_output("-") as out:
        for example, text in _answers(model, prompts, asking, use, known=False):
            if format == "jsonl":
                record = {"prompt": example.prompt, "answer": text}
                out.write_json(with_record(example.prompt, record))
            else:
                out.write(" ".join(text.split("\n")) + "\n")


@app.command()
def evaluate(
    *,
    model: options.Model,
    examples: str = argument(
        textio.STDIN, "JSON lines, CSV or TSV with prompt and completion.", metavar="EXAMPLES"
    ),
    asking: Asking,
    format: options.RowsFormat = None,
    use: options.Use,
) -> None:
    """Score the answers to prompts whose completions are known: exact match and token F1.

    Answers are compared as SQuAD's evaluation does: without case, punctuation and articles. Keys
    of --json: exact_match, f1 (shares), examples.

    Examples:
      $ nlpkit gpt train --examples sample_corpora/prompts.jsonl -o qa.model --max-iters 30
      $ head -20 sample_corpora/prompts.jsonl | nlpkit gpt evaluate qa.model
    """
    from nlpkit.metrics.squad import score_answers

    pairs = _answers(model, examples, asking, use, known=True)
    truths = [[one.completion or ""] for one, _ in pairs]
    found = score_answers([text for _, text in pairs], truths)
    record = {
        "exact_match": round(found.exact, 4),
        "f1": round(found.f1, 4),
        "examples": found.questions,
    }
    with open_output("-") as out:
        shown = rows_format(format)
        write_report(out, [facts(*record.items())], record, shown)


def _answers(
    path: str, prompts: str, asking: Asking, use: options.Use, *, known: bool
) -> list[tuple[Example, str]]:
    """Each example with what the model says; ``known`` are those that have a completion."""
    from nlpkit.tasks.lm.examples import read_examples, template_names
    from nlpkit.tasks.lm.model import GptModel
    from nlpkit.tasks.lm.train_examples import answer_prompts

    template = asking.template
    text = None if template is None else "".join(b.text() for b in textio.read_blocks([template]))
    if text is not None and "{" not in text:
        raise NlpkitError(f"{template} names no key", hint="{question} where the question stands")
    (source,) = options.resolve_inputs([prompts])
    lines = row_lines(source, ("prompt",) if text is None else template_names(text))
    name = textio.source_name(prompts)
    examples = read_examples(lines, name, answers=known, template=text)
    model = GptModel.load(path)
    options.place(model.model, use, model.work(100 * len(examples)))
    found: list[str] = []
    for begin in range(0, len(examples), _AT_ONCE):
        part = [one.prompt for one in examples[begin : begin + _AT_ONCE]]
        found += answer_prompts(model, part, asking.max_tokens, asking.stop or [])
    return list(zip(examples, found, strict=True))


@app.command()
def import_(
    source: str = argument(..., "A Hugging Face GPT-2 folder, or a ckpt.pt.", metavar="SOURCE"),
    output: options.NewModel = ...,  # type: ignore[assignment]
    tokenizer: str | None = flag(None, "A tokenizer.json or GPT-2 folder.", metavar="PATH"),
    meta: str | None = flag(
        None, "The training text of a character model.", "--characters", metavar="FILE"
    ),
    force: options.Force = False,
) -> None:
    """Take over a GPT-2 of Hugging Face's form, or a checkpoint of nanoGPT.

    A folder has config.json, *.safetensors, and tokenizer.json or vocab.json + merges.txt. A
    nanoGPT checkpoint knows no tokeniser: name one, or give the text whose characters it learned.
    A configuration that asks for other arithmetic than GPT-2's is honoured or refused.

    Examples:
      $ nlpkit gpt import gpt2/ -o gpt2.model
      $ nlpkit gpt import out/ckpt.pt --characters input.txt -o shakespeare.model
    """
    from nlpkit.pretrained.gpt2 import import_gpt2, import_nanogpt

    modeldir.check_new(output, force=force)
    if Path(source).is_dir():
        gpt = import_gpt2(source, tokenizer)
    else:
        characters = None
        if meta is not None:
            characters = "".join(block.text() for block in textio.read_blocks([meta]))
        gpt = import_nanogpt(source, tokenizer, characters)
    gpt.save(output, force=force)
    Notes().say(f"{gpt.model.count_parameters():,} parameters; wrote {output}")


@app.command()
def export(
    model: options.Model,
    output: str = flag(..., "The folder to write.", "--output", "-o", metavar="DIR"),
    to: Literal["hf"] = flag("hf", "hf: Hugging Face's form."),
) -> None:
    """Write a GPT-2 model as a folder that transformers loads.

    Only models of GPT-2's kind and of subwords fit that form: those from nlpkit gpt train
    --recipe gpt2 -t tokenizer.json, and those from nlpkit gpt import, trained further or not. The
    recipe modern does not fit, whatever its --size.

    Examples:
      $ nlpkit bpe train sample_corpora/tales.txt -o tales.json --vocab-size 500
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.gpt2 --recipe gpt2 -t tales.json
      $ nlpkit gpt export tales.gpt2 --to hf -o tales-hf/
    """
    from nlpkit.pretrained.gpt2 import export_gpt2
    from nlpkit.pretrained.hugging_face import check_export
    from nlpkit.tasks.lm.model import GptModel

    check_export(output)
    export_gpt2(GptModel.load(model), output)
    Notes().say(f"wrote {output}")


@app.command()
def attention(
    model: options.Model,
    text: str = argument(..., "What to read.", metavar="TEXT"),
    layer: int | None = flag(None, "Only this layer, from 1.", min=1, max=limits.DEEPEST),
    head: int | None = flag(None, "Only this head, from 1.", min=1, max=limits.DEEPEST),
    plot: str | None = flag(None, "Draw it: .png, .svg, .pdf or .html.", metavar="FILE"),
    format: inspect_output.MapFormat = None,
) -> None:
    """Show what each token looks at: attention weights, by layer and head.

    On a terminal a heat map of characters, else JSON lines. Keys: layer, head, tokens, weights (a
    row for each token: what it looks at, from the first to itself, adds up to 1).

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt attention tales.model "Once upon a time" --layer 1 --head 2
      $ nlpkit gpt attention tales.model "Once upon a time" --plot attention.png > weights.jsonl
    """
    from nlpkit.plots import check_picture
    from nlpkit.tasks.lm.attention import attention_records
    from nlpkit.tasks.lm.model import GptModel

    chosen = inspect_output.shown_as(format)
    if plot is not None:
        check_picture(plot)
    records = attention_records(GptModel.load(model), text, layer, head)
    with open_output("-") as out:
        inspect_output.write_attention(out, records, plot, chosen)
