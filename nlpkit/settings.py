"""One declaration of an option: its default, help, range and group, in the dataclass that uses it.

Flags of a command (``cli/flags.py``), ``--config`` files, ``config.json`` and its checks
(``schema.py``), keyword arguments from Python and the tables of the docs are made from it.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from nlpkit.errors import NlpkitError

# The largest values that options take: far beyond any use, and still no danger to the machine. What
# is allowed here and does not fit in memory is refused by its size, see nlpkit.memory.
MANY = 1_000_000_000  # of what is only counted or compared
WIDEST = 65_536  # numbers in a vector or layer
DEEPEST = 1_000  # layers, heads
LONGEST = 1_048_576  # tokens in a context, rows in a batch
MOST_EPOCHS = 1_000_000
MOST_WORKERS = 1_024  # threads or processes
LARGEST_SEED = 2**32 - 1  # what every library takes

DATA, MODEL, TRAINING, OUTPUT = "Data", "Model", "Training", "Output"  # groups of a help page

T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """What is known of an option besides its name, type and default."""

    help: str
    low: float | None = None
    high: float | None = None
    group: str | None = MODEL  # None: where the help page puts its name
    flags: tuple[str, ...] = ()  # names on the command line; none is --field-name
    hidden_flags: tuple[str, ...] = ()  # older names, still taken
    metavar: str | None = None
    shown_default: str | None = None  # for None, which stands for what is decided later
    parser: Callable[[str], Any] | None = None


def option(default: Any, help: str, **more: Any) -> Any:
    """A field of a settings dataclass that is an option; ``more`` are fields of ``Option``.

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     layers: int = option(2, "Layers, one on the other.", low=1, high=DEEPEST)
    >>> Settings().layers
    2
    >>> check(Settings(layers=0))
    Traceback (most recent call last):
    nlpkit.errors.NlpkitError: `layers` is 0 (try: a number from 1 to 1000)
    """
    return dataclasses.field(default=default, metadata={"option": Option(help, **more)})


def changed(settings: type[Any], name: str, default: Any, **more: Any) -> Any:
    """An option of a settings class, for a subclass that has another default (help, ...).

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     layers: int = option(2, "Layers, one on the other.", low=1, high=DEEPEST)
    >>> @dataclass(frozen=True)
    ... class Deep(Settings):
    ...     layers: int = changed(Settings, "layers", 12)
    >>> Deep().layers, options(Deep)["layers"].help
    (12, 'Layers, one on the other.')
    """
    one = dataclasses.replace(options(settings)[name], **more)
    return dataclasses.field(default=default, metadata={"option": one})


def options(settings: type[Any] | Any) -> dict[str, Option]:
    """The options of a settings dataclass by field name, in their order."""
    return {
        field.name: field.metadata["option"]
        for field in dataclasses.fields(settings)
        if "option" in field.metadata
    }


def today(settings: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Values by the names that options have now, whatever they were called when they were saved.

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     causal: bool = option(False, "See no word behind.", hidden_flags=("--one-way",))
    >>> today(Settings, {"one_way": True})
    {'causal': True}
    """
    older = {
        flag.lstrip("-").replace("-", "_"): name
        for name, one in options(settings).items()
        for flag in one.hidden_flags
        if name not in values
    }
    return {older.get(name, name): value for name, value in values.items()}


def ranges(settings: type[Any]) -> dict[str, tuple[float, float]]:
    """From where to where the numbers of a settings dataclass go."""
    given: dict[str, tuple[float, float]] = dict(getattr(settings, "RANGES", {}))
    for name, one in options(settings).items():
        if one.low is not None or one.high is not None:
            low = -float("inf") if one.low is None else one.low
            given.setdefault(name, (low, float("inf") if one.high is None else one.high))
    return given


def check(settings: T) -> T:
    """The settings, if every number is within its range and every choice is one of its choices."""
    hints = typing.get_type_hints(type(settings))
    for name, one in options(settings).items():
        value = getattr(settings, name)
        allowed = choices(hints[name])
        if value is None:
            continue
        if allowed and value not in allowed:
            raise NlpkitError(f"`{name}` is {value!r}", hint=", ".join(map(str, allowed)))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            low = -float("inf") if one.low is None else one.low
            high = float("inf") if one.high is None else one.high
            if not low <= value <= high:
                bounds = f"a number from {low:g} to {high:g}" if one.high is not None else ""
                raise NlpkitError(f"`{name}` is {value}", hint=bounds or f"{low:g} or more")
    return settings


def choices(hint: Any) -> tuple[Any, ...]:
    """The values that a type lists, without None.

    >>> choices(typing.Literal["pre", "post"] | None)
    ('pre', 'post')
    """
    if typing.get_origin(hint) is typing.Literal:
        return typing.get_args(hint)
    return tuple(value for part in typing.get_args(hint) for value in choices(part))


def parse_duration(text: str) -> float:
    """Seconds of a time such as ``90``, ``30s``, ``5m`` or ``1.5h``.

    >>> parse_duration("1.5h")
    5400.0
    """
    text = str(text)  # a number in a configuration file
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "s")
    try:
        seconds = float(number) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit.lower()]
    except (ValueError, KeyError):
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise NlpkitError(f"{text!r} is no time; 90, 30s, 5m or 1.5h is")
    return seconds
