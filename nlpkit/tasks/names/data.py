"""Names as data: many short, independent texts, one a line, each with an optional label.

Ids below ``starts`` begin a name: 0 when there are no labels, else one for each label. A name is
trained on as ``start c1 c2 ... cn`` with targets ``c1 c2 ... cn 0``: 0 also means the end.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.text.characters import Characters
from nlpkit.text.records import RecordText

END = 0
_PACKED_LENGTH = 32  # positions in a row that holds several names


class Name(NamedTuple):
    """A line of the data."""

    text: str
    label: str = ""


def parse_names(lines: Iterable[str]) -> list[Name]:
    """``name`` or ``name<TAB>label`` lines; blank ones are left out.

    >>> parse_names(["Anna", "", "Anne\\tfr"])
    [Name(text='Anna', label=''), Name(text='Anne', label='fr')]
    """
    names = []
    for number, line in enumerate(lines, 1):
        text, _, label = (part.strip() for part in line.partition("\t"))
        if "\t" in label:
            raise NlpkitError(f"line {number}: more than one tab", hint="name<TAB>label")
        if text:
            names.append(Name(RecordText.of(text, getattr(line, "record", {})), label))
        elif label:
            raise NlpkitError(f"line {number}: a label without a name")
    if not names:
        raise NlpkitError("there are no names", hint="a file with one name per line")
    return names


def split_names(
    names: Sequence[Name], *, seed: int, fraction: float | None = None, size: int | None = None
) -> tuple[list[Name], list[Name]]:
    """Names to train on and names held out, each once, so that nothing leaks.

    A name with several labels is on one side with all of them, and counts once. A tenth is held
    out, at most 1,000, unless told.

    >>> names = [Name("Kim", "f"), Name("Kim", "m"), Name("Jo", "f"), Name("Jo", "m")]
    >>> [len(part) for part in split_names(names, seed=1)]
    [2, 2]
    """
    distinct = list(dict.fromkeys(names))
    texts = list(dict.fromkeys(name.text for name in distinct))
    if fraction is not None:
        size = max(1, round(fraction * len(texts)))
    elif size is None:
        size = min(1000, max(1, round(0.1 * len(texts))))
    if size >= len(texts):
        raise NlpkitError(
            f"{len(texts)} different names: too few to hold {size} out",
            hint="more names, or a smaller `test_size`",
        )
    order = np.random.default_rng(seed).permutation(len(texts))
    labelled: dict[str, list[Name]] = {text: [] for text in texts}
    for name in distinct:
        labelled[name.text].append(name)
    cut = len(texts) - size
    train, heldout = ([texts[i] for i in part] for part in (order[:cut], order[cut:]))
    return (
        [name for text in train for name in labelled[text]],
        [name for text in heldout for name in labelled[text]],
    )


@dataclass(frozen=True)
class _Table:
    """What ``alphabet.json`` holds."""

    characters: str
    labels: list[str]


class Alphabet(Characters):
    """Ids of labels and characters: those that start a name first, then characters."""

    file = "alphabet.json"

    def __init__(self, characters: Iterable[str], labels: Sequence[str] = ()) -> None:
        super().__init__(characters, first=max(1, len(labels)))
        self.labels = tuple(labels)

    def write(self, file: Path) -> None:
        table = {"characters": "".join(self.characters), "labels": list(self.labels)}
        text = json.dumps(table, ensure_ascii=False, indent=2)
        modeldir.write_text(file, text + "\n")

    @classmethod
    def read(cls, file: Path, tokenizer: str = "word") -> Alphabet:
        table = schema.read(_Table, modeldir.read_json(file), str(file))
        known = Characters.from_file(list(table.characters), f"{file}: characters")
        return cls(known.characters, table.labels)

    @classmethod
    def from_names(cls, names: Iterable[Name]) -> Alphabet:
        """All characters and labels that occur."""
        names = list(names)
        labels = sorted({name.label for name in names} - {""})
        unlabelled = sum(not name.label for name in names)
        if labels and unlabelled:
            raise NlpkitError(
                f"{unlabelled} of {len(names)} names have no label",
                hint="a label for every name or for none",
            )
        return cls(sorted({character for name in names for character in name.text}), labels)

    @property
    def starts(self) -> int:
        """How many ids begin a name."""
        return self.first

    def start(self, label: str = "") -> int:
        """The id that begins a name of this label."""
        if not label:
            return 0
        if label not in self.labels:
            hint = f"one of {', '.join(self.labels)}" if self.labels else "a name without a label"
            raise NlpkitError(f"the model has no label {label!r}", hint=hint)
        return self.labels.index(label)


class NameBatches:
    """Batches of names by number: the same seed and number give the same batch.

    >>> names = parse_names(["Anna", "Bob", "Eve", "Jo"])
    >>> batches = NameBatches(names, Alphabet.from_names(names), batch_size=2, packed=True, seed=1)
    >>> idx, targets = batches[0]
    >>> idx.shape == targets.shape
    True
    """

    def __init__(
        self,
        names: Sequence[Name],
        alphabet: Alphabet,
        *,
        batch_size: int,
        packed: bool,
        seed: int,
    ) -> None:
        rows = [[alphabet.start(name.label), *alphabet.encode(name.text), END] for name in names]
        self.lengths = np.array([len(row) - 1 for row in rows])
        self.longest = int(self.lengths.max())
        self._ids = np.concatenate([np.array(row) for row in rows])
        self._offsets = np.concatenate([[0], np.cumsum(self.lengths + 1)])[:-1]
        self._seed, self._packed = seed, packed
        self._width = max(_PACKED_LENGTH, self.longest) if packed else self.longest
        tokens = int(self.lengths.sum())
        count = -(-tokens // self._width) if packed else len(rows)
        self.per_epoch = max(1, round(count / batch_size))
        self._epoch = functools.lru_cache(maxsize=2)(self._make_epoch)

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids and targets (B, T) of a batch; a target of -1 is nothing to predict."""
        epoch, place = divmod(number, self.per_epoch)
        return self._fill(self._epoch(epoch)[place])

    def _make_epoch(self, epoch: int) -> list[list[list[int]]]:
        """Batches of an epoch, each a list of rows, each a list of names."""
        random = np.random.default_rng([self._seed, epoch])
        order = random.permutation(len(self.lengths))
        if self._packed:
            rows = pack(self.lengths[order].tolist(), self._width)
            rows = [[int(order[i]) for i in row] for row in rows]
            random.shuffle(rows)
        else:
            # equal lengths beside each other, so that little is padding
            by_length = order[np.argsort(self.lengths[order], kind="stable")]
            rows = [[int(i)] for i in by_length]
        cuts = [round(i * len(rows) / self.per_epoch) for i in range(self.per_epoch + 1)]
        batches = [rows[a:b] for a, b in itertools.pairwise(cuts)]
        random.shuffle(batches)
        return batches

    def _fill(self, rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
        members = np.array([i for row in rows for i in row])
        lengths = self.lengths[members]
        row_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        width = int(np.bincount(row_of, lengths).max())
        ends = np.cumsum(lengths)
        row_lengths = np.bincount(row_of, lengths, len(rows)).astype(int)
        row_starts = np.repeat(np.cumsum(row_lengths) - row_lengths, np.bincount(row_of))
        columns = ends - lengths - row_starts  # of each name in its row
        within = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        source = np.repeat(self._offsets[members], lengths) + within
        target = np.repeat(row_of * width + columns, lengths) + within
        idx = np.zeros(len(rows) * width, dtype=np.int64)
        targets = np.full(len(rows) * width, -1, dtype=np.int64)
        idx[target] = self._ids[source]
        targets[target] = self._ids[source + 1]
        return idx.reshape(len(rows), width), targets.reshape(len(rows), width)


def pack(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Put items into rows of a width, each into the fullest row that still has room for it.

    >>> pack([3, 5, 2, 4], 7)
    [[0, 3], [1, 2]]
    """
    rows: list[list[int]] = []
    with_room: list[list[int]] = [[] for _ in range(width + 1)]  # rows by the room left in them
    for item, length in enumerate(lengths):
        room = next((room for room in range(length, width + 1) if with_room[room]), width)
        if with_room[room]:
            row = with_room[room].pop()
        else:
            row = len(rows)
            rows.append([])
        rows[row].append(item)
        with_room[room - length].append(row)
    return rows
