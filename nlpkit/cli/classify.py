"""``nlpkit classify``: train, predict, evaluate and explain text classifiers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import labelling, options
from nlpkit.cli.frame import Command, UsageError, new_app
from nlpkit.cli.output import Notes, open_output
from nlpkit.errors import NlpkitError
from nlpkit.tasks.classify.settings import ClassifierSettings
from nlpkit.text.pipeline import Tokens, TokenSettings
from nlpkit.text.vocab import on_one_line

if TYPE_CHECKING:
    from nlpkit.tasks.classify.train import ClassifierRun

DEFAULTS = ClassifierSettings()
app = new_app("Label whole texts: sentiment, topic, language.")

DataFormat = Annotated[
    Literal["tsv", "fasttext", "jsonl", "folder"] | None,
    typer.Option("--format", help="How labels are written.", show_default="detected"),
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


@app.command(cls=Command)
def train(
    data: Annotated[str, typer.Argument(metavar="TRAIN", help="Labelled texts, or a folder.")],
    output: options.NewModel,
    dev: Annotated[
        str | None,
        typer.Option(
            "--dev", metavar="FILE", help="Held-out texts: the best epoch on them is kept."
        ),
    ] = None,
    format: DataFormat = None,
    model: Annotated[
        Literal["bow", "cnn", "lstm", "gru", "transformer"],
        typer.Option("--model", help="bow is quickest and hard to beat."),
    ] = DEFAULTS.model,
    multi_label: Annotated[
        bool,
        typer.Option("--multi-label", help="A text may have several labels (a,b) or none."),
    ] = False,
    tokenizer: options.TokenizerName = DEFAULTS.tokenizer,
    pattern: options.Pattern = DEFAULTS.pattern,
    lower: Annotated[
        bool, typer.Option("--lower/--no-lower", help="Lower-case the tokens.")
    ] = DEFAULTS.lower,
    ngrams: Annotated[
        int,
        typer.Option("--ngrams", min=1, max=5, help="bow: words in a row to a feature, at most."),
    ] = DEFAULTS.ngrams,
    dim: Annotated[
        int | None,
        typer.Option(
            "--dim",
            min=1,
            max=limits.WIDEST,
            help="Numbers in a learned embedding.",
            show_default="bow 8, else 100",
        ),
    ] = None,
    hidden: labelling.Hidden = DEFAULTS.hidden,
    layers: labelling.Layers = DEFAULTS.layers,
    positions: labelling.Positions = DEFAULTS.positions,
    norm: labelling.NormPlace = DEFAULTS.norm,
    pooling: Annotated[
        Literal["max", "average", "last"],
        typer.Option("--pooling", help="From tokens to a text."),
    ] = DEFAULTS.pooling,
    vectors: labelling.StartVectors = None,
    fine_tune: labelling.FineTune = False,
    dropout: options.Dropout = DEFAULTS.dropout,
    epochs: labelling.Epochs = None,
    batch_size: options.BatchSize = DEFAULTS.batch_size,
    lr: options.LearningRate = None,
    seed: options.Seed = 1,
    threads: options.Threads = 0,
    device: options.Device = "auto",
    resume: options.Resume = False,
    force: options.Force = False,
    config: options.Config = None,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Learn labels from labelled texts.

    Takes label<TAB>text, text<TAB>label, __label__x text, JSON lines with text and label (or
    labels), or a folder per label with a file per text. A TSV file may have a header; rows whose
    column split says other than train are left out. Unless told, bow takes --epochs 2 to 20 by the
    number of texts at --lr 0.03, the others --epochs 8 at --lr 0.001.

    Examples:
      $ nlpkit classify train sample_corpora/reviews.tsv -o reviews.model
      $ nlpkit classify train sample_corpora/reviews.tsv --model lstm -o lstm.model
    """
    from nlpkit.tasks.classify.data import read_examples

    notes = Notes(quiet)
    modeldir.check_new(output, force=force)
    Tokens(TokenSettings(tokenizer=tokenizer, pattern=pattern))  # a wrong setting fails here
    if fine_tune and vectors is None:
        raise UsageError("--fine-tune needs --vectors")
    examples = read_examples(
        data, format=format, multi_label=multi_label, encoding=encoding, errors=errors
    )
    held = (
        read_examples(
            dev,
            format=format,
            split="test",
            multi_label=multi_label,
            encoding=encoding,
            errors=errors,
        )
        if dev
        else []
    )
    several = any(len(example.labels) != 1 for example in examples)
    settings = labelling.settings_from(
        ClassifierSettings,
        model=model,
        tokenizer=_full_path(tokenizer),
        pattern=pattern,
        lower=lower,
        ngrams=ngrams,
        dim=dim,
        hidden=hidden,
        layers=layers,
        positions=positions,
        norm=norm,
        pooling=pooling,
        fine_tune=fine_tune,
        multi_label=multi_label or several,
        dropout=dropout,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
    )
    labelling.check_transformer("--model", model, positions, norm)

    from nlpkit.tasks.classify.train import ClassifierRun

    run = ClassifierRun(
        examples,
        settings,
        seed=seed,
        dev=held,
        vectors=labelling.load_vectors(vectors),
        device=labelling.start_torch(device, threads, notes),
    )
    kind = "multi-label" if run.settings.multi_label else "one label each"
    notes.say(f"{len(examples):,} texts, {len(run.labels):,} labels, {kind}")
    if len(run.labels) == 1:
        notes.warn("the data has one label only: every text will get it")
    _warn_of_strangers(run, notes)
    labelling.draw_run(run, output, notes, vectors=vectors, resume=resume, force=force)


