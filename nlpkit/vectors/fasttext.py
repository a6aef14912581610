"""fastText's ``.bin`` models: the vectors of their words, and of any other word from its n-grams.

A fastText word vector is the mean of the word's own row and the rows of its character n-grams,
which are hashed into a fixed number of buckets. Read here: the dictionary and the input matrix.
Left out: the output matrix, labels, and quantised models.

    int32 magic, version; 12 x int32 arguments, float64 t
    int32 entries, words, labels; int64 tokens, pruned
    entries x (bytes, NUL, int64 count, int8 kind); pruned x (int32, int32)
    bool quantised; int64 rows, columns; rows x columns x float32
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nlpkit.errors import NlpkitError
from nlpkit.vectors.source import Source
from nlpkit.vectors.store import Vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = struct.pack("<i", 793712314)
_VERSIONS = (11, 12)
_SUPERVISED = 3
_WORD_KIND = 0
_WORDS_AT_ONCE = 1 << 14
_LONGEST_WORD = 1 << 16  # bytes; without an end within this the file is something else
END_OF_SENTENCE = "</s>"
_FNV_START = 2166136261
_FNV_PRIME = 16777619


def hash_ngram(ngram: bytes) -> int:
    """FNV-1a over the bytes taken as *signed*, as fastText's C++ does.

    >>> hash_ngram(b"<a"), hash_ngram("é".encode())
    (1761008750, 1023043777)
    """
    value = _FNV_START
    for byte in ngram:
        signed = byte if byte < 128 else byte - 256
        value = ((value ^ (signed & 0xFFFFFFFF)) * _FNV_PRIME) & 0xFFFFFFFF
    return value


def ngrams(word: str, shortest: int, longest: int) -> list[str]:
    """The character n-grams of ``<word>``, without a lone ``<`` or ``>``.

    >>> ngrams("as", 1, 3)
    ['<a', '<as', 'a', 'as', 'as>', 's', 's>']
    """
    marked = f"<{word}>"
    found = []
    for start in range(len(marked)):
        for length in range(shortest, min(longest, len(marked) - start) + 1):
            at_border = start == 0 or start + length == len(marked)
            if not (length == 1 and at_border):
                found.append(marked[start : start + length])
    return found


@dataclass(frozen=True)
class NgramVectors:
    """The rows of the n-gram buckets: what gives an unknown word its vector."""

    buckets: NDArray[np.float32]  # (buckets, D)
    shortest: int
    longest: int

    def rows(self, word: str) -> list[int]:
        """The bucket of each n-gram of a word."""
        found = ngrams(word, self.shortest, self.longest)
        return [hash_ngram(ngram.encode()) % len(self.buckets) for ngram in found]

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """The mean of the word's n-gram vectors; nothing when it has no n-gram."""
        rows = self.rows(word)
        return self.buckets[rows].mean(axis=0) if rows else None


def read_fasttext(source: Source) -> Vectors:
    """Read a ``.bin`` model; its ``subwords`` answer for words outside the dictionary."""
    reader = _Reader(source)
    _, version = reader.numbers("<ii")
    if version not in _VERSIONS:
        raise NlpkitError(f"{source.name}: fastText format version {version} is not known here")
    arguments = reader.numbers("<12id")
    dim, model, n_buckets, shortest, longest = (arguments[i] for i in (0, 7, 8, 9, 10))
    shortest = max(1, shortest)
    if version == 11 and model == _SUPERVISED:
        longest = 0  # older classifiers have no n-grams, whatever their arguments say
    words, counts = _read_dictionary(source, reader)
    (quantised,) = reader.numbers("<?")
    if quantised:
        raise NlpkitError(
            f"{source.name} is quantised, and cannot be read", hint="the model's .bin or .vec file"
        )
    rows, columns = reader.numbers("<qq")
    if dim <= 0 or columns != dim or n_buckets < 0 or rows != len(words) + n_buckets:
        raise _contradiction(source)
    inputs = reader.floats(rows * columns).reshape(rows, columns)
    own = inputs[: len(words)]
    if longest < shortest or n_buckets == 0:
        return Vectors.from_rows(words, own.copy(), counts=counts, name=source.name)
    subwords = NgramVectors(inputs[len(words) :], shortest, longest)
    matrix = _average(words, own, subwords)
    return Vectors.from_rows(words, matrix, counts=counts, subwords=subwords, name=source.name)


def _contradiction(source: Source) -> NlpkitError:
    return NlpkitError(
        f"{source.name}: the sizes in the file contradict each other", hint="fetch the file again"
    )


