"""Running text as ids of words: read once, numbered as they come, then by frequency, in place.

Also what the units of text are: one stream, a text on each line, or documents between blank lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from nlpkit.kernels.wordcount import LINE_END, WordTable
from nlpkit.text.tokenizers import get_tokenizer
from nlpkit.text.word_codec import MARK, Words, choose_words
from nlpkit.textio import TextBlock

_CHUNK = 1 << 22  # ids worked on at a time


class WordCounter:
    """Numbers words in the order in which they are first seen."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._table = WordTable()
        self._tokenizer = get_tokenizer(kind)
        self._ids: dict[str, int] = {}
        self._counts: list[int] = []

    def encode(self, block: TextBlock, errors: str) -> np.ndarray:
        """The numbers of the words of whole lines, ``LINE_END`` behind each line."""
        if self.kind == "whitespace":
            block.text(errors)  # bytes that are not UTF-8 are refused here, with their line
            return self._table.encode(block.data)
        found: list[int] = []
        ids, counts = self._ids, self._counts
        for line in block.lines(errors):
            for word in self._tokenizer.tokens(line):
                index = ids.setdefault(word, len(ids))
                if index == len(counts):
                    counts.append(0)
                counts[index] += 1
                found.append(index)
            found.append(LINE_END)
        return np.array(found, np.int32)

    def finish(
        self, ids: np.ndarray, most: int | None, least: int, codec: Words | None = None
    ) -> Words:
        """Give the words their ids by frequency (or those of a codec), in place."""
        if self.kind == "whitespace":
            words, counts = self._table.words(), np.asarray(self._table.counts)
        else:
            words, counts = list(self._ids), np.array(self._counts, np.int64)
        if codec is None:
            listed, numbers = choose_words(words, counts, most, least)
            codec = Words(listed, self.kind)
        else:
            known = codec.ids
            numbers = np.array([known.get(word, 1) for word in words], np.int32)
        table = np.append(numbers, np.int32(MARK))  # LINE_END is -1: the last
        for start in range(0, len(ids), _CHUNK):
            ids[start : start + _CHUNK] = table[ids[start : start + _CHUNK]]
        return codec


def join_documents(blocks: Iterable[TextBlock]) -> Iterator[TextBlock]:
    """Each document as one line: line ends inside it become spaces, blank lines end it.

    >>> [block.data for block in join_documents([TextBlock(b"a\\nb\\n\\n\\nc\\n", "-", 1)])]
    [b'a b\\nc', b'\\n']
    """
    inside = False
    source = ""
    for block in blocks:
        parts = []
        if source not in ("", block.source) and inside:
            parts.append(b"\n")
            inside = False
        source = block.source
        for line in block.data.split(b"\n")[: None if not block.data.endswith(b"\n") else -1]:
            text = line.rstrip(b"\r")
            if text.strip():
                parts.append((b" " if inside else b"") + text)
                inside = True
            elif inside:
                parts.append(b"\n")
                inside = False
        if parts:
            yield TextBlock(b"".join(parts), block.source, block.first_line)
    if inside:
        yield TextBlock(b"\n", source, 1)
