"""How well cosines agree with people's judgements of word pairs, and which set agrees better."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.metrics.intervals import (
    BootstrapResult,
    paired_bootstrap,
    pearson,
    spearman,
    spearman_interval,
)
from nlpkit.vectors import query
from nlpkit.vectors.settings import EVALUATION
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.transform import folded


@dataclass(frozen=True)
class WordPair:
    """Two words and how similar people find them."""

    first: str
    second: str
    score: float
    record: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


def read_pairs(lines: Iterable[str], name: str) -> list[WordPair]:
    """Two words and a score per line, between tabs, commas or spaces; # lines and a header skipped.

    The score is the first number after the words, so that a column of word classes may stand
    between. JSON lines have word1, word2 (or first, second) and score (or similarity).

    >>> read_pairs(["# ours", "word1\\tword2\\tscore", "tiger\\tcat\\t7.35"], "x")
    [WordPair(first='tiger', second='cat', score=7.35)]
    """
    pairs: list[WordPair] = []
    may_be_header = True
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.lstrip().startswith("{"):
            pairs.append(_from_record(line, f"{name}: line {number}"))
            continue
        fields = re.split(r"\t|,|;" if re.search(r"[\t,;]", line) else r"\s+", line.strip())
        score = next((float(field) for field in fields[2:] if _is_number(field)), None)
        if score is None and not may_be_header:
            raise NlpkitError(f"{name}: line {number}: expected two words and a score")
        may_be_header = False
        if score is not None:
            pairs.append(WordPair(fields[0].strip(), fields[1].strip(), score))
    if not pairs:
        raise NlpkitError(f"{name}: no word pairs in it", hint="word<TAB>word<TAB>score a line")
    return pairs


def _from_record(line: str, where: str) -> WordPair:
    record = textio.parse_record(line, where)
    first = record.get("word1", record.get("first"))
    second = record.get("word2", record.get("second"))
    score: Any = record.get("score", record.get("similarity"))
    numeric = isinstance(score, int | float) and not isinstance(score, bool) and abs(score) < 1e300
    if not isinstance(first, str) or not isinstance(second, str) or not numeric:
        raise NlpkitError(f"{where}: no pair of words", hint="keys: word1, word2, score")
    return WordPair(first, second, float(score), record)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", text) is not None


@dataclass(frozen=True)
class SimilarityReport:
    """Correlation with people's judgements, and what it was computed on."""

    spearman: float
    interval: tuple[float, float]
    pearson: float
    known: int
    pairs: int
    cosines: NDArray[np.float64]  # by pair; NaN when a word is unknown
    protocol: str


def evaluate_similarity(
    vectors: Vectors, pairs: Sequence[WordPair], *, fold_case: bool = EVALUATION.fold_case
) -> SimilarityReport:
    """Correlate cosines with scores over the pairs whose words are both known."""
    folds = folded(vectors, None, fold_case)
    cosines = np.full(len(pairs), np.nan)
    for index, pair in enumerate(pairs):
        first, second = pair.first, pair.second
        if fold_case:
            first, second = first.casefold(), second.casefold()
        if folds.knows(first) and folds.knows(second):
            cosines[index] = query.similarity(folds, first, second)
    known = np.isfinite(cosines)
    if known.sum() < 3:
        raise NlpkitError(
            f"only {int(known.sum())} of {len(pairs)} pairs have both words in the vectors"
        )
    gold = np.array([pair.score for pair in pairs])[known]
    rho = spearman(gold, cosines[known])
    case = "case folded" if fold_case else "case kept"
    subwords = "" if vectors.subwords is None else ", unknown words from their subwords"
    return SimilarityReport(
        rho,
        spearman_interval(rho, int(known.sum())),
        pearson(gold, cosines[known]),
        int(known.sum()),
        len(pairs),
        cosines,
        f"cosine, {case}{subwords}, pairs with an unknown word skipped",
    )


@dataclass(frozen=True)
class SimilarityComparison:
    """Two sets on the pairs that both know."""

    shared: int
    first_spearman: float
    second_spearman: float
    bootstrap: BootstrapResult


def compare_similarity(
    pairs: Sequence[WordPair],
    first: SimilarityReport,
    second: SimilarityReport,
    *,
    seed: int = EVALUATION.seed,
) -> SimilarityComparison:
    """Whether two correlations with the same judgements differ by more than the choice of pairs."""
    both = np.isfinite(first.cosines) & np.isfinite(second.cosines)
    if both.sum() < 3:
        raise NlpkitError("fewer than three pairs are known to both sets of vectors")
    gold = np.array([pair.score for pair in pairs])[both]
    left, right = first.cosines[both], second.cosines[both]
    return SimilarityComparison(
        int(both.sum()),
        spearman(gold, left),
        spearman(gold, right),
        paired_bootstrap(spearman, gold, left, right, seed=seed),
    )
