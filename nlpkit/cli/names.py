"""``nlpkit names``: train, sample, score, report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.frame import Command, UsageError, new_app
from nlpkit.cli.output import Notes, Writer, open_output, rows_format, write_rows
from nlpkit.cli.progress_training import draw_training, prepare_torch
from nlpkit.errors import NlpkitError
from nlpkit.tasks.names.settings import NamesSettings

if TYPE_CHECKING:
    from nlpkit.tasks.names.data import Name
    from nlpkit.tasks.names.model import NamesModel

DEFAULTS = NamesSettings()
app = new_app("Name generators: train, sample, score, report.")


@app.command(cls=Command)
def train(
    names: options.Inputs = None,
    output: options.NewModel = ...,  # type: ignore[assignment]
    model: Annotated[
        str, typer.Option("--model", help="ngram, bigram, mlp, rnn, lstm, gru or gpt.")
    ] = DEFAULTS.model,
    test_fraction: Annotated[
        float | None,
        typer.Option(
            "--test-fraction",
            min=0.0,
            max=0.9,
            help="Share of names to hold out.",
            show_default="0.1, at most 1,000 names",
        ),
    ] = None,
    test_size: Annotated[
        int | None,
        typer.Option("--test-size", min=1, max=limits.MANY, help="Number of names to hold out."),
    ] = None,
    test_file: Annotated[
        str | None,
        typer.Option(
            "--test-file", metavar="FILE", help="Hold out these names; both files are used as is."
        ),
    ] = None,
    max_time: options.MaxTime = None,
    epochs: Annotated[
        float | None,
        typer.Option(
            "--epochs",
            min=0.01,
            max=limits.MOST_EPOCHS,
            help="Passes over the names, when there is no --max-time.",
            show_default="7, more for few names",
        ),
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(
            "--dim",
            min=2,
            max=limits.WIDEST,
            help="Width.",
            show_default="64; 96 from --max-time 3m on; 128 if recurrent",
        ),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(
            "--layers",
            min=1,
            max=limits.DEEPEST,
            help="Depth.",
            show_default="4; 2 if recurrent",
        ),
    ] = None,
    heads: Annotated[
        int, typer.Option("--heads", min=1, max=limits.DEEPEST, help="Attention heads.")
    ] = DEFAULTS.heads,
    order: Annotated[
        int,
        typer.Option("--order", min=1, max=20, help="Characters that ngram and mlp look back."),
    ] = DEFAULTS.order,
    dropout: Annotated[
        float | None,
        typer.Option(
            "--dropout",
            min=0.0,
            max=0.9,
            help="Share of activations set to 0 in training.",
            show_default="0; 0.1 from --max-time 3m on",
        ),
    ] = None,
    lr: options.LearningRate = DEFAULTS.lr,
    weight_decay: Annotated[
        float | None,
        typer.Option(
            "--weight-decay",
            min=0.0,
            max=10.0,
            help="Pull of weights towards 0.",
            show_default="0.1; 0.2 from --max-time 3m on",
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size",
            min=1,
            max=limits.LONGEST,
            help="Rows of 32 characters to a step.",
            show_default="up to 64",
        ),
    ] = None,
    seed: options.Seed = 1,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    force: options.Force = False,
    resume: options.Resume = False,
    config: options.Config = None,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Learn to make names like those of a list, a name a line.

    Any script and any characters will do. A line may be name<TAB>label (a language, a gender), and
    names of a label can be asked for later. Each different name counts once; some are held out to
    measure the loss, training stops when it no longer falls, and the best weights are kept. With
    --max-time the model is as wide as the time allows.

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ nlpkit names train sample_corpora/names-ca.txt -o ca.model --model gru --max-time 20s
      $ nlpkit names train sample_corpora/names-en.txt -o baseline.model --model ngram
    """
    from nlpkit.models.settings import MODEL_NAMES
    from nlpkit.tasks.names.data import parse_names, split_names
    from nlpkit.tasks.names.model import (
        count_characters,
        finish_training,
        hash_names,
        prepare_training,
    )

    if model not in MODEL_NAMES:
        raise NlpkitError(f"no model {model!r}", hint=", ".join(MODEL_NAMES))
    if sum(value is not None for value in (test_fraction, test_size, test_file)) > 1:
        raise UsageError("give one of --test-fraction, --test-size and --test-file")
    modeldir.check_new(output, force=force)
    read = {"encoding": encoding, "errors": errors}
    found = parse_names(textio.read_lines(options.resolve_inputs(names), **read))
    if test_file is not None:
        heldout = parse_names(textio.read_lines(test_file, **read))
    else:
        found, heldout = split_names(found, seed=seed, fraction=test_fraction, size=test_size)
    given: dict[str, Any] = {
        "model": model,
        "dim": dim,
        "layers": layers,
        "heads": heads,
        "order": order,
        "dropout": dropout,
        "lr": lr,
        "weight_decay": weight_decay,
        "batch_size": batch_size,
        "epochs": epochs,
        "max_time": max_time,
    }
    given = {name: value for name, value in given.items() if value is not None}
    settings = NamesSettings(**given, seed=seed).resolve(count_characters(found))
    notes = Notes(quiet)
    chosen = prepare_torch(device, threads, notes)
    named, trainer = prepare_training(found, heldout, settings, chosen)
    notes.say(
        f"{len(found):,} names to learn from, {len(heldout):,} held out, "
        f"{len(named.alphabet):,} characters; {model} of "
        f"{named.model.count_parameters():,} parameters"
    )

    def write() -> None:
        loss = finish_training(named, trainer, heldout, settings)
        named.save(output, force=force)
        notes.say(f"held-out loss {loss:.4f} nats per character; wrote {output}")

    if trainer is None:
        write()
        return
    run = {**vars(settings), "names held out": len(heldout)}
    data = hash_names([*found, *heldout])
    checkpoint = modeldir.checkpoint_path(output)
    if resume:
        trainer.load(checkpoint, run, data)
    draw_training(
        trainer,
        notes,
        write,
        checkpoint=checkpoint,
        settings=run,
        data_hash=data,
        unit="characters",
    )


