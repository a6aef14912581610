"""``nlpkit qa``: train, answer, evaluate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import (
    check_output,
    facts,
    open_output,
    percent,
    rows_format,
    write_report,
    write_rows,
)
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.tasks.qa.settings import QaSettings
from nlpkit.text.records import Reading

if TYPE_CHECKING:
    from nlpkit.tasks.qa.model import Answers

app = new_app("Answer questions by spans of a text: train, answer, evaluate.")
ThresholdFlag = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        min=-1e6,
        max=1e6,
        help="No answer where that scores so much more than the best span.",
        show_default="the model's own",
    ),
]
COLUMNS = ("answer", "probability", "score", "text", "start", "end")


@app.command()
def train(
    *,
    data: str = argument(..., "Questions: SQuAD's JSON, JSON lines, TSV.", metavar="TRAIN"),
    pretrained: str = flag(..., "The BERT to start from.", metavar="MODEL"),
    output: options.NewModel,
    dev: str | None = flag(
        None,
        "Held-out questions: the best epoch is kept, the threshold of no answer tuned.",
        metavar="FILE",
    ),
    settings: QaSettings,
    flags: options.Training,
    decoding: options.Decoding,
) -> None:
    """Learn to answer questions by spans of a text.

    Takes SQuAD's JSON (1.1 or 2.0), JSON lines with question, context (or text) and answers (as
    Hugging Face has them) or answer, or lines of question<TAB>text<TAB>answer, with or without a
    header; an empty answer says that the text has none. Rows whose column split says other than
    train are left out, and are those of --dev. Long texts are read in windows that overlap.

    Examples:
      $ nlpkit qa train sample_corpora/questions.tsv --pretrained world.bert -o qa.model --epochs 4
    """
    from nlpkit.models.finetune import open_encoder
    from nlpkit.tasks.qa.data import check_answers, read_questions
    from nlpkit.tasks.qa.model import need_bert
    from nlpkit.tasks.qa.train import QaRun

    notes = check_place(output, flags)
    questions = read_questions(data, **vars(decoding))
    check_answers(questions, textio.source_name(data))
    held = []
    if dev is not None:
        held = read_questions(dev, split="test", **vars(decoding))
    chosen = prepare_torch(flags, notes)
    encoder = need_bert(open_encoder(pretrained), pretrained)
    run = QaRun(questions, encoder, settings, dev=held, device=chosen, pretrained=pretrained)
    draw_run(run, output, notes, resume=flags.resume, force=flags.force)


@app.command()
def answer(
    *,
    model: options.Model,
    question: str = argument(..., "What to ask; -: each record asks its own.", metavar="QUESTION"),
    inputs: options.Inputs = None,
    text: str | None = flag(None, "The text itself, instead of files.", metavar="TEXT"),
    count: int = flag(1, "Spans to show.", "--count", "-n", min=1, max=limits.MANY),
    threshold: ThresholdFlag = None,
    format: options.RowsFormat = None,
    threads: options.Threads = 0,
    output: options.Output = "-",
    reading: Reading,
) -> None:
    """Find the answer to a question in texts, one text per line; the best over all of them.

    Columns, and keys of jsonl: answer, probability, score, text (its number, from 1), start and
    end (characters of the text). A question that has no answer there gives a row with an empty
    answer and the probability of that. With - for QUESTION the input is JSON lines, CSV or TSV with
    question and context (or text), or SQuAD's JSON; each question is answered by itself, and as
    jsonl a record keeps its keys, with its answer behind them.

    Examples:
      $ nlpkit qa answer qa.model "Who wrote it?" --text "It was written by Ann in 1901."
      $ nlpkit qa answer qa.model "what do people eat in sweden ?" sample_corpora/world.txt -n 3
      $ nlpkit qa answer qa.model - sample_corpora/questions.tsv --json | head -2
    """
    from nlpkit.tasks.qa.model import QaModel

    chosen = rows_format(format)
    if text is not None and inputs and question != textio.STDIN:
        raise UsageError("--text and files contradict each other")
    if question == textio.STDIN:
        asked = _asked(inputs, text, reading)
    else:
        texts = [text] if text is not None else options.read_lines(inputs, reading)
        asked = iter([(question, list(texts), {})])
    reader: QaModel | None = None
    with open_output(output) as out:
        for one, texts, record in asked:
            if not one.strip() or not any(text.strip() for text in texts):
                raise NlpkitError("an empty question, or no text to look for its answer in")
            if reader is None:
                options.use_threads(threads)
                reader = QaModel.load(model)
            found = reader.answer(one, texts, count=count)
            limit = reader.threshold if threshold is None else threshold
            rows = _rows(found, limit)
            if chosen != "jsonl" or not record:
                write_rows(out, COLUMNS, rows, chosen)
                continue
            answers = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
            for answer in answers:
                del answer["text"]  # that is the record's own
                out.write_json({**record, **answer})
            out.flush()


def _asked(
    inputs: list[str] | None, text: str | None, reading: Reading
) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """Questions of records with the texts to look for their answers in."""
    from nlpkit.tasks.qa.data import CONTEXT_KEYS

    for line in options.read_lines(inputs, reading, ("question",)):
        record = getattr(line, "record", {})
        context = next((record[key] for key in CONTEXT_KEYS if key in record), text)
        if not isinstance(context, str):
            raise NlpkitError(
                f"a question without a text: {line[:40]!r}",
                hint=f"a key {' or '.join(CONTEXT_KEYS)} in each record, or --text",
            )
        yield line, [context], record


def _rows(found: Answers, threshold: float | None) -> list[tuple[Any, ...]]:
    if found.best(threshold) is None:
        return [("", found.probability, found.nothing, None, None, None)]
    return [
        (span.answer, span.probability, span.score, span.text + 1, span.start, span.end)
        for span in found.spans
    ]


@app.command()
def evaluate(
    *,
    model: options.Model,
    test: str = argument(..., "Questions with their answers.", metavar="TEST"),
    threshold: ThresholdFlag = None,
    predictions: str | None = flag(
        None, "Write the answers as JSON, by id, for the official script.", metavar="FILE"
    ),
    format: options.RowsFormat = None,
    threads: options.Threads = 0,
    decoding: options.Decoding,
) -> None:
    """Score a model on questions: exact match and F1, by the official rules of SQuAD.

    Where some questions have no answer, those with and without are scored apart, too. The keys of
    --json are questions, exact, f1, and the same with the endings _answerable and _unanswerable.

    Examples:
      $ nlpkit qa evaluate qa.model sample_corpora/questions.tsv
      $ nlpkit qa evaluate qa.model sample_corpora/questions.tsv --json --predictions answers.json
    """
    from nlpkit.tasks.qa.data import read_questions
    from nlpkit.tasks.qa.model import QaModel

    if predictions is not None:
        check_output(predictions)
    questions = read_questions(test, split="test", **vars(decoding))
    options.use_threads(threads)
    reader = QaModel.load(model)
    limit = reader.threshold if threshold is None else threshold
    asked = [(question.question, [question.context]) for question in questions]
    found = reader.answer_all(asked, count=1)
    best = [one.best(limit) for one in found]
    answers = ["" if one is None else one.answer for one in best]
    if predictions is not None:
        with open_output(predictions) as out:
            out.write_json({one.id: answer for one, answer in zip(questions, answers, strict=True)})
    record = _scores(answers, [question.references for question in questions])
    rows = [
        (name, value if isinstance(value, int) else percent(value))
        for name, value in record.items()
    ]
    with open_output("-") as out:
        write_report(out, [facts(*rows)], record, rows_format(format))


def _scores(answers: list[str], references: list[list[str]]) -> dict[str, float]:
    from nlpkit.metrics.squad import score_answers

    parts = {"": [True, False], "_answerable": [True], "_unanswerable": [False]}
    record: dict[str, float] = {}
    for ending, kinds in parts.items():
        kept = [place for place, ones in enumerate(references) if bool(ones) in kinds]
        if ending and len(kept) in (0, len(answers)):
            continue
        scores = score_answers([answers[i] for i in kept], [references[i] for i in kept])
        record[f"questions{ending}"] = scores.questions
        record[f"exact{ending}"], record[f"f1{ending}"] = scores.exact, scores.f1
    return record
