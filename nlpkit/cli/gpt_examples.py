"""``nlpkit gpt answer`` and ``nlpkit gpt evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.output import open_output, rows_format
from nlpkit.cli.reports import facts, write_report
from nlpkit.errors import NlpkitError
from nlpkit.text.records import with_record

if TYPE_CHECKING:
    from nlpkit.tasks.lm.examples import Example
    from nlpkit.tasks.lm.model import GptModel

Template = Annotated[
    str | None,
    typer.Option(
        "--template",
        metavar="FILE",
        help="Make prompts of the keys of each object: {question}; examples may come before.",
    ),
]
MaxTokens = Annotated[
    int, typer.Option("--max-tokens", "-n", min=1, max=limits.MANY, help="Longest answer.")
]
Stop = Annotated[
    list[str] | None,
    typer.Option("--stop", metavar="TEXT", help="End before this text; may be repeated."),
]
_AT_ONCE = 64  # prompts


def answer(
    model: options.Model,
    prompts: Annotated[
        str, typer.Argument(metavar="PROMPTS", help="JSON lines with prompt; - is standard input.")
    ] = textio.STDIN,
    template: Template = None,
    max_tokens: MaxTokens = 100,
    stop: Stop = None,
    json: options.Json = False,
    device: options.UseDevice = "auto",
    threads: options.Threads = 0,
) -> None:
    """Answer prompts: the likeliest text up to the end-of-text token, one answer per prompt.

    Prompts may have several lines each. With --template FILE the prompt is made of the other keys;
    few-shot examples stand in the template before the question. Keys of --json: prompt, answer.

    Examples:
      $ nlpkit gpt train --examples sample_corpora/prompts.jsonl -o qa.model --max-iters 30
      $ echo '{"prompt": "Question: Where is Oslo?\\nAnswer:"}' | nlpkit gpt answer qa.model
    """
    found, examples = _open(model, prompts, template, device, threads, answers=False)
    with open_output("-") as out:
        for example, text in _answers(found, examples, max_tokens, stop or []):
            if json:
                record = {"prompt": example.prompt, "answer": text}
                out.write_json(with_record(example.prompt, record))
            else:
                out.write(" ".join(text.split("\n")) + "\n")


def evaluate(
    model: options.Model,
    examples: Annotated[
        str, typer.Argument(metavar="EXAMPLES", help="JSON lines with prompt and completion.")
    ] = textio.STDIN,
    template: Template = None,
    max_tokens: MaxTokens = 100,
    stop: Stop = None,
    format: options.RowsFormat = None,
    json: options.Json = False,
    device: options.UseDevice = "auto",
    threads: options.Threads = 0,
) -> None:
    """Score the answers to prompts whose completions are known: exact match and token F1.

    Answers are compared as SQuAD's evaluation does: without case, punctuation and articles. Keys
    of --json: exact_match, f1 (shares), examples.

    Examples:
      $ nlpkit gpt train --examples sample_corpora/prompts.jsonl -o qa.model --max-iters 30
      $ head -20 sample_corpora/prompts.jsonl | nlpkit gpt evaluate qa.model
    """
    from nlpkit.tasks.lm.examples import mean_scores

    found, listed = _open(model, examples, template, device, threads, answers=True)
    pairs = list(_answers(found, listed, max_tokens, stop or []))
    scores = mean_scores([text for _, text in pairs], [one.completion or "" for one, _ in pairs])
    record = {name: round(value, 4) for name, value in scores.items()} | {"examples": len(pairs)}
    with open_output("-") as out:
        write_report(out, [facts(*record.items())], record, rows_format(format, json))


def _open(
    path: str, prompts: str, template: str | None, device: str, threads: int, *, answers: bool
) -> tuple[GptModel, list[Example]]:
    import torch

    from nlpkit.device import pick_device
    from nlpkit.parallel import worker_count
    from nlpkit.tasks.lm.examples import read_examples
    from nlpkit.tasks.lm.model import GptModel

    torch.set_num_threads(worker_count(threads))
    text = None if template is None else "".join(b.text() for b in textio.read_blocks([template]))
    if text is not None and "{" not in text:
        raise NlpkitError(f"{template} names no key", hint="{question} where the question stands")
    lines = textio.read_lines(options.resolve_inputs([prompts]))
    name = textio.source_name(prompts)
    examples = read_examples(lines, name, answers=answers, template=text)
    found = GptModel.load(path)
    found.model.to(pick_device(device, found.work(100 * len(examples))))
    return found, examples


def _answers(
    model: GptModel, examples: list[Example], max_tokens: int, stop: list[str]
) -> list[tuple[Example, str]]:
    from nlpkit.tasks.lm.train_examples import answer_prompts

    found: list[str] = []
    for begin in range(0, len(examples), _AT_ONCE):
        part = [one.prompt for one in examples[begin : begin + _AT_ONCE]]
        found += answer_prompts(model, part, max_tokens, stop)
    return list(zip(examples, found, strict=True))