class _Reader:
    """Takes values off the front of the file; running out of bytes is a user's error."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.position = 0

    def _advance(self, size: int) -> int:
        start = self.position
        if size < 0 or start + size > len(self.source.data):
            raise NlpkitError(f"{self.source.name} is cut short", hint="fetch the file again")
        self.position += size
        return start

    def numbers(self, layout: str) -> tuple[int, ...]:
        start = self._advance(struct.calcsize(layout))
        return struct.unpack_from(layout, self.source.data, start)

    def floats(self, count: int) -> NDArray[np.float32]:
        start = self._advance(4 * count)
        # a copy, because a view would not be aligned and would outlive the mapping
        return np.frombuffer(self.source.data, "<f4", count, start).astype(np.float32)

    def text(self) -> bytes:
        end = self.source.data.find(b"\0", self.position, self.position + _LONGEST_WORD)
        if end < 0:
            raise NlpkitError(f"{self.source.name} is cut short", hint="fetch the file again")
        start, self.position = self.position, end + 1
        return self.source.data[start:end]


def _read_dictionary(source: Source, reader: _Reader) -> tuple[list[str], NDArray[np.int64]]:
    size, n_words, _labels, _tokens, pruned = reader.numbers("<iiiqq")
    if not 0 <= n_words <= size or 10 * size > len(source.data):
        raise _contradiction(source)
    words: list[str] = []
    counts: list[int] = []
    for entry in range(size):
        word = reader.text()
        count, kind = reader.numbers("<qb")
        if kind == _WORD_KIND:
            words.append(source.decode(word, f"entry {entry + 1:,}"))
            counts.append(count)
    if len(words) != n_words or not words:
        raise _contradiction(source)
    if pruned > 0:
        reader.numbers(f"<{2 * min(pruned, len(source.data))}i")
    return words, np.array(counts, np.int64)


def _average(
    words: Sequence[str], own: NDArray[np.float32], subwords: NgramVectors
) -> NDArray[np.float32]:
    """The vector of each known word: the mean of its own row and its n-grams' rows."""
    from scipy.sparse import csr_matrix

    matrix = np.empty_like(own)
    for start in range(0, len(words), _WORDS_AT_ONCE):
        block = words[start : start + _WORDS_AT_ONCE]
        rows, edges = bucket_rows(block, subwords)
        shape = (len(block), len(subwords.buckets))
        sums = csr_matrix((np.ones(len(rows), np.float32), rows, edges), shape) @ subwords.buckets
        sums += own[start : start + len(block)]
        matrix[start : start + len(block)] = sums / (np.diff(edges)[:, None] + np.float32(1))
    return matrix


def bucket_rows(
    words: Sequence[str], subwords: NgramVectors
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``NgramVectors.rows`` for many words at once: all rows, and the edges between words.

    The hashes of all n-grams of one length advance together, a byte at a time.
    """
    # the end of a sentence has no n-grams: it is not a word
    marked = [b"" if word == END_OF_SENTENCE else f"<{word}>".encode() for word in words]
    text = np.frombuffer(b"".join(marked), np.uint8)
    starts = np.flatnonzero((text & 0xC0) != 0x80)  # of each character
    word_of = np.repeat(np.arange(len(words)), [len(each) for each in marked])[starts]
    starts = np.append(starts, len(text))
    signed = text.view(np.int8).astype(np.int32).view(np.uint32)
    most = int(np.bincount(word_of).max(initial=0))  # characters of a word
    all_rows = [np.empty(0, np.uint32)]
    all_words = [np.empty(0, np.int64)]
    for length in range(subwords.shortest, min(subwords.longest, most) + 1):
        first = np.arange(len(word_of) - length + 1)
        first = first[word_of[first] == word_of[first + length - 1]]
        if length == 1:  # neither the first nor the last character of a word
            inside = np.diff(word_of, prepend=-1)[first] == 0
            inside &= np.diff(word_of, append=-1)[first] == 0
            first = first[inside]
        begin, end = starts[first], starts[first + length]
        hashes = np.full(len(first), _FNV_START, np.uint32)
        for step in range(int((end - begin).max(initial=0))):
            going = np.flatnonzero(begin + step < end)
            mixed = hashes[going] ^ signed[begin[going] + step]
            hashes[going] = mixed * np.uint32(_FNV_PRIME)
        all_rows.append(hashes % np.uint32(len(subwords.buckets)))
        all_words.append(word_of[first])
    owners = np.concatenate(all_words)
    rows = np.concatenate(all_rows)[np.argsort(owners, kind="stable")].astype(np.int64)
    edges = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(words)))])
    return rows, edges
