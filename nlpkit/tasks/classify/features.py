"""Words and word n-grams as numbers: a stable hash of each, worked out for many texts at once.

What stands between spaces is cut into words and hashed once, and remembered; n-grams are made from
the hashes of their words by arithmetic over whole arrays, so that a text costs little more than
splitting it.
"""

from __future__ import annotations

import itertools
import zlib
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit.text.patterns import PieceTokenizer, Span
from nlpkit.text.pipeline import Tokens, TokenSettings

Ids = NDArray[np.int64]
EDGE = "\x02"  # stands before the first word and behind the last: "^ not" is a bigram too
REMEMBERED = 200_000  # words before the table is emptied: memory stays bounded
LAST = "\n"  # behind the last piece of a text: no piece has it
HASH_BITS = 48  # of a feature; the 16 above hold the number of the text while sorting
TEXTS_AT_ONCE = 4096
_SPARE_BITS = np.uint64(64 - HASH_BITS)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Bags(NamedTuple):
    """Features of texts one after the other; text i has those from ``starts[i]`` on."""

    features: NDArray[np.uint64]  # (N,)
    starts: Ids  # (B + 1,)
    counts: Ids | None = None  # (N,) how often each is in its text; None is once


def word_hash(word: str) -> int:
    """32 bits that are the same on every machine."""
    return zlib.crc32(word.encode("utf-8", "replace"))


class Pieces(dict[str, int]):
    """Numbers pieces of text when first met, and remembers the hashes of the words of each."""

    def __init__(self, words: Callable[[str], Sequence[str]]) -> None:
        super().__init__()
        self._words = words
        self._forget()

    def _forget(self) -> None:
        self.clear()
        self._hashes = array("Q")
        self._ends = array("q", [0])  # of the hashes of each piece

    def __missing__(self, piece: str) -> int:
        number = self[piece] = len(self)
        self._hashes.extend(map(word_hash, self._words(piece)))
        self._ends.append(len(self._hashes))
        return number

    def hashes(self, rows: Sequence[Sequence[str]]) -> tuple[NDArray[np.uint64], Ids]:
        """The hashes of all words of rows of pieces, and how many words each row has.

        >>> numbers, lengths = Pieces(str.split).hashes([["a b", "c"], [], ["c"]])
        >>> lengths.tolist(), bool(numbers[2] == numbers[3])
        ([3, 0, 1], True)
        """
        if len(self) >= REMEMBERED:
            self._forget()
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        look_up = map(self.__getitem__, itertools.chain.from_iterable(rows))
        numbers = np.fromiter(look_up, np.int64, sizes.sum())
        ends = np.array(self._ends, np.int64)
        firsts, counts = ends[numbers], ends[numbers + 1] - ends[numbers]
        totals = np.append(0, np.cumsum(counts))
        # the words of a piece follow each other: how far each is from the first of its piece
        places = np.arange(totals[-1]) - np.repeat(totals[:-1], counts)
        found = np.array(self._hashes, np.uint64)[np.repeat(firsts, counts) + places]
        return found, np.diff(totals[np.append(0, np.cumsum(sizes))])


class BagMaker:
    """Texts -> tokens -> hashed n-grams, each once in its text.

    >>> bags = BagMaker("whitespace", lower=True, ngrams=2).bags(["Not bad", ""])
    >>> bags.starts.tolist()
    [0, 6, 8]
    """

    def __init__(
        self,
        tokenizer: str,
        *,
        lower: bool,
        ngrams: int,
        pattern: str | None = None,
        lower_first: bool = False,
    ) -> None:
        """``lower_first``: lower-case the text and not its tokens, as models of 0.1.0 want it."""
        self.lower_first = lower and lower_first
        lower_tokens = lower and not lower_first
        settings = TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower_tokens)
        self._tokens = Tokens(settings)
        self.tokenizer = self._tokens.tokenizer
        self.ngrams = ngrams
        self._words = Pieces(lambda word: (word,))
        if isinstance(self.tokenizer, PieceTokenizer):
            self._pieces = Pieces(self._cut)

    def tokens(self, text: str) -> list[str]:
        """The words of a text."""
        return self._tokens.tokens(text.lower() if self.lower_first else text)

    def spans(self, text: str) -> list[Span]:
        """Where each of the words stands in the text."""
        return self.tokenizer.spans(text.lower() if self.lower_first else text)

    def bags(self, texts: Sequence[str]) -> Bags:
        """The features of each text."""
        if not isinstance(self.tokenizer, PieceTokenizer):
            return self.bags_of([self.tokens(text) for text in texts])
        rows = [text.lower().split() if self.lower_first else text.split() for text in texts]
        for row in rows:
            if row:
                row[-1] += LAST
        return self._all_bags(rows, self._pieces)

    def bags_of(self, rows: Sequence[Sequence[str]]) -> Bags:
        """The features of tokenised texts."""
        return self._all_bags(rows, self._words)

    def _cut(self, piece: str) -> Sequence[str]:
        # the last piece of a text may be cut in another way: a full stop ends a sentence there
        assert isinstance(self.tokenizer, PieceTokenizer)
        if piece.endswith(LAST):
            return self._tokens.finish(self.tokenizer.tokens(piece.removesuffix(LAST)))
        return self._tokens.finish(list(self.tokenizer.split_piece(piece)))

    def _all_bags(self, rows: Sequence[Sequence[str]], pieces: Pieces) -> Bags:
        starts = range(0, max(1, len(rows)), TEXTS_AT_ONCE)
        return join_bags([self._some_bags(rows[at : at + TEXTS_AT_ONCE], pieces) for at in starts])

    def _some_bags(self, rows: Sequence[Sequence[str]], pieces: Pieces) -> Bags:
        inner, sizes = pieces.hashes(rows)
        ends = np.cumsum(sizes + 2)
        words = np.full(ends[-1] if len(rows) else 0, word_hash(EDGE), np.uint64)
        inside = np.ones(len(words), bool)
        inside[ends - 1] = inside[ends - sizes - 2] = False
        words[inside] = inner
        lengths = sizes + 2
        texts = np.repeat(np.arange(len(rows), dtype=np.uint64), lengths)
        keys = []
        current = words
        for size in range(1, self.ngrams + 1):
            if size > 1:
                current = current[:-1] * _MULTIPLIER + words[size - 1 :]
            owners = texts[: len(current)]
            # the high bits of the product are the well-mixed ones
            key = (owners << np.uint64(HASH_BITS)) | (current * _MULTIPLIER >> _SPARE_BITS)
            inside = owners == texts[size - 1 :]  # or the n-gram would run into the next text
            keys.append(key[inside])
        return _each_once(np.concatenate(keys), len(rows))


