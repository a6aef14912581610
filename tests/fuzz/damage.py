"""Damaged models: a JSON value changed, bytes flipped, cut or added, files gone or swapped.

Every damage is a ``Step`` on a copy of a good model.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from .case import Step
from .contents import bad_content

_DEEP = "DEEP"  # stands for lists in lists, which json.dumps cannot write
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 10**9, 2**31, 2**63, 2**64, 10**400),
    *(0.5, -0.5, 1e308, 1e-320, float("nan"), float("inf"), "", "x", "../x", "a\nb", "\ud800"),
    *("/etc/passwd", "1", "x" * 5000, [], [1], ["x"], [[]], [None], {}, {"x": 1}, _DEEP),
)


def damage(random: Random, model: Path, name: str, others: list[Path]) -> list[Step]:
    """Steps that damage the copy ``name`` of a model; ``others`` are models to swap files with."""
    if not model.is_dir():
        return _damage_file(random, model, name)
    files = sorted(file for file in model.rglob("*") if file.is_file())
    file = random.choice(files)
    inner = f"{name}/{file.relative_to(model)}"
    kind = random.randrange(10)
    if kind == 0:
        return [Step("remove", inner)]
    if kind == 1:
        return [Step("remove", inner), Step("folder", inner)]
    if kind == 2:
        donors = [found for other in others if other.is_dir() for found in other.rglob(file.name)]
        if donors:
            return [Step("remove", inner), Step("copy", inner, source=str(random.choice(donors)))]
    if kind in (3, 4):  # more often than their share of the files: all settings are in it
        config = next((file for file in files if file.suffix == ".json"), file)
        return _damage_file(random, config, f"{name}/{config.relative_to(model)}")
    return _damage_file(random, file, inner)


def _damage_file(random: Random, file: Path, name: str) -> list[Step]:
    size = file.stat().st_size
    choices: list[Callable[[], Step | None]] = [
        lambda: Step("cut", name, number=random.randrange(size + 1)),
        lambda: Step("cut", name, number=0),
        lambda: Step("append", name, random.randbytes(random.choice((1, 4, 1000)))),
        lambda: _patch(random, name, size),
    ]
    data = file.read_bytes()
    if file.suffix == ".json":
        choices += 12 * [lambda: _rewrite(name, change_json(random, data))]
    elif file.suffix == ".jsonl":
        choices += 4 * [lambda: _rewrite(name, _change_line(random, data))]
    elif file.suffix == ".safetensors":
        choices += 6 * [lambda: _rewrite(name, change_header(random, data))]
        choices += 3 * [lambda: _patch_number(random, name, size)]
    elif file.suffix in (".npy", ".bin"):
        choices += 6 * [lambda: _patch(random, name, min(size, 128))]
        choices += 3 * [lambda: _patch_number(random, name, size)]
    elif file.suffix == ".pt":
        choices += 6 * [lambda: _patch(random, name, min(size, 3000))]
    else:
        choices += 8 * [lambda: Step("write", name, bad_content(random, data))]
    step = random.choice(choices)()
    return [step] if step else []


def _rewrite(name: str, changed: tuple[bytes, str]) -> Step:
    return Step("write", name, changed[0], note=changed[1])


def _patch(random: Random, name: str, size: int) -> Step:
    start = random.randrange(max(size, 1))
    return Step("patch", name, random.randbytes(random.choice((1, 1, 4))), number=start)


def _patch_number(random: Random, name: str, size: int) -> Step:
    """A number of the weights, counted from the end, where they are."""
    odd = random.choice((float("nan"), float("inf"), -1e38, 1e-40))
    start = size - 4 * random.randint(1, max(1, min(size // 4, 50)))
    return Step("patch", name, struct.pack("<f", odd), number=max(start, 0))


def change_json(random: Random, data: bytes) -> tuple[bytes, str]:
    """One value of a document replaced, removed or renamed, and which.

    >>> change_json(Random(4), b'{"dim": 8}')
    (b'{"x": 8}', "'dim' is now called x")
    """
    try:
        document = json.loads(data)
    except ValueError:
        return data[: len(data) // 2], "cut in half"
    places = list(_places(document))
    if not places:
        return json.dumps(random.choice(VALUES)).encode(), "another value"
    # the first places are the outer ones, and there are thousands of words in a tokenizer.json
    container, key = random.choice(places[:200] if random.random() < 0.8 else places)
    value = random.choice(VALUES)
    if random.random() < 0.1:
        del container[key]
        note = f"{key!r} is gone"
    elif isinstance(container, dict) and random.random() < 0.1:
        container["x"] = container.pop(key)
        note = f"{key!r} is now called x"
    elif isinstance(container[key], (int, float)) and random.random() < 0.3:
        container[key] = container[key] * random.choice((-1, 2, 1000)) + random.choice((0, 1))
        note = f"{key!r} is now {container[key]!r:.40}"
    else:
        container[key] = value
        note = f"{key!r} is now {value!r:.40}"
    changed = json.dumps(document).replace(f'"{_DEEP}"', 5000 * "[" + 5000 * "]")
    return changed.encode(), note


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key of a document, outer ones first."""
    waiting = [value]
    while waiting:
        container = waiting.pop(0)
        if not isinstance(container, (dict, list)):
            continue
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            yield container, key
            waiting.append(container[key])


def change_header(random: Random, data: bytes) -> tuple[bytes, str]:
    """A safetensors file whose header has one other value, and says its own length rightly."""
    (length,) = struct.unpack("<Q", data[:8])
    header, note = change_json(random, data[8 : 8 + length])
    return struct.pack("<Q", len(header)) + header + data[8 + length :], note


def _change_line(random: Random, data: bytes) -> tuple[bytes, str]:
    lines = data.split(b"\n")
    place = random.randrange(len(lines))
    lines[place], note = change_json(random, lines[place])
    return b"\n".join(lines), note
