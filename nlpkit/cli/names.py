"""``nlpkit names``: train, sample, score, report, inspect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import lm_analysis, options
from nlpkit.cli.flags import argument, flag, flag_of
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import (
    Notes,
    Section,
    Writer,
    facts,
    open_output,
    percent,
    rows_format,
    write_report,
    write_rows,
)
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.errors import UsageError, plural
from nlpkit.generate.settings import SamplingSettings
from nlpkit.plots import check_picture
from nlpkit.tasks.names.settings import NameConstraints, NamesSettings
from nlpkit.text.records import TEXT_KEYS, Reading

if TYPE_CHECKING:
    from nlpkit.tasks.names.data import Name
    from nlpkit.tasks.names.model import NamesModel

_BAR = 24  # columns of the longest bar
NAME_KEYS = ("name", *TEXT_KEYS)
app = new_app("Name generators: train, sample, score, report.")


@app.command()
def train(
    *,
    settings: NamesSettings,
    names: options.Inputs = None,
    output: options.NewModel,
    test_fraction: float | None = flag(
        None,
        "Share of names to hold out.",
        min=0.0,
        max=0.9,
        show_default="0.1, at most 1,000 names",
    ),
    test_size: int | None = flag(None, "Number of names to hold out.", min=1, max=limits.MANY),
    test_file: str | None = flag(
        None, "Hold out these names; both files are used as is.", metavar="FILE"
    ),
    flags: options.Training,
    reading: Reading,
) -> None:
    """Learn to make names like those of a list, one name per line.

    Any script and any characters will do. A line may be name<TAB>label (a language, a gender), and
    names of a label can be asked for later. Each different name counts once; some are held out to
    measure the loss, training stops when it no longer falls, and the best weights are kept. With
    --max-time the model is as wide as the time allows.

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ nlpkit names train sample_corpora/names-ca.txt -o ca.model --model gru --max-time 20s
      $ nlpkit names train sample_corpora/names-en.txt -o baseline.model --model ngram
    """
    from nlpkit.tasks.names.data import parse_names
    from nlpkit.tasks.names.train import NamesRun

    if sum(value is not None for value in (test_fraction, test_size, test_file)) > 1:
        raise UsageError("give one of --test-fraction, --test-size and --test-file")
    notes = check_place(output, flags)
    found = parse_names(options.read_lines(names, reading, NAME_KEYS, tables=False))
    held = None
    if test_file is not None:
        held = parse_names(options.read_lines(test_file, reading, NAME_KEYS, tables=False))
    run = NamesRun(
        found,
        settings,
        heldout=held,
        fraction=test_fraction,
        size=test_size,
        device=prepare_torch(flags, notes),
    )
    draw_run(run, output, notes, resume=flags.resume, force=flags.force)


@app.command()
def sample(
    *,
    model: options.Model,
    wishes: NameConstraints,
    count: int = flag(20, "Names to make.", "--count", "-n", min=1, max=limits.MANY),
    temperature: flag_of(SamplingSettings, "temperature") = 1.0,  # type: ignore[valid-type]
    top_k: flag_of(SamplingSettings, "top_k") = 0,  # type: ignore[valid-type]
    top_p: flag_of(SamplingSettings, "top_p") = 1.0,  # type: ignore[valid-type]
    scores: bool = flag(False, "Add the negative log-likelihood in nats."),
    format: options.RowsFormat = None,
    seed: options.Seed = 1,
    use: options.Use,
) -> None:
    """Make new names, one name per line.

    With --prefix - prefixes are read from standard input, and -n names are made for each. Columns
    and keys: name, label (if the model has any), nats (with --scores).

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ nlpkit names sample en.model -n 5 --prefix Mar --novel
      $ nlpkit names sample en.model -n 5 --suffix ina --max-length 8 --scores
      $ nlpkit names sample en.model -n 5 --pattern "[A-M].*[aeiou]"
      $ printf 'Al\\nBe\\n' | nlpkit names sample en.model -n 2 --prefix -
    """
    from nlpkit.tasks.names.model import NamesModel
    from nlpkit.tasks.names.sample import Constraints, sample_names

    sampling = SamplingSettings(temperature=temperature, top_k=top_k, top_p=top_p)
    named = NamesModel.load(model)
    prefixes = [wishes.prefix]
    if wishes.prefix == textio.STDIN:
        prefixes = list(textio.read_lines(options.resolve_inputs([textio.STDIN])))
    options.place(named.model, use, named.work(len(prefixes) * count * named.longest))
    with open_output("-") as out:
        for number, beginning in enumerate(prefixes):
            wanted = {**vars(wishes), "prefix": beginning}
            constraints = Constraints(**wanted, sampling=sampling)
            found: list[Name] = []
            try:
                found.extend(sample_names(named, count, constraints, seed + number))
            finally:
                _write_names(out, named, found, scores, rows_format(format))


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


@app.command()
def score(
    *,
    model: options.Model,
    inputs: options.Inputs = None,
    least: int | None = flag(
        None, "Only the N names least like the training names.", min=1, max=limits.MANY
    ),
    format: options.RowsFormat = None,
    use: options.Use,
    reading: Reading,
) -> None:
    """Say how likely names are: negative log-likelihood, one name per line.

    Columns and keys: name, nats (of the whole name and its end), bits_per_character. A high number
    is a name unlike those the model was trained on. Lines may be name<TAB>label.

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ printf 'Maria\\nXqzt\\n' | nlpkit names score en.model
      $ nlpkit names score en.model sample_corpora/names-en.txt --least 10
    """
    from nlpkit.tasks.names.data import parse_names
    from nlpkit.tasks.names.model import NamesModel, bits_per_character, count_characters

    named = NamesModel.load(model)
    names = parse_names(options.read_lines(inputs, reading, NAME_KEYS, tables=False))
    options.place(named.model, use, named.work(count_characters(names)))
    rows = [
        (name.text, nats, bits_per_character(nats, name.text))
        for name, nats in zip(names, named.nats(names), strict=True)
    ]
    total = sum(nats for _, nats, _ in rows) / count_characters(names)
    if least is not None:
        rows = sorted(rows, key=lambda row: -row[2])[:least]
    columns = ("name", "nats", "bits_per_character")
    shown = rows_format(format)
    with open_output("-") as out:
        write_rows(out, columns, rows, shown)
    Notes().say(f"{plural(len(names), 'name')}, {total:.4f} nats per character, ends included")


@app.command()
def report(
    *,
    model: options.Model,
    count: int = flag(1000, "Names to make.", "--count", "-n", min=1, max=100_000),
    plot: str | None = flag(
        None, "Draw lengths and letters: .png, .svg, .pdf or .html.", metavar="FILE"
    ),
    temperature: flag_of(SamplingSettings, "temperature") = 1.0,  # type: ignore[valid-type]
    format: options.RowsFormat = None,
    seed: options.Seed = 1,
    use: options.Use,
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
    from nlpkit.tasks.names.model import NamesModel
    from nlpkit.tasks.names.report import compare, draw
    from nlpkit.tasks.names.sample import Constraints, sample_names

    check_picture(plot)
    named = NamesModel.load(model)
    options.place(named.model, use, named.work(count * named.longest))
    constraints = Constraints(
        sampling=SamplingSettings(temperature=temperature), tries=max(10_000, 10 * count)
    )
    samples = [name.text for name in sample_names(named, count, constraints, seed)]
    record = compare(samples, [name.text for name in named.trained_on])
    if plot is not None:
        draw(record, plot)
    shown = rows_format(format)
    with open_output("-") as out:
        write_report(out, _report_sections(record, bars=shown == "table"), record, shown)


def _report_sections(record: dict[str, Any], *, bars: bool) -> list[Section]:
    """The tables of a report; people see shares as bars, too."""
    nearest = [(row["name"], row["nearest"], row["distance"]) for row in record["nearest"]]
    sections = [
        facts(
            ("samples", record["samples"]),
            ("training names", percent(record["known"], 1), "of samples"),
            ("different", percent(record["distinct"], 1), "of samples"),
        ),
        Section(("sample", "nearest training name", "edit distance"), nearest),
    ]
    for name in ("lengths", "letters"):
        columns, rows = [name[:-1], "samples", "training names"], []
        highest = max(max(pair) for pair in record[name].values())
        for value, pair in record[name].items():
            row: list[Any] = [value, *(percent(share, 1) for share in pair)]
            if bars:
                ours, theirs = (round(_BAR * share / highest) for share in pair)
                row.append("▇" * ours)
                rows += [row, [None, None, None, "░" * theirs]]
            else:
                rows.append(row)
        columns += ["samples ▇, training names ░"] if bars else []
        sections.append(Section(columns, rows))
    return sections


@app.command()
def inspect(
    *,
    model: options.Model,
    name: str = argument(..., "A name to look at.", metavar="NAME"),
    label: str = flag("", "Its label, where the model has such.", show_default="none"),
    wanted: lm_analysis.Wanted,
) -> None:
    """Look inside a name model: what it expects at each letter, its gates, its attention.

    As nlpkit lm inspect, for a name: the end of the name is a token of its own.

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ nlpkit names inspect en.model Maria
      $ nlpkit names inspect en.model Maria --show attention --plot maria.html
    """
    from nlpkit.tasks.names.data import END
    from nlpkit.tasks.names.model import NamesModel

    lm_analysis.check_plot(wanted.plot, wanted.show)
    named = NamesModel.load(model)
    alphabet = named.alphabet
    letters = alphabet.encode(name)

    def name_of(index: int) -> str:
        return alphabet.decode([index]) or "\n"

    lm_analysis.run_inspect(
        named.model,
        [*letters, END],
        [alphabet.start(label)],
        lambda indices: [name_of(index) for index in indices],
        name_of,
        wanted,
    )
