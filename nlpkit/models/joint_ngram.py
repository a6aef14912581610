"""A joint n-gram model of pairs (Bisani and Ney, 2008): how words sound, by counting.

Each token of the source writes none to three of the target, in order. Such a unit, ``x -> k s``, is
a word of an n-gram model, and a pair is a sentence of units. Nobody says which units a pair is made
of: expectation-maximization finds how likely each unit is by itself, and the likeliest alignment of
every pair is then the text that a Kneser-Ney model counts.

It errs elsewhere than a network does, so the two together are better than either
(``tasks/translate/rerank.py``).

Shapes: B pairs, S source tokens, T target tokens, K = 4 numbers of tokens that one may write.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError, NlpkitWarning
from nlpkit.models.kneser_ney import HIGHEST_ORDER, Trie, kneser_ney
from nlpkit.training.batches import Ragged

MOST = 3  # target tokens of a unit
NEVER = -1e3  # the log-probability of a pair that no units can make
_MARK, _UNSEEN, _FIRST = 0, 1, 2  # words of the n-gram model before the units
_FILE = "joint.json"
_ITERATIONS, _LEARNED = 5, 50_000  # of expectation-maximization, on so many pairs
_LONGEST = 400  # source tokens of a pair that is learned from: longer ones could underflow
_RARE = 0.5  # expected count below which a unit is left out
_FLOOR = -20.0  # the log-probability of a unit that was not seen, when pairs are aligned
_CELLS = 1 << 20  # of the lattices that are there at once


@dataclass
class _Saved:
    """What ``joint.json`` holds."""

    weight: float
    units: list[int]
    logs: list[float]
    levels: list[int]


class JointNgram:
    """Units with their log-probabilities, and the n-gram model over them.

    >>> pairs = [[5, 6], [6, 5], [5, 5, 6]] * 20
    >>> model = JointNgram.train(pairs, [[8, 9, 9], [9, 9, 8], [8, 8, 9, 9]] * 20, target_vocab=10)
    >>> good, bad = model.score([[6, 6], [6, 6]], [[9, 9, 9, 9], [8, 8]])
    >>> bool(good > bad)
    True
    """

    def __init__(
        self,
        units: NDArray[np.int64],  # (U,) sorted keys, see ``_lattice``
        logs: NDArray[np.float64],  # (U,)
        trie: Trie,
        target_vocab: int,
        weight: float = 1.0,
    ) -> None:
        self.units, self.logs, self.trie, self.target_vocab = units, logs, trie, target_vocab
        self.weight = weight  # of its log-probability beside a network's

    # --- training -------------------------------------------------------------------------------

    @classmethod
    def train(
        cls,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        target_vocab: int,
        order: int = HIGHEST_ORDER,
    ) -> JointNgram | None:
        """Count pairs. Long ones, and those with more than three times as many target tokens, teach
        nothing; none if that is all of them."""
        possible = [
            (source, target)
            for source, target in zip(sources, targets, strict=True)
            if len(target) <= MOST * len(source) and 0 < len(source) <= _LONGEST
        ]
        if not possible:
            return None
        sources, targets = zip(*possible, strict=True)
        step = -(-len(sources) // _LEARNED)
        units, logs = _expect(sources[::step], targets[::step], target_vocab)
        text: list[NDArray[np.int32]] = [np.array([_MARK], np.int32)]
        for words, reached in _aligned(sources, targets, target_vocab, units, logs):
            kept = np.pad(words[reached], ((0, 0), (0, 1)), constant_values=_MARK)  # ends
            text.append(kept[kept >= 0].astype(np.int32))
        size = _FIRST + len(units)
        together = np.concatenate(text)
        with warnings.catch_warnings():  # of few pairs discounts are guessed, which is good enough
            warnings.simplefilter("ignore", NlpkitWarning)
            trie = kneser_ney(together, min(order, len(together)), size, _MARK)
        return cls(units, logs, trie, target_vocab)

    # --- use ------------------------------------------------------------------------------------

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> NDArray[np.float64]:
        """The log-probability of each pair, by its likeliest alignment (B,)."""
        found = np.full(len(sources), NEVER)
        place = 0
        for words, reached in _aligned(sources, targets, self.target_vocab, self.units, self.logs):
            rows = np.pad(words, ((0, 0), (0, 1)), constant_values=_MARK)
            inside = rows >= 0
            logs, _ = self.trie.score(rows[inside].astype(np.int32), self.trie.start)
            each = np.zeros(rows.shape)
            each[inside] = logs
            totals = np.where(reached, each.sum(axis=1), NEVER)
            found[place : place + len(rows)] = np.maximum(totals, NEVER)
            place += len(rows)
        return found

    # --- files ----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write the model into a folder that ``modeldir.create`` gave."""
        saved = _Saved(self.weight, self.units.tolist(), self.logs.tolist(), list(self.trie.levels))
        modeldir.write_text(folder / _FILE, json.dumps(vars(saved)) + "\n")
        self.trie.write(folder)

    @classmethod
    def read(cls, folder: Path, target_vocab: int) -> JointNgram | None:
        """What ``write`` wrote; none where there is none."""
        file = folder / _FILE
        if not file.is_file():
            return None
        saved = schema.read(_Saved, modeldir.read_json(file), str(file))
        units, logs = np.array(saved.units, np.int64), np.array(saved.logs)
        rising = bool((units[1:] > units[:-1]).all())
        finite = bool(np.isfinite(logs).all()) and math.isfinite(saved.weight)
        if not (len(units) == len(logs) and len(units) and rising and finite):
            raise NlpkitError(
                f"{file}: units and their probabilities do not fit", hint=schema.AGAIN
            )
        trie = Trie.read(folder, _FIRST + len(units), _MARK, saved.levels)
        return cls(units, logs, trie, target_vocab, saved.weight)


