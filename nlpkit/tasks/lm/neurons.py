"""Units that stand for something: correlate every unit of a recurrent model with features of text.

Karpathy, Johnson and Fei-Fei (2015), "Visualizing and understanding recurrent networks", found
cells that are on inside quotes or brackets and cells that count the characters of a line. Here each
unit is compared with simple features on one part of a text; how well the best ones do is said for
another part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nlpkit.errors import NlpkitError

_URL = re.compile(r"\b(?:https?://|www\.)\S+")
_COMMENT = re.compile(r"#[^\n]*|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LEAST = 1e-9
_OPENING, _QUOTES = ("“", "``", "«"), ('"', "“", "”", "``", "''", "«", "»")
_BRACKETS, _CLOSE = ("(", "[", "{", "-LRB-"), (")", "]", "}", "-RRB-")


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


def word_features(tokens: Sequence[str]) -> dict[str, np.ndarray]:
    """Features of each word of a text.

    >>> found = word_features(["He", "met", "(", "Mr.", "Ford", ")", "."])
    >>> found["brackets"].tolist(), found["capital"].tolist()[:5]
    ([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0, 1.0])
    """
    found = {name: np.zeros(len(tokens)) for name in ("quotes", "brackets", "sentence")}
    quoted, depth, since_stop = False, 0, 0
    for place, token in enumerate(tokens):
        is_quote = token in _QUOTES
        quoted = (token in _OPENING or (token == '"' and not quoted)) if is_quote else quoted
        depth = max(0, depth - (token in _CLOSE))
        found["quotes"][place] = float(quoted and not is_quote)
        found["brackets"][place] = float(depth > 0)
        found["sentence"][place] = since_stop
        depth += token in _BRACKETS
        since_stop = 0 if token in (".", "!", "?") else since_stop + 1
    checks: dict[str, Callable[[str], bool]] = {
        "capital": lambda token: token[:1].isupper(),
        "upper": lambda token: len(token) > 1 and token.isupper(),
        "digit": lambda token: any(letter.isdigit() for letter in token),
        "punctuation": lambda token: not any(letter.isalnum() for letter in token),
        "url": lambda token: _URL.match(token) is not None,
    }
    for name, check in checks.items():
        found[name] = np.array([float(check(token)) for token in tokens])
    found["length"] = np.array([float(len(token)) for token in tokens])
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


def token_features(tokens: Sequence[str]) -> dict[str, np.ndarray]:
    """The features of the text that tokens make together, where each of them begins."""
    text = "".join(tokens)
    starts = np.cumsum([0, *(len(token) for token in tokens[:-1])])
    starts = np.minimum(starts, max(0, len(text) - 1))
    return {name: values[starts] for name, values in text_features(text).items()}


def find_neurons(
    states: np.ndarray, features: Mapping[str, np.ndarray], count: int = 10
) -> list[dict[str, Any]]:
    """The units (layers, T, units) that follow a feature (T,) best, by the first half of the text.

    ``correlation`` is that in the second half, which had no part in the choice.
    """
    if states.shape[1] < 100:
        raise NlpkitError(
            f"{states.shape[1]} tokens are too few to find anything in", hint="a page"
        )
    layers, length, units = states.shape
    flat = states.transpose(1, 0, 2).reshape(length, layers * units)
    half = length // 2
    rows = []
    for name, feature in features.items():
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
