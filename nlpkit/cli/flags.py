"""Flags made from settings: a command has a flag for each option of its settings class."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nlpkit.settings import Option, options


def with_settings(*kinds: type[Any], **defaults: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a command that has a parameter for each settings class, annotated with it.

    The parameter disappears from the command line and each option of the class takes its place.
    ``defaults`` replace those of the dataclass where a command has its own.

    >>> from nlpkit.settings import option
    >>> @dataclasses.dataclass(frozen=True)
    ... class Settings:
    ...     layers: int = option(2, "Layers.")
    >>> @with_settings(Settings)
    ... def train(text: str, settings: Settings) -> int:
    ...     return settings.layers
    >>> train("some.txt", layers=3)
    3
    """

    def decorate(command: Callable[..., Any]) -> Any:
        hints = typing.get_type_hints(command, include_extras=True)
        takers = {name: hint for name, hint in hints.items() if hint in kinds}
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name in takers:
                parameters += _flags(takers[parameter.name], defaults)
            else:
                parameters.append(parameter.replace(annotation=hints[parameter.name]))
        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]

        @functools.wraps(command)
        def run(*args: Any, **values: Any) -> Any:
            for taker, kind in takers.items():
                taken = {name: values.pop(name) for name in options(kind) if name in values}
                taken = {name: value for name, value in taken.items() if value is not None}
                values[taker] = kind(**{**_own(kind, defaults), **taken})
            return command(*args, **values)

        signature = inspect.Signature(parameters)
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _own(kind: type[Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in defaults.items() if name in options(kind)}


def _flags(kind: type[Any], defaults: dict[str, Any]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(name, fields[name].default),
            annotation=Annotated[hints[name], _declare(name, hints[name], one)],
        )
        for name, one in options(kind).items()
    ]


def _declare(name: str, hint: Any, one: Option) -> Any:
    flags = one.flags or (f"--{name.replace('_', '-')}",)
    if hint is bool and not one.flags:
        flags = (flags[0],)  # no --no- form: absence says it
    return typer.Option(
        *flags,
        *one.hidden_flags,
        help=one.help,
        min=one.low if one.parser is None else None,
        max=one.high if one.parser is None else None,
        metavar=one.metavar,
        show_default=one.shown_default if one.shown_default is not None else True,
        parser=one.parser,
        rich_help_panel=one.group,
    )
