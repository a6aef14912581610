"""Units that stand for something: correlate every unit of a recurrent model with features of text.

Karpathy, Johnson and Fei-Fei (2015), "Visualizing and understanding recurrent networks", found
cells that are on inside quotes or brackets and cells that count the characters of a line. Here each
unit is compared with simple features on one part of a text; how well the best ones do is said for
another part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from nlpkit.errors import NlpkitError

_URL = re.compile(r"\b(?:https?://|www\.)\S+")
_COMMENT = re.compile(r"#[^\n]*|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LEAST = 1e-9


def text_features(text: str) -> dict[str, np.ndarray]:
    """Features of each character of a text.

    >>> text_features('a "b" (c)')["quotes"].tolist()
    [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    size = len(text)
    found = {
        name: np.zeros(size)
        for name in ("quotes", "brackets", "line", "word", "sentence", "indentation")
    }
    quoted, depth = False, 0
    column = letter = since_stop = indent = 0
    leading = True
    for place, character in enumerate(text):
        if character in '"“”':
            quoted = not quoted
        depth = max(0, depth - (character in ")]}"))
        found["quotes"][place] = float(quoted and character not in '"“”')
        found["brackets"][place] = float(depth > 0)
        depth += character in "([{"
        found["line"][place], found["word"][place] = column, letter
        found["sentence"][place], found["indentation"][place] = since_stop, indent
        column += 1
        letter = letter + 1 if character.isalnum() else 0
        since_stop = 0 if character in ".!?" else since_stop + 1
        if leading and character in " \t":
            indent += 1
        elif character != "\n":
            leading = False
        if character == "\n":
            column, indent, leading, quoted = 0, 0, True, False
    found["url"] = _inside(_URL, text)
    found["comment"] = _inside(_COMMENT, text)
    return found


def _inside(pattern: re.Pattern[str], text: str) -> np.ndarray:
    marks = np.zeros(len(text))
    for match in pattern.finditer(text):
        marks[match.start() : match.end()] = 1
    return marks


def correlate(states: np.ndarray, feature: np.ndarray) -> np.ndarray:
    """Pearson's correlation of each unit (T, units) with a feature (T,); 0 for what is constant.

    >>> states = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> correlate(states, np.array([0.0, 2.0, 4.0])).tolist()
    [1.0, 0.0]
    """
    units = states - states.mean(axis=0)
    wanted = feature - feature.mean()
    lengths = np.sqrt((units**2).sum(axis=0) * (wanted**2).sum())
    found: np.ndarray = np.where(
        lengths > _LEAST, units.T @ wanted / np.maximum(lengths, _LEAST), 0
    )
    return found.round(12)


def find_neurons(
    states: np.ndarray, tokens: Sequence[str], count: int = 10
) -> list[dict[str, Any]]:
    """The units (layers, T, units) that follow a feature best, by the first half of the text.

    ``correlation`` is that in the second half, which had no part in the choice.
    """
    text = "".join(tokens)
    if len(tokens) < 100:
        raise NlpkitError(f"{len(tokens)} tokens are too few to find anything in", hint="a page")
    starts = np.cumsum([0, *(len(token) for token in tokens[:-1])])
    starts = np.minimum(starts, max(0, len(text) - 1))
    layers, length, units = states.shape
    flat = states.transpose(1, 0, 2).reshape(length, layers * units)
    half = length // 2
    rows = []
    for name, values in text_features(text).items():
        feature = values[starts]
        if not (feature[:half].std() and feature[half:].std()):
            continue  # it does not occur, or always
        chosen = correlate(flat[:half], feature[:half])
        heldout = correlate(flat[half:], feature[half:])
        best = int(np.abs(chosen).argmax())
        rows += [
            {
                "feature": name,
                "layer": index // units + 1,
                "unit": index % units + 1,
                "correlation": round(float(heldout[index]), 4),
                "chosen_by": round(float(chosen[index]), 4),
            }
            for index in {best, *np.argsort(-np.abs(chosen))[:3].tolist()}
        ]
    return sorted(rows, key=lambda row: -abs(row["correlation"]))[:count]