def _each_once(keys: NDArray[np.uint64], count: int) -> Bags:
    """Sort by text and feature together and count repeats."""
    keys = np.sort(keys)
    new = np.ones(len(keys), bool)
    new[1:] = keys[1:] != keys[:-1]
    counts = np.diff(np.append(np.flatnonzero(new), len(keys)))
    keys = keys[new]
    edges = np.arange(count + 1, dtype=np.uint64) << np.uint64(HASH_BITS)
    return Bags(keys & np.uint64((1 << HASH_BITS) - 1), np.searchsorted(keys, edges), counts)


def join_bags(parts: Sequence[Bags]) -> Bags:
    """Bags of texts that follow each other as one."""
    starts = [np.zeros(1, np.int64)]
    for part in parts:
        starts.append(part.starts[1:] + starts[-1][-1])
    counts = [np.ones(0, np.int64) if part.counts is None else part.counts for part in parts]
    features = np.concatenate([part.features for part in parts])
    return Bags(features, np.concatenate(starts), np.concatenate(counts))


class FeatureIndex:
    """Finds the row of a feature among the known ones, for many at once.

    Hashes are spread evenly, so their highest bits say nearly where one stands in the sorted list.

    >>> index = FeatureIndex(np.array([3, 9], np.uint64))
    >>> bags = Bags(np.array([5, 9], np.uint64), np.array([0, 2]))
    >>> [part.tolist() for part in index.rows(bags)]
    [[1], [0, 1]]
    """

    def __init__(self, known: NDArray[np.uint64]) -> None:
        self.known = known  # sorted
        bits = min(HASH_BITS, max(1, len(known)).bit_length() + 1)
        self._shift = np.uint64(HASH_BITS - bits)
        edges = np.arange((1 << bits) + 1, dtype=np.uint64) << self._shift
        self._first = np.searchsorted(known, edges)

    def rows(self, bags: Bags) -> tuple[Ids, Ids]:
        """Rows of the known features and where each text's begin; unknown ones are dropped."""
        rows, starts, _ = self.counted(bags)
        return rows, starts

    def counted(self, bags: Bags) -> tuple[Ids, Ids, Ids | None]:
        """The same, with how often each is in its text."""
        slots = (bags.features >> self._shift).astype(np.int64)
        rows, ends = self._first[slots], self._first[slots + 1]
        found = np.zeros(len(rows), bool)
        active = np.flatnonzero(rows < ends)
        while len(active):
            hit = self.known[rows[active]] == bags.features[active]
            found[active[hit]] = True
            active = active[~hit]
            rows[active] += 1
            active = active[rows[active] < ends[active]]
        kept = np.concatenate([[0], np.cumsum(found)])
        counts = None if bags.counts is None else bags.counts[found]
        return rows[found], kept[bags.starts], counts


def text_weights(starts: Ids, counts: Ids | None, *, sublinear: bool) -> NDArray[np.float32]:
    """What each feature counts in its text: 1 + ln count, or 1, over the length of the text's row.

    The squares of a text's weights add up to 1, so that a long text is no surer than a short one.

    >>> text_weights(np.array([0, 2, 3]), np.array([1, 1, 9]), sublinear=True).tolist()
    [0.7071067690849304, 0.7071067690849304, 1.0]
    """
    sizes = np.diff(starts)
    if counts is None or not sublinear:
        return np.repeat(1 / np.sqrt(np.maximum(sizes, 1)), sizes).astype(np.float32)
    weights = 1 + np.log(counts)
    squares = np.append(0.0, np.cumsum(weights**2))[starts]
    lengths = np.sqrt(np.maximum(np.diff(squares), 1e-12))
    return (weights / np.repeat(lengths, sizes)).astype(np.float32)
