"""What is drawn beside the points of a plot: groups that give colours, pairs that become arrows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import ENGLISH_STOPWORDS
from nlpkit.vectors.store import unit_rows

KMEANS_ROUNDS = 100

COLOURS = (
    *("#2a78c2", "#d1495b", "#2e8b57", "#e08e0b", "#7b5ea7", "#008b8b"),
    *("#b5651d", "#c2388d", "#6b7a1f", "#5a6572"),
)


def read_groups(lines: Iterable[str], name: str) -> dict[str, str]:
    """Words with their groups: ``word<TAB>group``, or words below a line ``: group``.

    >>> read_groups([": royal", "king queen", "bread\\tfood"], "f")
    {'king': 'royal', 'queen': 'royal', 'bread': 'food'}
    """
    groups: dict[str, str] = {}
    section = ""
    for number, line in enumerate(lines, 1):
        if line.startswith(":"):
            section = line[1:].strip()
        elif "\t" in line:
            word, _, group = line.partition("\t")
            groups[word.strip()] = group.strip()
        elif section:
            groups |= dict.fromkeys(line.split(), section)
        elif line.strip():
            raise NlpkitError(
                f"{name}: line {number}: no group", hint="word<TAB>group, or a line ': group'"
            )
    if not groups:
        raise NlpkitError(f"{name}: no groups in it", hint="word<TAB>group, one per line")
    return groups


def read_relations(lines: Iterable[str], name: str) -> list[tuple[str, str]]:
    """Pairs of words, one or two to a line; a line of ``: section`` or ``#`` is passed over.

    >>> read_relations(["king queen", "france paris italy rome"], "f")
    [('king', 'queen'), ('france', 'paris'), ('italy', 'rome')]
    """
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith((":", "#")):
            continue
        if len(words) not in (2, 4):
            raise NlpkitError(
                f"{name}: line {number}: {len(words)} words", hint="two words, or two pairs"
            )
        pairs |= dict.fromkeys(zip(words[::2], words[1::2], strict=True))
    if not pairs:
        raise NlpkitError(f"{name}: no pairs in it", hint="king queen, one pair per line")
    return list(pairs)


def cluster_groups(
    words: Sequence[str], matrix: NDArray[np.float32], count: int, seed: int
) -> dict[str, str]:
    """A group for each word, by k-means of unit vectors; named by the word nearest to its middle.

    >>> points = np.array([[1, 0], [9, 1], [0, 2], [1, 7]], np.float32)
    >>> cluster_groups(["a", "b", "c", "d"], points, 2, 1) == {
    ...     "a": "like a", "b": "like a", "c": "like c", "d": "like c"}
    True
    """
    units = unit_rows(np.asarray(matrix)).astype(np.float64)  # (N, D)
    count = min(count, len(words))
    generator = np.random.default_rng(seed)
    places = [int(generator.integers(len(units)))]
    while len(places) < count:  # each next one is far from those before (Gonzalez 1985)
        places.append(int((units @ units[places].T).max(axis=1).argmin()))
    middles = units[places]  # (K, D)
    for _ in range(KMEANS_ROUNDS):
        owners = (units @ middles.T).argmax(axis=1)
        sums = np.zeros_like(middles)
        np.add.at(sums, owners, units)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), middles)
        if np.allclose(moved, middles):
            break
        middles = moved
    products = units @ middles.T  # (N, K)
    owners = products.argmax(axis=1)
    inside = np.where(owners[:, None] == np.arange(count), products, -np.inf)
    names = [f"like {words[place]}" for place in inside.argmax(axis=0)]
    return {word: names[owner] for word, owner in zip(words, owners.tolist(), strict=True)}


def content_words(words: Iterable[str], count: int) -> list[str]:
    """The first ``count`` words that are neither stop words nor punctuation nor numbers.

    >>> content_words(["the", ",", "king", "12", "queen"], 2)
    ['king', 'queen']
    """
    kept: list[str] = []
    for word in words:
        if len(kept) == count:
            break
        if word.lower() not in ENGLISH_STOPWORDS and any(letter.isalpha() for letter in word):
            kept.append(word)
    return kept


def group_numbers(words: Sequence[str], groups: dict[str, str]) -> tuple[list[str], list[int]]:
    """Names of groups in order of appearance, and for each word the number of its group or -1."""
    names = list(dict.fromkeys(groups[word] for word in words if word in groups))
    numbers = {name: number for number, name in enumerate(names)}
    return names, [numbers[groups[word]] if word in groups else -1 for word in words]
