"""Count and number the words of white-space separated text, from bytes, without a Python loop.

A numba kernel walks over blocks of UTF-8 and looks each word up in an open-addressing hash
table that lives in numpy arrays. ``vocab build`` uses the counts; word2vec also keeps the ids.

White space is exactly what ``str.split()`` splits on. Left out: other tokenisers (they give
lists of strings, see ``word2vec.store``) and any decision about which words to keep.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.kernels.compiling import kernel

LINE_END = -1  # stands between the ids of two lines

# What a byte may be: part of a word, a one-byte space, the line end, or the first byte of a
# character that could be one of the wider spaces.
_WORD, _SPACE, _NEWLINE, _MAYBE_WIDE_SPACE = 0, 1, 2, 3

_CLASS_OF_BYTE = np.zeros(256, dtype=np.uint8)
_CLASS_OF_BYTE[[0x09, 0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x1F, 0x20]] = _SPACE
_CLASS_OF_BYTE[0x0A] = _NEWLINE
_CLASS_OF_BYTE[[0xC2, 0xE1, 0xE2, 0xE3]] = _MAYBE_WIDE_SPACE

# A word of up to 7 bytes *is* its key: the bytes as a little-endian number with a 1 after the
# last. A longer word's key is a hash with the top bit set, so the two kinds never meet, and no
# key is 0 (an empty slot).
_LONGEST_PACKED = 7
_LONG_WORD = np.uint64(1 << 63)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

_EACH_BYTE = np.uint64(0x0101010101010101)
_EACH_TOP_BIT = np.uint64(0x8080808080808080)
# (1 << 8 * n) * this has n in its top three bits.
_LENGTH_OF_ONE = np.uint64(sum(n << (61 - 8 * n) for n in range(8)))


@kernel(inline="always")
def _width_of_space(text: NDArray[np.uint8], i: int) -> int:
    """Bytes of the wide space that starts at ``text[i]``; 0 when none does."""
    first = text[i]
    left = len(text) - i
    if first == 0xC2:  # U+0085, U+00A0
        return 2 if left >= 2 and (text[i + 1] == 0x85 or text[i + 1] == 0xA0) else 0
    if left < 3:
        return 0
    second, third = text[i + 1], text[i + 2]
    if first == 0xE1:  # U+1680
        return 3 if second == 0x9A and third == 0x80 else 0
    if first == 0xE3:  # U+3000
        return 3 if second == 0x80 and third == 0x80 else 0
    if second == 0x80:  # U+2000 to U+200A, U+2028, U+2029, U+202F
        wide = third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF
        return 3 if wide else 0
    return 3 if second == 0x81 and third == 0x9F else 0  # U+205F


@kernel(inline="always")
def _eight_bytes(text: NDArray[np.uint8], i: np.uint64) -> np.uint64:
    """``text[i:i + 8]`` as a little-endian number; the compiler makes one load of it."""
    return (
        np.uint64(text[i])
        | np.uint64(text[i + np.uint64(1)]) << np.uint64(8)
        | np.uint64(text[i + np.uint64(2)]) << np.uint64(16)
        | np.uint64(text[i + np.uint64(3)]) << np.uint64(24)
        | np.uint64(text[i + np.uint64(4)]) << np.uint64(32)
        | np.uint64(text[i + np.uint64(5)]) << np.uint64(40)
        | np.uint64(text[i + np.uint64(6)]) << np.uint64(48)
        | np.uint64(text[i + np.uint64(7)]) << np.uint64(56)
    )


@kernel()
def _long_key(
    text: NDArray[np.uint8], i: int, class_of_byte: NDArray[np.uint8]
) -> tuple[int, np.uint64]:
    """The end of the word that starts at ``i``, and its key, whatever its bytes."""
    size = len(text)
    start = i
    packed = np.uint64(0)
    hashed = np.uint64(0)
    bits = np.uint64(0)
    while i < size:
        byte = text[i]
        kind = class_of_byte[byte]
        if kind != _WORD and (kind != _MAYBE_WIDE_SPACE or _width_of_space(text, i) > 0):
            break
        packed |= np.uint64(byte) << bits
        bits += np.uint64(8)
        if bits == 64:
            hashed = (hashed ^ packed) * _MIX
            hashed ^= hashed >> np.uint64(32)
            packed = bits = np.uint64(0)
        i += 1
    if i - start <= _LONGEST_PACKED:
        return i, packed | np.uint64(1) << bits
    hashed = (hashed ^ packed) * _MIX
    return i, (hashed ^ (hashed >> np.uint64(29))) | _LONG_WORD


@kernel()
def _scan(
    text: NDArray[np.uint8],
    position: int,
    class_of_byte: NDArray[np.uint8],
    slots: NDArray[np.uint64],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    pool: NDArray[np.uint8],
    n_words: int,
    ids: NDArray[np.int32],
    n_ids: int,
    keep_ids: bool,
) -> tuple[int, int, int]:
    """Count (and number) the words of ``text[position:]``; stop early when the table is full.

    Returns the position reached, the number of known words and the number of ids written.
    ``starts[w]:starts[w + 1]`` are the bytes of word ``w`` in ``pool``.
    """
    size = len(text)
    mask = np.uint64(len(slots) - 1)
    shift = np.uint64(0)
    while (np.uint64(len(slots)) << shift) != 0:
        shift += np.uint64(1)
    # Half full at most, so that a search meets an empty slot soon.
    room = len(slots) // 2
    i = position
    while i < size:
        kind = class_of_byte[text[i]]
        if kind != _WORD:
            if kind == _SPACE:
                i += 1
                continue
            if kind == _NEWLINE:
                if keep_ids:
                    ids[n_ids] = LINE_END
                    n_ids += 1
                i += 1
                continue
            width = _width_of_space(text, i)
            if width > 0:
                i += width
                continue

        start = i
        key = np.uint64(0)
        if i + 8 <= size:
            # Most words are short and ASCII: look at eight bytes at once, without a branch for
            # each. A byte below 0x21 or above 0x7F sets its top bit in `flags`; the lowest flag
            # is exact, and tells where the word ends if it stands on a space.
            chunk = _eight_bytes(text, np.uint64(i))
            flags = (((chunk - _EACH_BYTE * np.uint64(0x21)) & ~chunk) | chunk) & _EACH_TOP_BIT
            if flags != 0:
                one = (flags & (~flags + np.uint64(1))) >> np.uint64(7)  # 1 << 8 * length
                length = np.int64((one * _LENGTH_OF_ONE) >> np.uint64(61))
                kind = class_of_byte[text[i + length]]
                if kind in (_SPACE, _NEWLINE):
                    key = (chunk & (one - np.uint64(1))) | one
                    i += length
        if key == 0:
            i, key = _long_key(text, i, class_of_byte)
        length = i - start
        is_long = length > _LONGEST_PACKED

        slot = (key * _GOLDEN) >> shift
        while True:
            found = slots[slot, 0]
            if found == key:
                word = np.int32(slots[slot, 1])
                if not is_long:
                    break
                known = starts[word]
                same = starts[word + 1] - known == length
                j = 0
                while same and j < length:
                    same = pool[known + j] == text[start + j]
                    j += 1
                if same:
                    break
            elif found == 0:
                used = starts[n_words]
                if n_words == room or used + length > len(pool):
                    return start, n_words, n_ids
                word = np.int32(n_words)
                slots[slot, 0] = key
                slots[slot, 1] = np.uint64(word)
                pool[used : used + length] = text[start:i]
                starts[n_words + 1] = used + length
                counts[n_words] = 0
                n_words += 1
                break
            slot = (slot + np.uint64(1)) & mask
        counts[word] += 1
        if keep_ids:
            ids[n_ids] = word
            n_ids += 1
    return i, n_words, n_ids


@kernel()
def _rehash(old_slots: NDArray[np.uint64], slots: NDArray[np.uint64]) -> None:
    mask = np.uint64(len(slots) - 1)
    shift = np.uint64(0)
    while (np.uint64(len(slots)) << shift) != 0:
        shift += np.uint64(1)
    for old in range(len(old_slots)):
        key = old_slots[old, 0]
        if key != 0:
            slot = (key * _GOLDEN) >> shift
            while slots[slot, 0] != 0:
                slot = (slot + np.uint64(1)) & mask
            slots[slot, 0] = key
            slots[slot, 1] = old_slots[old, 1]


class WordTable:
    """Words in the order they were first seen, with their counts.

    >>> table = WordTable()
    >>> table.encode(b"the cat saw the dog\\nthe end\\n").tolist()
    [0, 1, 2, 0, 3, -1, 0, 4, -1]
    >>> table.words()
    ['the', 'cat', 'saw', 'dog', 'end']
    >>> table.counts.tolist()
    [3, 1, 1, 1, 1]
    """

    def __init__(self) -> None:
        room = 1 << 11
        self._slots = np.zeros((2 * room, 2), dtype=np.uint64)  # key, id: in one cache line
        self._counts = np.zeros(room, dtype=np.int64)
        self._starts = np.zeros(room + 1, dtype=np.int64)
        self._pool = np.zeros(16 * room, dtype=np.uint8)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each word was seen, by id."""
        return self._counts[: self._size]

    def add(self, block: bytes) -> None:
        """Count the words of a block of UTF-8 text that does not end inside a word."""
        self._scan(block, np.empty(0, dtype=np.int32), keep_ids=False)

    def encode(self, block: bytes) -> NDArray[np.int32]:
        """Count the words of whole lines, and give their ids with ``LINE_END`` after each line.

        A last line without a line end gets its ``LINE_END`` too.
        """
        # One byte makes at most one id, and one more for a missing line end. Memory that is
        # never written to is never taken, so the generous bound costs nothing.
        ids = np.empty(len(block) + 1, dtype=np.int32)
        written = self._scan(block, ids, keep_ids=True)
        if block and not block.endswith(b"\n"):
            ids[written] = LINE_END
            written += 1
        return ids[:written].copy()

    def words(self) -> list[str]:
        """The words by id. Bytes that are not UTF-8 are an error here, not a silent change."""
        edges = self._starts[: self._size + 1].tolist()
        pool = self._pool[: edges[-1]].tobytes()
        try:
            return [pool[a:b].decode() for a, b in pairwise(edges)]
        except UnicodeDecodeError as error:
            raise NlpkitError(
                f"the text is not UTF-8: {error.object!r}", hint="convert it, or name its encoding"
            ) from error

    def _scan(self, block: bytes, ids: NDArray[np.int32], *, keep_ids: bool) -> int:
        text = np.frombuffer(block, dtype=np.uint8)
        position = written = 0
        while True:
            position, self._size, written = _scan(
                text,
                position,
                _CLASS_OF_BYTE,
                self._slots,
                self._counts,
                self._starts,
                self._pool,
                self._size,
                ids,
                written,
                keep_ids,
            )
            if position == len(text):
                return written
            self._grow(longest=len(text) - position)

    def _grow(self, longest: int) -> None:
        """Double whatever is full: the slots with what they number, or the pool of bytes."""
        if self._size == len(self._counts):
            old_slots = self._slots
            self._slots = np.zeros((2 * len(old_slots), 2), dtype=np.uint64)
            _rehash(old_slots, self._slots)
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._starts = np.concatenate([self._starts, np.zeros_like(self._counts[: self._size])])
        else:
            more = max(len(self._pool), min(longest, 1 << 20))
            self._pool = np.concatenate([self._pool, np.zeros(more, dtype=np.uint8)])
