"""fastText's ``.bin`` and ``.ftz`` models, read and (``.bin``) written: version 12 of its format.

    int32 magic, version; 12 x int32 arguments, float64 t
    int32 entries, words, labels; int64 tokens, pruned
    entries x (bytes, NUL, int64 count, int8 kind); pruned x (int32 bucket, int32 row)
    bool quantised; the input matrix: int64 rows, columns; rows x columns x float32
    bool quantised; the output matrix

Quantised matrices are in ``quantised``, n-grams in ``ngrams``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.vectors.ngrams import NgramVectors, TrainedRows, word_vectors
from nlpkit.vectors.quantised import read_quantised
from nlpkit.vectors.source import Source
from nlpkit.vectors.store import Vectors

Floats = NDArray[np.float32]

_MAGIC_NUMBER = 793712314
MAGIC = struct.pack("<i", _MAGIC_NUMBER)
VERSION = 12
_VERSIONS = (11, VERSION)
CBOW, SKIPGRAM, SUPERVISED = 1, 2, 3  # models
HS, NS, SOFTMAX, OVA = 1, 2, 3, 4  # losses
_WORD_KIND, _LABEL_KIND = 0, 1
_LONGEST_WORD = 1 << 16  # bytes; without an end within this the file is something else
_ROWS_AT_ONCE = 1 << 13
_ARGUMENTS = (
    "dim", "window", "epochs", "min_count", "negative", "word_ngrams",
    "loss", "model", "buckets", "shortest", "longest", "update_rate",
)  # fmt: skip


@dataclass(frozen=True)
class FastTextModel:
    """A file as it is: arguments by name, the dictionary, and both matrices."""

    name: str
    arguments: dict[str, int]
    sample: float
    words: list[str]
    counts: NDArray[np.int64]
    labels: list[str]
    label_counts: NDArray[np.int64]
    pruned: NDArray[np.int64] | None  # (K, 2) buckets that have a row, and which; None: all have
    input: Floats  # (words + buckets, D)
    output: Floats | None  # (words or labels, D), where it was asked for

    @property
    def has_ngrams(self) -> bool:
        """Whether words have character n-grams."""
        shortest, longest = self.arguments["shortest"], self.arguments["longest"]
        return longest >= max(shortest, 1) and len(self.input) > len(self.words)

    def subwords(self) -> NgramVectors:
        """The n-grams, as what gives vectors to unknown words."""
        trained = None
        if self.pruned is None and self.arguments["model"] != SUPERVISED:
            own = self.input[: len(self.words)]
            trained = TrainedRows(own, self.output, self.arguments["model"] == CBOW)
        table, kept = self.input[len(self.words) :], None
        if self.pruned is not None:
            order = np.argsort(self.pruned[:, 0], kind="stable")
            kept, rows = self.pruned[order].T
            table = table[rows]
        return NgramVectors(
            table,
            self.arguments["buckets"],
            max(1, self.arguments["shortest"]),
            self.arguments["longest"],
            kept=kept,
            pruned=kept is not None,
            trained=trained,
        )


def read_fasttext(source: Source, *, outputs: bool = False) -> Vectors:
    """The vectors of a model; its ``subwords`` answer for words outside the dictionary."""
    model = read_model(source, outputs=outputs)
    own = model.input[: len(model.words)]
    if not model.words:
        raise NlpkitError(f"{source.name} has no words")
    if not model.has_ngrams:
        return Vectors.from_rows(model.words, own.copy(), counts=model.counts, name=source.name)
    subwords = model.subwords()
    matrix = word_vectors(model.words, own, subwords)
    return Vectors.from_rows(
        model.words, matrix, counts=model.counts, subwords=subwords, name=source.name
    )


def read_model(source: Source, *, outputs: bool = True) -> FastTextModel:
    """Read and check a whole file; without ``outputs`` not its last matrix."""
    reader = Reader(source)
    _, version = reader.numbers("<ii")
    if version not in _VERSIONS:
        raise NlpkitError(
            f"{source.name}: fastText format version {version} is not known here",
            hint=f"a model of version {VERSION}, as fastText has written since 2017",
        )
    *numbers, sample = reader.numbers("<12id")
    arguments = dict(zip(_ARGUMENTS, numbers, strict=True))
    if version == 11 and arguments["model"] == SUPERVISED:
        arguments["longest"] = 0  # older classifiers have no n-grams, whatever they say
    words, counts, labels, label_counts, pruned = _read_dictionary(reader)
    (quantised,) = reader.numbers("<?")
    inputs = read_quantised(reader) if quantised else _read_matrix(reader)
    n_buckets = arguments["buckets"] if pruned is None else len(pruned)
    # a model without any n-grams may have rows for its buckets, or not
    allowed = {len(words) + n_buckets}
    if arguments["longest"] <= 0 and arguments["word_ngrams"] <= 1:
        allowed.add(len(words))
    wrong = arguments["dim"] <= 0 or inputs.shape[1] != arguments["dim"] or n_buckets < 0
    if wrong or len(inputs) not in allowed or (pruned is not None and not quantised):
        raise reader.contradiction()
    output = None
    if outputs:
        (output_quantised,) = reader.numbers("<?")
        is_codes = quantised and output_quantised
        output = read_quantised(reader) if is_codes else _read_matrix(reader)
        rows = len(labels) if arguments["model"] == SUPERVISED else len(words)
        if output.shape != (rows, arguments["dim"]):
            raise reader.contradiction()
    return FastTextModel(
        source.name, arguments, sample, words, counts, labels, label_counts, pruned, inputs, output
    )


class Reader:
    """Takes values off the front of the file; running out of bytes is a user's error."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.position = 0

    def contradiction(self) -> NlpkitError:
        """What to raise when numbers of the file do not fit each other."""
        return NlpkitError(
            f"{self.source.name}: the sizes in the file contradict each other",
            hint="fetch the file again",
        )

    def _advance(self, size: int) -> int:
        start = self.position
        if size < 0 or start + size > len(self.source.data):
            raise NlpkitError(f"{self.source.name} is cut short", hint="fetch the file again")
        self.position += size
        return start

    def numbers(self, layout: str) -> tuple[Any, ...]:
        """The next values, as ``struct`` writes them."""
        start = self._advance(struct.calcsize(layout))
        return struct.unpack_from(layout, self.source.data, start)

    def floats(self, count: int) -> Floats:
        """The next 32-bit numbers."""
        start = self._advance(4 * count)
        # a copy, because a view would not be aligned and would outlive the mapping
        return np.frombuffer(self.source.data, "<f4", count, start).astype(np.float32)

    def codes(self, count: int) -> NDArray[np.uint8]:
        """The next bytes."""
        start = self._advance(count)
        return np.frombuffer(self.source.data, np.uint8, count, start).copy()

    def integers(self, count: int) -> NDArray[np.int64]:
        """The next 32-bit integers."""
        start = self._advance(4 * count)
        return np.frombuffer(self.source.data, "<i4", count, start).astype(np.int64)

    def text(self) -> bytes:
        """The bytes up to the next NUL."""
        end = self.source.data.find(b"\0", self.position, self.position + _LONGEST_WORD)
        if end < 0:
            raise NlpkitError(f"{self.source.name} is cut short", hint="fetch the file again")
        start, self.position = self.position, end + 1
        return self.source.data[start:end]


