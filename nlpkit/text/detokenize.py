"""Word tokens back into readable text.

Where a space goes depends on the two tokens around it, and for straight quotes on whether one is
open. The result reads well; it equals the original only where that was spaced as usual.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from nlpkit.text.words import JOINED, PREFIXES

# no space before these, and none after those; :) is neither
_CLOSING = re.compile(
    r"""
    (?:[.,;:!?…]+ | [)\]}»”%°]+ | '' | ['’])$
  | n['’]t$ | ['’](?:s|re|ve|ll|d|m)$
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OPENING = re.compile(r"[(\[{«“‘$€£¥¿¡]+$|``$")
_TREEBANK = {"``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]"}
_UNITS = frozenset("am pm k km kg cm mm mb gb".split())


@functools.cache
def _cjk() -> Any:
    import regex

    return regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}。、！？「」（）]")


def detokenize(tokens: Sequence[str]) -> str:
    """Join word tokens the way one would write them.

    >>> detokenize(["``", "Do", "n't", "pay", "$", "5", "(", "yet", ")", "!", "''", "he", "said"])
    '"Don\\'t pay $5 (yet)!" he said'
    >>> detokenize(["a", "well", "-", "known", "fact", ";", "we", "can", "not", "go"])
    'a well-known fact; we cannot go'
    """
    text = ""
    open_quotes: set[str] = set()
    glue = True  # whether the next token joins what is there
    for position, token in enumerate(tokens):
        previous = tokens[position - 1] if position else ""
        following = tokens[position + 1] if position + 1 < len(tokens) else ""
        shown = _TREEBANK.get(token, token)
        joins_left = glue or _either(_CLOSING, token, shown) or _pairs(previous, token)
        joins_right = _either(_OPENING, token, shown)
        if token in ('"', "'") and not (token == "'" and _is_possessive(previous, open_quotes)):
            # a straight quote opens or closes in turn
            joins_left = glue or token in open_quotes
            joins_right = token not in open_quotes
            open_quotes ^= {token}
        elif token == "#":
            joins_right = following[:1].isdigit()  # before a word it would become a hashtag
        elif token in ("-", "–", "/") and previous and following:
            joins_left = joins_right = _is_word(previous) and _is_word(following)
        text += shown if joins_left else " " + shown
        glue = joins_right
    return text


def _either(pattern: re.Pattern[str], token: str, shown: str) -> bool:
    return bool(pattern.match(token) or pattern.match(shown))


def _is_word(token: str) -> bool:
    return token[:1].isalnum() and token[-1:].isalnum()


def _is_possessive(previous: str, open_quotes: set[str]) -> bool:
    return previous.endswith("s") and "'" not in open_quotes


def _pairs(previous: str, token: str) -> bool:
    """Two tokens that were cut out of one word: can|not, 5|pm, 東|京, pre-|war."""
    whole = (previous + token).lower()
    return (
        JOINED.get(whole) == len(previous)
        or (previous[-1:].isdigit() and token.lower() in _UNITS)
        or bool(_cjk().match(token) and _cjk().match(previous))
        or (previous[-1:] == "-" and previous[:-1].lower() in PREFIXES)
    )