@app.command(cls=Command)
def sample(
    model: options.Model,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=limits.MANY, help="Names to make.")
    ] = 20,
    prefix: Annotated[str, typer.Option("--prefix", help="Begin so; - reads one a line.")] = "",
    suffix: Annotated[str, typer.Option("--suffix", help="End so.")] = "",
    contains: Annotated[str, typer.Option("--contains", help="Have this inside.")] = "",
    pattern: Annotated[
        str, typer.Option("--pattern", metavar="REGEX", help="Match this as a whole.")
    ] = "",
    min_length: Annotated[
        int,
        typer.Option("--min-length", min=1, max=limits.MANY, help="Fewest characters of a name."),
    ] = 1,
    max_length: Annotated[
        int | None,
        typer.Option("--max-length", min=1, max=limits.MANY, help="Most characters of a name."),
    ] = None,
    label: Annotated[str, typer.Option("--label", help="Names of this label.")] = "",
    unique: Annotated[bool, typer.Option("--unique", help="No name twice.")] = False,
    novel: Annotated[
        bool, typer.Option("--novel", help="No name that the model was trained on.")
    ] = False,
    tries: Annotated[
        int,
        typer.Option("--tries", min=1, max=limits.MANY, help="Names to draw before giving up."),
    ] = 10_000,
    temperature: options.Temperature = 1.0,
    top_k: options.TopK = 0,
    top_p: options.TopP = 1.0,
    scores: Annotated[
        bool, typer.Option("--scores", help="Add the negative log-likelihood in nats.")
    ] = False,
    format: options.RowsFormat = None,
    json: options.Json = False,
    seed: options.Seed = 1,
    device: options.UseDevice = "auto",
    quiet: options.Quiet = False,
) -> None:
    """Make new names, a name a line.

    With --prefix - prefixes are read from standard input, and -n names are made for each. Columns
    and keys: name, label (if the model has any), nats (with --scores).

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ nlpkit names sample en.model -n 5 --prefix Mar --novel
      $ nlpkit names sample en.model -n 5 --suffix ina --max-length 8 --scores
      $ nlpkit names sample en.model -n 5 --pattern "[A-M].*[aeiou]"
      $ printf 'Al\\nBe\\n' | nlpkit names sample en.model -n 2 --prefix -
    """
    from nlpkit.device import pick_device
    from nlpkit.generate.sampling import SamplingSettings
    from nlpkit.tasks.names.model import NamesModel
    from nlpkit.tasks.names.sample import Constraints, sample_names

    sampling = SamplingSettings(temperature=temperature, top_k=top_k, top_p=top_p)
    named = NamesModel.load(model)
    prefixes = [prefix]
    if prefix == textio.STDIN:
        prefixes = list(textio.read_lines(options.resolve_inputs([textio.STDIN])))
    chosen = pick_device(device, named.work(len(prefixes) * count * named.longest))
    named.model.to(chosen)
    with open_output("-") as out:
        for number, beginning in enumerate(prefixes):
            constraints = Constraints(
                prefix=beginning,
                suffix=suffix,
                contains=contains,
                pattern=pattern,
                min_length=min_length,
                max_length=max_length,
                label=label,
                unique=unique,
                novel=novel,
                tries=tries,
                sampling=sampling,
            )
            found: list[Name] = []
            try:
                found.extend(sample_names(named, count, constraints, seed + number))
            finally:
                _write_names(out, named, found, scores, rows_format(format, json))
    Notes(quiet).say(f"device {chosen}")


