"""A regular expression that names must match: what may follow a beginning, and whether any can."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Sequence
from typing import Any

import regex
import torch
from torch import Tensor

from nlpkit.errors import NlpkitError

_SECONDS = 2.0  # a pattern that is matched for so long would never end
# what means the same to re and to regex: no flags, no look-around, no sets of sets, no fuzziness
_PLAIN = regex.compile(
    r"""(?x) (?: [^\\\[{(]
    | \\ (?: [dDwWsS] | [^\w\s] )
    | \[ \^? \]? (?: [^\\\[\]&|~-] | -(?!-) | \\ (?: [dDwWsS] | [^\w\s] ) )* \]
    | \{ \d* ,? \d* \}
    | \( (?: \?: | (?!\?) ) )* """
)
_CATEGORIES = {
    name: regex.compile(text)
    for name, text in (("DIGIT", r"\d"), ("WORD", r"\w"), ("SPACE", r"\s"))
}


class NamePattern:
    """What a pattern leaves open behind each beginning of a name, worked out once.

    A beginning is dead if it does not match and nothing may follow it. Then it may not follow what
    it goes on from either, and that may be dead, too: in the end no name is left.

    >>> pattern = NamePattern("ab?", ["a", "b", "c"], longest=5)
    >>> pattern.hopeless(""), pattern.hopeless("a"), pattern.matches("ab")
    (tensor([1, 2]), tensor([0, 2]), True)
    """

    def __init__(self, pattern: str, characters: Sequence[str], longest: int) -> None:
        try:
            self._compiled = regex.compile(pattern)
        except (regex.error, RecursionError, OverflowError) as error:
            raise NlpkitError(f"`pattern` {pattern}: {error}") from None
        shortest = fewest_characters(pattern, characters)
        if shortest == math.inf:
            raise NlpkitError(
                f"`pattern` {pattern} asks for characters that the model has never seen",
                hint="a pattern of others",
            )
        if shortest > longest:
            raise NlpkitError(
                f"`pattern` {pattern} asks for {shortest:.0f} characters or more, "
                f"and no name can have more than {longest}",
                hint="a pattern of fewer",
            )
        self._text, self._longest = pattern, longest
        self._characters = list(characters)
        self._all = frozenset(characters)
        self._open: dict[str, frozenset[str]] = {}
        self._same: dict[frozenset[str], frozenset[str]] = {}  # most are equal: kept once
        self._hopeless: dict[frozenset[str], Tensor] = {}

    def matches(self, text: str) -> bool:
        """Whether a whole name matches."""
        return self._match(text, partial=False)

    def hopeless(self, text: str) -> Tensor:
        """The places (n,) of the characters after which it can no longer match."""
        following = self._following(text)
        if following not in self._hopeless:
            places = [i for i, one in enumerate(self._characters) if one not in following]
            self._hopeless[following] = torch.tensor(places, dtype=torch.long)
        return self._hopeless[following]

    def is_dead(self, text: str) -> bool:
        """Whether no name that begins so matches; what it goes on from is told."""
        if self._following(text) or self.matches(text):
            return False
        while text and not self._following(text) and not self.matches(text):
            text, last = text[:-1], text[-1]
            self._keep(text, self._following(text) - {last})
        return True

    def _following(self, text: str) -> frozenset[str]:
        if text not in self._open:
            room = len(text) < self._longest
            found = {one for one in self._all if room and self._match(text + one, partial=True)}
            self._keep(text, frozenset(found))
        return self._open[text]

    def _keep(self, text: str, following: frozenset[str]) -> None:
        self._open[text] = self._same.setdefault(following, following)

    def _match(self, text: str, *, partial: bool) -> bool:
        try:
            found = self._compiled.fullmatch(text, partial=partial, timeout=_SECONDS)
        except TimeoutError:
            raise NlpkitError(
                f"`pattern` {self._text} takes too long to match", hint="no repeats inside repeats"
            ) from None
        return found is not None


def fewest_characters(pattern: str, characters: Sequence[str]) -> float:
    """A lower bound of the length of what matches, of these characters; infinity if nothing can.

    >>> fewest_characters("a{2,}b?", "ab"), fewest_characters("a.*c", "ab")
    (2, inf)
    """
    if not _PLAIN.fullmatch(pattern):
        return 0
    parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    try:
        return _fewest(parser.parse(pattern), characters)
    except (parser.error, RecursionError, OverflowError):
        return 0


def _fewest(parsed: Any, characters: Sequence[str]) -> float:
    total: float = 0
    for operator, value in parsed:
        match operator.name:
            case "LITERAL" | "NOT_LITERAL" | "IN" | "ANY":
                there = any(_fits(operator.name, value, one) for one in characters)
                total += 1 if there else math.inf
            case "BRANCH":
                total += min(_fewest(part, characters) for part in value[1])
            case "SUBPATTERN":
                total += _fewest(value[-1], characters)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if value[0]:
                total += value[0] * _fewest(value[2], characters)
    return total


def _fits(name: str, value: Any, character: str) -> bool:
    """Whether a character is one that a part of a pattern means."""
    match name:
        case "LITERAL":
            return ord(character) == value
        case "NOT_LITERAL":
            return ord(character) != value
        case "RANGE":
            return bool(value[0] <= ord(character) <= value[1])
        case "CATEGORY":
            category = value.name.removeprefix("CATEGORY_")
            found = _CATEGORIES[category.removeprefix("NOT_")].match(character)
            return (found is None) is category.startswith("NOT_")
        case "IN":
            negated = value[0][0].name == "NEGATE"
            parts = value[1:] if negated else value
            return any(_fits(part.name, more, character) for part, more in parts) is not negated
    return True  # any
