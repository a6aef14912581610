"""How walks over a graph are made: names and defaults, and nothing heavy to import."""

from __future__ import annotations

from dataclasses import dataclass

from nlpkit.settings import LONGEST, MODEL, check, option


@dataclass(frozen=True)
class WalkSettings:
    """Settings of node2vec's walks; p and q of 1 make them DeepWalk's."""

    walks: int = option(
        10, "Walks from each node.", low=1, high=1_000_000, metavar="N", group=MODEL
    )
    length: int = option(80, "Nodes of a walk.", low=1, high=LONGEST, metavar="N", group=MODEL)
    p: float = option(
        1.0, "Low values go back to where the walk came from.", low=1e-6, high=1e6, group=MODEL
    )
    q: float = option(
        1.0, "Low values walk away, high ones stay near.", low=1e-6, high=1e6, group=MODEL
    )
    directed: bool = option(False, "Edges lead from the first node to the second only.")
    seed: int = 1

    def __post_init__(self) -> None:
        check(self)
