"""Walks over graphs: along edges only, in the proportions of node2vec, the same for a seed."""

import itertools
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.word2vec.walk_settings import WalkSettings
from nlpkit.word2vec.walks import Graph, random_walks, read_graph


def graph_of(text: str, **changes: object) -> Graph:
    lines = [(f"edges: line {i}", line) for i, line in enumerate(text.splitlines(), 1)]
    return read_graph(lines, WalkSettings(**changes))  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20),
    st.booleans(),
    st.sampled_from([0.25, 1.0, 4.0]),
)
def test_every_step_is_an_edge(edges: list[tuple[int, int]], directed: bool, q: float) -> None:
    chosen = WalkSettings(walks=2, length=6, q=q, p=0.5, directed=directed)
    graph = graph_of("".join(f"{a} {b}\n" for a, b in edges), directed=directed)
    allowed = {(str(a), str(b)) for a, b in edges}
    allowed |= set() if directed else {(b, a) for a, b in allowed}
    walks = list(random_walks(graph, chosen))
    nodes = {str(node) for edge in edges for node in edge}
    assert Counter(walk[0] for walk in walks) == dict.fromkeys(nodes, 2)
    for walk in walks:
        assert all(step in allowed for step in itertools.pairwise(walk))
        if len(walk) < 6:  # nothing leads on
            assert not any(a == walk[-1] for a, _ in allowed)


def second_steps(p: float, q: float) -> dict[str, float]:
    """From t to v, and then where to? x is a neighbour of both, y of v alone (weight 2)."""
    graph = graph_of("t v 1\nt x 1\nv x 1\nv y 2\n")
    chosen = WalkSettings(walks=20_000, length=3, p=p, q=q)
    walks = [walk for walk in random_walks(graph, chosen) if walk[:2] == ["t", "v"]]
    found = Counter(walk[2] for walk in walks)
    return {node: count / len(walks) for node, count in found.items()}


@pytest.mark.parametrize(("p", "q"), [(1, 1), (0.25, 4), (4, 0.5)])
def test_steps_are_biased_as_in_the_paper(p: float, q: float) -> None:
    weights = {"t": 1 / p, "x": 1.0, "y": 2 / q}
    found = second_steps(p, q)
    for node, weight in weights.items():
        assert found[node] == pytest.approx(weight / sum(weights.values()), abs=0.02)


def test_steps_that_are_hardly_wanted_are_drawn_by_their_weights_and_in_little_time() -> None:
    graph = graph_of("a b 1\na c 3\nb c 1\n")  # each step is one in a million for q
    started = time.process_time()
    walks = list(random_walks(graph, WalkSettings(walks=4000, length=3, p=0.5, q=1e-6)))
    assert time.process_time() - started < 20  # and most of that to compile
    found = Counter(walk[2] for walk in walks if walk[:2] == ["b", "a"])
    assert found["b"] / found.total() == pytest.approx(2 / 5, abs=0.03)


def test_the_same_seed_gives_the_same_walks_and_another_does_not() -> None:
    graph = graph_of("a b\nb c\nc a\nc d\n")
    walks = [list(random_walks(graph, WalkSettings(seed=seed))) for seed in (1, 1, 2)]
    assert walks[0] == walks[1] != walks[2]
    assert len({tuple(walk) for walk in walks[0]}) > 30


def test_an_edge_given_twice_is_one_edge() -> None:
    plain = graph_of("# comment\na b\nb a\n\na b\n")
    assert plain.starts.tolist() == [0, 1, 2]
    assert plain.neighbours.tolist() == [1, 0]
    weighted = graph_of("a\tb\t1\na\tc\t1\nb\ta\t2\n")
    np.testing.assert_allclose(weighted.totals[:2], [3, 4])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\nc\n", "edges: line 2: expected two nodes and perhaps a weight, found 1 column"),
        ("a b c d\n", "line 1: .* found 4 columns"),
        ("a b x\n", "line 1: 'x' is no weight"),
        ("a b -1\n", "line 1: '-1' is no weight"),
        ("a b nan\n", "is no weight"),
        ("a b 1\nb c\n", "line 2: some edges have a weight"),
        ("a b\nb c 1\n", "line 2: some edges have a weight"),
        ("new york\tparis\n", "cannot be one token"),
        ("# nothing\n", "no edges"),
    ],
)
def test_a_bad_edge_list_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(NlpkitError, match=message):
        graph_of(text)
