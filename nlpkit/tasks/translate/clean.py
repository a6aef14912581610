"""Pairs of a parallel corpus that do more harm than good: why each is to be left out."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from nlpkit.errors import NlpkitError
from nlpkit.settings import DATA, MANY, option
from nlpkit.tasks.translate.data import Pair

Reason = Literal["empty", "identical", "ratio", "long", "script", "duplicate"]
REASONS: tuple[Reason, ...] = ("empty", "identical", "ratio", "long", "script", "duplicate")
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA")  # written without spaces; Japanese has all three
_SHORT = 4  # words: "Yes." may well be a long sentence in another language


@dataclass(frozen=True)
class CleanSettings:
    """Options of cleaning."""

    max_ratio: float = option(
        2.5, "Most words of one side for each of the other.", low=1.0, high=1000.0, group=DATA
    )
    max_words: int = option(200, "Most words of a side.", low=1, high=MANY, group=DATA)
    source_script: str | None = option(
        None,
        "Script of sources, such as LATIN or CYRILLIC.",
        metavar="NAME",
        shown_default="the most frequent",
        group=DATA,
    )
    target_script: str | None = option(
        None,
        "Script of targets.",
        metavar="NAME",
        shown_default="the most frequent",
        group=DATA,
    )


def script(text: str) -> str:
    """The script of most letters of a text; nothing if it has none.

    >>> script("Добрый день, Ann"), script("12:30")
    ('CYRILLIC', '')
    """
    counts: dict[str, int] = {}
    for character in text:
        if character.isalpha():
            name = _script_of(character)
            counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: (counts[name], name), default="")


def _script_of(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]
    return _UNSPACED[0] if name in _UNSPACED else name


def _named(script: str | None) -> str | None:
    """A script that was asked for, as ``script`` calls it."""
    if script is None:
        return None
    name = script.upper()
    letters = (letter for letter in map(chr, range(sys.maxunicode + 1)) if letter.isalpha())
    wanted = _UNSPACED[0] if name in _UNSPACED else name
    if not any(_script_of(letter) == wanted for letter in letters):
        raise NlpkitError(
            f"no letter is of a script named {script}",
            hint="a name of Unicode: LATIN, CYRILLIC, GREEK, ARABIC, CJK",
        )
    return wanted


def count_words(text: str) -> int:
    """What stands between spaces; of Chinese and Japanese, each character.

    >>> count_words("a good day"), count_words("你好, 世界")
    (3, 4)
    """
    return sum(
        sum(letter.isalpha() and _script_of(letter) == _UNSPACED[0] for letter in part) or 1
        for part in text.split()
    )


def usual_script(texts: Iterable[str]) -> str:
    """The script that most texts have."""
    counts: dict[str, int] = {}
    for text in texts:
        name = script(text)
        counts[name] = counts.get(name, 0) + 1
    counts.pop("", None)
    return max(counts, key=lambda name: (counts[name], name), default="")


def sort_out(
    pairs: Iterable[Pair], settings: CleanSettings | None = None
) -> Iterator[tuple[Pair, Reason | None]]:
    """Each pair with the first reason to leave it out, or with none.

    >>> pairs = [Pair("Good day", "Guten Tag"), Pair("Good day", "Guten Tag"), Pair("Hi", "Hi")]
    >>> [reason for _, reason in sort_out(pairs)]
    [None, 'duplicate', 'identical']
    """
    settings = settings or CleanSettings()
    listed = list(pairs)
    scripts = (
        _named(settings.source_script) or usual_script(pair.source for pair in listed),
        _named(settings.target_script) or usual_script(pair.target for pair in listed),
    )
    seen: set[tuple[str, str]] = set()
    for pair in listed:
        reason = _reason(pair, settings, scripts)
        key = _key(pair.source), _key(pair.target)
        if reason is None and key in seen:
            reason = "duplicate"
        seen.add(key)
        yield pair, reason


def _key(text: str) -> str:
    """What two texts have in common that differ in case and spaces only."""
    return " ".join(text.casefold().split())


def _reason(pair: Pair, settings: CleanSettings, scripts: tuple[str, str]) -> Reason | None:
    source, target = pair.source.strip(), pair.target.strip()
    if not source or not target:
        return "empty"
    if _key(source) == _key(target) and any(map(str.isalpha, source)):
        return "identical"
    lengths = sorted((count_words(source), count_words(target)))
    if lengths[1] > settings.max_words:
        return "long"
    if lengths[1] > _SHORT and lengths[1] > settings.max_ratio * lengths[0]:
        return "ratio"
    for text, wanted in zip((source, target), scripts, strict=True):
        if wanted and script(text) not in ("", wanted):
            return "script"
    return None
