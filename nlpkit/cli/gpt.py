"""``nlpkit gpt``: train, sample, score, answer, evaluate, import, export, attention."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import inspect_output, lm_score, lm_use, options
from nlpkit.cli.flags import argument, flag, flag_field
from nlpkit.cli.frame import new_app
from nlpkit.cli.lm_use import Init, SampleTokens, start_run
from nlpkit.cli.output import Notes, facts, open_output, rows_format, write_report
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.generate.settings import SamplingSettings
from nlpkit.plots import check_picture
from nlpkit.tasks.lm.settings import GptSettings, LmSettings, WritingSettings
from nlpkit.text.records import (
    TEXT_KEYS,
    Reading,
    RecordText,
    row_lines,
    rows_of,
    text_of,
    with_record,
)

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
PROMPT_KEYS = ("prompt", *TEXT_KEYS)


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
        textio.STDIN,
        "Lines, JSON lines, CSV or TSV with prompt or text; - is standard input.",
        metavar="PROMPTS",
    ),
    format: options.TextFormat = None,
    asking: Asking,
    reading: Reading,
    use: options.Use,
) -> None:
    """Answer prompts: the likeliest text up to the end-of-text token, one answer per prompt.

    Prompts of records may have several lines each. With --template FILE the prompt is made of the
    other keys; few-shot examples stand in the template before the question. Keys of --json: prompt,
    answer.

    Examples:
      $ nlpkit gpt train --examples sample_corpora/prompts.jsonl -o qa.model --max-iters 30
      $ echo '{"prompt": "Question: Where is Oslo?\\nAnswer:"}' | nlpkit gpt answer qa.model
    """
    asked = _read_prompts(prompts, _template(asking), reading)
    with open_output("-") as out:
        for prompt, text in zip(asked, _answers(model, asked, asking, use), strict=True):
            if format == "jsonl":
                out.write_json(with_record(prompt, {"prompt": prompt, "answer": text}))
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
    from nlpkit.tasks.lm.examples import read_examples, template_names

    template = _template(asking)
    (source,) = options.resolve_inputs([examples])
    lines = row_lines(source, ("prompt",) if template is None else template_names(template))
    known = read_examples(lines, textio.source_name(examples), template=template)
    answers = _answers(model, [one.prompt for one in known], asking, use)
    found = score_answers(answers, [[one.completion or ""] for one in known])
    record = {
        "exact_match": round(found.exact, 4),
        "f1": round(found.f1, 4),
        "examples": found.questions,
    }
    with open_output("-") as out:
        shown = rows_format(format)
        write_report(out, [facts(*record.items())], record, shown)


def _template(asking: Asking) -> str | None:
    if asking.template is None:
        return None
    text = "".join(block.text() for block in textio.read_blocks([asking.template]))
    if "{" not in text:
        raise NlpkitError(
            f"{asking.template} names no key", hint="{question} where the question stands"
        )
    return text


def _read_prompts(path: str, template: str | None, reading: Reading) -> list[str]:
    """Prompts of lines or records; those of records know them."""
    from nlpkit.tasks.lm.examples import fill_template, template_names

    names = PROMPT_KEYS if template is None else tuple(template_names(template))
    found = []
    for block in options.read_records([path], reading, names):
        for row in rows_of(block, reading.errors):
            where = f"{block.source}: line {row.line}"
            if template is not None:
                text = fill_template(template, row.record, where)
            else:
                text = text_of(row, block.source)
            if text:
                found.append(RecordText.of(text, row.record))
            elif row.record:
                raise NlpkitError(f"{where}: no prompt", hint="a prompt that is not empty")
    if not found:
        raise NlpkitError(f"{textio.source_name(path)}: no prompts", hint="one to a line")
    return found


def _answers(path: str, prompts: list[str], asking: Asking, use: options.Use) -> list[str]:
    """What the model says to each prompt."""
    from nlpkit.tasks.lm.model import GptModel
    from nlpkit.tasks.lm.train_examples import answer_prompts

    model = GptModel.load(path)
    options.place(model.model, use, model.work(100 * len(prompts)))
    found: list[str] = []
    for begin in range(0, len(prompts), _AT_ONCE):
        part = prompts[begin : begin + _AT_ONCE]
        found += answer_prompts(model, part, asking.max_tokens, asking.stop or [])
    return found


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
    *,
    model: options.Model,
    text: str = argument(..., "What to read.", metavar="TEXT"),
    wanted: inspect_output.AttentionFlags,
) -> None:
    """Show what each token looks at: attention weights, by layer and head.

    On a terminal a heat map of characters, else JSON lines. Keys: layer, head, tokens, weights (a
    row for each token: what it looks at, from the first to itself, adds up to 1).

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt attention tales.model "Once upon a time" --layer 1 --head 2
      $ nlpkit gpt attention tales.model "Once upon a time" --plot attention.png > weights.jsonl
    """
    from nlpkit.tasks.lm.attention import attention_records
    from nlpkit.tasks.lm.model import GptModel

    chosen = inspect_output.shown_as(wanted.format)
    check_picture(wanted.plot)
    records = attention_records(GptModel.load(model), text, wanted.layer, wanted.head)
    with open_output("-") as out:
        inspect_output.write_attention(out, records, wanted.plot, chosen)
