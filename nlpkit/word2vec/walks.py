"""Random walks over a graph as sentences of node names: what makes word2vec node2vec.

A walk that came from t and stands at v goes on to a neighbour x of v with a chance that is
proportional to the weight of the edge v-x, times (Grover and Leskovec 2016)

    1/p  if x is t itself,    1  if x is a neighbour of t,    1/q  if it is farther away

so a low q walks far (nodes are alike when they play the same part), a low p stays near home.
Instead of a table for every edge, a neighbour is drawn by weight alone and then kept or drawn again
(rejection sampling): memory is that of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.kernels.compiling import kernel
from nlpkit.word2vec.sampling import advance, seeded
from nlpkit.word2vec.walk_settings import WalkSettings

Ints = NDArray[np.int32]

_MOST_TRIED = 64  # draws of a neighbour that are not taken
_WALKS_AT_ONCE = 1024
_SCALE = 1.0 / (1 << 53)


@dataclass(frozen=True)
class Graph:
    """Nodes by name, and the neighbours of each as one sorted stretch of an array.

    >>> graph = read_graph([("line 1", "a b"), ("line 2", "b c")], WalkSettings())
    >>> graph.names, graph.neighbours[graph.starts[1] : graph.starts[2]].tolist()  # of b
    (['a', 'b', 'c'], [0, 2])
    """

    names: list[str]
    starts: NDArray[np.int64]  # (N + 1,)
    neighbours: Ints  # (E,)
    totals: NDArray[np.float64]  # (E,) running sums of weights within a node; empty: all equal


def read_graph(lines: Iterable[tuple[str, str]], settings: WalkSettings) -> Graph:
    """A graph from the lines of an edge list, each after where it stands: two nodes, and perhaps a
    weight.

    Columns stand between tabs or spaces; empty lines and lines that begin with # are passed over.
    """
    ids: dict[str, int] = {}
    sources: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    for where, line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.rstrip("\r\n").split("\t") if "\t" in line else line.split()
        if len(fields) not in (2, 3):
            columns = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            raise NlpkitError(
                f"{where}: expected two nodes and perhaps a weight, found {columns}",
                hint="node<TAB>node<TAB>weight",
            )
        for node in fields[:2]:
            if not node or any(character.isspace() for character in node):
                raise NlpkitError(
                    f"{where}: {node!r} cannot be one token", hint="names without spaces: New_York"
                )
        sources.append(ids.setdefault(fields[0], len(ids)))
        targets.append(ids.setdefault(fields[1], len(ids)))
        if len(fields) == 3:
            weights.append(_weight(fields[2], where))
        if weights and len(weights) != len(sources):
            raise NlpkitError(
                f"{where}: some edges have a weight and some have none", hint="a weight for each"
            )
    if not sources:
        raise NlpkitError("no edges to walk on", hint="node<TAB>node lines")
    return build_graph(
        list(ids),
        np.array(sources, np.int64),
        np.array(targets, np.int64),
        np.array(weights) if weights else None,
        directed=settings.directed,
    )


def _weight(text: str, where: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise NlpkitError(f"{where}: {text!r} is no weight", hint="a number above 0")
    return weight


def build_graph(
    names: list[str],
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
    *,
    directed: bool = False,
) -> Graph:
    """A graph from edges by number. Edges given twice are one, with the sum of their weights."""
    size = len(names)
    if not directed:
        loops = sources == targets
        sources, targets = (
            np.concatenate([sources, targets[~loops]]),
            np.concatenate([targets, sources[~loops]]),
        )
        weights = None if weights is None else np.concatenate([weights, weights[~loops]])
    keys, place = np.unique(sources * size + targets, return_inverse=True)
    starts = np.searchsorted(keys, np.arange(size + 1) * size)
    totals = np.zeros(0)
    if weights is not None:
        running = np.cumsum(np.bincount(place, weights, len(keys)))
        before = np.concatenate([[0.0], running])[starts[:-1]]
        totals = running - np.repeat(before, np.diff(starts))
    return Graph(names, starts.astype(np.int64), (keys % size).astype(np.int32), totals)


def random_walks(graph: Graph, settings: WalkSettings) -> Iterator[list[str]]:
    """Walks from every node, ``settings.walks`` times over, in a new order each time.

    A walk ends early where no edge leads on. The same seed gives the same walks.

    >>> graph = read_graph([("line 1", "a b")], WalkSettings())
    >>> list(random_walks(graph, WalkSettings(walks=1, length=3)))
    [['a', 'b', 'a'], ['b', 'a', 'b']]
    """
    names = np.array(graph.names, dtype=object)
    size = len(names)
    room = np.empty((_WALKS_AT_ONCE, settings.length), np.int32)
    lengths = np.empty(_WALKS_AT_ONCE, np.int64)
    for turn in range(settings.walks):
        order = np.random.default_rng((settings.seed, turn)).permutation(size).astype(np.int32)
        for start in range(0, size, _WALKS_AT_ONCE):
            some = order[start : start + _WALKS_AT_ONCE]
            _walk(
                graph.starts,
                graph.neighbours,
                graph.totals,
                some,
                settings.seed,
                turn * size + start,
                1 / settings.p,
                1 / settings.q,
                room,
                lengths,
            )
            for row, length in zip(room[: len(some)], lengths.tolist(), strict=False):
                yield names[row[:length]].tolist()


@kernel()
def _uniform(state: np.uint64) -> float:
    """A number from 0 to below 1, of the upper 53 bits."""
    return np.float64(state >> np.uint64(11)) * _SCALE


@kernel()
def _draw(
    starts: NDArray[np.int64],
    neighbours: Ints,
    totals: NDArray[np.float64],
    node: int,
    share: float,
) -> int:
    """A neighbour of a node by weight; ``share`` is a random number from 0 to below 1."""
    first, last = starts[node], starts[node + 1]
    if not len(totals):
        return neighbours[first + np.int64(share * (last - first))]
    wanted = share * totals[last - 1]
    low, high = first, last - 1
    while low < high:
        middle = (low + high) // 2
        if totals[middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return neighbours[low]


@kernel()
def _are_neighbours(starts: NDArray[np.int64], neighbours: Ints, node: int, other: int) -> bool:
    low, high = starts[node], starts[node + 1]
    while low < high:
        middle = (low + high) // 2
        if neighbours[middle] < other:
            low = middle + 1
        else:
            high = middle
    return low < starts[node + 1] and neighbours[low] == other


@kernel()
def _bias(
    starts: NDArray[np.int64], neighbours: Ints, before: int, there: int, back: float, away: float
) -> float:
    """How much a walk that came from ``before`` wants to go there."""
    if there == before:
        return back
    if away != 1.0 and _are_neighbours(starts, neighbours, before, there):
        return 1.0
    return away


@kernel()
def _draw_by_bias(
    starts: NDArray[np.int64],
    neighbours: Ints,
    totals: NDArray[np.float64],
    node: int,
    before: int,
    back: float,
    away: float,
    share: float,
) -> int:
    """A neighbour of a node by weight and bias, for which all of them are looked at."""
    first, last = starts[node], starts[node + 1]
    wanted = 0.0
    for turn in range(2):  # the sum, then the place in it
        done = 0.0
        for i in range(first, last):
            weight = 1.0
            if len(totals):
                weight = totals[i] - (totals[i - 1] if i > first else 0.0)
            done += weight * _bias(starts, neighbours, before, neighbours[i], back, away)
            if turn and done > wanted:
                return neighbours[i]
        wanted = share * done
    return neighbours[last - 1]


@kernel()
def _walk(
    starts: NDArray[np.int64],
    neighbours: Ints,
    totals: NDArray[np.float64],
    first: Ints,
    seed: int,
    number: int,
    back: float,
    away: float,
    room: Ints,
    lengths: NDArray[np.int64],
) -> None:
    """Fill ``room`` (walks, length) with walks from the nodes ``first``."""
    highest = max(1.0, back, away)
    plain = back == 1.0 and away == 1.0
    for w in range(len(first)):
        state = seeded(seed, number + w)
        room[w, 0] = first[w]
        here, before = first[w], -1
        length = 1
        while length < room.shape[1] and starts[here] < starts[here + 1]:
            there = -1
            for _ in range(1 if plain or before < 0 else _MOST_TRIED):
                state = advance(state)
                candidate = _draw(starts, neighbours, totals, here, _uniform(state))
                bias = highest
                if not plain and before >= 0:
                    bias = _bias(starts, neighbours, before, candidate, back, away)
                    state = advance(state)
                if plain or before < 0 or _uniform(state) * highest < bias:
                    there = candidate
                    break
            if there < 0:  # hardly any neighbour is wanted
                state = advance(state)
                there = _draw_by_bias(
                    starts, neighbours, totals, here, before, back, away, _uniform(state)
                )
            room[w, length] = there
            length += 1
            before, here = here, there
        lengths[w] = length
