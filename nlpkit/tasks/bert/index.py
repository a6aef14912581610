"""An index of lines to search by meaning: their vectors, the lines, and the model that made them.

    INDEX/
      config.json, weights.safetensors, tokenizer.json   the model
      vectors.npy    a unit vector for each part of a line (R, C), memory-mapped
      owners.npy     the number of the line that each of them belongs to (R,)
      offsets.npy    where lines begin in lines.txt, and where the last ends (N + 1,)
      lines.txt      the lines, one after the other
      places.json    names of the files, and the first line of each

Search is exact: all cosines are computed. A line that does not fit into one reading has several
vectors, and its best one counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import modeldir, npy, registry, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.bert_model import BertModel
from nlpkit.vectors.search import best_rows

Floats = NDArray[np.float32]

_LINES_AT_ONCE = 2048


@dataclass(frozen=True)
class Found:
    """A line of a file and its cosine to the query."""

    score: float
    file: str
    number: int  # from 1
    line: str


@dataclass(frozen=True)
class Place:
    """A file and the number of its first line among all that are indexed."""

    file: str
    first: int


class SearchIndex(modeldir.Model):
    """Lines, their vectors and the model.

    >>> SearchIndex.load("docs.index").search("how to resume a run")  # doctest: +SKIP
    """

    def __init__(
        self,
        bert: BertModel,
        vectors: Floats,
        owners: NDArray[np.int64],
        offsets: NDArray[np.int64],
        text: Any,  # bytes, or a file of them that is mapped
        places: list[Place],
    ) -> None:
        self.bert, self.vectors, self.owners = bert, vectors, owners
        self.offsets, self.text, self.places = offsets, text, places
        self.config = replace(bert.config, kind=registry.BERT_INDEX, metrics={}, manifest=None)
        self.config.settings = bert.describe()

    def __repr__(self) -> str:
        return f"<SearchIndex: {len(self):,} lines, {len(self.vectors):,} vectors>"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def long_lines(self) -> int:
        """How many lines were read in several parts."""
        return int((np.bincount(self.owners, minlength=1) > 1).sum())

    def write(self, folder: Path) -> None:
        """Write everything but ``config.json`` into a folder that ``modeldir.create`` gave."""
        self.bert.write(folder)
        modeldir.write_array(folder / "vectors.npy", self.vectors)
        modeldir.write_array(folder / "owners.npy", self.owners)
        modeldir.write_array(folder / "offsets.npy", self.offsets)
        (folder / "lines.txt").write_bytes(self.text)
        places = [vars(place) for place in self.places]
        modeldir.write_text(folder / "places.json", json.dumps(places) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SearchIndex:
        """Open an index; its vectors stay on disk until they are needed."""
        folder = Path(path)
        bert = BertModel.load(path, kind=registry.BERT_INDEX)
        vectors = npy.read_array(folder / "vectors.npy", "f4", 2)
        owners = npy.read_array(folder / "owners.npy", "i8", 1)
        offsets = npy.read_array(folder / "offsets.npy", "i8", 1)
        where = folder / "places.json"
        places = schema.read(list[Place], modeldir.read_json(where), str(where))
        lines = folder / "lines.txt"
        size = lines.stat().st_size if lines.is_file() else -1
        fits = (
            len(vectors) == len(owners)
            and vectors.shape[1] == bert.model.settings.dim
            and bool((np.diff(offsets) >= 0).all())
            and (offsets[0], offsets[-1]) == (0, size)
            and owners.min() >= 0
            and owners.max() < len(offsets) - 1
            and places != []
        )
        if not fits:
            raise NlpkitError(
                f"{path} is damaged: its files do not fit together", hint=schema.AGAIN
            )
        text = np.memmap(lines, np.uint8, "r") if size else b""
        return cls(bert, vectors, owners, offsets, text, places)

    def line(self, number: int) -> str:
        """A line by its number among all, from 0."""
        start, end = self.offsets[number : number + 2].tolist()
        return bytes(self.text[start:end]).decode("utf-8", "replace")

    def search(self, query: str, count: int = 10) -> list[Found]:
        """The lines that are closest to a query in meaning, best first."""
        asked = self.bert.vectors([query], normalize=True).numpy()  # (1, C)
        longest = int(np.bincount(self.owners, minlength=1).max())

        def score(start: int, stop: int) -> Floats:
            product: Floats = asked @ self.vectors[start:stop].T
            return product

        rows, scores = best_rows(lambda: score, 1, len(self.vectors), count * longest)
        found: dict[int, float] = {}
        for row, cosine in zip(rows[0].tolist(), scores[0].tolist(), strict=True):
            found.setdefault(int(self.owners[row]), cosine)
        return [self._found(number, cosine) for number, cosine in list(found.items())[:count]]

    def _found(self, number: int, cosine: float) -> Found:
        firsts = [place.first for place in self.places]
        place = self.places[int(np.searchsorted(firsts, number, side="right")) - 1]
        return Found(round(cosine, 5), place.file, number - place.first + 1, self.line(number))


def build_index(
    bert: BertModel,
    files: Iterable[tuple[str, Iterable[str]]],
    on_lines: Callable[[int], None] | None = None,
) -> SearchIndex:
    """An index of the lines of files, given as (name, lines); ``on_lines`` is told how many."""
    text, offsets = bytearray(), [0]
    places: list[Place] = []
    owners: list[NDArray[np.int64]] = []
    parts: list[Floats] = []
    waiting: list[str] = []

    def embed() -> None:
        first = len(offsets) - 1 - len(waiting)
        owner, vectors = line_vectors(bert, waiting)
        owners.append(owner + first)
        parts.append(vectors)
        waiting.clear()

    for name, lines in files:
        places.append(Place(name, len(offsets) - 1))
        for line in lines:
            text += line.encode("utf-8", "replace")
            offsets.append(len(text))
            waiting.append(line)
            if len(waiting) == _LINES_AT_ONCE:
                embed()
                if on_lines is not None:
                    on_lines(len(offsets) - 1)
    if waiting:
        embed()
    if len(offsets) == 1:
        raise NlpkitError("no lines to index", hint="files that are not empty")
    return SearchIndex(
        bert,
        np.concatenate(parts),
        np.concatenate(owners),
        np.array(offsets, np.int64),
        bytes(text),
        places,
    )


def line_vectors(bert: BertModel, lines: list[str]) -> tuple[NDArray[np.int64], Floats]:
    """A unit vector for each part of each line, and the number of its line."""
    import torch.nn.functional as F

    owners, parts = bert.part_vectors(lines)
    return np.array(owners, np.int64), F.normalize(parts, dim=-1).numpy()