def _write_names(
    out: Writer, named: NamesModel, names: list[Name], scores: bool, format: str
) -> None:
    columns = ["name"]
    cells: list[list[Any]] = [[name.text] for name in names]
    if named.alphabet.labels:
        columns.append("label")
        cells = [[*row, name.label] for row, name in zip(cells, names, strict=True)]
    if scores:
        columns.append("nats")
        cells = [[*row, nats] for row, nats in zip(cells, named.nats(names), strict=True)]
    if cells:
        write_rows(out, columns, cells, format)


@app.command(cls=Command)
def score(
    model: options.Model,
    inputs: options.Inputs = None,
    least: Annotated[
        int | None,
        typer.Option(
            "--least",
            min=1,
            max=limits.MANY,
            help="Only the N names least like the training names.",
        ),
    ] = None,
    format: options.RowsFormat = None,
    json: options.Json = False,
    device: options.UseDevice = "auto",
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Say how likely names are: negative log-likelihood, a name a line.

    Columns and keys: name, nats (of the whole name and its end), bits_per_character. A high number
    is a name unlike those the model was trained on. Lines may be name<TAB>label.

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ printf 'Maria\\nXqzt\\n' | nlpkit names score en.model
      $ nlpkit names score en.model sample_corpora/names-en.txt --least 10
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.names.data import parse_names
    from nlpkit.tasks.names.model import NamesModel, bits_per_character, count_characters

    named = NamesModel.load(model)
    lines = textio.read_lines(options.resolve_inputs(inputs), encoding=encoding, errors=errors)
    names = parse_names(lines)
    chosen = pick_device(device, named.work(count_characters(names)))
    named.model.to(chosen)
    rows = [
        (name.text, nats, bits_per_character(nats, name.text))
        for name, nats in zip(names, named.nats(names), strict=True)
    ]
    total = sum(nats for _, nats, _ in rows) / count_characters(names)
    if least is not None:
        rows = sorted(rows, key=lambda row: -row[2])[:least]
    with open_output("-") as out:
        write_rows(out, ("name", "nats", "bits_per_character"), rows, rows_format(format, json))
    Notes(quiet).say(
        f"{len(names):,} names, {total:.4f} nats per character, ends included; device {chosen}"
    )


@app.command(cls=Command)
def report(
    model: options.Model,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=1_000_000, help="Names to make.")
    ] = 1000,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw lengths and letters to a picture."),
    ] = None,
    temperature: options.Temperature = 1.0,
    json: options.Json = False,
    seed: options.Seed = 1,
    device: options.UseDevice = "auto",
    quiet: options.Quiet = False,
) -> None:
    """Compare what a model makes with what it was trained on.

    Shows how many samples are training names, how many differ, the nearest training name of some,
    and lengths and letters of samples and training names side by side. Keys of --json: samples,
    known, distinct, nearest, lengths, letters.

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ nlpkit names report en.model
      $ nlpkit names report en.model --plot names.png --json
    """
    from nlpkit.device import pick_device
    from nlpkit.generate.sampling import SamplingSettings
    from nlpkit.plots import check_picture
    from nlpkit.tasks.names.model import NamesModel
    from nlpkit.tasks.names.report import compare, draw, show
    from nlpkit.tasks.names.sample import Constraints, sample_names

    if plot is not None:
        check_picture(plot)
    named = NamesModel.load(model)
    chosen = pick_device(device, named.work(count * named.longest))
    named.model.to(chosen)
    constraints = Constraints(
        sampling=SamplingSettings(temperature=temperature), tries=max(10_000, 10 * count)
    )
    samples = [name.text for name in sample_names(named, count, constraints, seed)]
    record = compare(samples, [name.text for name in named.trained_on])
    if plot is not None:
        draw(record, plot)
    with open_output("-") as out:
        if json:
            out.write_json(record)
        else:
            out.write(show(record))
    Notes(quiet).say(f"device {chosen}")
