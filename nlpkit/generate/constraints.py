"""Terms that a target must contain: lexically constrained beam search.

Each hypothesis knows which terms it has and which one it is in the middle of. The next token of
every missing term is always among the candidates, and the beams are shared out evenly between
hypotheses with no token of a term, with one, with two ... (dynamic beam allocation, Post and Vilar,
2018). Otherwise those that have taken the costly step into a term would lose to those that did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

Candidate = tuple[float, int, int]  # score, hypothesis it continues, token


class TermProgress(NamedTuple):
    """What a hypothesis has of its terms."""

    met: frozenset[int] = frozenset()
    term: int = -1  # the one it is in the middle of
    done: int = 0  # tokens of it


@dataclass(frozen=True)
class Constraints:
    """The terms of one sentence, each as tokens (their places in the head), never empty.

    >>> terms = Constraints(((7, 8),))
    >>> middle = terms.follow(TermProgress(), 7)
    >>> terms.is_met(middle), terms.is_met(terms.follow(middle, 8))
    (False, True)
    """

    terms: tuple[tuple[int, ...], ...]

    def is_met(self, progress: TermProgress) -> bool:
        """Whether all terms are there."""
        return len(progress.met) == len(self.terms)

    def next_tokens(self, progress: TermProgress) -> list[int]:
        """What brings a hypothesis nearer to having all terms."""
        if progress.term >= 0:
            return [self.terms[progress.term][progress.done]]
        return [term[0] for number, term in enumerate(self.terms) if number not in progress.met]

    def follow(self, progress: TermProgress, token: int) -> TermProgress:
        """The progress after one more token; a term that is broken off has to begin again."""
        term, done = progress.term, progress.done
        if term < 0 or self.terms[term][done] != token:
            done = 0
            fitting = (
                number
                for number, one in enumerate(self.terms)
                if number not in progress.met and one[0] == token
            )
            term = next(fitting, -1)
            if term < 0:
                return TermProgress(progress.met)
        done += 1
        if done == len(self.terms[term]):
            return TermProgress(progress.met | {term})
        return TermProgress(progress.met, term, done)

    def tokens_met(self, progress: TermProgress) -> int:
        """How many tokens of terms there are."""
        return sum(len(self.terms[number]) for number in progress.met) + progress.done

    def extend(
        self,
        candidates: list[Candidate],
        total: Tensor,  # (K, V): the scores of all candidates
        progress: Sequence[TermProgress],
        end: int,
    ) -> list[Candidate]:
        """The candidates and all that begin or continue a term, the likeliest first."""
        known = {(parent, token) for _, parent, token in candidates}
        more = list(candidates)
        for parent, one in enumerate(progress):
            for token in self.next_tokens(one):
                score = float(total[parent, token])
                if (parent, token) not in known and token != end and score > float("-inf"):
                    more.append((score, parent, token))
        return sorted(more, key=lambda candidate: -candidate[0])


def choose(
    constraints: Constraints,
    progress: Sequence[TermProgress],
    candidates: Sequence[Candidate],
    beams: int,
) -> list[Candidate]:
    """As many candidates as there are beams, shared out evenly by the tokens of terms they have."""
    banks: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        after = constraints.follow(progress[candidate[1]], candidate[2])
        banks.setdefault(constraints.tokens_met(after), []).append(candidate)
    chosen: list[Candidate] = []
    order = sorted(banks, reverse=True)
    place = 0
    while len(chosen) < beams and any(place < len(bank) for bank in banks.values()):
        chosen += [banks[count][place] for count in order if place < len(banks[count])]
        place += 1
    return sorted(chosen[:beams], key=lambda candidate: -candidate[0])
