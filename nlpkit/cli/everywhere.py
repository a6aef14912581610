"""What every command has without declaring it: -o, --quiet, --json, --header, --seed random.

``frame.Command`` adds the flags that a command lacks, takes their values out again before the
command runs, and keeps them here, where ``output.open_output`` and ``output.Notes`` look.
"""

from __future__ import annotations

import contextlib
import contextvars
import difflib
import functools
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import typer

from nlpkit.cli.flags import declare_flags, flag_field
from nlpkit.errors import UsageError
from nlpkit.settings import LARGEST_SEED, OUTPUT
from nlpkit.textio import LONGEST_LINE_VARIABLE, check_writable

RANDOM = "random"
# commands that show other commands, or write files and nothing else
NO_OUTPUT = ("demo",)
PLAIN_VARIABLES = (LONGEST_LINE_VARIABLE, "NLPKIT_FAULT", "NLPKIT_COMPLETE")


@dataclass(frozen=True)
class Everywhere:
    """The values of these flags in the command that is running."""

    output: str = flag_field(
        "-", "Where to write; - is standard output.", "--output", "-o", metavar="FILE"
    )
    header: bool = flag_field(False, "A first line with the names of columns.")
    json: bool = flag_field(False, "Short for --format jsonl.")
    quiet: bool = flag_field(False, "No notes or progress on stderr.", "--quiet", "-q")
    metrics: str | None = flag_field(
        None,
        "Write records of the curve as they are made: JSON lines, to be followed.",
        metavar="FILE",
        group=OUTPUT,
    )


_NONE = Everywhere()
current: contextvars.ContextVar[Everywhere] = contextvars.ContextVar("current", default=_NONE)


def _declare(given: Everywhere) -> None: ...


@functools.cache
def _declared() -> dict[str, Any]:
    app = typer.Typer(add_completion=False)
    app.command()(declare_flags(_declare))
    return {one.name: one for one in typer.main.get_command(app).params}


def missing(name: str | None, params: list[Any]) -> list[Any]:
    """The flags that a command lacks and could do with."""
    has = {one.name for one in params}
    flags = {flag for one in params for flag in (*one.opts, *one.secondary_opts)}
    declared = _declared()
    shown = next((one for one in params if one.name == "format" and not one.hidden), None)
    formats = str(shown.type_descriptor.annotation) if shown is not None else ""
    lacking = []
    if "jsonl" in formats and "json" not in has:
        lacking.append(declared["json"])
    if "quiet" not in has and "-q" not in flags:
        lacking.append(declared["quiet"])
    if "output" not in has and "-o" not in flags and name not in NO_OUTPUT:
        lacking.append(declared["output"])
    if "tsv" in formats and "header" not in has:
        lacking.append(declared["header"])
    if "resume" in has and "metrics" not in has:
        lacking.append(declared["metrics"])
    return lacking


@contextlib.contextmanager
def taken(ctx: Any, added: list[Any]) -> Iterator[None]:
    """Within this, the added flags are known here and no longer to the command."""
    values = {one.name: ctx.params.pop(one.name) for one in added}
    # stdin and stdout of a shell may hold -o /dev/stdout: that is a file like any other
    given = Everywhere(**values)
    if given.json:
        if ctx.params["format"] not in (None, "jsonl"):
            raise UsageError(f"--json and --format {ctx.params['format']} contradict each other")
        ctx.params["format"] = "jsonl"
    if given.output != "-":
        check_writable(given.output)  # before a command has written anything else
    token = current.set(given)
    try:
        yield
    finally:
        current.reset(token)


# --- seeds --------------------------------------------------------------------------------------


def draw_seed(args: list[str], variable: str) -> tuple[list[str], int | None]:
    """Arguments in which ``--seed random`` is a number, and that number.

    >>> draw_seed(["--seed", "3"], "")
    (['--seed', '3'], None)
    """
    drawn = secrets.randbelow(LARGEST_SEED)
    found, used = list(args), False
    for place, argument in enumerate(found):
        if argument == "--":
            break
        if argument == f"--seed={RANDOM}":
            found[place], used = f"--seed={drawn}", True
        elif argument == RANDOM and place and found[place - 1] == "--seed":
            found[place], used = str(drawn), True
    if not used and os.environ.get(variable) == RANDOM and "--seed" not in found:
        found, used = ["--seed", str(drawn), *found], True
    return found, drawn if used else None


# --- values that are refused ---------------------------------------------------------------------


def plain_words(message: str, wanted: str = "") -> str:
    """What is wrong with a value, without the words of the library that found it.

    >>> plain_words("Value error, 'x' is not one of 'a', 'b'.")
    "'x' is not one of 'a', 'b'."
    >>> plain_words("Input should be a valid integer, unable to parse string as an integer")
    'should be a whole number'
    """
    what, _, why = message.partition(", unable to parse")
    if why:
        number = "a whole number" if "integer" in what else "a number"
        return f"should be {wanted or number}"
    return message.removeprefix("Value error, ").removeprefix("Input ")


# --- variables ----------------------------------------------------------------------------------


def variables(command: Any, prefix: str) -> list[str]:
    """What stands for the options of a command, or of all commands of a group."""
    below = getattr(command, "commands", None)
    if below is None:
        return [f"{prefix}_{one.name.upper()}" for one in command.params]
    parts = {f"{prefix}_{name.upper().replace('-', '_')}": one for name, one in below.items()}
    return [name for part, one in parts.items() for name in variables(one, part)]


def mistyped(
    own: list[str],
    command: str,
    first: str,
    others: Iterable[str],
    group: Callable[[], list[str]],
) -> Iterator[tuple[str, str]]:
    """Variables of the environment that stand for nothing, each with the nearest that does.

    ``own`` are those of the command that runs, which begin with ``command``; ``group`` gives those
    of its neighbours, too, all of which begin with ``first``; those of other commands begin with
    one of ``others``.
    """
    elsewhere = tuple(f"{other}_" for other in others)
    for name in sorted(os.environ):
        if not name.startswith("NLPKIT_") or name in own or name in PLAIN_VARIABLES:
            continue
        possible = [*own, LONGEST_LINE_VARIABLE]
        if name.startswith(f"{first}_"):
            possible = group()
        elif name.startswith(elsewhere):
            continue
        if name not in possible:
            yield name, _nearest(name, possible, {one.removeprefix(command): one for one in own})


def _nearest(name: str, possible: list[str], options: dict[str, str]) -> str:
    """The variable that is meant by a name, or by an option without the name of its command."""
    if near := difflib.get_close_matches(name, possible, 1, 0.8):
        return near[0]
    near = difflib.get_close_matches(name.removeprefix("NLPKIT_"), options, 1, 0.7)
    return options[near[0]] if near else ""
