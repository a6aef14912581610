"""Values that come from a file, checked against types before anything believes them.

A schema is a type: a dataclass names its fields, their annotations say what each may be, and an
optional ``RANGES`` of the class says from where to where its numbers go. So a settings class is its
own schema, and nothing is listed twice. Tensors are checked against a table of shapes.
"""

from __future__ import annotations

import enum
import json
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin

from nlpkit import settings
from nlpkit.errors import NlpkitError

T = TypeVar("T")
Range = tuple[float, float]  # both ends included
Ranges = Mapping[str, Range]  # of the fields of a dataclass
Shape = tuple[int | str, ...]  # a size by name is the same number wherever it stands

AGAIN = "train or copy the model again"
COUNT: Range = (0, 2**31 - 1)  # whole numbers that have no range of their own
ANY_NUMBER: Range = (-sys.float_info.max, sys.float_info.max)
SHARE: Range = (0, 1)
SEED: Range = (-(2**64), 2**64)  # whatever was taken as one
_LONGEST_SHOWN = 40


def read(kind: type[T], value: Any, where: str, *, others: bool = False) -> T:
    """A value of a JSON file as an instance of a type, or an error that names its place.

    ``others`` lets a dataclass pass over keys that it does not know.

    >>> read(list[str], ["a", 1], "config.json: command")
    Traceback (most recent call last):
    nlpkit.errors.NlpkitError: config.json: command[1] is 1, not text (try: train or copy the \
model again)
    """
    return typing.cast(T, _read(kind, value, where, None, others))


def _read(kind: Any, value: Any, where: str, limits: Range | None, others: bool = False) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _read_fields(kind, value, where, others)
    if origin is list and isinstance(value, list):
        (inner,) = get_args(kind)
        return [_read(inner, item, f"{where}[{i}]", limits) for i, item in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        inner = get_args(kind)[1]
        return {
            name: _read(inner, item, f"{where}.{plain(name)}", limits)
            for name, item in value.items()
        }
    if origin in (Union, types.UnionType):
        if value is None and type(None) in get_args(kind):
            return None
        some = [one for one in get_args(kind) if one is not type(None)]
        if len(some) == 1 and (is_dataclass(some[0]) or get_origin(some[0]) in (list, dict)):
            return _read(some[0], value, where, limits)
        if any(_fits(one, value, limits) for one in some):
            return value
    elif isinstance(kind, type) and issubclass(kind, enum.Enum):
        for member in kind:
            if member.value == value and type(member.value) is type(value):
                return member
    elif _fits(kind, value, limits):
        return value
    refuse(where, value, _allowed(kind, limits))


def _read_fields(kind: Any, value: Any, where: str, others: bool) -> Any:
    if not isinstance(value, dict):
        refuse(where, value, "an object")
    value = settings.today(kind, value)
    hints = typing.get_type_hints(kind)
    ranges = settings.ranges(kind)
    known = {field.name: field for field in fields(kind) if field.init}
    between = "." if ": " in where else ": "  # the first name stands behind the file
    unknown = [name for name in value if name not in known]
    if unknown and not others:
        raise NlpkitError(f"{where}{between}{plain(unknown[0])} is not known here", hint=AGAIN)
    found = {}
    for name, field in known.items():
        if name in value:
            place = f"{where}{between}{name}"
            found[name] = _read(hints[name], value[name], place, ranges.get(name))
        elif _is_needed(field, hints[name]):
            raise NlpkitError(f"{where}{between}{name} is missing", hint=AGAIN)
    try:
        return kind(**found)
    except NlpkitError as error:  # fields that are right one by one and do not go together
        raise NlpkitError(f"{where}: {error.message}", hint=AGAIN) from None


def _is_needed(field: Any, hint: Any) -> bool:
    """Whether there is no default, or only one of another class, before data had decided it."""
    undecided = field.default is None and hint is not Any and type(None) not in get_args(hint)
    return undecided or (field.default is MISSING and field.default_factory is MISSING)


def _fits(kind: Any, value: Any, limits: Range | None) -> bool:
    if get_origin(kind) is Literal:
        return any(value == one and type(value) is type(one) for one in get_args(kind))
    if kind in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        low, high = limits or (COUNT if kind is int else ANY_NUMBER)
        return (whole or (kind is float and isinstance(value, float))) and low <= value <= high
    return type(value) is kind


def _allowed(kind: Any, limits: Range | None) -> str:
    """What a type allows, in words."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(_allowed(one, limits) for one in get_args(kind))
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        choices = get_args(kind) if origin is Literal else [member.value for member in kind]
        return ", ".join(map(str, choices[:-1])) + (" or " if choices[1:] else "") + choices[-1]
    if kind in (int, float):
        low, high = limits or (COUNT if kind is int else ANY_NUMBER)
        what = "a whole number" if kind is int else "a number"
        return what if (low, high) == ANY_NUMBER else f"{what} from {low} to {high}"
    words = {str: "text", bool: "true or false", type(None): "null", dict: "an object"}
    return words.get(origin or kind, "a list")


def refuse(where: str, value: Any, allowed: str) -> NoReturn:
    """The error for a value that is not what is allowed at its place."""
    raise NlpkitError(
        f"{where} is {_cut(json.dumps(value, default=repr))}, not {allowed}", hint=AGAIN
    )


def plain(name: str) -> str:
    """A name from a file as it can stand in a message of one line.

    >>> plain("hidden"), plain("two\\nlines")
    ('hidden', '"two\\\\nlines"')
    """
    return _cut(name if name.isprintable() else json.dumps(name))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def check_tensors(
    tensors: Mapping[str, Any],
    expected: Mapping[str, Shape],
    where: str,
    *,
    whole: Iterable[str] = (),
) -> dict[str, int]:
    """Refuse tensors (of numpy or torch) unless their names, shapes and types are the expected.

    All are float32 but the ``whole`` ones, which are int64. Gives the sizes that go by a name.

    >>> import numpy
    >>> tensors = {"weight": numpy.zeros((2, 3), "f4"), "bias": numpy.zeros(2, "f4")}
    >>> check_tensors(tensors, {"weight": ("out", "in"), "bias": ("out",)}, "w")
    {'out': 2, 'in': 3}
    >>> check_tensors(tensors, {"weight": ("out", "in"), "bias": ("in",)}, "w")
    Traceback (most recent call last):
    nlpkit.errors.NlpkitError: w: the tensor bias is float32 (2), not float32 (3), as config.json \
has it (try: train or copy the model again)
    """
    sizes: dict[str, int] = {}
    for name in expected:
        if name not in tensors:
            raise NlpkitError(f"{where}: the tensor {name} is missing", hint=AGAIN)
    for name in tensors:
        if name not in expected:
            raise NlpkitError(f"{where}: the model has no tensor {plain(name)}", hint=AGAIN)
    integers = frozenset(whole)
    for name, shape in expected.items():
        found = tuple(tensors[name].shape)
        for size, number in zip(shape, found, strict=False):
            if isinstance(size, str) and number > 0:
                sizes.setdefault(size, number)
        wanted = tuple(sizes.get(size, size) if isinstance(size, str) else size for size in shape)
        type_found = str(tensors[name].dtype).removeprefix("torch.")
        type_wanted = "int64" if name in integers else "float32"
        if (found, type_found) != (wanted, type_wanted):
            raise NlpkitError(
                f"{where}: the tensor {name} is {type_found} {_show(found)}, "
                f"not {type_wanted} {_show(wanted)}, as config.json has it",
                hint=AGAIN,
            )
    return sizes


def _show(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, shape))})"
