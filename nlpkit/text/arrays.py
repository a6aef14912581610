"""Token sequences into arrays: pad and cut, one-hot, the hashing trick, bags of words.

Conventions follow Keras where it has one: id 0 is padding, and ``pad_sequences`` pads and cuts at
the front unless told otherwise.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError

Side = Literal["pre", "post"]
Weighting = Literal["binary", "count", "freq", "tfidf"]


def pad_sequences(
    sequences: Sequence[Sequence[int]],
    maxlen: int | None = None,
    *,
    padding: Side = "pre",
    truncating: Side = "pre",
    value: int = 0,
    dtype: str = "int32",
) -> NDArray[Any]:
    """Rows of one length: short ones are filled with ``value``, long ones are cut.

    >>> pad_sequences([[1], [2, 3], [4, 5, 6]], maxlen=2)
    array([[0, 1],
           [2, 3],
           [5, 6]], dtype=int32)
    >>> pad_sequences([[1], [4, 5, 6]], maxlen=2, padding="post", truncating="post")
    array([[1, 0],
           [4, 5]], dtype=int32)
    """
    if maxlen is None:
        maxlen = max(map(len, sequences), default=0)
    numbers: Sequence[int] = [value]
    try:
        rows = np.full((len(sequences), maxlen), value, dtype=dtype)  # (N, maxlen)
        for row, sequence in zip(rows, sequences, strict=True):
            # sequence[-0:] would be everything
            numbers = (
                sequence[:maxlen]
                if truncating == "post"
                else sequence[max(len(sequence) - maxlen, 0) :]
            )
            if size := len(numbers):
                row[slice(0, size) if padding == "post" else slice(-size, None)] = numbers
    except OverflowError:
        raise NlpkitError(f"a number does not fit in {dtype}: {max(numbers, key=abs)}") from None
    return rows


def sequence_mask(
    lengths: Sequence[int], maxlen: int, *, padding: Side = "pre"
) -> NDArray[np.bool_]:
    """True where a padded row holds data.

    >>> sequence_mask([1, 3], 3, padding="post").astype(int)
    array([[1, 0, 0],
           [1, 1, 1]])
    """
    columns = np.arange(maxlen)[None, :]  # (1, maxlen)
    filled = np.minimum(np.asarray(lengths, dtype=np.int64), maxlen)[:, None]  # (N, 1)
    return columns < filled if padding == "post" else columns >= maxlen - filled


def one_hot(ids: Sequence[int] | NDArray[Any], size: int, dtype: str = "uint8") -> NDArray[Any]:
    """A row with a single 1 for each id; ids of any shape gain a last axis.

    >>> one_hot([2, 0], 3)
    array([[0, 0, 1],
           [1, 0, 0]], dtype=uint8)
    """
    array = np.asarray(ids, dtype=np.int64)
    if array.size and (array.min() < 0 or array.max() >= size):
        bad = array[(array < 0) | (array >= size)].flat[0]
        raise NlpkitError(f"id {bad} is outside 0..{size - 1}")
    rows = np.zeros((*array.shape, size), dtype=dtype)
    np.put_along_axis(rows, array[..., None], 1, axis=-1)
    return rows


def stable_hash(token: str) -> int:
    """64 bits of a token that are the same on every machine, in every run (Python's own are not).

    >>> stable_hash("food")
    10146740415574393807
    """
    return int.from_bytes(
        hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )


def hashing(tokens: Iterable[str], buckets: int) -> list[int]:
    """The hashing trick: a bucket from 1 to ``buckets`` for each token; 0 stays free for padding.

    >>> hashing(["horrible", "food"], 50) == hashing(["horrible"], 50) + hashing(["food"], 50)
    True
    """
    if buckets < 1:
        raise NlpkitError(f"cannot hash into {buckets} buckets", hint="1 or more")
    return [stable_hash(token) % buckets + 1 for token in tokens]


@dataclass(frozen=True)
class SparseRows:
    """A matrix by its non-zero entries in CSR form: row i is ``data[indptr[i]:indptr[i + 1]]``.

    The fields carry the names that ``scipy.sparse.load_npz`` expects, so it reads what is saved.
    """

    data: NDArray[Any]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    shape: tuple[int, int]

    def to_dense(self) -> NDArray[Any]:
        """The whole matrix, zeros included."""
        dense = np.zeros(self.shape, dtype=self.data.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        dense[rows, self.indices] = self.data
        return dense

    def arrays(self) -> dict[str, Any]:
        """What goes into an ``.npz`` file."""
        return {
            "indices": self.indices,
            "indptr": self.indptr,
            "format": np.array(b"csr"),
            "shape": np.array(self.shape, dtype=np.int64),
            "data": self.data,
        }


def bag_of_words(
    rows: Iterable[Sequence[int]], size: int, weighting: Weighting = "count"
) -> SparseRows:
    """One row per text, one column per id.

    ``binary``: 1 where the id occurs; ``count``: how often; ``freq``: its share of the text;
    ``tfidf``: (1 + ln count) * ln(1 + N / (1 + texts with it)), Keras' formula.

    >>> bag_of_words([[1, 1, 2], []], size=3, weighting="freq").to_dense().round(2)
    array([[0.  , 0.67, 0.33],
           [0.  , 0.  , 0.  ]], dtype=float32)
    """
    indptr, indices, counts, lengths = [0], [], [], []
    for row in rows:
        bag = sorted(Counter(row).items())
        if bag and (bag[0][0] < 0 or bag[-1][0] >= size):
            bad = bag[0][0] if bag[0][0] < 0 else bag[-1][0]
            raise NlpkitError(f"id {bad} is outside 0..{size - 1}")
        indices += [index for index, _ in bag]
        counts += [count for _, count in bag]
        indptr.append(len(indices))
        lengths.append(len(row))
    columns = np.array(indices, dtype=np.int32)
    data = np.array(counts, dtype=np.float32)
    if weighting == "binary":
        data = np.ones_like(data)
    elif weighting == "freq":
        data /= np.repeat(np.array(lengths, dtype=np.float32), np.diff(indptr))
    elif weighting == "tfidf":
        texts_with = np.bincount(columns, minlength=size)  # (size,)
        idf = np.log(1 + len(lengths) / (1 + texts_with))
        data = ((1 + np.log(data)) * idf[columns]).astype(np.float32)
    return SparseRows(data, columns, np.array(indptr, dtype=np.int64), (len(lengths), size))
