"""``nlpkit tag``: train, predict, evaluate and check taggers."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from nlpkit import folders, modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import labelling, options
from nlpkit.cli.frame import Command, UsageError, new_app
from nlpkit.cli.output import Notes, open_output
from nlpkit.tasks.tag.settings import Switch, TaggerSettings
from nlpkit.text.conll import TagFormat

app = new_app("Tag words with parts of speech, entities or other labels.")

DataFormat = Annotated[
    TagFormat | None,
    typer.Option(
        "--format",
        help="How the data is written: CoNLL-U, other columns, word/TAG lines, or a string, "
        "a tab and a tag for each character.",
        show_default="detected",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        "--column",
        metavar="NAME",
        help="CoNLL-U column of the tag; misc:NER is the value of NER in it.",
        show_default="upos",
    ),
]
TokenColumn = Annotated[
    int | None,
    typer.Option(
        "--token-column",
        min=1,
        max=limits.MANY,
        help="Column of the token.",
        show_default="detected",
    ),
]
TagColumn = Annotated[
    int | None,
    typer.Option(
        "--tag-column",
        min=-limits.MANY,
        max=limits.MANY,
        help="Column of the tag; negative from the end.",
        show_default="entities if any, else the last",
    ),
]
DEFAULTS = TaggerSettings()


@app.command(cls=Command)
def train(
    data: Annotated[list[str], typer.Argument(metavar="TRAIN...", help="Tagged sentences.")],
    output: options.NewModel,
    dev: Annotated[
        str | None,
        typer.Option(
            "--dev", metavar="FILE", help="Held-out sentences: the best epoch on them is kept."
        ),
    ] = None,
    format: DataFormat = None,
    column: Column = None,
    token_column: TokenColumn = None,
    tag_column: TagColumn = None,
    unit: Annotated[
        Literal["word", "char"] | None,
        typer.Option(
            "--unit", help="What a token is: a word, or one character.", show_default="word"
        ),
    ] = None,
    encoder: Annotated[
        Literal["lstm", "gru", "cnn", "transformer"],
        typer.Option("--encoder", help="What looks at the context."),
    ] = DEFAULTS.encoder,
    layers: labelling.Layers = DEFAULTS.layers,
    hidden: labelling.Hidden = DEFAULTS.hidden,
    positions: labelling.Positions = DEFAULTS.positions,
    norm: labelling.NormPlace = DEFAULTS.norm,
    one_way: Annotated[
        bool, typer.Option("--one-way", help="Look at the words before only, not behind.")
    ] = False,
    crf: Annotated[
        Switch,
        typer.Option(
            "--crf",
            help="Score whole tag sequences; auto is yes for entities, and for words with up to "
            "64 tags.",
        ),
    ] = DEFAULTS.crf,
    chars: Annotated[
        Literal["cnn", "lstm", "none"],
        typer.Option("--chars", help="What looks at the characters of a word."),
    ] = DEFAULTS.chars,
    affixes: Annotated[
        Switch,
        typer.Option("--affixes", help="Use prefixes and suffixes; auto is no for entities."),
    ] = DEFAULTS.affixes,
    clues: Annotated[
        Literal["yes", "no"],
        typer.Option("--clues", help="Score words and their neighbours directly too."),
    ] = DEFAULTS.clues,
    vectors: labelling.StartVectors = None,
    fine_tune: labelling.FineTune = False,
    word_dim: labelling.WordDim = DEFAULTS.word_dim,
    dropout: options.Dropout = None,
    word_dropout: Annotated[
        float | None,
        typer.Option(
            "--word-dropout",
            min=0.0,
            max=1e6,
            help="Hide a word seen n times in s/(s+n) of cases, to learn unknown words.",
        ),
    ] = None,
    part_dropout: Annotated[
        float | None,
        typer.Option(
            "--part-dropout",
            min=0.0,
            max=0.9,
            help="How often one kind of a word's features is hidden.",
        ),
    ] = None,
    epochs: labelling.Epochs = None,
    batch_tokens: Annotated[
        int | None,
        typer.Option("--batch-tokens", min=1, max=limits.LONGEST, help="Tokens to a step."),
    ] = None,
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
    """Learn to tag from tagged sentences.

    Layout and entity scheme (IOB1, IOB2, BIOES) are found out and written back by predict. A tag
    sequence that breaks its scheme is reported with its line.

    What is left out is chosen by the data: --epochs 12 to 30 and --batch-tokens 128 to 256 by its
    size, --dropout 0.33 (entities: 0.5), --word-dropout 0.25 (0.5), --part-dropout 0.1 (0),
    --lr 0.002 (few entities: 0.004).

    Examples:
      $ nlpkit tag train sample_corpora/tagged-train.conllu -o pos.model
      $ nlpkit tag train sample_corpora/tagged-train.conllu --column misc:NER -o ner.model
      $ nlpkit tag train sample_corpora/tagged-train.conllu --vectors world.model -o pos.model
    """
    from nlpkit.tasks.tag.check import find_illegal
    from nlpkit.tasks.tag.layouts import LayoutChoice
    from nlpkit.tasks.tag.reading import read_tagged

    notes = Notes(quiet)
    modeldir.check_new(output, force=force)
    choice = LayoutChoice(format, column, token_column, tag_column)
    sentences, layout = read_tagged(data, choice, encoding=encoding, errors=errors)
    held = read_tagged([dev], choice, encoding=encoding, errors=errors)[0] if dev else []
    settings = labelling.settings_from(
        TaggerSettings,
        unit=unit or ("char" if layout.format == "pairs" else None),
        encoder=encoder,
        layers=layers,
        hidden=hidden,
        positions=positions,
        norm=norm,
        one_way=one_way,
        crf=crf,
        chars=chars,
        affixes=affixes,
        clues=clues,
        fine_tune=fine_tune,
        word_dim=word_dim,
        dropout=dropout,
        word_dropout=word_dropout,
        part_dropout=part_dropout,
        epochs=epochs,
        batch_tokens=batch_tokens,
        lr=lr,
    )
    labelling.check_transformer("--encoder", encoder, positions, norm)
    if fine_tune and vectors is None:
        raise UsageError("--fine-tune needs --vectors")

    from nlpkit.tasks.tag.train import TaggerRun, TrainingData

    tagged = TrainingData.of(sentences, layout)
    for line in _first(find_illegal(tagged.sentences, tagged.scheme)):
        notes.warn(line)
    if len({tag for sentence in tagged.sentences for tag in sentence.tags}) == 1:
        notes.warn("the data has one tag only: every word will get it")
    run = TaggerRun(
        tagged,
        settings,
        seed=seed,
        dev=held,
        vectors=labelling.load_vectors(vectors),
        device=labelling.start_torch(device, threads, notes),
    )
    scheme = f", {tagged.scheme} entities" if tagged.scheme else ""
    notes.say(
        f"{len(tagged.sentences):,} sentences, {len(run.lexicon.words):,} words, "
        f"{len(run.tags):,} tags{scheme}"
    )
    labelling.draw_run(run, output, notes, vectors=vectors, resume=resume, force=force)


def _first(problems: list[str], shown: int = 5) -> list[str]:
    rest = len(problems) - shown
    return problems[:shown] + (
        [f"and {rest:,} more like these: nlpkit tag check"] if rest > 0 else []
    )


@app.command(cls=Command)
def predict(
    model: options.Model,
    inputs: options.Inputs = None,
    input: Annotated[
        Literal["auto", "text", "tokens", "columns"],
        typer.Option(
            "--input",
            help="text: raw, tokenised here; tokens: between spaces; columns: as in training.",
        ),
    ] = "auto",
    format: Annotated[
        Literal["columns", "slash", "jsonl", "color"] | None,
        typer.Option(
            "--format",
            "-f",
            help="columns: as they came, tags filled in; slash: word/TAG; jsonl: an object a "
            "sentence; color: entities marked in the text.",
            show_default="columns for columns, else slash",
        ),
    ] = None,
    json: options.Json = False,
    token_column: TokenColumn = None,
    output: options.Output = "-",
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Tag raw text, tokenised lines, or the columns that training took, as a stream.

    Columns go out as they came in, byte for byte, but for the tags. The keys of jsonl are text,
    tokens, tags, probabilities (one a token) and, for entities, entities: start and end (in
    characters of the text), type, text and probability.

    Examples:
      $ echo "He said Teddy Roosevelt was a great president" | nlpkit tag predict pos.model
      $ nlpkit tag predict ner.model --json sample_corpora/tales.txt | head -3
      $ nlpkit tag predict pos.model sample_corpora/tagged-test.conllu > predicted.conllu
    """
    labelling.calm_threads()
    from nlpkit.cli.tag_output import predict_stream
    from nlpkit.tasks.tag.predictor import Tagger

    chosen = options.pick_format(format, json, "auto")
    paths = options.resolve_inputs(inputs)
    tagger = Tagger.load(model)
    blocks = textio.read_blocks(paths, encoding=encoding, errors=errors)
    with open_output(output) as out:
        predict_stream(
            tagger,
            blocks,
            out,
            input=input,
            format=chosen,
            errors=errors,
            token_column=token_column,
            to_file=output != "-",
        )


