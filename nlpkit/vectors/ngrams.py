"""Character n-grams, and the vectors that words get from them: fastText's model of a word.

A word vector is the mean of the word's own row and the rows of its character n-grams. N-grams are
not kept as text: a hash puts each into one of a fixed number of buckets, and a bucket has a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

END_OF_SENTENCE = "</s>"
_FNV_START = 2166136261
_FNV_PRIME = 16777619
_WORDS_AT_ONCE = 1 << 14


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
class TrainedRows:
    """What a model has besides its word vectors, and needs to be trained further."""

    own: Floats  # (V, D) each word's own row, without its n-grams
    context: Floats | None  # (V, D) the words as predictions
    cbow: bool = False


@dataclass(frozen=True)
class NgramVectors:
    """The rows of the n-gram buckets: what gives an unknown word its vector.

    ``kept`` has the numbers of the buckets that have a row, rising; without it all have one. An
    n-gram without a row counts as zeros, or, in a model that was pruned, does not count.

    >>> rows = np.array([[2.0], [4.0]], np.float32)
    >>> pair = NgramVectors(rows, 100, 2, 2, kept=np.array([50, 69]))
    >>> pair.rows("as"), pair.vector("as")
    ([50, 69, 20], array([2.], dtype=float32))
    """

    table: Floats  # (K, D)
    buckets: int
    shortest: int
    longest: int
    kept: NDArray[np.integer] | None = None  # (K,)
    pruned: bool = False
    trained: TrainedRows | None = None

    def rows(self, word: str) -> list[int]:
        """The bucket of each n-gram of a word."""
        found = ngrams(word, self.shortest, self.longest)
        return [
            hash_ngram(ngram.encode("utf-8", "surrogateescape")) % self.buckets for ngram in found
        ]

    def vector(self, word: str) -> Floats | None:
        """The mean of the word's n-gram vectors; nothing when it has no n-gram."""
        places, there = self.places(np.array(self.rows(word), np.int64))
        count = int(there.sum()) if self.pruned else len(there)
        if not count:
            return None
        return self.table[places[there]].sum(axis=0) / np.float32(count)

    def places(self, buckets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Rows of ``table`` for buckets, and which of them have one."""
        if self.kept is None:
            return buckets, np.ones(len(buckets), bool)
        if not len(self.kept):
            return np.zeros_like(buckets), np.zeros(len(buckets), bool)
        places = np.minimum(np.searchsorted(self.kept, buckets), len(self.kept) - 1)
        return places, np.asarray(self.kept[places] == buckets)


def word_vectors(words: Sequence[str], own: Floats, subwords: NgramVectors) -> Floats:
    """The vector of each known word (V, D): the mean of its own row and its n-grams' rows."""
    from scipy.sparse import csr_matrix

    matrix = np.empty(own.shape, np.float32)
    for start in range(0, len(words), _WORDS_AT_ONCE):
        block = words[start : start + _WORDS_AT_ONCE]
        buckets, edges = bucket_rows(block, subwords.buckets, subwords.shortest, subwords.longest)
        places, there = subwords.places(buckets)
        weights = there.astype(np.float32)
        shape = (len(block), len(subwords.table))
        sums = csr_matrix((weights, places, edges), shape) @ subwords.table
        counts = np.diff(edges)
        if subwords.pruned:
            counts = np.diff(np.concatenate([[0], np.cumsum(there)])[edges])
        sums += own[start : start + len(block)]
        matrix[start : start + len(block)] = sums / (counts[:, None] + np.float32(1))
    return matrix


def bucket_rows(
    words: Sequence[str], buckets: int, shortest: int, longest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``NgramVectors.rows`` for many words at once: all buckets, and the edges between words.

    The hashes of all n-grams of one length advance together, a byte at a time.
    """
    # the end of a sentence has no n-grams: it is not a word
    marked = [
        b"" if word == END_OF_SENTENCE else f"<{word}>".encode("utf-8", "surrogateescape")
        for word in words
    ]
    text = np.frombuffer(b"".join(marked), np.uint8)
    starts = np.flatnonzero((text & 0xC0) != 0x80)  # of each character
    word_of = np.repeat(np.arange(len(words)), [len(each) for each in marked])[starts]
    starts = np.append(starts, len(text))
    signed = text.view(np.int8).astype(np.int32).view(np.uint32)
    most = int(np.bincount(word_of).max(initial=0))  # characters of a word
    all_rows = [np.empty(0, np.uint32)]
    all_words = [np.empty(0, np.int64)]
    for length in range(shortest, min(longest, most) + 1):
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
        all_rows.append(hashes % np.uint32(buckets))
        all_words.append(word_of[first])
    owners = np.concatenate(all_words)
    rows = np.concatenate(all_rows)[np.argsort(owners, kind="stable")].astype(np.int64)
    edges = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(words)))])
    return rows, edges
