"""Every command and parameter, read from the table of commands, so that new ones are fuzzed too."""

from __future__ import annotations

import enum
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import typer

Kind = Literal["flag", "integer", "number", "choice", "text"]


@dataclass(frozen=True)
class Parameter:
    """An argument (it has no flags) or an option of a command."""

    name: str
    kind: Kind
    flags: tuple[str, ...] = ()
    metavar: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    default: object = None
    repeated: bool = False

    @property
    def flag(self) -> str:
        """The longest name of an option."""
        return max(self.flags, key=len)


@dataclass(frozen=True)
class Command:
    """``gpt train`` and what it takes."""

    name: str
    parameters: tuple[Parameter, ...]

    def find(self, name: str) -> Parameter | None:
        """The parameter of this name, if there is one."""
        return next((one for one in self.parameters if one.name == name), None)


def find_commands() -> list[Command]:
    """All commands that do something, in the order of ``nlpkit --help``.

    >>> [command.name for command in find_commands()][:2]
    ['tokenize', 'detokenize']
    """
    from nlpkit.cli.main import COMMANDS, app

    root: Any = typer.main.get_command(app)
    return [
        Command(name, tuple(_parameters(command)))
        for first in COMMANDS
        for name, command in _leaves(root.get_command(None, first), first)
    ]


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    subcommands = getattr(command, "commands", None)
    if not subcommands:
        yield name, command
        return
    for part, subcommand in subcommands.items():
        yield from _leaves(subcommand, f"{name} {part}")


def _parameters(command: Any) -> Iterator[Parameter]:
    for found in command.params:
        if found.name == "help":
            continue
        kind, choices = _kind(found.type_descriptor.annotation)
        yield Parameter(
            name=found.name,
            kind=kind,
            flags=(*found.opts, *found.secondary_opts) if found.param_type_name == "option" else (),
            metavar=(found.metavar or "").rstrip("."),
            low=found.min,
            high=found.max,
            choices=choices,
            required=found.required,
            default=found.default,
            repeated=found.multiple or found.nargs != 1,
        )


def _kind(annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    if typing.get_origin(annotation) is Literal:
        return "choice", tuple(typing.get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return "choice", tuple(str(member.value) for member in annotation)
    kinds: dict[Any, Kind] = {bool: "flag", int: "integer", float: "number"}
    return kinds.get(annotation, "text"), ()
