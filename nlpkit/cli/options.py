"""Every flag that more than one command has, declared once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nlpkit import settings
from nlpkit.cli.frame import NoInput
from nlpkit.cli.output import Notes, rows_format, visible
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.settings import LARGEST_SEED, MOST_WORKERS, changed
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.records import TEXT_KEYS, Reading
from nlpkit.textio import STDIN, TextBlock, parse_json

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT",
        help="Files to read, .gz .bz2 .xz .zst too; - is standard input.",
        show_default=STDIN,
    ),
]
Output = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output."),
]
ArrayOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write; - is standard output, .npy an array, .npz arrays by name.",
    ),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model folder.")]
NewModel = Annotated[
    str, typer.Option("--output", "-o", metavar="MODEL", help="The model folder to write.")
]
Encoding = Annotated[str, typer.Option("--encoding", metavar="NAME", help="Encoding of the input.")]
Errors = Annotated[
    Literal["strict", "replace", "ignore"],
    typer.Option("--errors", help="What to do with bytes that the encoding does not allow."),
]
Json = Annotated[bool, typer.Option("--json", help="Short for --format jsonl.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing model.")]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", min=0, max=MOST_WORKERS, help="Processes to use; 0 is one per core."
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Seed of every random choice.")
]
Threads = Annotated[
    int,
    typer.Option("--threads", min=0, max=MOST_WORKERS, help="Threads to use; 0 is one per core."),
]
EncoderThreads = Annotated[
    int,
    typer.Option(
        "--threads",
        min=0,
        max=MOST_WORKERS,
        help="Threads of a pre-trained encoder; 0 is one per core. Smaller models take one.",
    ),
]
Device = Annotated[
    str, typer.Option("--device", metavar="NAME", help="auto (cuda, then mps, then cpu) or one.")
]
UseDevice = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        help="auto (cuda or mps if there is much to do, else cpu) or one.",
    ),
]
Special = Annotated[
    list[str] | None,
    typer.Option("--special", metavar="TOKEN", help="One more special token; may be repeated."),
]
TextFormat = Annotated[
    Literal["text", "jsonl"] | None,
    typer.Option(
        "--format",
        "-f",
        help="text: one line per line, numbers and tokens between spaces; jsonl: one object each.",
        show_default="text",
    ),
]
ExplainFormat = Annotated[
    Literal["color", "table", "tsv", "csv", "jsonl", "markdown"] | None,
    typer.Option(
        "--format",
        "-f",
        help="color: the text, words for it green, against it red; or rows.",
        show_default="color on a terminal, else tsv",
    ),
]
StreamFormat = Annotated[
    Literal["table", "tsv", "csv", "jsonl", "markdown"] | None,
    typer.Option("--format", "-f", help="How to show rows.", show_default="tsv"),
]
VectorFormat = Annotated[
    Literal["jsonl", "text"] | None,
    typer.Option(
        "--format",
        "-f",
        help="jsonl: one object for each line; text: the numbers of each vector on a line, those "
        "of tokens behind their token.",
        show_default="jsonl",
    ),
]
RowsFormat = Annotated[
    Literal["table", "tsv", "csv", "jsonl", "markdown"] | None,
    typer.Option(
        "--format",
        "-f",
        help="How to show rows.",
        show_default="table on a terminal, else tsv",
    ),
]
VocabFile = Annotated[
    str,
    typer.Option("--vocab", "-V", metavar="FILE", help="A vocabulary: token<TAB>count a line."),
]


def parse_duration(text: str) -> float:
    """A time, for options of commands."""
    try:
        return settings.parse_duration(text)
    except NlpkitError as error:
        raise typer.BadParameter(error.message) from None


CheckpointEvery = Annotated[
    float,
    typer.Option(
        "--checkpoint-every",
        metavar="TIME",
        parser=parse_duration,
        help="Save a checkpoint this often: 90, 30s, 10m or 1h.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the checkpoint of an interrupted run.")
]
StartVectors = Annotated[
    str | None,
    typer.Option(
        "--vectors",
        metavar="VECTORS",
        help="Word vectors of any format nlpkit reads; words outside the data keep theirs.",
        rich_help_panel=settings.MODEL,
    ),
]


def _load_config(ctx: typer.Context, path: str | None) -> str | None:
    """Values of a file become defaults: flags and environment variables still win."""
    if path is None or ctx.resilient_parsing:
        return path
    values = read_config(path)
    names = {parameter.name for parameter in ctx.command.params}
    unknown = sorted(set(values) - names)
    if unknown:
        raise typer.BadParameter(f"{path}: no such setting here: {visible(', '.join(unknown))}")
    ctx.default_map = {**(ctx.default_map or {}), **values}
    return path


Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        is_eager=True,
        callback=_load_config,
        help="Settings from a TOML file or a model's config.json; flags win.",
    ),
]


# --- flags that stand together: a parameter of such a class is all of them ----------------------


@dataclass(frozen=True)
class Training:
    """Flags of every command that trains."""

    device: Device = "auto"
    threads: Threads = 0
    force: Force = False
    resume: Resume = False
    config: Config = None


@dataclass(frozen=True)
class Use:
    """Flags of commands that use a model which torch computes."""

    device: UseDevice = "auto"
    threads: Threads = 0


@dataclass(frozen=True)
class Decoding:
    """How bytes become text: the arguments of every reader in ``textio``."""

    encoding: Encoding = "utf-8"
    errors: Errors = "strict"


@dataclass(frozen=True)
class Tokenizing:
    """How lines become tokens, for commands that read words between spaces unless told."""

    tokenizer: str = changed(TokenSettings, "tokenizer", "whitespace")
    pattern: str | None = changed(TokenSettings, "pattern", None)
    lower: bool = changed(TokenSettings, "lower", False)

    @property
    def settings(self) -> TokenSettings:
        """As the pipeline takes them."""
        return TokenSettings(**vars(self))


@dataclass(frozen=True)
class TextTokenizing(Tokenizing):
    """The same for commands that read raw text unless told."""

    tokenizer: str = changed(TokenSettings, "tokenizer", "word")


@dataclass(frozen=True)
class Rows:
    """How rows of results are shown."""

    format: RowsFormat = None

    @property
    def shown(self) -> str:
        """``table`` on a terminal and ``tsv`` in a pipe, unless told."""
        return rows_format(self.format)


def read_config(path: str) -> dict[str, Any]:
    """Settings of a TOML file, or of a saved ``config.json``, by option name."""
    named = " ".join(path.split("\n"))
    try:
        text = Path(path).read_text(encoding="utf-8")
        if path.endswith(".json"):
            values = parse_json(text)
            values = values.get("settings", values) if isinstance(values, dict) else values
            if isinstance(values, dict):
                # tables inside are the model's own, not options of a command
                values = {name: value for name, value in values.items() if type(value) is not dict}
                # a model keeps its subword model beside its settings
                beside = Path(path).with_name("tokenizer.json")
                if values.get("tokenizer") == beside.name and beside.is_file():
                    values["tokenizer"] = str(beside)
        else:
            if sys.version_info >= (3, 11):
                import tomllib
            else:
                import tomli as tomllib
            values = tomllib.loads(text)
    except OSError as error:
        raise typer.BadParameter(f"cannot read {named}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{named}: {error}") from None
    if not isinstance(values, dict):
        raise typer.BadParameter(f"{named}: expected settings by name")
    return {name.replace("-", "_"): value for name, value in values.items()}


def resolve_inputs(inputs: list[str] | str | None) -> list[str]:
    """Paths to read: standard input when none is named, unless a person sits there."""
    paths = [inputs] if isinstance(inputs, str) else list(inputs or [STDIN])
    if paths.count(STDIN) > 1:
        raise UsageError("standard input (-) can be read only once")
    if STDIN in paths and sys.stdin is not None and sys.stdin.isatty():
        raise NoInput
    return paths


def read_records(
    inputs: list[str] | str | None,
    reading: Reading,
    keys: tuple[str, ...] = TEXT_KEYS,
    *,
    tables: bool = True,
) -> Iterator[TextBlock]:
    """The blocks of all inputs, plain text or records; what was detected is said on stderr."""
    from nlpkit.text import records

    paths = resolve_inputs(inputs)
    return records.read_records(paths, reading, keys, Notes().say, tables=tables)


def read_plain(
    inputs: list[str] | str | None,
    reading: Reading,
    keys: tuple[str, ...] = TEXT_KEYS,
    *,
    tables: bool = True,
) -> Iterator[TextBlock]:
    """``read_records`` as plain lines, for engines that know of no records."""
    from nlpkit.text.records import plain_blocks

    return plain_blocks(read_records(inputs, reading, keys, tables=tables), reading.errors)


def read_line_blocks(
    inputs: list[str] | str | None,
    reading: Reading,
    keys: tuple[str, ...] = TEXT_KEYS,
    *,
    tables: bool = True,
) -> Iterator[list[str]]:
    """``read_records`` as lines, a block at a time; that of a record knows it: ``with_record``."""
    from nlpkit.text.records import lines_of

    for block in read_records(inputs, reading, keys, tables=tables):
        yield lines_of(block, reading.errors)


def read_lines(
    inputs: list[str] | str | None,
    reading: Reading,
    keys: tuple[str, ...] = TEXT_KEYS,
    *,
    tables: bool = True,
) -> Iterator[str]:
    """``read_line_blocks``, a line at a time."""
    for lines in read_line_blocks(inputs, reading, keys, tables=tables):
        yield from lines


def resolve_jobs(jobs: int) -> int:
    """0 means every core."""
    from nlpkit.parallel import worker_count

    return worker_count(jobs, "jobs")


def use_threads(threads: int) -> None:
    """Let torch compute with so many; 0 is one per core."""
    import torch

    from nlpkit.parallel import worker_count

    torch.set_num_threads(worker_count(threads))


def use_encoder_threads(model: Any, threads: int) -> None:
    """Threads for the torch module of a model that stands on a pre-trained encoder."""
    if hasattr(model, "network"):
        use_threads(threads)


def place(module: Any, use: Use, work: float | None = None) -> Any:
    """Move a module to where so much work is done best, and say where; a CPU, to people only."""
    from nlpkit.device import pick_device

    use_threads(use.threads)
    chosen = pick_device(use.device, work)
    module.to(chosen)
    if chosen.type != "cpu" or (sys.stderr is not None and sys.stderr.isatty()):
        Notes().say(f"device {chosen}")
    return chosen


def calm_threads() -> None:
    """One thread for matrix products: these are small, and waiting threads only burn time.

    Numpy's library reads this once, when it is loaded, so this comes before the engines.
    """
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
