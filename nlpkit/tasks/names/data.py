"""Names as data: many short, independent texts, one a line, each with an optional label.

Ids below ``starts`` begin a name: 0 when there are no labels, else one for each label. A name is
trained on as ``start c1 c2 ... cn`` with targets ``c1 c2 ... cn 0``: 0 also means the end.
"""

from __future__ import annotations

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
from nlpkit.training.batches import PackedBatches

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


class NameBatches(PackedBatches):
    """Batches of names by number, (B, T) ids and targets; -1 is nothing to predict.

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
        self.longest = max(map(len, rows)) - 1
        super().__init__(
            [row[:-1] for row in rows],
            [row[1:] for row in rows],
            width=max(_PACKED_LENGTH, self.longest) if packed else None,
            batch_size=batch_size,
            seed=seed,
        )
