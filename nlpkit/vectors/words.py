"""The words of a set of vectors, by row: a plain list, or the unread text of ``vocab.tsv``.

``StoredWords`` is why a question to 400,000 words is answered at once: finding one word is a
search through bytes, and only the words that are shown are ever decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.text.vocab import ESCAPED, parse_entry

_NEWLINE = ord("\n")
# a search costs milliseconds, a dictionary of all words some tenths of a second
_SEARCHES_BEFORE_INDEX = 20


class ListedWords(Sequence[str]):
    """Words in memory.

    >>> words = ListedWords(["the", "of"])
    >>> words.find("of"), words.find("off")
    (1, None)
    """

    def __init__(self, words: Sequence[str], counts: NDArray[np.int64] | None = None) -> None:
        self._words = list(words)
        self.counts = counts  # how often each word was seen, where somebody counted

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        return self._words[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self._words)}

    def expect(self, words: Iterable[str]) -> None:
        """Many words will be asked for, which are found at once here."""

    def find(self, word: str) -> int | None:
        """The row of a word, or nothing."""
        return self._rows.get(word)


class StoredWords(Sequence[str]):
    """Words still in the bytes of a ``token<TAB>count`` file.

    >>> words = StoredWords(b"the\\t12\\nof\\t7\\n", "vocab.tsv")
    >>> words[1], words.find("of"), words.counts.tolist()
    ('of', 1, [12, 7])
    """

    def __init__(self, data: bytes, name: str) -> None:
        data = data.replace(b"\r\n", b"\n") if b"\r\n" in data else data
        # every line, the first one too, now stands between two newlines
        self._data = b"\n" + data if data.endswith(b"\n") else b"\n" + data + b"\n"
        self._name = name
        ends = np.flatnonzero(np.frombuffer(self._data, np.uint8) == _NEWLINE)
        self._starts = ends + 1  # of each line, and of what would follow the last
        self._searches = 0
        self._escapes = f"\t{ESCAPED}\n".encode() in self._data
        self._expected: dict[str, int | None] = {}
        self._all: list[str] | None = None

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        return self._line(row % len(self))[0] if self._all is None else self._all[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decode_all())

    def _line(self, row: int) -> tuple[str, int]:
        line = self._data[self._starts[row] : self._starts[row + 1] - 1]
        try:
            return parse_entry(line.decode())
        except ValueError as error:
            raise NlpkitError(f"{self._name} is damaged: line {row + 1}: {error}") from None

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """How often each word was seen; nothing when all are 0, that is when nobody counted."""
        counts = np.array([self._line(row)[1] for row in range(len(self))], np.int64)
        return counts if counts.any() else None

    def _decode_all(self) -> list[str]:
        """Every word, in one go and kept."""
        if self._all is None:
            text = self._data[1:].decode(errors="replace")
            words = re.findall(r"(.*)\t[0-9]+\n", text)
            if len(words) != len(self) or "\ufffd" in text:
                words = [self._line(row)[0] for row in range(len(self))]  # says what is damaged
            self._all = words
        return self._all

    @cached_property
    def _rows(self) -> dict[str, int]:
        words = self._decode_all()
        return dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))

    def expect(self, words: Iterable[str]) -> None:
        """Find many words in one pass, which takes half the time of the dictionary of all."""
        wanted = set(words) - self._expected.keys()
        if len(wanted) > _SEARCHES_BEFORE_INDEX:
            self._expected.update(dict.fromkeys(wanted))
            lines = enumerate(self._decode_all())
            found = [(word, row) for row, word in lines if word in wanted]
            self._expected.update(reversed(found))  # of equal words the first

    def find(self, word: str) -> int | None:
        """The row of a word, or nothing."""
        if "\n" in word and not self._escapes:
            return None
        if word in self._expected:
            return self._expected[word]
        if self._escapes or self._searches >= _SEARCHES_BEFORE_INDEX:
            return self._rows.get(word)
        self._searches += 1
        wanted = b"\n" + word.encode("utf-8", "surrogatepass") + b"\t"
        found = self._data.find(wanted)
        while found >= 0:
            # a word that itself holds a tab begins like a line of a shorter word
            if self._data[found + len(wanted) : self._data.index(b"\n", found + 1)].isdigit():
                return int(np.searchsorted(self._starts, found + 1))
            found = self._data.find(wanted, found + 1)
        return None


Words = ListedWords | StoredWords


def close_spellings(word: str, words: Sequence[str], n: int = 3) -> list[str]:
    """Words one could have meant: other letter case first, then the fewest slips.

    >>> close_spellings("quene", ["the", "queen", "Queen", "green", "king"])
    ['queen', 'Queen']
    """
    most_slips = 1 + len(word) // 5
    candidates = [other for other in words if abs(len(other) - len(word)) <= most_slips]
    if not word or not candidates:
        return []
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract

    folded = [other.casefold() for other in candidates]
    # of equally many slips (letters that are lacking, too many, wrong or swapped), the more
    # frequent word comes first
    found = extract(word.casefold(), folded, scorer=OSA.distance, limit=n, score_cutoff=most_slips)
    return [candidates[index] for _, _, index in found]
