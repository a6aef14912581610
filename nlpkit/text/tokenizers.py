"""Named tokenisers: text into tokens with offsets, and the one table of their names.

>>> get_tokenizer("word").tokens("It's fine.")
['It', "'s", 'fine', '.']
>>> get_tokenizer("regex", pattern=r"\\w+").spans("to be")
[(0, 2), (3, 5)]
"""

from __future__ import annotations

import os
from collections.abc import Callable

from nlpkit.errors import NlpkitError
from nlpkit.schema import plain
from nlpkit.text import patterns as base
from nlpkit.text.patterns import PatternTokenizer, Span, Tokenizer, WhitespaceTokenizer
from nlpkit.text.words import Hyphens, WordTokenizer

__all__ = ["NAMES", "Hyphens", "Span", "Tokenizer", "get_tokenizer"]

_PLAIN: dict[str, Callable[[], Tokenizer]] = {
    "simple": base.simple,
    "whitespace": WhitespaceTokenizer,
    "char": base.char,
    "gpt2": base.gpt2,
}
NAMES = ("word", *_PLAIN, "regex")


def get_tokenizer(
    name: str = "word", *, pattern: str | None = None, hyphens: Hyphens = "split"
) -> Tokenizer:
    """A tokeniser by name, or by the path of a subword model (``tokenizer.json`` or its folder)."""
    if (pattern is not None) != (name == "regex"):
        raise NlpkitError(
            "the regex tokeniser and a pattern go together",
            hint="`tokenizer` regex `pattern` '\\w+'",
        )
    if name == "word":
        return WordTokenizer(hyphens)
    if pattern is not None:
        return PatternTokenizer(pattern)
    if name in _PLAIN:
        return _PLAIN[name]()
    if os.path.exists(name):
        from nlpkit.text.subwords import Subwords, SubwordTokenizer

        return SubwordTokenizer(Subwords.load(name))
    raise NlpkitError(
        f"no such tokeniser: {plain(name)}",
        hint=f"{', '.join(NAMES)}, or the path of a tokenizer.json",
    )
