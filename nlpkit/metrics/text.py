"""How good texts are that a model wrote: BLEU and chrF by sacrebleu, exact matches, error rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError

_RESAMPLES = 1000


@dataclass(frozen=True)
class TextScore:
    """A score of a whole set, with its 95 % interval by bootstrap."""

    name: str
    score: float
    low: float
    high: float
    signature: str = ""


def bleu(answers: Sequence[str], references: Sequence[str]) -> Any:
    """sacrebleu's corpus BLEU (Papineni et al., 2002): 13a tokens, cased.

    >>> round(bleu(["the cat sat on the mat"], ["the cat sat on the mat"]).score)
    100
    """
    import sacrebleu

    return sacrebleu.corpus_bleu(list(answers), [list(references)])


def exact_matches(answers: Sequence[str], references: Sequence[str]) -> list[bool]:
    """Which answers are their reference.

    >>> exact_matches(["a b", "c"], ["a b", "d"])
    [True, False]
    """
    return [one.strip() == other.strip() for one, other in zip(answers, references, strict=True)]


def edit_distance(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many insertions, deletions and replacements make one of the other (Levenshtein, 1966).

    >>> edit_distance("kitten", "sitting")
    3
    """
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(one, other)


class TextStatistics:
    """What each text adds to each score, from which scores of any selection follow.

    BLEU, chrF, exact matches, edit distance and error rate of tokens, as ``split`` makes them. For
    intervals, texts are drawn anew, with putting back, a thousand times: 95 % of the scores of what
    was drawn are within the interval (Koehn, 2004).
    """

    NAMES = ("bleu", "chrf", "exact", "edit_distance", "token_error_rate")

    def __init__(
        self,
        answers: Sequence[str],
        references: Sequence[str],
        split: Callable[[str], Sequence[str]],
    ) -> None:
        if not answers:
            raise NlpkitError("no texts to score", hint="a file that is not empty")
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        self.metrics: dict[str, Any] = {"bleu": BLEU(), "chrf": CHRF()}
        self.parts: dict[str, NDArray[np.float64]] = {}
        self.signatures: dict[str, str] = {}
        for name, metric in self.metrics.items():
            rows = metric._extract_corpus_statistics(list(answers), [list(references)])
            self.parts[name] = np.array(rows, np.float64)  # (N, statistics)
            metric.corpus_score(list(answers), [list(references)])
            self.signatures[name] = str(metric.get_signature())
        exact = exact_matches(answers, references)
        cut = [(split(one), split(other)) for one, other in zip(answers, references, strict=True)]
        edits = [edit_distance(one, other) for one, other in cut]
        self.parts["exact"] = np.array(exact, np.float64)[:, None]
        self.parts["edits"] = np.array(edits, np.float64)[:, None]
        self.parts["tokens"] = np.array([len(other) for _, other in cut], np.float64)[:, None]
        self.count = len(answers)

    def draws(self, seed: int, times: int = _RESAMPLES) -> NDArray[np.float64]:
        """How often each text is drawn in each selection, (times, N)."""
        generator = np.random.default_rng(seed)
        shares = np.full(self.count, 1 / self.count)
        return generator.multinomial(self.count, shares, size=times).astype(np.float64)

    def scores(self, name: str, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The score of each selection (times,)."""
        if name in self.metrics:
            sums = weights @ self.parts[name]
            metric = self.metrics[name]
            return np.array([metric._compute_score_from_stats(list(row)).score for row in sums])
        if name == "exact":
            return 100 * (weights @ self.parts["exact"])[:, 0] / self.count
        edits = (weights @ self.parts["edits"])[:, 0]
        if name == "edit_distance":
            return edits / self.count
        return 100 * edits / np.maximum(1, (weights @ self.parts["tokens"])[:, 0])

    def whole(self, name: str) -> float:
        """The score of all texts."""
        return float(self.scores(name, np.ones((1, self.count)))[0])

    def interval(self, name: str, draws: NDArray[np.float64]) -> TextScore:
        """The score of all texts, and where that of 95 % of the draws is."""
        low, high = np.percentile(self.scores(name, draws), [2.5, 97.5])
        signature = self.signatures.get(name, "")
        return TextScore(name, self.whole(name), float(low), float(high), signature)


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same texts."""

    name: str
    score: float
    other: float
    p_value: float  # how likely so large a difference is, if neither is better


def compare_texts(one: TextStatistics, other: TextStatistics, seed: int = 1) -> list[Comparison]:
    """Paired bootstrap (Koehn, 2004): the same draws for both systems."""
    draws = one.draws(seed)
    found = []
    for name in one.NAMES:
        differences = one.scores(name, draws) - other.scores(name, draws)
        real = one.whole(name) - other.whole(name)
        # differences as they would be if there was none
        beyond = np.abs(differences - differences.mean()) >= abs(real) - 1e-12
        p_value = (1 + float(beyond.sum())) / (1 + len(draws))
        found.append(Comparison(name, one.whole(name), other.whole(name), p_value))
    return found
