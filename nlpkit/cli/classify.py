"""``nlpkit classify``: train, predict, evaluate and explain text classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from nlpkit import settings as limits
from nlpkit.cli import encoder_inspect, options
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, Writer, open_output, rows_format, write_report, write_rows
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.errors import NlpkitError, plural
from nlpkit.plots import check_picture
from nlpkit.tasks.classify.settings import ClassifierSettings
from nlpkit.text.pipeline import Tokens, TokenSettings
from nlpkit.text.records import Reading, rows_of, text_of
from nlpkit.text.vocab import on_one_line

app = new_app("Label whole texts: sentiment, topic, language.")
app.command("inspect")(encoder_inspect.inspect_classifier)

DataFormat = Literal["auto", "tsv", "fasttext", "jsonl", "csv", "folder"]
DataInput = Annotated[
    DataFormat,
    typer.Option("--input", help="How labels are written; auto: told by name and first lines."),
]
OldInput = Annotated[
    DataFormat | None, typer.Option("--format", help="The older name of --input.", hidden=True)
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text-column",
        "--key",
        "--column",
        metavar="NAME",
        help="Column or key of the text.",
        show_default="text, sentence, review, ...",
        rich_help_panel=limits.DATA,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column",
        metavar="NAME",
        help="Column or key of the label.",
        show_default="label, class, category, ...",
        rich_help_panel=limits.DATA,
    ),
]
Threshold = Annotated[
    float,
    typer.Option(
        "--threshold",
        min=0.0,
        max=1.0,
        help="Multi-label: labels at least so likely; else: leave out less likely ones.",
    ),
]


Quantized = Annotated[
    Literal["int8", "bfloat16"] | None,
    typer.Option(
        "--quantize",
        help="Smaller numbers in a pre-trained encoder: quicker, a little less exact.",
        show_default="float32",
    ),
]


@app.command()
def train(
    *,
    data: list[str] = argument(..., "Labelled texts, or a folder per label.", metavar="TRAIN"),
    output: options.NewModel,
    settings: ClassifierSettings,
    dev: str | None = flag(None, "Held-out texts: the best epoch on them is kept.", metavar="FILE"),
    input: DataInput = "auto",
    format: OldInput = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    vectors: options.StartVectors = None,
    flags: options.Training,
    decoding: options.Decoding,
) -> None:
    """Learn labels from labelled texts.

    Takes label<TAB>text, text<TAB>label, __label__x text, JSON lines or CSV with text and label (or
    labels), or a folder per label with a file per text. A TSV file may have a header; rows whose
    column split says other than train are left out. Labels may be numbers. A second text, in a
    column or key text2, makes pairs: paraphrases, entailment, questions and their answers.

    With --pretrained a BERT, an ELMo or a GPT is trained further on the labels, or read once and
    left as it is (--freeze all).

    Examples:
      $ nlpkit classify train sample_corpora/reviews.tsv -o reviews.model
      $ nlpkit classify train sample_corpora/reviews.tsv --model lstm -o lstm.model
      $ nlpkit classify train sample_corpora/follows.tsv --pretrained world.bert -o follows.model
    """
    from nlpkit.tasks.classify.data import Names, read_examples
    from nlpkit.tasks.classify.pretrained_train import classifier_run

    notes = check_place(output, flags)
    # a wrong setting fails here, before the texts are read
    Tokens(TokenSettings(tokenizer=settings.tokenizer, pattern=settings.pattern))
    how: dict[str, Any] = {
        "format": _data_format(format or input),
        "multi_label": settings.multi_label,
        "names": Names(text_column, label_column),
        **vars(decoding),
    }
    examples = read_examples(data, **how)
    held = read_examples(dev, split="test", **how) if dev else []
    run = classifier_run(
        examples,
        settings,
        dev=held,
        vectors=vectors,
        device=prepare_torch(flags, notes, sparse=True),
    )
    for line in run.warnings():
        notes.warn(line)
    draw_run(run, output, notes, resume=flags.resume, force=flags.force)


@app.command()
def predict(
    reading: Reading,
    model: options.Model,
    inputs: options.Inputs = None,
    k: int = flag(1, "Show so many labels a text.", "--count", "-n", "-k", min=1, max=limits.MANY),
    threshold: Threshold = 0.0,
    format: options.StreamFormat = None,
    output: options.Output = "-",
    quantize: Quantized = None,
    threads: options.EncoderThreads = 0,
) -> None:
    """Label texts, one text per line, as a stream.

    A line out for each line in: label, tab, probability, for the k likeliest labels over the
    threshold. Tables other than tsv have the text in their last column. A model of pairs takes two
    texts with a tab between them, or the keys text and text2. MODEL may be a file of fastText's,
    .bin or .ftz, which answers as it does there. The keys of jsonl are text and labels, a list of
    label and probability; a record that came in keeps its other keys. Labels at the start of a line
    in fastText's form are left out of the text, and an empty line gets no label.

    Examples:
      $ echo "The soup was cold and the waiter rude." | nlpkit classify predict reviews.model
      $ nlpkit classify predict reviews.model -k 2 --json sample_corpora/tales.txt | head -2
    """
    options.calm_threads()
    from nlpkit.cli import classify_output
    from nlpkit.tasks.classify.data import TEXT_NAMES, pair_of, without_labels
    from nlpkit.tasks.classify.fasttext import open_classifier

    shown = format or "tsv"
    blocks = options.read_records(inputs, reading, (*TEXT_NAMES, "tokens"))
    classifier = open_classifier(model)
    _make_quick(classifier, quantize, threads)
    pairs = getattr(classifier.settings, "pairs", False)
    k = min(k, len(classifier.labels))

    def predicted(out: Writer) -> Iterator[tuple[Any, list[tuple[str, float]], dict[str, Any]]]:
        for block in blocks:
            rows = list(rows_of(block, reading.errors))
            texts: list[Any] = [without_labels(text_of(row, block.source)) for row in rows]
            if pairs:
                where = f"{block.source}: line "
                both = zip(texts, rows, strict=True)
                texts = [pair_of(text, row.record, f"{where}{row.line}") for text, row in both]
            found = classify_output.predictions(classifier, texts, k=k, threshold=threshold)
            yield from zip(texts, found, [row.record for row in rows], strict=True)
            out.flush()

    with open_output(output) as out:
        if shown == "jsonl":
            for text, found, record in predicted(out):
                out.write_json(classify_output.prediction_record(text, found, record))
        else:
            rows = (
                classify_output.prediction_row(text, found, k, shown)
                for text, found, _ in predicted(out)
            )
            columns = classify_output.prediction_columns(k)
            write_rows(out, columns[:-1] if shown == "tsv" else columns, rows, shown)
    cut = getattr(classifier, "cut", 0)
    if cut:
        Notes().warn(f"{plural(cut, 'text')} longer than the model reads, cut")


def _data_format(chosen: DataFormat) -> Any:
    return None if chosen == "auto" else chosen


def _make_quick(classifier: Any, quantize: str | None, threads: int) -> None:
    """An encoder as it predicts fastest, in smaller numbers if they are wanted."""
    if hasattr(classifier, "network"):
        from nlpkit.device import keep_freed_memory

        options.use_threads(threads)
        keep_freed_memory()
        classifier.pack() if quantize is None else classifier.quantize(quantize)
    elif quantize is not None:
        raise NlpkitError(
            "--quantize is for classifiers on a pre-trained encoder: this one is small enough"
        )


@app.command()
def evaluate(
    *,
    model: options.Model,
    test: list[str] = argument(..., "Labelled texts, or a folder per label.", metavar="TEST"),
    input: DataInput = "auto",
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    threshold: Threshold = 0.5,
    confusion: bool = flag(False, "Show which label was taken for which."),
    plot: str | None = flag(
        None, "Draw confusions and calibration: .png, .svg, .pdf or .html.", metavar="FILE"
    ),
    quantize: Quantized = None,
    threads: options.EncoderThreads = 0,
    format: options.RowsFormat = None,
    decoding: options.Decoding,
) -> None:
    """Score a model on labelled texts: accuracy, P/R/F1 per label, macro, micro, calibration.

    Calibration compares how sure the model is with how often it is right. Of a TSV file with a
    column split, the rows marked test are taken. The keys of --json are those of the lines.

    Examples:
      $ nlpkit classify evaluate reviews.model sample_corpora/reviews.tsv
      $ nlpkit classify evaluate reviews.model sample_corpora/reviews.tsv --confusion --json
    """
    options.calm_threads()
    from nlpkit.cli import classify_output
    from nlpkit.tasks.classify.data import Names, read_examples
    from nlpkit.tasks.classify.fasttext import open_classifier
    from nlpkit.tasks.classify.scores import score_labels

    check_picture(plot)
    classifier = open_classifier(model)
    examples = read_examples(
        test,
        format=_data_format(input),
        split="test",
        multi_label=classifier.settings.multi_label,
        names=Names(text_column, label_column),
        **vars(decoding),
    )
    unseen = {label for example in examples for label in example.labels} - set(classifier.labels)
    if unseen:
        names = " ".join(map(on_one_line, sorted(unseen)[:20]))
        Notes().warn(f"labels that training never saw count as mistakes: {names}")
    _make_quick(classifier, quantize, threads)
    scores = score_labels(examples, classifier, threshold)
    if plot is not None:
        classify_output.draw_scores(scores, plot)
    record = classify_output.scores_record(scores, confusion=confusion)
    sections = classify_output.score_sections(scores, confusion=confusion)
    with open_output("-") as out:
        write_report(out, sections, record, rows_format(format))


@app.command()
def explain(
    *,
    model: options.Model,
    inputs: options.Inputs = None,
    label: str | None = flag(None, "Explain this label.", show_default="the likeliest"),
    format: options.ExplainFormat = None,
    threads: options.EncoderThreads = 0,
    reading: Reading,
) -> None:
    """Show which words made the decision: how much less sure the model is without each.

    The influence of a word is how far the log-odds of the label fall when it is left out. Columns,
    a row for each word: line, label, probability, word, influence. The keys of jsonl are text,
    label, probability and words, a list of word, start, end, influence.

    Examples:
      $ echo "The soup was cold but I loved the view." | nlpkit classify explain reviews.model
      $ echo "Not bad at all" | nlpkit classify explain reviews.model --label negative --json
    """
    options.calm_threads()
    from nlpkit.cli import classify_output
    from nlpkit.tasks.classify.data import without_labels
    from nlpkit.tasks.classify.explain import explain as explain_text
    from nlpkit.tasks.classify.predictor import Classifier

    paths = options.resolve_inputs(inputs)
    classifier = Classifier.load(model)
    options.use_encoder_threads(classifier, threads)
    if label is not None and label not in classifier.labels:
        known = ", ".join(map(on_one_line, classifier.labels.tokens[:20]))
        raise NlpkitError(f"no such label: {on_one_line(label)}", hint=known)
    shown = format or classify_output.explain_format()

    def explained(out: Writer) -> Iterator[tuple[int, Any, str]]:
        for number, line in enumerate(options.read_lines(paths, reading), 1):
            if text := without_labels(line):
                yield number, explain_text(classifier, text, label), text
            out.flush()

    with open_output("-") as out:
        if shown not in ("color", "jsonl"):
            rows = (row for one in explained(out) for row in classify_output.explanation_rows(*one))
            write_rows(out, classify_output.EXPLAINED, rows, shown)
            return
        for _, found, text in explained(out):
            if shown == "jsonl":
                out.write_json(classify_output.explanation_record(found, text))
            else:
                classify_output.draw_explanation(out, found, text)