def _read_matrix(reader: Reader) -> Floats:
    rows, columns = reader.numbers("<qq")
    if rows < 0 or columns < 0 or 4 * rows * columns > len(reader.source.data):
        raise reader.contradiction()
    return reader.floats(rows * columns).reshape(rows, columns)


def _read_dictionary(reader: Reader) -> tuple[Any, ...]:
    """Words, their counts, labels, theirs, and which buckets were kept."""
    size, n_words, n_labels, _tokens, pruned = reader.numbers("<iiiqq")
    if n_words < 0 or n_labels < 0 or n_words + n_labels != size:
        raise reader.contradiction()
    if 10 * size > len(reader.source.data):
        raise reader.contradiction()
    words: list[str] = []
    counts: list[int] = []
    for entry in range(size):
        words.append(reader.source.decode(reader.text(), f"entry {entry + 1:,}"))
        count, kind = reader.numbers("<qb")
        if count < 0 or kind != (_WORD_KIND if entry < n_words else _LABEL_KIND):
            raise reader.contradiction()
        counts.append(count)
    kept = None
    if pruned >= 0:
        kept = reader.integers(2 * min(pruned, len(reader.source.data))).reshape(-1, 2)
        if len(kept) and not (0 <= kept[:, 1].min() <= kept[:, 1].max() < len(kept)):
            raise reader.contradiction()
    numbers = np.array(counts, np.int64)
    return words[:n_words], numbers[:n_words], words[n_words:], numbers[n_words:], kept


