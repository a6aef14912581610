"""Samples of a name model beside its training names: novelty, nearest names, lengths, letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_SHOWN = 10  # samples whose nearest training name is looked up
COLOURS = ("#2a78c2", "#e08e0b")  # samples, training names


def nearest_name(text: str, names: Sequence[str]) -> tuple[str, int]:
    """The first of the names at the smallest edit distance, and how far that is.

    >>> nearest_name("Hana", ["Anna", "Bert"])
    ('Anna', 2)
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import extractOne

    name, distance, _ = extractOne(text, names, scorer=Levenshtein.distance)
    return name, int(distance)


def compare(samples: Sequence[str], trained_on: Sequence[str]) -> dict[str, Any]:
    """The numbers of a report.

    >>> compare(["Anna", "Ana"], ["Anna"])["known"]
    0.5
    """
    known = set(trained_on)
    nearest = []
    for text in list(dict.fromkeys(samples))[:_SHOWN]:
        name, distance = nearest_name(text, trained_on)
        nearest.append({"name": text, "nearest": name, "distance": distance})
    return {
        "samples": len(samples),
        "known": sum(text in known for text in samples) / len(samples),
        "distinct": len(set(samples)) / len(samples),
        "nearest": nearest,
        "lengths": _beside((len(text) for text in samples), (len(text) for text in known)),
        "letters": _beside("".join(samples), "".join(known)),
    }


def _beside(samples: Iterable[Any], names: Iterable[Any]) -> dict[str, list[float]]:
    """The share of each value in samples and in training names."""
    counts = [Counter(samples), Counter(names)]
    totals = [sum(count.values()) for count in counts]
    values = sorted(counts[0].keys() | counts[1].keys())
    return {
        str(value): [count[value] / total for count, total in zip(counts, totals, strict=True)]
        for value in values
    }


def draw(record: dict[str, Any], path: str) -> None:
    """Lengths and letters as two bar charts in one picture."""
    from matplotlib.figure import Figure

    from nlpkit.plots import hover, label, save_figure

    drawn = Figure(figsize=(10, 7), layout="constrained")
    for axes, title in zip(drawn.subplots(2), ("lengths", "letters"), strict=True):
        shares = record[title]
        places = np.arange(len(shares))
        for shift, name, column in ((-0.2, "samples", 0), (0.2, "training names", 1)):
            heights = [pair[column] for pair in shares.values()]
            bars = axes.bar(places + shift, heights, 0.4, label=name, color=COLOURS[column])
            hover(
                bars, [f"{value}: {pair[column]:.1%} of {name}" for value, pair in shares.items()]
            )
        axes.set_xticks(places, list(map(label, shares)))
        axes.set_title(title)
        axes.set_xlabel("characters in a name" if title == "lengths" else "character")
        axes.set_ylabel("share")
        axes.grid(alpha=0.3, axis="y")
        axes.legend()
    save_figure(drawn, path)
