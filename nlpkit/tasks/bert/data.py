"""Text for a BERT: lines as ids, and the sequences that are made of them.

For the masked language model alone, lines stand one after the other with [SEP] behind each, and a
sequence is [CLS] and a stretch of them. With next sentences a sequence is [CLS] A [SEP] B [SEP],
where in half of the cases B is what follows A in its document, else it is from another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.tasks.bert.settings import ResolvedBert
from nlpkit.text.wordpiece import WordPiece

Ids = NDArray[np.int64]
_FEWEST_PAIRS = 128  # to measure by: the same text makes many
_AT_ONCE = 4096  # lines that are tokenised together


class Sequences(NamedTuple):
    """A batch before anything is masked."""

    idx: Ids  # (B, T)
    segments: Ids | None  # (B, T)
    follows: Ids | None  # (B,): 0 if the second text follows the first, 1 if not
    inside: NDArray[np.bool_] | None  # (B, T): no padding; None if there is none


@dataclass(frozen=True)
class Lines:
    """The ids of lines, one after the other, and where lines and documents begin."""

    ids: NDArray[np.int32]
    starts: Ids  # of each line, and the end of the last (N + 1,)
    documents: Ids  # the first line of each document, and the number of lines (D + 1,)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def line(self, number: int) -> NDArray[np.int32]:
        """The ids of a line."""
        return self.ids[self.starts[number] : self.starts[number + 1]]

    def choose(self, chosen: NDArray[np.bool_]) -> Lines:
        """Some of the lines."""
        lengths = np.diff(self.starts)
        document = np.repeat(np.arange(len(self.documents) - 1), np.diff(self.documents))[chosen]
        firsts = np.flatnonzero(np.diff(document, prepend=-1))
        return Lines(
            self.ids[np.repeat(chosen, lengths)],
            np.concatenate([[0], np.cumsum(lengths[chosen])]),
            np.append(firsts, int(chosen.sum())),
        )


def tokenize_lines(
    lines: Sequence[str], tokenizer: str | WordPiece | None, settings: ResolvedBert
) -> tuple[Lines, WordPiece]:
    """The lines as ids, and the tokenizer: learned from them unless there is one, or its path."""
    if tokenizer is None:
        if not any(line.strip() for line in lines):
            raise NlpkitError("no text to train on", hint="a file that is not empty")
        size, lower = settings.vocab_size, not settings.cased
        tokenizer = WordPiece.train(lines, vocab_size=size, lower=lower)
    elif isinstance(tokenizer, str):
        tokenizer = WordPiece.load(tokenizer)
    _ = tokenizer.mask_id  # a vocabulary without [MASK] is refused here
    return encode_lines(lines, tokenizer), tokenizer


def encode_lines(lines: Iterable[str], codec: WordPiece) -> Lines:
    """Tokenise lines; an empty one separates documents."""
    parts: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    documents: list[int] = []
    waiting: list[str] = []
    begins = True

    def encode() -> None:
        rows = codec.encode_many(waiting)
        lengths.extend(map(len, rows))
        parts.append(np.array([index for row in rows for index in row], np.int32))
        waiting.clear()

    for line in lines:
        if not line.strip():
            begins = True
            continue
        if begins:
            documents.append(len(lengths) + len(waiting))
            begins = False
        waiting.append(line)
        if len(waiting) == _AT_ONCE:
            encode()
    encode()
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = np.concatenate(parts)
    if not len(ids):
        raise NlpkitError("no text to train on", hint="a file that is not empty")
    return Lines(ids, starts, np.array([*documents, len(lengths)], np.int64))


def split_lines(lines: Lines, fraction: float, whole_documents: bool) -> tuple[Lines, Lines]:
    """Lines to train on and every n-th line (or document) to validate."""
    every = max(2, round(1 / fraction))
    count = len(lines.documents) - 1 if whole_documents else len(lines)
    fewest = 2 if whole_documents else 1  # in each part: half of all pairs are of two documents
    if count < 2 * fewest:
        if whole_documents:
            here = "is 1" if count == 1 else f"are {count}"
            raise NlpkitError(
                f"`next_sentence` needs four documents, here {here}",
                hint="blank lines between documents, in more text",
            )
        raise NlpkitError("the text is a single line", hint="two or more, one to hold out")
    every = min(every, count // fewest)
    held = np.arange(1, count + 1) % every == 0
    if whole_documents:
        held = np.repeat(held, np.diff(lines.documents))
    return lines.choose(~held), lines.choose(held)


def stream(lines: Lines, sep_id: int) -> NDArray[np.int32]:
    """All lines, with [SEP] behind each.

    >>> lines = Lines(np.array([7, 8, 9], np.int32), np.array([0, 2, 3]), np.array([0, 2]))
    >>> stream(lines, 3).tolist()
    [7, 8, 3, 9, 3]
    """
    return np.insert(lines.ids, lines.starts[1:], sep_id).astype(np.int32)


class StreamSequences:
    """Sequences by number: [CLS] and a stretch of the stream.

    Each epoch cuts the whole stream into stretches, from another place on and in another order.
    """

    def __init__(self, lines: Lines, codec: WordPiece, length: int, rows: int, seed: int) -> None:
        self.ids = stream(lines, codec.sep_id)
        self._cls, self._length, self._rows, self._seed = codec.cls_id, length, rows, seed
        self._epoch, self._places = -1, np.empty(0, np.int64)
        if len(self.ids) < length - 1:
            raise NlpkitError(
                f"{len(self.ids):,} tokens are too few for sequences of {length}",
                hint="more text or a smaller `length`",
            )

    def __getitem__(self, number: int) -> Sequences:
        count = max(1, len(self.ids) // (self._length - 1))  # sequences of an epoch
        rows = number * self._rows + np.arange(self._rows)
        return self.at(np.array([self._order(row // count)[row % count] for row in rows.tolist()]))

    def _order(self, epoch: int) -> Ids:
        """Where the sequences of an epoch begin."""
        if epoch != self._epoch:
            random = np.random.default_rng([self._seed, epoch, 1])
            stretch, size = self._length - 1, len(self.ids)
            starts = random.permutation(max(1, size // stretch)) * stretch + random.integers(size)
            self._epoch, self._places = epoch, starts % (size - stretch + 1)
        return self._places

    def at(self, places: Ids) -> Sequences:
        """The sequences that begin at these places."""
        windows = self.ids[places[:, None] + np.arange(self._length - 1)]
        return Sequences(
            np.insert(windows.astype(np.int64), 0, self._cls, axis=1), None, None, None
        )

    def all(self, most: int) -> Sequences:
        """Sequences that do not overlap, ``most`` of them; the first few are of all the stream."""
        places = np.arange(0, len(self.ids) - self._length + 2, self._length - 1)
        return self.at(np.random.default_rng(self._seed).permutation(places)[:most])


class SentencePairs:
    """Sequences by number: pairs of texts, half of which follow each other."""

    def __init__(self, lines: Lines, codec: WordPiece, length: int, rows: int, seed: int) -> None:
        self._lines, self._codec = lines, codec
        self._length, self._rows, self._seed = length, rows, seed
        sizes = np.diff(lines.documents)
        self._usable = np.flatnonzero(sizes > 1)  # documents with a line that follows another
        if len(sizes) < 2 or not len(self._usable):
            raise NlpkitError(
                "`next_sentence` needs documents of two or more lines, and two documents at least",
                hint="nlpkit sentences first: a sentence a line, blank lines between documents",
            )

    def __getitem__(self, number: int) -> Sequences:
        random = np.random.default_rng([self._seed, number, 1])
        return self._make(random, self._rows)

    def all(self, most: int) -> Sequences:
        """Pairs to measure by, always the same."""
        tokens = len(self._lines.ids)
        rows = min(most, max(_FEWEST_PAIRS, tokens // self._length))
        return self._make(np.random.default_rng(self._seed), rows)

    def _make(self, random: np.random.Generator, rows: int) -> Sequences:
        shape = (rows, self._length)
        idx = np.full(shape, self._codec.pad_id, np.int64)
        segments, follows = np.zeros(shape, np.int64), np.zeros(rows, np.int64)
        inside = np.zeros(shape, bool)
        for row in range(rows):
            first, second, follows[row] = self._pair(random)
            ids = self._codec.wrap(first.tolist(), second.tolist())
            idx[row, : len(ids)] = ids
            segments[row, len(first) + 2 : len(ids)] = 1
            inside[row, : len(ids)] = True
        return Sequences(idx, segments, follows, inside)

    def _pair(
        self, random: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
        lines, room = self._lines, self._length - 3
        document = int(random.choice(self._usable))
        start, end = lines.documents[document : document + 2].tolist()
        line = int(random.integers(start, end - 1))
        first, after = self._read(line, end - 1, room // 2)
        other = int(random.integers(2))
        if other:
            elsewhere = int(random.integers(len(lines.documents) - 2))
            elsewhere += elsewhere >= document
            low, end = lines.documents[elsewhere : elsewhere + 2].tolist()
            after = int(random.integers(low, end))
        second, _ = self._read(after, end, room - len(first))
        return first, second, other

    def _read(self, line: int, end: int, room: int) -> tuple[NDArray[np.int32], int]:
        """Whole lines from one on, as many as fit, the first cut if it must; and the next line."""
        start = self._lines.starts[line]
        last = line + 1
        while last < end and self._lines.starts[last + 1] - start <= room:
            last += 1
        return self._lines.ids[start : min(self._lines.starts[last], start + room)], last