def write_fasttext(vectors: Vectors, out: IO[bytes], settings: dict[str, Any]) -> None:
    """Write vectors as a ``.bin`` that fastText and gensim read, with n-grams if they have any.

    ``settings`` may have what training knew: window, epochs, min_count, negative, sample.
    """
    subwords, words = vectors.subwords, list(vectors.words)
    if not isinstance(subwords, NgramVectors) or subwords.trained is None:
        none = np.zeros((0, vectors.dim), np.float32)
        subwords = NgramVectors(none, 0, 0, 0, trained=TrainedRows(vectors.matrix, None))
    trained = subwords.trained
    assert trained is not None
    broken = next((word for word in words if "\0" in word), None)
    if broken is not None:
        raise NlpkitError(f"fastText's .bin cannot hold the word {broken!r}")
    arguments = {
        "dim": vectors.dim,
        "window": settings.get("window", 5),
        "epochs": settings.get("epochs", 5),
        "min_count": settings.get("min_count", 1),
        "negative": settings.get("negative", 5),
        "word_ngrams": 1,
        "loss": NS,
        "model": CBOW if trained.cbow else SKIPGRAM,
        "buckets": subwords.buckets,
        "shortest": subwords.shortest,
        "longest": subwords.longest,
        "update_rate": 100,
    }
    numbers = [min(arguments[name], 2**31 - 1) for name in _ARGUMENTS]  # the file has 32 bits
    out.write(struct.pack("<ii12id", _MAGIC_NUMBER, VERSION, *numbers, settings.get("sample", 0.0)))
    counts = vectors.words.counts
    numbers = [1] * len(words) if counts is None else [max(1, count) for count in counts.tolist()]
    out.write(struct.pack("<iiiqq", len(words), len(words), 0, sum(numbers), -1))
    for word, count in zip(words, numbers, strict=True):
        out.write(word.encode("utf-8", "surrogateescape") + b"\0")
        out.write(struct.pack("<qb", count, _WORD_KIND))
    out.write(struct.pack("<?qq", False, len(words) + subwords.buckets, vectors.dim))
    _write_rows(trained.own, out)
    for rows in _all_buckets(subwords):
        _write_rows(rows, out)
    out.write(struct.pack("<?qq", False, len(words), vectors.dim))
    context = trained.context
    _write_rows(np.zeros_like(trained.own) if context is None else context, out)


def _all_buckets(subwords: NgramVectors) -> Iterator[Floats]:
    """The rows of all buckets, zeros where there is none, some at a time."""
    for start in range(0, subwords.buckets, _ROWS_AT_ONCE):
        buckets = np.arange(start, min(start + _ROWS_AT_ONCE, subwords.buckets))
        places, there = subwords.places(buckets)
        rows = np.zeros((len(buckets), subwords.table.shape[1]), np.float32)
        rows[there] = subwords.table[places[there]]
        yield rows


def _write_rows(matrix: Floats, out: IO[bytes]) -> None:
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        out.write(np.ascontiguousarray(matrix[start : start + _ROWS_AT_ONCE], "<f4").tobytes())
