"""The senses of a word: its occurrences grouped by their vectors in context.

Each occurrence has the mean of the states of its pieces. Groups are found by k-means over unit
vectors, with as many groups as give the highest silhouette (how much closer an occurrence is to its
own group than to the next); a word whose best silhouette is low has one sense.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.models.bert_model import BertModel

Floats = NDArray[np.float32]

ONE_SENSE = 0.1  # a silhouette below this tells of no groups
_ROUNDS = 50
_STARTS = 8


@dataclass(frozen=True)
class Occurrence:
    """A line and where the word stands in it."""

    line: str
    start: int
    end: int


@dataclass(frozen=True)
class Sense:
    """A group of occurrences; the first are the most typical."""

    occurrences: list[Occurrence]


def find_occurrences(lines: Iterable[str], word: str, limit: int) -> list[Occurrence]:
    """Where a word stands by itself in lines, whatever its letter case.

    >>> [place.start for place in find_occurrences(["Bark! It barks; bark."], "bark", 9)]
    [0, 16]
    """
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    found: list[Occurrence] = []
    for line in lines:
        for match in pattern.finditer(line):
            found.append(Occurrence(line, match.start(), match.end()))
            if len(found) == limit:
                return found
    return found


def occurrence_vectors(
    bert: BertModel, occurrences: list[Occurrence], layer: int | None = None
) -> Floats:
    """The state of each occurrence (N, C), of length 1; a long line is read around the word."""
    rows: list[list[int]] = []
    places: list[list[int]] = []
    room = bert.max_length - 2
    for one in occurrences:
        pieces = bert.codec.pieces(one.line)
        inside = [i for i, (a, b) in enumerate(pieces.spans) if a < one.end and b > one.start]
        if not inside:
            raise NlpkitError(f"the tokenizer drops the word in: {one.line[:60]}")
        inside = inside[: max(1, room)]
        first = max(0, min(inside[0] - room // 2, len(pieces.ids) - room))
        if inside[-1] >= first + room:
            first = inside[-1] - room + 1
        rows.append(bert.codec.wrap(pieces.ids[first : first + room]))
        places.append([i - first + 1 for i in inside])
    found = np.empty((len(rows), bert.model.settings.dim), np.float32)
    for batch, states, _ in bert.states(rows, layer=layer):
        for number, state in zip(batch, states, strict=True):
            found[number] = state[places[number]].mean(dim=0).float().cpu().numpy()
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)


def group_senses(
    occurrences: list[Occurrence], vectors: Floats, count: int | None = None, most: int = 6
) -> list[Sense]:
    """Occurrences in ``count`` groups, or in as many (up to ``most``) as the vectors show."""
    from sklearn.metrics import silhouette_score

    if count is None:
        best, labels = ONE_SENSE, np.zeros(len(vectors), np.int64)
        for tried in range(2, min(most, len(vectors) - 1) + 1):
            found = k_means(vectors, tried)
            if len(np.unique(found)) == tried:
                score = float(silhouette_score(vectors, found, metric="cosine"))
                if score > best:
                    best, labels = score, found
    else:
        if count > len(vectors):
            raise NlpkitError(f"{len(vectors)} occurrences cannot have {count} senses")
        labels = k_means(vectors, count)
    senses = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        centre = vectors[members].mean(axis=0)
        order = members[np.argsort(-(vectors[members] @ centre), kind="stable")]
        senses.append(Sense([occurrences[i] for i in order]))
    return sorted(senses, key=lambda sense: -len(sense.occurrences))


def k_means(vectors: Floats, count: int, seed: int = 1) -> NDArray[np.int64]:
    """The group of each unit vector, by cosine; the best of several starts.

    >>> k_means(np.array([[1, 0], [0, 1], [0.9, 0.1]], np.float32), 2).tolist()
    [0, 1, 0]
    """
    random = np.random.default_rng(seed)
    best, labels = -np.inf, np.zeros(len(vectors), np.int64)
    for _ in range(_STARTS):
        centres = vectors[_far_apart(vectors, count, random)]
        for _ in range(_ROUNDS):
            found = np.argmax(vectors @ centres.T, axis=1)
            sums = np.stack([vectors[found == k].sum(axis=0) for k in range(count)])
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
            moved = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), centres)
            if np.allclose(moved, centres):
                break
            centres = moved
        total = float((vectors @ centres.T).max(axis=1).sum())
        if total > best + 1e-6:
            best, labels = total, found
    _, first = np.unique(labels, return_index=True)
    order = {label: rank for rank, label in enumerate(labels[np.sort(first)].tolist())}
    return np.array([order[label] for label in labels.tolist()])


def _far_apart(vectors: Floats, count: int, random: np.random.Generator) -> list[int]:
    """First centres, each likely to be far from those before it (k-means++)."""
    chosen = [int(random.integers(len(vectors)))]
    while len(chosen) < count:
        distance = np.clip(1 - (vectors @ vectors[chosen].T).max(axis=1), 0, None) + 1e-9
        chosen.append(int(random.choice(len(vectors), p=distance / distance.sum())))
    return chosen