def _lattice(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], target_vocab: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys of all units of some pairs, (B, S, T + 1, K), and the lengths of targets (B,).

    ``[b, i, j, k]`` is: source token i writes k target tokens from place j on. A key has the
    source token and three target tokens as its digits; -1 where there is no such unit, and a
    padded source token writes nothing, which is -2.

    >>> keys, _ = _lattice([[1]], [[2]], target_vocab=10)
    >>> keys[0, 0].tolist()
    [[1331, 1694, -1, -1], [1331, -1, -1, -1]]
    """
    base = target_vocab + 1
    source = Ragged(sources).pad(range(len(sources)), -1).ids
    target = Ragged(targets).pad(range(len(targets)), -1).ids
    lengths = np.array([len(row) for row in targets])
    count, width = target.shape
    keys = np.full((count, source.shape[1], width + 1, MOST + 1), -1, np.int64)
    written = np.zeros((count, width + 1), np.int64)  # digits of the tokens from j on
    starts = np.arange(width + 1)
    inside = starts <= lengths[:, None]  # (B, T + 1)
    for number in range(MOST + 1):
        if number:
            here = np.full_like(written, -1)
            here[:, : max(0, width + 1 - number)] = target[:, number - 1 :]
            written += (here + 1) * base ** (MOST - number)
            inside = starts + number <= lengths[:, None]
        unit = source[:, :, None] * base**MOST + written[:, None]  # (B, S, T + 1)
        padding = -2 if number == 0 else -1
        unit = np.where(source[:, :, None] < 0, padding, unit)
        keys[..., number] = np.where(inside[:, None], unit, -1)
    return keys, lengths


def _batches(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Iterator[tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]]:
    """Pairs in order, as many as have lattices of ``_CELLS`` cells."""
    start = most_s = most_t = 0
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        most_s, most_t = max(most_s, len(source)), max(most_t, len(target))
        cells = (number + 1 - start) * most_s * (most_t + 1) * (MOST + 1)
        if cells > _CELLS and number > start:
            yield sources[start:number], targets[start:number]
            start, most_s, most_t = number, len(source), len(target)
    if start < len(sources):
        yield sources[start:], targets[start:]


def _expect(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], target_vocab: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Units and their log-probabilities by expectation-maximization."""
    order = sorted(range(len(sources)), key=lambda n: (len(sources[n]), len(targets[n])))
    sources, targets = [sources[n] for n in order], [targets[n] for n in order]
    groups = [_lattice(*group, target_vocab) for group in _batches(sources, targets)]
    units = np.unique(np.concatenate([np.unique(keys[keys >= 0]) for keys, _ in groups]))
    places = [(_find(units, keys), lengths) for keys, lengths in groups]
    chances: NDArray[np.float64] = np.ones(len(units))
    counts = chances
    for _ in range(_ITERATIONS):
        # behind the units: padding, which writes nothing, and what is no unit
        table = np.concatenate([chances, [1.0, 0.0]])
        found = (
            np.bincount(where.ravel(), _posteriors(table[where], lengths).ravel(), len(table))
            for where, lengths in places
        )
        counts = np.sum(list(found), axis=0)[: len(units)]
        chances = counts / counts.sum()
    kept = counts >= min(_RARE, counts.max())
    return units[kept], np.log(counts[kept] / counts[kept].sum())