def _warn_of_strangers(run: ClassifierRun, notes: Notes) -> None:
    """Say so when training cannot help with new texts, because they have no words in common."""
    share = run.unfamiliar()
    if share > 0.5 and run.settings.tokenizer != "char":
        what = "held-out texts have no token that training knows"
        if not run.dev:
            what = "texts have no token in common with any other"
        ngrams = " --ngrams 4" if run.settings.model == "bow" else ""
        notes.warn(f"{share:.0%} of the {what}: try -t char{ngrams}")


def _full_path(tokenizer: str) -> str:
    """A subword model is found again when a run is resumed from elsewhere."""
    return os.path.abspath(tokenizer) if os.path.exists(tokenizer) else tokenizer


@app.command(cls=Command)
def predict(
    model: options.Model,
    inputs: options.Inputs = None,
    k: Annotated[
        int, typer.Option("-k", min=1, max=limits.MANY, help="Show so many labels a text.")
    ] = 1,
    threshold: Threshold = 0.0,
    input: Annotated[
        Literal["auto", "text", "jsonl"],
        typer.Option("--input", help="A text a line, or JSON lines with a text."),
    ] = "auto",
    format: Annotated[
        Literal["tsv", "jsonl"] | None,
        typer.Option(
            "--format",
            "-f",
            help="tsv: label and probability, k times; jsonl: an object a text.",
            show_default="tsv",
        ),
    ] = None,
    json: options.Json = False,
    output: options.Output = "-",
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Label texts, a text a line, as a stream.

    A line out for each line in: label, tab, probability, for the k likeliest labels over the
    threshold. MODEL may be a file of fastText's, .bin or .ftz, which answers as it does there. The
    keys of jsonl are text and labels, a list of label and probability.

    Examples:
      $ echo "The soup was cold and the waiter rude." | nlpkit classify predict reviews.model
      $ nlpkit classify predict reviews.model -k 2 --json sample_corpora/tales.txt | head -2
    """
    labelling.calm_threads()
    from nlpkit.cli.classify_output import write_predictions
    from nlpkit.tasks.classify.data import stream_texts
    from nlpkit.tasks.classify.fasttext import open_classifier

    chosen = options.pick_format(format, json, "tsv")
    paths = options.resolve_inputs(inputs)
    classifier = open_classifier(model)
    blocks = textio.read_blocks(paths, encoding=encoding, errors=errors)
    json_lines = {"auto": None, "text": False, "jsonl": True}[input]
    with open_output(output) as out:
        for texts in stream_texts(blocks, json_lines=json_lines, errors=errors):
            write_predictions(out, classifier, texts, k=k, threshold=threshold, format=chosen)
            out.flush()


@app.command(cls=Command)
def evaluate(
    model: options.Model,
    test: Annotated[str, typer.Argument(metavar="TEST", help="Labelled texts, or a folder.")],
    format: DataFormat = None,
    threshold: Threshold = 0.5,
    confusion: Annotated[
        bool, typer.Option("--confusion", help="Show which label was taken for which.")
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw the confusions to a .png or .svg."),
    ] = None,
    json: options.Json = False,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Score a model on labelled texts: accuracy, P/R/F1 per label, macro, micro, calibration.

    Calibration compares how sure the model is with how often it is right. Of a TSV file with a
    column split, the rows marked test are taken. The keys of --json are those of the lines.

    Examples:
      $ nlpkit classify evaluate reviews.model sample_corpora/reviews.tsv
      $ nlpkit classify evaluate reviews.model sample_corpora/reviews.tsv --confusion --json
    """
    labelling.calm_threads()
    from nlpkit.cli import classify_output
    from nlpkit.tasks.classify.data import read_examples
    from nlpkit.tasks.classify.fasttext import open_classifier
    from nlpkit.tasks.classify.scores import score_labels

    if plot is not None:
        from nlpkit.plots import check_picture

        check_picture(plot)
    classifier = open_classifier(model)
    examples = read_examples(
        test,
        format=format,
        split="test",
        multi_label=classifier.settings.multi_label,
        encoding=encoding,
        errors=errors,
    )
    unseen = {label for example in examples for label in example.labels} - set(classifier.labels)
    if unseen:
        names = " ".join(map(on_one_line, sorted(unseen)[:20]))
        Notes().warn(f"labels that training never saw count as mistakes: {names}")
    scores = score_labels(examples, classifier, threshold)
    if plot is not None:
        classify_output.draw_confusions(scores, plot)
    with open_output("-") as out:
        classify_output.show_scores(out, scores, json=json, confusion=confusion)


@app.command(cls=Command)
def explain(
    model: options.Model,
    inputs: options.Inputs = None,
    label: Annotated[
        str | None,
        typer.Option("--label", help="Explain this label.", show_default="the likeliest"),
    ] = None,
    format: Annotated[
        Literal["color", "tsv", "jsonl"] | None,
        typer.Option(
            "--format",
            "-f",
            help="color: the text, words for it green, against it red; tsv: word, influence.",
            show_default="color on a terminal, else tsv",
        ),
    ] = None,
    json: options.Json = False,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Show which words made the decision: how much less sure the model is without each.

    The influence of a word is how far the log-odds of the label fall when it is left out. In tsv
    each text starts with the line label, probability. The keys of jsonl are text, label,
    probability and words, a list of word, start, end, influence.

    Examples:
      $ echo "The soup was cold but I loved the view." | nlpkit classify explain reviews.model
      $ echo "Not bad at all" | nlpkit classify explain reviews.model --label negative --json
    """
    labelling.calm_threads()
    from nlpkit.cli import classify_output
    from nlpkit.tasks.classify.predictor import Classifier

    paths = options.resolve_inputs(inputs)
    classifier = Classifier.load(model)
    if label is not None and label not in classifier.labels:
        known = ", ".join(map(on_one_line, classifier.labels.tokens[:20]))
        raise NlpkitError(f"no such label: {on_one_line(label)}", hint=known)
    chosen = options.pick_format(format, json, classify_output.explain_format())
    with open_output("-") as out:
        for text in textio.read_lines(paths, encoding=encoding, errors=errors):
            classify_output.write_explanation(out, classifier, text, label, chosen)
            out.flush()
