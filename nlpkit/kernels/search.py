"""Beam search by a Transformer as one compiled function: every step of it, for a CPU.

The same search as in ``generate.beam``, without what few searches need (terms, attention that is
looked at, n-grams that may not come twice). A step costs some microseconds besides the products,
which for a small model and one sentence is most of the time that Python would take.

N sentences with K hypotheses (beams) each are N K rows. A sentence that is finished leaves, and the
rows behind it move up. V places of the head.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.decoder import Source, advance, best_ids, log_sums
from nlpkit.kernels.matmul import multiply
from nlpkit.kernels.matvec import NONE

_NEVER = np.float32(-np.inf)
_LEAST = np.float32(-1e4)  # of what must come, however unlikely it is

infinite = kernel(fastmath={"nnan", "nsz", "reassoc"})  # scores may be infinite


class Rules(NamedTuple):
    """What a search may write."""

    beams: int
    start: int  # the id that targets begin after
    end: int  # the place of the end
    banned: Any  # places that are never written
    prefix: Any  # places that every target begins with
    written: Any  # (V,): the id of each place
    limits: Any  # (N,): tokens of each target, its end counted
    room: int  # tokens of the longest one that the model has places for


class Trail(NamedTuple):
    """What was written: for each step and row the id, and the row of the step before."""

    ids: Any  # (T, N K)
    parents: Any  # (T, N K)
    ends: Any  # (N, 2 K, 2): the step and the row that hypotheses ended after
    scores: Any  # (N, 2 K): log-probabilities of those
    found: Any  # (N,): how many there are


@infinite
def search(
    weights: Any,  # DecoderWeights
    head: Any,  # Packed
    source: Any,  # Source
    rules: Any,  # Rules
    post: bool,
    activation: int,
    threads: int,
) -> Any:
    """Write until all sentences are finished: a ``Trail``."""
    count, beams, longest = len(rules.limits), rules.beams, np.max(rules.limits)
    rows, vocab = count * beams, len(rules.written)
    shape = (len(weights.qkv.weight), rows, source.keys.shape[2], rules.room, source.keys.shape[4])
    keys, values = np.empty(shape, np.float32), np.empty(shape, np.float32)
    origin = np.empty((rows, rules.room), np.int64)  # hypotheses that branch share their past
    trail = Trail(
        np.zeros((longest, rows), np.int64),
        np.zeros((longest, rows), np.int64),
        np.zeros((count, 2 * beams, 2), np.int64),
        np.zeros((count, 2 * beams), np.float32),
        np.zeros(count, np.int64),
    )
    ids, scores = np.full(rows, rules.start), np.full(rows, _NEVER)
    scores[::beams] = 0
    logits = np.empty((rows, vocab), np.float32)
    alive, step = np.arange(count), 0
    while len(alive):
        rows = len(alive) * beams
        seen = Source(source.keys, source.values, source.lengths, alive)
        x = advance(
            weights, keys, values, origin, step, seen, ids[:rows], post, activation, threads
        )
        multiply(head, 0, x, logits[:rows], NONE, threads)
        before = scores[:rows] - log_sums(logits[:rows])
        _restrict(logits, step, alive, rules)
        best, places = best_ids(logits[:rows], min(2 * beams, vocab))
        alive = _choose(best, places, before, step, alive, rules, trail, scores)
        parents = trail.parents[step, : len(alive) * beams]
        for row in range(len(parents)):
            ids[row] = trail.ids[step, row]
        origin = _follow(origin, parents, step)
        step += 1
    return trail


@infinite
def _follow(origin: Any, parents: Any, step: int) -> Any:
    """Where the keys of each row's past are, after rows have become those of their parents."""
    found = np.empty((len(parents), origin.shape[1]), np.int64)
    for r in range(len(parents)):
        for place in range(step):
            found[r, place] = origin[parents[r], place]
        found[r, step] = parents[r]
    return found


@infinite
def _restrict(logits: Any, step: int, alive: Any, rules: Any) -> None:
    """Rule out what may not come next, in place: logits (N K or more, V)."""
    for n in range(len(alive)):
        last = step >= rules.limits[alive[n]] - 1
        for r in range(n * rules.beams, (n + 1) * rules.beams):
            for place in rules.banned:
                logits[r, place] = _NEVER
            forced = -1
            if step < len(rules.prefix):
                forced = rules.prefix[step]
            elif last:
                forced = rules.end
            elif step == 0:
                logits[r, rules.end] = _NEVER  # an answer has a token, if the source has
            if forced >= 0:
                only = max(logits[r, forced], _LEAST)
                logits[r] = _NEVER
                logits[r, forced] = only


@infinite
def _choose(
    best: Any,  # (N K, 2 K): the highest logits of each row, the highest first
    places: Any,
    before: Any,  # (N K,): what makes them log-probabilities of the hypotheses
    step: int,
    alive: Any,  # (N,)
    rules: Any,
    trail: Any,
    scores: Any,  # (N K,), to be filled
) -> Any:
    """Put aside what ends, go on with the best of the rest: the sentences that are not finished."""
    beams, kept = rules.beams, 0
    going = np.empty(len(alive), np.int64)
    width = min(2 * beams, beams * best.shape[1])
    top, origin = np.empty(width, np.float32), np.empty(width, np.int64)
    for n in range(len(alive)):
        sentence = alive[n]
        last = step >= rules.limits[sentence] - 1
        _merge(best, before, n * beams, beams, top, origin)
        row = first = kept * beams
        for rank in range(width):
            if top[rank] == _NEVER:
                continue
            parent, place = origin[rank] // best.shape[1], origin[rank] % best.shape[1]
            token = places[parent, place]
            if token != rules.end:
                if row < first + beams:
                    scores[row] = top[rank]
                    trail.ids[step, row], trail.parents[step, row] = rules.written[token], parent
                    row += 1
            elif rank < beams or last:
                number = trail.found[sentence]
                trail.ends[sentence, number] = step, parent
                trail.scores[sentence, number] = top[rank]
                trail.found[sentence] += 1
        if row == first or trail.found[sentence] >= beams:
            continue
        for empty in range(row, first + beams):
            scores[empty] = _NEVER
            trail.ids[step, empty] = trail.ids[step, first]
            trail.parents[step, empty] = trail.parents[step, first]
        going[kept] = sentence
        kept += 1
    return going[:kept]


@infinite
def _merge(best: Any, before: Any, first: int, beams: int, top: Any, origin: Any) -> None:
    """The highest log-probabilities of a sentence's rows, and where they stand in ``best``."""
    top[:] = _NEVER
    origin[:] = 0
    width, count = len(top), best.shape[1]
    for r in range(first, first + beams):
        for i in range(count):
            score = best[r, i] + before[r]
            if not score > top[width - 1]:
                break  # those behind it are lower
            place = width - 1
            while place > 0 and top[place - 1] < score:
                top[place], origin[place] = top[place - 1], origin[place - 1]
                place -= 1
            top[place], origin[place] = score, r * count + i
