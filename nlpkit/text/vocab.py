"""Vocab: the table between tokens and ids.

On disk it is ``token<TAB>count``, one token per line, the line number (from 0) being the id:
specials first, then the rest by falling count, ties by token, so that the same text gives the same
file. Specials count 0. Any string can be a token: one that a line cannot hold as it is (tabs,
line ends, half a surrogate pair, nothing at all) is written with backslash escapes, and a third
column says so: ``a\\nb<TAB>3<TAB>escaped``. In all other lines a backslash is a backslash.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from nlpkit import textio
from nlpkit.errors import NlpkitError

PAD = "<pad>"
UNK = "<unk>"
SPECIALS = (PAD, UNK)
LONGEST_COUNT = 18  # digits: every count fits in 64 bits
ESCAPED = "escaped"  # the last column of such a line: no count, so no older file has it
# a byte order mark at the start of a file would be dropped
_NEEDS_ESCAPES = re.compile(r"[\t\n\r\ud800-\udfff]|\A\ufeff|\A\Z")
_LETTERS = {"\\": "\\", "\n": "n", "\r": "r", "\t": "t"}
_CHARACTERS = {letter: character for character, letter in _LETTERS.items()}


def escape(token: str) -> str:
    r"""A token without tabs, line ends and surrogates, which backslashes stand for.

    >>> escape("a\nb\\")
    'a\\nb\\\\'
    """
    return re.sub(
        r"[\\\t\n\r\ud800-\udfff\ufeff]",
        lambda found: "\\" + (_LETTERS.get(found[0]) or f"u{ord(found[0]):04x}"),
        token,
    )


def unescape(text: str) -> str:
    """What ``escape`` was given; an escape that it does not write is a ``ValueError``."""

    def character(found: re.Match[str]) -> str:
        letter = found[1]
        if len(letter) == 5:
            return chr(int(letter[1:], 16))
        if letter not in _CHARACTERS:
            raise ValueError(f"unknown escape {found[0]}")
        return _CHARACTERS[letter]

    return re.sub(r"\\(u[0-9a-f]{4}|.?)", character, text, flags=re.DOTALL)


def on_one_line(token: str) -> str:
    """A token as it is shown in a column: escaped where it would break the line."""
    return escape(token) if _NEEDS_ESCAPES.search(token) else token


def dump_words(words: Iterable[str]) -> str:
    """Any words, each on a line of its own, for ``parse_words``."""
    return "".join(
        f"{escape(word)}\t{ESCAPED}\n" if _NEEDS_ESCAPES.search(word) else f"{word}\n"
        for word in words
    )


def parse_words(lines: Iterable[str]) -> list[str]:
    """The words of ``dump_words``."""
    end = f"\t{ESCAPED}"
    return [unescape(line[: -len(end)]) if line.endswith(end) else line for line in lines]


def read_words(file: Path) -> list[str]:
    """The words of a file that ``dump_words`` made; none if there is no file."""
    return parse_words(textio.read_lines(str(file))) if file.exists() else []


def dump_entry(token: str, count: int) -> str:
    """The line of a token, with its end."""
    if not token.isalnum() and _NEEDS_ESCAPES.search(token):  # most are, and need no search
        return f"{escape(token)}\t{count}\t{ESCAPED}\n"
    return f"{token}\t{count}\n"


def parse_entry(line: str) -> tuple[str, int]:
    r"""Token and count of a line without its end, or a ``ValueError`` that says what is wrong.

    >>> parse_entry("a\\nb\t3\tescaped"), parse_entry("a\\nb\t3")
    (('a\nb', 3), ('a\\nb', 3))
    """
    token, tab, count = line.rpartition("\t")
    is_escaped = count == ESCAPED
    if is_escaped:
        token, tab, count = token.rpartition("\t")
    if not tab or not (token or is_escaped):
        raise ValueError(f"expected token<TAB>count, found {line[:40]!r}")
    if not (count.isascii() and count.isdigit() and len(count) <= LONGEST_COUNT):
        raise ValueError(f"the count must be a number from 0 on, not {count[:40]!r}")
    return unescape(token) if is_escaped else token, int(count)


class Vocab:
    """Tokens in id order with their counts.

    >>> vocab = Vocab.from_counts({"b": 2, "a": 2, "c": 1}, min_count=2)
    >>> vocab.tokens
    ['<pad>', '<unk>', 'a', 'b']
    >>> vocab.encode(["b", "c"])
    [3, 1]
    >>> vocab.decode([3, 1])
    ['b', '<unk>']
    """

    def __init__(self, tokens: Sequence[str], counts: Sequence[int]) -> None:
        if len(tokens) != len(counts):
            raise ValueError("tokens and counts differ in length")
        self.tokens = list(tokens)
        self.counts = list(counts)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        if len(self.ids) != len(self.tokens):
            twice = next(token for token, n in Counter(self.tokens).items() if n > 1)
            raise NlpkitError(f"duplicate token in vocabulary: {twice!r}")

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        specials: Sequence[str] = SPECIALS,
        min_count: int = 1,
        max_size: int | None = None,
    ) -> Vocab:
        """Specials first, then what occurs ``min_count`` times or more, most frequent first.

        ``max_size`` limits the whole vocabulary, specials included: it is the number of lines
        in the file and the number of rows of an embedding made for it.
        """
        if max_size is not None and max_size < len(specials):
            raise NlpkitError(
                f"a vocabulary of {max_size} has no room for {len(specials)} special tokens",
                hint=f"a size over {len(specials)}",
            )
        special = dict.fromkeys(specials)
        kept = sorted(
            token for token, n in counts.items() if n >= min_count and token not in special
        )
        kept.sort(key=counts.__getitem__, reverse=True)  # stable: ties stay in the order of tokens
        if max_size is not None:
            del kept[max_size - len(special) :]
        return cls([*special, *kept], [0] * len(special) + [counts[token] for token in kept])

    def having(self, token: str, file: str | os.PathLike[str], *, first: str = "") -> Vocab:
        """This vocabulary, if a model can do with it: it has a token, and another one is first."""
        if token not in self.ids or (first and self.tokens[0] != first):
            wanted = f"{first} first, and {token}" if first else token
            raise NlpkitError(f"{os.fspath(file)} is damaged: it must have {wanted}")
        return self

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self.ids

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    @property
    def specials(self) -> list[str]:
        """The tokens at the top that were declared, not counted."""
        first_counted = next((i for i, n in enumerate(self.counts) if n), len(self.counts))
        return self.tokens[:first_counted]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Ids of tokens; an unknown token gets the id of ``<unk>``, an error without one."""
        ids, unknown = self.ids, self.ids.get(UNK)
        if unknown is not None:
            return [ids.get(token, unknown) for token in tokens]
        try:
            return [ids[token] for token in tokens]
        except KeyError as error:
            raise NlpkitError(
                f"unknown token {error.args[0]!r} and no {UNK} in the vocabulary"
            ) from None

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens of ids; an id outside the vocabulary is an error."""
        tokens, size = self.tokens, len(self.tokens)
        found = []
        for index in ids:
            if not 0 <= index < size:
                raise NlpkitError(f"id {index} is outside the vocabulary of {size} tokens")
            found.append(tokens[index])
        return found

    def merge(self, *others: Vocab) -> Vocab:
        """Add counts up, as if all texts had been counted together.

        Shards must have been counted without ``min_count``: what one shard dropped is gone.
        """
        total: Counter[str] = Counter()
        specials: dict[str, None] = {}
        for vocab in (self, *others):
            specials.update(dict.fromkeys(vocab.specials))
        for vocab in (self, *others):
            total.update(dict(zip(vocab.tokens, vocab.counts, strict=True)))
        return Vocab.from_counts(total, specials=list(specials))

    # --- files ----------------------------------------------------------------------------------

    def dumps(self) -> str:
        """The file as text, one token per line."""
        return "".join(map(dump_entry, self.tokens, self.counts))

    def save(self, path: str) -> None:
        """Write ``token<TAB>count`` atomically."""
        textio.write_text(path, self.dumps())

    @classmethod
    def load(cls, path: str) -> Vocab:
        """Read what ``save`` wrote, saying which line is wrong when one is."""
        tokens: list[str] = []
        counts: list[int] = []
        seen: dict[str, int] = {}
        for number, line in enumerate(textio.read_lines(path), 1):
            where = f"{textio.source_name(path)}: line {number}"
            try:
                token, count = parse_entry(line)
            except ValueError as error:
                raise NlpkitError(f"{where}: {error}") from None
            if token in seen:
                raise NlpkitError(
                    f"{where}: {token!r} was already on line {seen[token]}",
                    hint="nlpkit vocab merge to add up counts from several files",
                )
            seen[token] = number
            tokens.append(token)
            counts.append(count)
        if not tokens:
            raise NlpkitError(f"{textio.source_name(path)}: an empty vocabulary")
        return cls(tokens, counts)
