"""Flags of commands: those of one command, and those made from settings.

What one command has alone is the default of its parameter: ``flag`` or ``argument``. A settings
class gives a flag for each of its options. Flags that stand together in several commands are a
dataclass too (``cli/options.py``), whose fields are annotated as parameters may be.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nlpkit.errors import NlpkitError
from nlpkit.settings import Option, option, options


@dataclasses.dataclass(frozen=True)
class Declared:
    """A parameter of a command: its default, and what Typer is told of it."""

    default: Any
    make: Callable[..., Any]  # of typer
    names: tuple[str, ...]
    more: dict[str, Any]

    def of(self, parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
        """The parameter as Typer reads it; what has no name of its own has the parameter's."""
        is_flag = self.make is typer.Option
        names = self.names or ((f"--{parameter.name.replace('_', '-')}",) if is_flag else ())
        return parameter.replace(
            default=inspect.Parameter.empty if self.default is ... else self.default,
            annotation=Annotated[hint, self.make(*names, **self.more)],
        )


def flag(default: Any, help: str, *names: str, **more: Any) -> Any:
    """A flag of one command, ``--dim`` for the parameter ``dim``; ``...`` is a required one.

    ``more`` is what ``typer.Option`` takes.

    >>> def pca(dim: int = flag(..., "Numbers to keep for a word.", min=1)) -> None: ...
    """
    return Declared(default, typer.Option, names, {"help": help, **more})


def argument(default: Any, help: str, **more: Any) -> Any:
    """An argument of one command; ``...`` is a required one."""
    return Declared(default, typer.Argument, (), {"help": help, **more})


def flag_field(default: Any, help: str, *names: str, **more: Any) -> Any:
    """A field of a dataclass of flags that several commands have; ``more`` is as in ``option``."""
    return option(default, help, flags=names, **{"group": None, **more})


def declare_flags(
    command: Callable[..., Any], defaults: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """A command as Typer reads it: what ``flag`` and ``argument`` say stands in its annotations.

    A parameter that is annotated with a settings class disappears from the command line, and each
    option of the class takes its place. ``defaults`` replace those of such a class where a command
    has its own.

    >>> from nlpkit.settings import option
    >>> @dataclasses.dataclass(frozen=True)
    ... class Settings:
    ...     layers: int = option(2, "Layers.")
    >>> def train(text: str, settings: Settings) -> int:
    ...     return settings.layers
    >>> declare_flags(train)(text="some.txt", layers=3)
    3
    """
    hints = typing.get_type_hints(command, include_extras=True)
    own = defaults or {}
    takers: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command).parameters.values():
        hint: Any = hints[one.name]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            takers[one.name] = hint
            parameters += _flags(hint, own)
        elif isinstance(one.default, Declared):
            parameters.append(one.default.of(one, hint))
        else:
            parameters.append(one.replace(annotation=hint))
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]

    @functools.wraps(command)
    def run(**values: Any) -> Any:
        for taker, kind in takers.items():
            listed = _listed(kind)
            given = {name: value for name, value in own.items() if name in listed}
            for name, (_, one) in listed.items():
                older = () if one is None else one.hidden_flags
                for known in (name, *map(_parameter, older)):
                    value = values.pop(known, None)
                    given |= {} if value is None else {name: value}
            values[taker] = kind(**given)
        return command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def flag_of(kind: type[Any], name: str) -> Any:
    """The annotation of one option, for a command that takes it alone."""
    (found,) = [one for one in _flags(kind, {}) if one.name == name]
    return found.annotation


def _listed(kind: type[Any]) -> dict[str, tuple[Any, Option | None]]:
    """The type of each field that is a flag, and its declaration unless the type has it."""
    hints = typing.get_type_hints(kind, include_extras=True)
    declared = options(kind)
    return {
        field.name: (hints[field.name], declared.get(field.name))
        for field in dataclasses.fields(kind)
        if field.name in declared or typing.get_origin(hints[field.name]) is Annotated
    }


def _flags(kind: type[Any], defaults: dict[str, Any]) -> list[inspect.Parameter]:
    """A parameter for each option, and a hidden one for each of its older names."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    found = []
    for name, (hint, one) in _listed(kind).items():
        default = defaults.get(name, fields[name].default)
        if one is None:
            keyword = inspect.Parameter.KEYWORD_ONLY
            found.append(inspect.Parameter(name, keyword, default=default, annotation=hint))
            continue
        flags = one.flags or (f"--{name.replace('_', '-')}",)  # a bool has no --no- form
        found.append(_declare(name, flags, hint, one, default))
        for flag in one.hidden_flags:
            older = _declare(_parameter(flag), (flag,), hint | None, one, None, hidden=True)
            found.append(older)
    return found


def _parameter(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _declare(
    name: str, flags: tuple[str, ...], hint: Any, one: Option, default: Any, *, hidden: bool = False
) -> inspect.Parameter:
    declared = typer.Option(
        *flags,
        help=one.help,
        min=one.low if one.parser is None else None,
        max=one.high if one.parser is None else None,
        metavar=one.metavar,
        show_default=default != "" if one.shown_default is None else one.shown_default,
        parser=None if one.parser is None else _parser(one.parser),
        rich_help_panel=one.group,
        hidden=hidden,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[hint, declared],
    )


def _parser(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """What an engine's parser refuses is wrong usage of a command."""

    @functools.wraps(parse)
    def parse_flag(text: str) -> Any:
        try:
            return parse(text)
        except NlpkitError as error:
            raise typer.BadParameter(error.message) from None

    return parse_flag
