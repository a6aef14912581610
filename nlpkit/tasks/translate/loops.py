"""A guard against loops: what a model repeats over and over, words or parts of one, is cut."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONGEST = 8  # words that may be repeated together
_FEW = 2  # times that anything may stand in a row
# part of a word, six times or more in a row; digits are left alone: numbers have many zeros
_WITHIN = re.compile(r"([^\d\s]{1,12}?)\1{5,}")


def cut_loops(source: str, target: str) -> tuple[str, int]:
    """The target without what it repeats more often in a row than the source does; how many
    words, and parts of words, were cut.

    Twice is no loop ("very very good"). What is a loop is left as often as the source has
    something in a row, and once at least.

    >>> cut_loops("I like salad.", "ich mag Salat Salat Salat Salat .")
    ('ich mag Salat .', 3)
    >>> cut_loops("ha ha ha", "ja ja ja")
    ('ja ja ja', 0)
    >>> cut_loops("salad", "Salatatatatatatat")
    ('Salat', 6)
    """
    within = 0
    if not _WITHIN.search(source.replace(" ", "")):
        within = sum(len(m[0]) // len(m[1]) - 1 for m in _WITHIN.finditer(target))
        target = _WITHIN.sub(r"\1", target)
    words = target.split(" ")
    allowed = max(repeats(source.split(" ")), 1)
    if max(repeats(words), 1) <= max(allowed, _FEW):
        return target, within
    cut = within
    for size in range(1, _LONGEST + 1):
        place = 0
        while place + size * 2 <= len(words):
            times = _times(words, place, size)
            if times > max(allowed, _FEW):
                del words[place + size * allowed : place + size * times]
                cut += size * (times - allowed)
            place += 1
    return " ".join(words), cut


def repeats(words: Sequence[str]) -> int:
    """How often in a row something stands, at most.

    >>> repeats("a b a b a b c".split())
    3
    """
    most = 1 if words else 0
    for size in range(1, _LONGEST + 1):
        run = 0  # words in a row that are those ``size`` places before them
        for place in range(size, len(words)):
            run = run + 1 if words[place] == words[place - size] else 0
            most = max(most, run // size + 1)
    return most


def _times(words: Sequence[str], place: int, size: int) -> int:
    part = list(words[place : place + size])
    times = 1
    while words[place + times * size : place + (times + 1) * size] == part:
        times += 1
    return times
