"""Beam search: the likeliest targets of an encoder-decoder, several hypotheses at a time.

Each sentence has K hypotheses (beams). A step scores every id behind each of them and keeps the K
best that do not end; those that end are put aside. A sentence with K finished hypotheses leaves the
batch. What is found for a sentence depends on that sentence alone, whatever else is in the batch.

Finished hypotheses are ranked as by Wu et al. (2016), for a length penalty a and coverage b, with
p_ij the attention of target token j to source token i:

    log P(Y|X) / ((5 + |Y|) / 6)^a  +  b sum_i log min(1, sum_j p_ij)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from nlpkit.generate.constraints import Constraints, TermProgress, choose
from nlpkit.models.seq2seq import EncoderDecoder, Memory
from nlpkit.models.seq2seq_settings import END, PAD, START, UNKNOWN

Step = Callable[[Tensor, Any, Memory, bool], tuple[Tensor, Tensor | None]]


@dataclass(frozen=True)
class BeamSettings:
    """How to search. One beam is greedy search."""

    beams: int = 5
    length_penalty: float = 1.0
    coverage: float = 0.0
    no_repeat_ngram: int = 0  # no n-gram of this size twice; 0 lets them be
    unknown: bool = False  # whether the mark of unknown words may be written
    look: bool = False  # whether attention is wanted with each hypothesis


@dataclass(order=True)
class Hypothesis:
    """A target that ends: its rank decides, its ids are those before the end."""

    score: float
    log_probability: float = field(compare=False)
    ids: list[int] = field(compare=False)
    attention: Tensor | None = field(compare=False, default=None)  # (T, S)
    complete: bool = field(compare=False, default=True)  # whether it has all terms that it must


def length_penalty(length: int, alpha: float) -> float:
    """What a log-probability is divided by.

    >>> length_penalty(1, 1.0), length_penalty(7, 1.0), length_penalty(7, 0.0)
    (1.0, 2.0, 1.0)
    """
    return ((5 + length) / 6) ** alpha


class _Search:
    """The state of a search over the sentences that are not finished."""

    def __init__(
        self,
        model: EncoderDecoder,
        memory: Memory,
        settings: BeamSettings,
        max_lengths: Sequence[int],
        prefix: Sequence[int],
        constraints: Sequence[Constraints | None],
    ) -> None:
        self.model, self.memory, self.settings = model, memory, settings
        self.prefix, self.max_lengths = list(prefix), list(max_lengths)
        beams, device = settings.beams, memory.inside.device
        self.head = model.make_head()
        self.written = model.written_ids
        self.rows = list(range(len(memory)))  # which sentence each row is
        self.scores = torch.full((len(memory), beams), -torch.inf, device=device)
        self.scores[:, 0] = 0.0
        self.ids = torch.full((len(memory), beams, 1), model.settings.start, device=device)
        self.state = model.start(memory, beams, 1 + max(max_lengths, default=0))
        self.found: list[list[Hypothesis]] = [[] for _ in self.rows]
        self.constraints = list(constraints)
        self.progress = [[TermProgress()] * beams for _ in self.rows]
        self.look = settings.look or settings.coverage > 0
        self.looked = self.scores.new_zeros(len(memory), beams, 0, memory.inside.size(1))
        banned = (PAD, START) if settings.unknown else (PAD, START, UNKNOWN)
        self.banned = [place for place in map(self._place, banned) if place >= 0]
        self.end = self._place(END)

    def _place(self, index: int) -> int:
        """The place of an id in the head; -1 if it is never written."""
        if self.written is None:
            return index
        found = (self.written == index).nonzero()
        return int(found[0]) if len(found) else -1

    def run(self) -> list[list[Hypothesis]]:
        """Write until all are finished."""
        step = 0
        while self.rows:
            self._advance(step)
            step += 1
        for found in self.found:
            found.sort(reverse=True)
        return self.found

    def is_plain(self) -> bool:
        """Whether a compiled model can do all of it in one call."""
        return (
            self.model.compiled is not None
            and bool(self.rows)
            and not self.look
            and not self.settings.no_repeat_ngram
            and not any(self.constraints)
            and max(self.max_lengths) <= self.model.settings.max_length
        )

    def run_compiled(self) -> list[list[Hypothesis]]:
        """The same by the compiled model."""
        import numpy as np

        from nlpkit.kernels.search import Rules

        model = self.model
        places = torch.arange(model.settings.written) if self.written is None else self.written
        rules = Rules(
            self.settings.beams,
            model.settings.start,
            self.end,
            np.array(self.banned, np.int64),
            np.array([self._place(index) for index in self.prefix], np.int64),
            places.numpy(),
            np.array(self.max_lengths, np.int64),
            max(self.max_lengths),
        )
        trail = model.compiled.search(self.memory, rules)
        for number, found in enumerate(self.found):
            for end in range(trail.found[number]):
                ids = []
                step, row = trail.ends[number, end]
                for before in range(step - 1, -1, -1):
                    ids.append(int(trail.ids[before, row]))
                    row = trail.parents[before, row]
                score = float(trail.scores[number, end])
                rank = score / length_penalty(len(ids) + 1, self.settings.length_penalty)
                found.append(Hypothesis(rank, score, ids[::-1]))
            found.sort(reverse=True)
        return self.found

    def _advance(self, step: int) -> None:
        model, beams = self.model, self.settings.beams
        hidden, weights = model.step(self.ids[:, :, -1], self.state, self.memory, self.look)
        logits = model.logits(hidden, self.head).float()  # (N, K, V)
        # log P(hypothesis, id) = score + logit - log-sum-exp
        before = self.scores[:, :, None] - self._log_sum(logits)
        self._restrict(logits, step)
        count = min(2 * beams, logits.size(-1))
        values, ids = self._best(logits, count)  # (N, K, 2K) each
        total = (values + before).flatten(1)
        best, places = total.topk(min(2 * beams, total.size(1)))  # (N, 2K), the likeliest first
        parents, tokens = places // count, ids.flatten(1).gather(1, places)
        if weights is not None and self.look:
            self.looked = torch.cat([self.looked, weights[:, :, None].float()], dim=2)
        kept_rows: list[int] = []  # hypotheses that go on, as rows of (N K)
        kept_scores: list[list[float]] = []
        kept_tokens: list[list[int]] = []
        alive: list[int] = []
        columns = zip(best.tolist(), parents.tolist(), tokens.tolist(), strict=True)
        for row, candidates in enumerate(columns):
            listed = list(zip(*candidates, strict=True))
            constraint = self.constraints[row]
            if constraint is not None:
                scores = logits[row] + before[row]  # (K, V)
                listed = constraint.extend(listed, scores, self.progress[row], self.end)
            going = self._sort_out(row, listed, step)
            if len(self.found[self.rows[row]]) >= beams or not going:
                continue
            going += [(-torch.inf, *going[0][1:])] * (beams - len(going))
            alive.append(row)
            kept_rows += [row * beams + parent for _, parent, _ in going]
            kept_scores.append([score for score, _, _ in going])
            kept_tokens.append([token for _, _, token in going])
            if constraint is not None:
                self.progress[row] = [
                    constraint.follow(self.progress[row][parent], token)
                    for _, parent, token in going
                ]
        self._go_on(alive, kept_rows, kept_scores, kept_tokens)

    def _log_sum(self, logits: Tensor) -> Tensor:
        """What logits (N, K, V) are too high by, to be log-probabilities: (N, K, 1)."""
        if self.model.compiled is not None:
            found: Tensor = self.model.compiled.log_sum(logits)
            return found
        return logits.logsumexp(dim=-1, keepdim=True)

    def _best(self, logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The highest logits of each hypothesis (N, K, count), and their places in the head."""
        if self.model.compiled is not None:
            found: tuple[Tensor, Tensor] = self.model.compiled.best(logits, count)
            return found
        return logits.topk(count)

    def _restrict(self, logits: Tensor, step: int) -> None:
        """Rule out what may not come next, in place."""
        for place in self.banned:
            logits[:, :, place] = -torch.inf
        if step < len(self.prefix):
            wanted = self._place(self.prefix[step])
            forced = logits[:, :, wanted].clone().clamp_min(-1e4)
            logits.fill_(-torch.inf)[:, :, wanted] = forced
            return
        if step == 0:
            logits[:, :, self.end] = -torch.inf  # an answer has a token, if the source has
        for row, number in enumerate(self.rows):
            constraint = self.constraints[row]
            if constraint is not None:
                for beam, progress in enumerate(self.progress[row]):
                    if not constraint.is_met(progress) and step < self.max_lengths[number] - 1:
                        logits[row, beam, self.end] = -torch.inf
            if step >= self.max_lengths[number] - 1:
                last = logits[row, :, self.end].clone().clamp_min(-1e4)
                logits[row].fill_(-torch.inf)[:, self.end] = last
        if self.settings.no_repeat_ngram:
            self._ban_repeats(logits)

    def _ban_repeats(self, logits: Tensor) -> None:
        size = self.settings.no_repeat_ngram
        table = None if self.written is None else {int(i): n for n, i in enumerate(self.written)}
        for row, beams in enumerate(self.ids[:, :, 1:].tolist()):
            for beam, ids in enumerate(beams):
                start = tuple(ids[len(ids) - size + 1 :]) if size > 1 else ()
                seen = [
                    ids[place + size - 1]
                    for place in range(len(ids) - size + 1)
                    if tuple(ids[place : place + size - 1]) == start
                ]
                for index in seen:
                    logits[row, beam, index if table is None else table[index]] = -torch.inf

    def _sort_out(
        self, row: int, candidates: list[tuple[float, int, int]], step: int
    ) -> list[tuple[float, int, int]]:
        """Put aside the hypotheses that end; give the best others (score, parent, token)."""
        beams, number = self.settings.beams, self.rows[row]
        going: list[tuple[float, int, int]] = []
        constraint = self.constraints[row]
        for rank, (score, parent, token) in enumerate(candidates):
            if score == -torch.inf:
                continue
            if token != self.end:
                going.append((score, parent, token))
            elif rank < beams or step >= self.max_lengths[number] - 1:
                complete = constraint is None or constraint.is_met(self.progress[row][parent])
                self.found[number].append(self._finish(row, parent, score, complete))
        if constraint is not None:
            return choose(constraint, self.progress[row], going, beams)
        return going[:beams]

    def _finish(self, row: int, beam: int, score: float, complete: bool) -> Hypothesis:
        ids = self.ids[row, beam, 1:].tolist()
        rank = score / length_penalty(len(ids) + 1, self.settings.length_penalty)
        attention = None
        if self.look:
            inside = self.memory.inside[row]
            attention = self.looked[row, beam][:, inside]  # (T, S)
            if self.settings.coverage and len(attention):
                seen = attention.sum(dim=0).clamp(1e-6, 1.0)
                rank += self.settings.coverage * float(seen.log().sum())
        if not complete:
            rank -= 1e4  # only if nothing else is found
        return Hypothesis(rank, score, ids, attention, complete)

    def _go_on(
        self,
        alive: list[int],
        kept: list[int],
        scores: list[list[float]],
        tokens: list[list[int]],
    ) -> None:
        device = self.ids.device
        if not alive:
            self.rows = []
            return
        beams = self.settings.beams
        same = kept == list(range(len(self.rows) * beams))
        chosen = torch.tensor(kept, device=device)
        new = torch.tensor(tokens, device=device)[:, :, None]  # (N, K, 1)
        if self.written is not None:
            new = self.written[new]
        ids, looked = self.ids.flatten(0, 1), self.looked.flatten(0, 1)
        if not same:
            self.state.select(chosen)
            ids, looked = ids[chosen], looked[chosen]
        self.ids = torch.cat([ids.unflatten(0, (-1, beams)), new], dim=2)
        self.looked = looked.unflatten(0, (-1, beams))
        self.scores = torch.tensor(scores, device=device)
        if len(alive) < len(self.rows):
            self.memory = self.memory.select(torch.tensor(alive, device=device))
            self.rows = [self.rows[row] for row in alive]
            self.constraints = [self.constraints[row] for row in alive]
            self.progress = [self.progress[row] for row in alive]


@torch.inference_mode()
def beam_search(
    model: EncoderDecoder,
    memory: Memory,
    settings: BeamSettings,
    max_lengths: Sequence[int],  # tokens that each sentence may have, its end counted
    *,
    prefix: Sequence[int] = (),  # ids that every target begins with
    constraints: Sequence[Constraints | None] | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence of the memory its hypotheses, the best first.

    >>> from nlpkit.models.seq2seq import build_seq2seq
    >>> from nlpkit.models.seq2seq_settings import Seq2SeqArchitecture
    >>> small = Seq2SeqArchitecture(model="gru", source_vocab=9, target_vocab=9, dim=8)
    >>> model = build_seq2seq(small).eval()
    >>> memory = model.encode(torch.tensor([[5, 6]]), torch.tensor([[True, True]]))
    >>> [found] = beam_search(model, memory, BeamSettings(beams=2), [4])
    >>> len(found) >= 2 and found[0].score >= found[1].score
    True
    """
    given = [None] * len(memory) if constraints is None else constraints
    search = _Search(model, memory, settings, max_lengths, prefix, given)
    return search.run_compiled() if search.is_plain() else search.run()
