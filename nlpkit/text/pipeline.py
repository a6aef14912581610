"""From a line of text to the tokens one wants: normalise, tokenise, filter.

Normalising changes the text before it is cut, filters drop tokens afterwards, so the offsets of
what is left still point into the (normalised) text: ``text[start:end] == token``.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.settings import MANY, option
from nlpkit.text.tokenizers import Hyphens, Span, Tokenizer, get_tokenizer

SHOWN_SPACE = "▁"  # U+2581 stands for white space inside a token where spaces separate tokens


@dataclass(frozen=True)
class TokenSettings:
    """How to get tokens from text. Small and plain, so that it travels to other processes.

    >>> Tokens(TokenSettings(lower=True, no_punct=True)).tokens("Hello, World!")
    ['hello', 'world']
    """

    tokenizer: str = option(
        "word",
        "word, simple, whitespace, char, gpt2, regex, or the path of a subword model.",
        flags=("--tokenizer", "-t"),
        metavar="NAME|PATH",
        group=None,
    )
    pattern: str | None = option(
        None, "What a token looks like, for --tokenizer regex.", metavar="REGEX", group=None
    )
    hyphens: Hyphens = option(
        "split", "well-known as three tokens or one, for --tokenizer word.", group=None
    )
    lower: bool = option(False, "Lower-case the text.", group=None)
    normalize: Literal["nfc", "nfkc"] | None = option(
        None, "Unicode normal form to bring the text into first.", group=None
    )
    strip_accents: bool = option(
        False, "Drop accents of Latin, Greek, Cyrillic letters.", group=None
    )
    no_punct: bool = option(False, "Drop tokens without a letter or digit.", group=None)
    stopwords: frozenset[str] = frozenset()
    min_length: int = option(0, "Drop tokens of fewer characters.", low=0, high=MANY, group=None)

    @property
    def is_plain_split(self) -> bool:
        """Whether this is ``str.split`` and nothing else, which has quick ways of its own."""
        return self == TokenSettings(tokenizer="whitespace")


class Tokens:
    """A tokeniser with its normalisation and filters."""

    def __init__(self, settings: TokenSettings) -> None:
        self.settings = settings
        self.tokenizer: Tokenizer = get_tokenizer(
            settings.tokenizer, pattern=settings.pattern, hyphens=settings.hyphens
        )
        self._filters = bool(settings.no_punct or settings.stopwords or settings.min_length)
        self._may_hold_space = settings.tokenizer not in ("word", "simple", "whitespace")
        self._normalizes = bool(settings.normalize or settings.strip_accents)

    def tokens(self, text: str) -> list[str]:
        """The tokens of a line."""
        return self.finish(self.tokenizer.tokens(self._normalize(text)))

    def finish(self, tokens: list[str]) -> list[str]:
        """What is done with tokens once the text is cut: lower-casing, then the filters."""
        if self.settings.lower:
            # not before cutting, which minds the case (U.S. is not us.)
            tokens = [token.lower() for token in tokens]
        return [token for token in tokens if self.keeps(token)] if self._filters else tokens

    def shown(self, text: str) -> list[str]:
        """The tokens as they are written between spaces, see ``show``."""
        tokens = self.tokens(text)
        return list(map(show, tokens)) if self._may_hold_space else tokens

    def with_offsets(self, text: str) -> tuple[str, list[str], list[Span]]:
        """The normalised text, its tokens, and where each stands in it."""
        text = self._normalize(text)
        spans = self.tokenizer.spans(text)
        if self.settings.lower:
            text, spans = _lower(text, spans)
        spans = [span for span in spans if not self._filters or self.keeps(text[slice(*span)])]
        return text, [text[start:end] for start, end in spans], spans

    def keeps(self, token: str) -> bool:
        """Whether the filters let a token pass."""
        settings = self.settings
        return (
            len(token) >= settings.min_length
            and token.lower() not in settings.stopwords
            and not (settings.no_punct and _is_punctuation(token))
        )

    def _normalize(self, text: str) -> str:
        if not self._normalizes or text.isascii():
            return text
        if self.settings.normalize:
            form: Literal["NFC", "NFKC"] = "NFC" if self.settings.normalize == "nfc" else "NFKC"
            text = unicodedata.normalize(form, text)
        return strip_accents(text) if self.settings.strip_accents else text


def strip_accents(text: str) -> str:
    """Drop the marks of Latin, Greek and Cyrillic letters; other scripts need theirs.

    >>> strip_accents("crème brûlée")
    'creme brulee'
    """
    kept = []
    base = ""
    for character in unicodedata.normalize("NFD", text):
        if not unicodedata.combining(character):
            base = character
        elif unicodedata.name(base or " ", "").startswith(("LATIN", "GREEK", "CYRILLIC")):
            continue
        kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept))


def _lower(text: str, spans: list[Span]) -> tuple[str, list[Span]]:
    # token by token, counting anew: a few letters become two characters (İ)
    pieces: list[str] = []
    moved: list[Span] = []
    done = length = 0
    for start, end in spans:
        for piece in (text[done:start].lower(), text[start:end].lower()):
            pieces.append(piece)
            length += len(piece)
        moved.append((length - len(pieces[-1]), length))
        done = end
    return "".join([*pieces, text[done:].lower()]), moved


def _is_punctuation(token: str) -> bool:
    return not any(character.isalnum() for character in token)


def show(token: str) -> str:
    """A token as it is written between spaces: white space inside it is made visible."""
    if not token.isspace() and len(token.split()) == 1 and token == token.strip():
        return token
    return "".join(SHOWN_SPACE if character.isspace() else character for character in token)


def read_tokens(
    blocks: Iterable[textio.TextBlock], settings: TokenSettings, errors: str = "strict"
) -> Iterator[list[list[str]]]:
    """For each block the (shown) tokens of its lines."""
    tokens = Tokens(settings)
    for block in blocks:
        yield [tokens.shown(line) for line in block.lines(errors)]


# --- stop words ---------------------------------------------------------------------------------

ENGLISH_STOPWORDS = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being
    below between both but by can could did do does doing down during each few for from further had
    has have having he her here hers herself him himself his how i if in into is it its itself just
    me more most my myself no nor not now of off on once only or other our ours ourselves out over
    own same she should so some such than that the their theirs them themselves then there these
    they this those through to too under until up very was we were what when where which while who
    whom why will with would you your yours yourself yourselves
    n't 's 're 've 'll 'd 'm n’t ’s ’re ’ve ’ll ’d ’m ca wo sha don't can't won't it's i'm
    """.split()
)


@functools.cache
def load_stopwords(name: str) -> frozenset[str]:
    """``en``, or the words of a file, one word per line, in any case.

    >>> "the" in load_stopwords("en")
    True
    """
    if name == "en":
        return ENGLISH_STOPWORDS
    words: Iterable[str] = (line.strip().lower() for line in textio.read_lines(name))
    found = frozenset(word for word in words if word)
    if not found:
        raise NlpkitError(f"{name}: no stop words in it", hint="one word per line, or 'en'")
    return found