def _posteriors(chances: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """How likely each unit of the lattice (B, S, T + 1, K) is, given the pair.

    alpha says how likely what stands before is, beta what stands behind. Every source token is in
    one unit, so the units of a source token have a sum of 1, whatever alpha and beta are scaled by.
    """
    count, steps, width, _ = chances.shape
    rows = np.arange(count)
    alpha = np.zeros((count, steps + 1, width))
    beta = np.zeros_like(alpha)
    alpha[:, 0, 0] = beta[rows, steps, lengths] = 1.0
    for step in range(steps):
        for k in range(min(MOST + 1, width)):
            come = alpha[:, step, : width - k] * chances[:, step, : width - k, k]
            alpha[:, step + 1, k:] += come
        _rescale(alpha[:, step + 1])
    for step in reversed(range(steps)):
        for k in range(min(MOST + 1, width)):
            beta[:, step, : width - k] += beta[:, step + 1, k:] * chances[:, step, : width - k, k]
        _rescale(beta[:, step])
    found = alpha[:, :-1, :, None] * chances
    for k in range(MOST + 1):
        found[:, :, : max(0, width - k), k] *= beta[:, 1:, k:]
    total = found.sum(axis=(2, 3), keepdims=True)
    return np.divide(found, total, out=np.zeros_like(found), where=total > 0)


def _rescale(rows: NDArray[np.float64]) -> None:
    """Rows (B, T + 1) with a sum of 1, where there is any."""
    total = rows.sum(axis=1, keepdims=True)
    np.divide(rows, total, out=rows, where=total > 0)


def _find(units: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of keys among U units: U for padding, U + 1 for what is no unit of them."""
    at = np.minimum(np.searchsorted(units, keys), len(units) - 1)
    found = np.where(units[at] == keys, at, len(units) + 1)
    return np.where(keys == -2, len(units), found)


def _aligned(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    target_vocab: int,
    units: NDArray[np.int64],
    logs: NDArray[np.float64],
) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
    """The likeliest alignment of pairs, some at a time: words of the n-gram model (B, S), -1 behind
    the source's end, and which pairs (B,) have an alignment at all."""
    table = np.concatenate([logs, [0.0, _FLOOR]])
    words = np.concatenate([np.arange(len(units)) + _FIRST, [-1, _UNSEEN]])
    for group in _batches(sources, targets):
        keys, lengths = _lattice(*group, target_vocab)
        where = _find(units, keys)
        scores = np.where(keys == -1, -np.inf, table[where])
        count, steps, width, _ = scores.shape
        best = np.full((count, width), -np.inf)
        best[:, 0] = 0.0
        chosen = np.zeros((count, steps, width), np.int8)
        for step in range(steps):
            come = np.full((count, width, MOST + 1), -np.inf)
            for k in range(min(MOST + 1, width)):
                come[:, k:, k] = best[:, : width - k] + scores[:, step, : width - k, k]
            chosen[:, step] = come.argmax(axis=2)
            best = come.max(axis=2)
        rows, place = np.arange(count), lengths.copy()
        reached = np.isfinite(best[rows, place])
        found = np.zeros((count, steps), np.int64)
        for step in reversed(range(steps)):
            k = chosen[rows, step, place].astype(np.int64)
            place = np.maximum(place - k, 0)
            found[:, step] = words[where[rows, step, place, k]]
        yield found, reached
