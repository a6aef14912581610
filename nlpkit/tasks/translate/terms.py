"""A glossary: terms of the source and what must stand for them in the target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.models.seq2seq_settings import UNKNOWN
from nlpkit.tasks.translate.codecs import FIRST, SideCodec
from nlpkit.text.subwords import Subwords, byte_alphabet

_WORD = re.compile(r"\s*\S+")  # as subwords have it, with the space before it


class Term(NamedTuple):
    """A term and its translation."""

    source: str
    target: str


def read_terms(path: str) -> list[Term]:
    """A glossary: source term<TAB>target term, a line each."""
    terms = []
    for number, line in enumerate(textio.read_lines(path), 1):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != 2 or not all(field.strip() for field in fields):
            raise NlpkitError(
                f"{textio.source_name(path)}: line {number}: expected source term<TAB>target term",
                hint="mend the line",
            )
        terms.append(Term(fields[0].strip(), fields[1].strip()))
    if not terms:
        raise NlpkitError(f"{textio.source_name(path)}: no terms in it", hint="source<TAB>target")
    return terms


def find_terms(text: str, terms: Iterable[Term]) -> list[Term]:
    """The terms whose source stands in a text as whole words, longer ones first.

    >>> find_terms("The dogs and a hot dog.", [Term("dog", "Hund"), Term("hot dog", "Hotdog")])
    [Term(source='hot dog', target='Hotdog')]
    """
    found: list[Term] = []
    taken: list[tuple[int, int]] = []
    for term in sorted(terms, key=lambda term: -len(term.source)):
        pattern = rf"(?<!\w){re.escape(term.source)}(?!\w)"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if all(match.end() <= start or end <= match.start() for start, end in taken):
                taken.append(match.span())
                found.append(term)
                break
    return found


def encode_written(text: str, target: SideCodec, known: AbstractSet[int] | None) -> list[int]:
    """Ids of a text that must be written, by a model that writes those ``known`` (None: all).

    If the usual subwords are only the source's, they are others that spell it.
    """
    split = target.split(text)
    ids = [index for _, index in split]
    missing = [
        token for token, n in split if n == UNKNOWN or (known is not None and n not in known)
    ]
    if not missing:
        return ids
    tokens = target.tokens
    if known is not None and isinstance(tokens, Subwords):
        listed = [index for index in known if FIRST <= index < FIRST + len(tokens)]
        pieces = dict(zip(tokens.symbols(n - FIRST for n in listed), listed, strict=True))
        spelled = spell(_as_bytes(text), pieces)
        if spelled and target.decode(spelled) == text:
            return spelled
        missing = [word for word in _WORD.findall(text) if not spell(_as_bytes(word), pieces)]
    names = ", ".join(repr(name.strip()) for name in dict.fromkeys(missing)) or "it"
    raise NlpkitError(
        f"the model cannot write {text.strip()!r}: what targets of its training data are made of "
        f"does not spell {names}",
        hint="words that are in them, with the same capitals",
    )


def _as_bytes(text: str) -> str:
    """A text as byte-level subwords spell it."""
    alphabet = byte_alphabet()
    return "".join(alphabet[byte] for byte in text.encode())


def spell(text: str, pieces: Mapping[str, int]) -> list[int]:
    """The fewest pieces that make up a text, by their ids; none if it cannot be written with them.

    >>> spell("pati", {"p": 1, "a": 2, "ti": 3, "t": 4, "i": 5})
    [1, 2, 3]
    """
    longest = max(map(len, pieces), default=0)
    best: list[list[int] | None] = [[]]  # of the text up to each place
    for end in range(1, len(text) + 1):
        ways = [
            [*before, pieces[text[start:end]]]
            for start in range(max(0, end - longest), end)
            if (before := best[start]) is not None and text[start:end] in pieces
        ]
        best.append(min(ways, key=len, default=None))
    return best[-1] or []
