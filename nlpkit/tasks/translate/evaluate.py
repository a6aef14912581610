"""How good a model's answers are, and how that depends on the length of the source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nlpkit.metrics.text import bleu
from nlpkit.plots import figure, label, save_figure
from nlpkit.tasks.translate.codecs import SideCodec
from nlpkit.tasks.translate.data import Pair
from nlpkit.text.subwords import Subwords

_BUCKETS = 6


class LengthScore(NamedTuple):
    """BLEU of the pairs whose source has so many words."""

    shortest: int
    longest: int
    pairs: int
    bleu: float


def token_splitter(codec: SideCodec) -> Callable[[str], Sequence[str]]:
    """What error rates are counted in: words, or the tokens of a model that has no words."""
    if isinstance(codec.tokens, Subwords):
        return str.split
    return lambda text: [token for token, _ in codec.tokens.split(text)]


def scores_by_length(
    pairs: Sequence[Pair], answers: Sequence[str], buckets: int = _BUCKETS
) -> list[LengthScore]:
    """BLEU of sources of like length, each bucket with about as many pairs.

    >>> pairs = [Pair("a " * n, "b " * n) for n in range(1, 9)]
    >>> [(one.shortest, one.longest) for one in scores_by_length(pairs, ["b"] * 8, 2)]
    [(1, 4), (5, 8)]
    """
    order = sorted(range(len(pairs)), key=lambda n: len(pairs[n].source.split()))
    size = -(-len(order) // buckets)
    found = []
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        lengths = [len(pairs[n].source.split()) for n in rows]
        score = bleu([answers[n] for n in rows], [pairs[n].target for n in rows]).score
        found.append(LengthScore(lengths[0], lengths[-1], len(rows), score))
    return found


def draw_lengths(curves: dict[str, list[LengthScore]], path: str) -> None:
    """BLEU over the length of the source, a line for each model."""
    drawn, axes = figure()
    for name, curve in curves.items():
        middle = [(one.shortest + one.longest) / 2 for one in curve]
        axes.plot(middle, [one.bleu for one in curve], marker="o", label=label(name))
    axes.set_xlabel("words of the source")
    axes.set_ylabel("BLEU")
    axes.set_ylim(bottom=0)
    if len(curves) > 1:
        axes.legend()
    save_figure(drawn, path)
