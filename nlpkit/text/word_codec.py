"""Words of running text as ids: a vocabulary by falling frequency, a mark for line ends, unknown.

Id 0 is the line end (``</s>`` of n-gram models), id 1 stands for every word that is not in the
vocabulary. The file ``words.txt`` of a model has one word per line, the first two lines being the
mark and ``<unk>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.text.codec import Codec
from nlpkit.text.tokenizers import get_tokenizer
from nlpkit.text.vocab import dump_words, parse_words

MARK, UNKNOWN = 0, 1
LINE_END, UNK = "\n", "<unk>"
FILE, KINDS = "words.txt", ("word", "whitespace")
_NO_SPACE_BEFORE = frozenset(
    [".", ",", ";", ":", "!", "?", ")", "]", "}", "%", "n't", "'s", "'re", "'ve", "'ll", "'d", "'m"]
) | {"…", "”", "’", "'S", "N'T"}
_NO_SPACE_BEHIND = frozenset(["(", "[", "{", "$", "£", "“", "‘", LINE_END])


class Words(Codec):
    """A vocabulary of words.

    >>> codec = Words(["\\n", "<unk>", "the", "cat", "."])
    >>> codec.encode("the dog .\\nthe cat")
    [2, 1, 4, 0, 2, 3]
    >>> codec.decode([2, 3, 4])
    'the cat.'
    """

    units, file, spaced = "words", FILE, True
    first_id = MARK

    def __init__(self, words: Sequence[str], kind: str = "word") -> None:
        self.words, self.kind = list(words), kind
        self.ids = {word: index for index, word in enumerate(self.words)}
        self._tokenizer = get_tokenizer(kind)
        self._table: Any = None

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> list[int]:
        """Ids of a text; between lines stands the mark."""
        found: list[int] = []
        lines = text.split("\n")
        for number, line in enumerate(lines):
            found += [self.ids.get(word, UNKNOWN) for word in self._tokenizer.tokens(line)]
            if number < len(lines) - 1:
                found.append(MARK)
        return found

    def encode_block(self, data: bytes) -> np.ndarray:
        """Ids of whole lines of UTF-8, each with its mark; compiled for white-space tokens."""
        if self.kind != "whitespace":
            return np.array(self.encode(data.decode("utf-8")), np.int32)
        from nlpkit.kernels.wordcount import LINE_END as NO_WORD
        from nlpkit.kernels.wordcount import WordTable

        if self._table is None:
            self._table = WordTable()
            self._table.add("\n".join(self.words[2:]).encode("utf-8", "surrogatepass"))
        ids = self._table.encode(data) + 2  # its ids are those of our words without the first two
        ids[ids == NO_WORD + 2] = MARK
        ids[ids >= len(self.words)] = UNKNOWN
        return ids if data.endswith(b"\n") else ids[:-1]

    def decode(self, ids: Iterable[int]) -> str:
        """Readable text: spaces where English has them."""
        text, last = "", LINE_END
        for index in ids:
            word = self.words[index]
            close = word == LINE_END or last in _NO_SPACE_BEHIND
            if self.kind == "word":
                close = close or word in _NO_SPACE_BEFORE
            elif last != LINE_END and word != LINE_END:
                close = False
            text += word if close or not text else " " + word
            last = word
        return text

    def write(self, file: Path) -> None:
        modeldir.write_text(file, dump_words(self.words))

    @classmethod
    def read(cls, file: Path, tokenizer: str = "word") -> Words:
        words = parse_words(modeldir.read_text(file).split("\n")[:-1])
        if len(words) < 2 or words[:2] != [LINE_END, UNK] or len(set(words)) < len(words):
            raise NlpkitError(f"{file} is no list of different words", hint=schema.AGAIN)
        return cls(words, tokenizer)


def choose_words(
    words: Sequence[str], counts: np.ndarray, most: int | None = None, least: int = 1
) -> tuple[list[str], np.ndarray]:
    """The vocabulary of a text, and the id in it of each of ``words``.

    >>> choose_words(["a", "b", "c"], np.array([1, 5, 2]), most=4)
    (['\\n', '<unk>', 'b', 'c'], array([1, 2, 3], dtype=int32))
    """
    # words that are spelled as the mark or as unknown are what they say
    usable = [place for place, word in enumerate(words) if word not in (LINE_END, UNK)]
    ranked = sorted(usable, key=lambda place: (-int(counts[place]), words[place]))
    ranked = [place for place in ranked if counts[place] >= least]
    ranked = ranked[: None if most is None else max(0, most - 2)]
    ids = np.full(len(words), UNKNOWN, np.int32)
    ids[ranked] = np.arange(2, len(ranked) + 2, dtype=np.int32)
    return [LINE_END, UNK, *(words[place] for place in ranked)], ids
