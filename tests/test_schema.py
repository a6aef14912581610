"""Types as schemas: what fits, and what the error says of what does not."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from nlpkit import schema
from nlpkit.errors import NlpkitError


class Colour(str, Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    size: int
    labels: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Outer:
    kind: Literal["a", "b"]
    rate: float = 0.5
    count: int | None = None
    flag: bool = False
    colour: Colour = Colour.RED
    inner: Inner | None = None
    more: dict[str, Any] = field(default_factory=dict)
    by_name: dict[str, Inner] = field(default_factory=dict)

    RANGES: ClassVar[schema.Ranges] = {"rate": (0, 1), "count": (1, 9)}

    def __post_init__(self) -> None:
        if self.flag and self.count is None:
            raise NlpkitError("a flag needs a count", hint="--count 1")


def test_values_become_what_the_types_say() -> None:
    value = {
        "kind": "b",
        "rate": 1,
        "count": 9,
        "colour": "blue",
        "inner": {"size": 0, "labels": ["x"]},
        "more": {"any": [None]},
        "by_name": {"n": {"size": 3}},
    }
    found = schema.read(Outer, value, "f.json")
    assert (found.kind, found.rate, found.count, found.colour) == ("b", 1, 9, Colour.BLUE)
    assert found.inner == Inner(0, ["x"])
    assert found.more == {"any": [None]}
    assert found.by_name == {"n": Inner(3)}
    assert schema.read(Outer, {"kind": "a"}, "f.json") == Outer("a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "c"}, r'f\.json: kind is "c", not a or b'),
        ({"kind": ["a"]}, r'kind is \["a"\], not a or b'),
        ({"rate": 1.5}, "rate is 1.5, not a number from 0 to 1"),
        ({"rate": float("nan")}, "rate is NaN"),
        ({"rate": 10**400}, "rate is 1000.*, not a number"),
        ({"rate": True}, "rate is true, not a number"),
        ({"count": 0}, "count is 0, not a whole number from 1 to 9 or null"),
        ({"count": 1.0}, "count is 1.0, not a whole number"),
        ({"flag": 1}, "flag is 1, not true or false"),
        ({"flag": True}, "f.json: a flag needs a count"),
        ({"colour": "green"}, 'colour is "green", not red or blue'),
        ({"inner": 3}, "inner is 3, not an object"),
        ({"inner": {}}, "inner.size is missing"),
        ({"inner": {"size": 2**31}}, "inner.size is 2147483648, not a whole number from 0 to"),
        ({"inner": {"size": 1, "labels": "ab"}}, 'labels is "ab", not a list'),
        ({"inner": {"size": 1, "labels": ["a", None]}}, r"labels\[1\] is null, not text"),
        ({"more": []}, r"more is \[\], not an object"),
        ({"by_name": {"two\nlines": 1}}, r'by_name\."two\\nlines" is 1, not an object'),
        ({"sise": 1}, "sise is not known here"),
        ({"a\nb": 1}, r'"a\\nb" is not known here'),
        ({"rate": "x" * 99}, '"x{39}\\.\\.\\., not a number'),
    ],
)
def test_what_does_not_fit_is_one_line_with_place_value_and_choice(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(NlpkitError, match=message) as error:
        schema.read(Outer, {"kind": "a", **change}, "f.json")
    assert str(error.value).startswith("f.json")
    assert "\n" not in str(error.value)
    assert "--" not in str(error.value)


def test_unknown_keys_may_be_passed_over() -> None:
    assert schema.read(Inner, {"size": 1, "new": 2}, "f", others=True) == Inner(1)
    with pytest.raises(NlpkitError, match=r"f: size is missing"):
        schema.read(Inner, {}, "f", others=True)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "bool"])
def test_tensors_have_names_shapes_and_types(dtype: str) -> None:
    good = {"a": np.zeros((2, 3), np.float32), "n": np.zeros(3, np.int64)}
    shapes: dict[str, schema.Shape] = {"a": (2, "n"), "n": ("n",)}
    assert schema.check_tensors(good, shapes, "w", whole=["n"]) == {"n": 3}
    for change, message in (
        ({"a": np.zeros((2, 3), dtype)}, rf"a is {dtype} \(2, 3\), not float32 \(2, 3\)"),
        ({"a": np.zeros((3, 3), np.float32)}, r"a is float32 \(3, 3\), not float32 \(2, 3\)"),
        ({"a": np.zeros(2, np.float32)}, r"a is float32 \(2\), not float32 \(2, n\)"),
        ({"n": np.zeros(4, np.int64)}, r"n is int64 \(4\), not int64 \(3\)"),
        ({"n": np.zeros(3, np.float32)}, r"n is float32 \(3\), not int64 \(3\)"),
        ({"a": np.zeros((2, 0), np.float32), "n": np.zeros(0, np.int64)}, r"\(2, 0\), not"),
        ({"b": np.zeros(1, np.float32)}, "the model has no tensor b"),
    ):
        with pytest.raises(NlpkitError, match=message):
            schema.check_tensors({**good, **change}, shapes, "w", whole=["n"])
    with pytest.raises(NlpkitError, match="w: the tensor n is missing"):
        schema.check_tensors({"a": good["a"]}, shapes, "w", whole=["n"])