@app.command(cls=Command)
def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL|GOLD", help="A model, or the right tags.")],
    test: Annotated[
        str, typer.Argument(metavar="TEST|PREDICTED", help="Tagged sentences to compare with.")
    ],
    format: DataFormat = None,
    column: Column = None,
    token_column: TokenColumn = None,
    tag_column: TagColumn = None,
    confusion: Annotated[
        bool, typer.Option("--confusion", help="Show which tag was taken for which.")
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw the confusions to a .png or .svg."),
    ] = None,
    worst: Annotated[
        int,
        typer.Option(
            "--worst", min=0, max=limits.MANY, help="Show so many sentences with most mistakes."
        ),
    ] = 0,
    json: options.Json = False,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Score a model on tagged sentences, or one tagged file against another.

    Accuracy over all, known and unknown words; precision, recall and F1 of each tag; for entities
    the F1 by the rule of conlleval: an entity counts when its first word, last word and type are
    right. The keys of --json are those of the lines, tags and types being objects by name.

    Examples:
      $ nlpkit tag evaluate pos.model sample_corpora/tagged-test.conllu
      $ nlpkit tag evaluate ner.model sample_corpora/tagged-test.conllu --confusion --worst 3
      $ nlpkit tag evaluate sample_corpora/tagged-test.conllu predicted.conllu --plot confused.svg
    """
    labelling.calm_threads()
    from nlpkit.cli import tag_report
    from nlpkit.tasks.tag.evaluate import evaluate_files, evaluate_model
    from nlpkit.tasks.tag.layouts import LayoutChoice

    if plot is not None:
        from nlpkit.plots import check_picture

        check_picture(plot)
    choice = LayoutChoice(format, column, token_column, tag_column)
    folders.recover(model)
    if os.path.isdir(model):
        result = evaluate_model(model, test, choice, encoding=encoding, errors=errors)
    else:
        result = evaluate_files(model, test, choice, encoding=encoding, errors=errors)
    if plot is not None:
        tag_report.draw_confusions(result.scores, plot)
    for note in result.notes:
        Notes().warn(note)
    with open_output("-") as out:
        tag_report.show_scores(out, result, json=json, confusion=confusion, worst=worst)


@app.command(cls=Command)
def check(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", help="Tagged files, the training part first.")
    ],
    format: DataFormat = None,
    column: Column = None,
    token_column: TokenColumn = None,
    tag_column: TagColumn = None,
    json: options.Json = False,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Look at tagged data: sizes, tags, illegal sequences, repeats, overlap of splits, advice.

    With several files each is compared with the first: sentences in common, unknown words, tags
    that the first never has. --json gives an object for each file and each comparison.

    Examples:
      $ nlpkit tag check sample_corpora/tagged-train.conllu sample_corpora/tagged-test.conllu
      $ nlpkit tag check --column misc:NER sample_corpora/tagged-train.conllu --json
    """
    from nlpkit.cli import tag_report
    from nlpkit.tasks.tag.check import check_data, check_overlap
    from nlpkit.tasks.tag.layouts import LayoutChoice
    from nlpkit.tasks.tag.reading import read_tagged

    choice = LayoutChoice(format, column, token_column, tag_column)
    read = [read_tagged([path], choice, encoding=encoding, errors=errors)[0] for path in data]
    reports = [check_data(path, sentences) for path, sentences in zip(data, read, strict=True)]
    overlaps = [
        check_overlap(data[0], read[0], path, sentences)
        for path, sentences in zip(data[1:], read[1:], strict=True)
    ]
    with open_output("-") as out:
        tag_report.show_check(out, reports, overlaps, json=json)
