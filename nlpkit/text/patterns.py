"""What a tokeniser is, and the simple ones.

A tokeniser turns a line of text into tokens, or into spans (start, end) with
``text[start:end] == token``. Tokens never overlap and come in the order of the text.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Protocol

from nlpkit.errors import NlpkitError

Span = tuple[int, int]

# A table of seen pieces is emptied at this size, and long pieces are not kept in it: memory stays
# bounded on endless input.
TABLE_LIMIT = 200_000
LONGEST_KEPT = 100


class Tokenizer(Protocol):
    """What every tokeniser can do."""

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text."""
        ...

    def spans(self, text: str) -> list[Span]:
        """Where each token stands, in characters."""
        ...


def find_spans(text: str, tokens: Iterable[str]) -> list[Span]:
    """Where tokens that come in the order of the text stand in it.

    >>> find_spans("a cat, a mat", ["a", "cat", ",", "a", "mat"])
    [(0, 1), (2, 5), (5, 6), (7, 8), (9, 12)]
    """
    spans = []
    end = 0
    for token in tokens:
        start = text.index(token, end)
        end = start + len(token)
        spans.append((start, end))
    return spans


class PatternTokenizer:
    """Every match of a pattern is a token: the ``regex`` tokeniser, and ``simple`` and ``gpt2``.

    >>> PatternTokenizer(r"[a-z']+").tokens("couldn't have done better!")
    ["couldn't", 'have', 'done', 'better']
    """

    def __init__(self, pattern: str) -> None:
        import regex

        if not pattern.isascii() and any("\ud800" <= letter <= "\udfff" for letter in pattern):
            raise NlpkitError(f"the pattern is not UTF-8: {pattern!r}")
        try:
            self._pattern = regex.compile(pattern)
        except regex.error as error:
            raise NlpkitError(
                f"the pattern does not compile: {error.msg} at character {error.pos}: {pattern}",
                hint="quote it for the shell and escape . ( [ with a backslash",
            ) from None

    def tokens(self, text: str) -> list[str]:
        return [match.group() for match in self._pattern.finditer(text) if match.group()]

    def spans(self, text: str) -> list[Span]:
        return [match.span() for match in self._pattern.finditer(text) if match.group()]


class WhitespaceTokenizer:
    """Whatever stands between white space, as ``str.split`` sees it."""

    def tokens(self, text: str) -> list[str]:
        return text.split()

    def spans(self, text: str) -> list[Span]:
        return find_spans(text, text.split())


class PieceTable(dict[str, tuple[str, ...]]):
    """Remembers the tokens of every piece it has seen: a miss costs a pattern, a hit a look-up."""

    def __init__(self, split: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._split = split

    def __missing__(self, piece: str) -> tuple[str, ...]:
        tokens = self._split(piece)
        if len(piece) <= LONGEST_KEPT:
            if len(self) >= TABLE_LIMIT:
                self.clear()
            self[piece] = tokens
        return tokens


class PieceTokenizer:
    """Cuts at white space, then cuts each piece by ``split_piece``, once per distinct piece."""

    def __init__(self) -> None:
        self._table = PieceTable(self.split_piece)

    def split_piece(self, piece: str) -> tuple[str, ...]:
        """The tokens of a piece without white space."""
        raise NotImplementedError

    def tokens(self, text: str) -> list[str]:
        return list(itertools.chain.from_iterable(map(self._table.__getitem__, text.split())))

    def spans(self, text: str) -> list[Span]:
        return find_spans(text, self.tokens(text))


SIMPLE_PATTERN = r"[\p{L}\p{M}\p{N}]+"
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GRAPHEME_PATTERN = r"\X"

simple = functools.partial(PatternTokenizer, SIMPLE_PATTERN)
gpt2 = functools.partial(PatternTokenizer, GPT2_PATTERN)
char = functools.partial(PatternTokenizer, GRAPHEME_PATTERN)
