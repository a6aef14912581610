"""``nlpkit gpt answer`` and ``nlpkit gpt evaluate``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import argument, flag_field, with_settings
from nlpkit.cli.output import open_output, rows_format
from nlpkit.cli.reports import facts, write_report
from nlpkit.errors import NlpkitError
from nlpkit.text.records import row_lines, with_record

if TYPE_CHECKING:
    from nlpkit.tasks.lm.examples import Example

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


@with_settings(Asking, options.Use)
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


@with_settings(Asking, options.Use)
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
