"""Beam search finds what it should, whatever else is in the batch."""

from __future__ import annotations

import itertools

import pytest
import torch
from small_translators import KINDS, read, small_model

from nlpkit.generate.beam import BeamSettings, Hypothesis, beam_search, length_penalty
from nlpkit.generate.constraints import Constraints, TermProgress, choose
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.generate.targets import sample_targets
from nlpkit.models.seq2seq import EncoderDecoder
from nlpkit.models.seq2seq_settings import END

SOURCES = [[5, 6, 2], [7, 8, 5, 6, 9, 2], [4, 2], [10, 9, 8, 7, 2]]


def search(
    model: EncoderDecoder, sources: list[list[int]], longest: int = 6, **settings: object
) -> list[list[Hypothesis]]:
    return beam_search(
        model,
        read(model, *sources),
        BeamSettings(**settings),  # type: ignore[arg-type]
        [longest] * len(sources),
    )


def ids(found: list[list[Hypothesis]]) -> list[list[int]]:
    return [hypotheses[0].ids for hypotheses in found]


@torch.inference_mode()
def log_probability(model: EncoderDecoder, source: list[int], target: list[int]) -> float:
    whole = torch.tensor([[1, *target]])
    chances = model.logits(model.hidden(whole, read(model, source))).log_softmax(-1)[0]
    return float(sum(chances[n, index] for n, index in enumerate([*target, END])))


def test_with_beams_enough_it_finds_the_best_of_all() -> None:
    model = small_model("gru", target_vocab=7, layers=1)
    written = [4, 5, 6]
    targets = [t for n in (1, 2, 3) for t in itertools.product(written, repeat=n)]
    best = max(targets, key=lambda t: log_probability(model, SOURCES[0], list(t)))
    found = search(model, SOURCES[:1], longest=4, beams=60, length_penalty=0.0)
    assert found[0][0].ids == list(best)
    assert found[0][0].log_probability == pytest.approx(
        log_probability(model, SOURCES[0], list(best)), abs=1e-3
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("beams", "int8"), [(1, False), (4, False), (4, True)])
def test_answers_do_not_depend_on_the_batch(kind: str, beams: int, int8: bool) -> None:
    model = small_model(kind, dim=32)
    if int8:
        model.quantize()
    together = ids(search(model, SOURCES, beams=beams))
    assert together == [ids(search(model, [source], beams=beams))[0] for source in SOURCES]


def test_one_beam_is_greedy() -> None:
    model = small_model("lstm")
    [[found]] = search(model, SOURCES[:1], beams=1)
    with torch.inference_mode():
        target = [1]
        while len(target) < 6:
            logits = model.logits(model.hidden(torch.tensor([target]), read(model, SOURCES[0])))
            logits[0, -1, [0, 1, 3]] = -torch.inf
            if len(target) == 1:
                logits[0, -1, END] = -torch.inf
            target.append(int(logits[0, -1].argmax()))
            if target[-1] == END:
                break
    assert found.ids == [index for index in target[1:] if index != END]


@pytest.mark.parametrize("kind", KINDS)
def test_no_ngram_is_repeated(kind: str) -> None:
    model = small_model(kind)
    for found in search(model, SOURCES, longest=12, beams=3, no_repeat_ngram=2):
        pairs = list(itertools.pairwise(found[0].ids))
        assert len(set(pairs)) == len(pairs)


def test_a_target_begins_with_the_prefix() -> None:
    model = small_model("gru", outputs=9, joint=True, source_vocab=11)
    found = beam_search(model, read(model, *SOURCES), BeamSettings(beams=2), [6] * 4, prefix=[8, 4])
    assert [one[0].ids[:2] for one in found] == [[8, 4]] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_terms_are_in_the_answer(kind: str) -> None:
    model = small_model(kind)
    wanted = [Constraints(((8, 9),)), None, Constraints(((4, 4), (10,))), None]
    found = beam_search(
        model, read(model, *SOURCES), BeamSettings(beams=5), [9] * 4, constraints=wanted
    )
    assert (8, 9) in itertools.pairwise(found[0][0].ids)
    assert (4, 4) in itertools.pairwise(found[2][0].ids)
    assert 10 in found[2][0].ids
    assert found[1][0].ids == search(model, SOURCES[1:2], longest=9, beams=5)[0][0].ids


def test_a_term_that_is_broken_off_begins_again() -> None:
    terms = Constraints(((1, 2, 3),))
    progress = TermProgress()
    for token in (1, 2, 1, 2, 3):
        progress = terms.follow(progress, token)
    assert terms.is_met(progress)


def test_beams_are_shared_out_by_progress() -> None:
    terms = Constraints(((7, 8),))
    middle = TermProgress(frozenset(), 0, 1)
    candidates = [(-1.0, 0, 3), (-1.1, 0, 4), (-1.2, 0, 5), (-9.0, 0, 7), (-9.5, 1, 8)]
    chosen = choose(terms, [TermProgress(), middle], candidates, 3)
    assert [token for _, _, token in chosen] == [3, 7, 8]


def test_a_length_penalty_makes_answers_longer() -> None:
    model = small_model("lstm")
    short, long = (
        sum(map(len, ids(search(model, SOURCES, longest=12, beams=6, length_penalty=penalty))))
        for penalty in (0.0, 4.0)
    )
    assert long >= short
    assert length_penalty(7, 1.0) == 2.0


def test_draws_do_not_depend_on_the_batch() -> None:
    model = small_model("gru")
    sampling = SamplingSettings(temperature=1.5)

    def draw(numbers: list[int]) -> list[list[list[int]]]:
        memory = read(model, *(SOURCES[n] for n in numbers))
        found = sample_targets(
            model, memory, sampling, [8] * len(numbers), seeds=[100 + n for n in numbers], count=2
        )
        return [[one.ids for one in hypotheses] for hypotheses in found]

    together = draw([0, 1, 2, 3])
    assert together == [draw([number])[0] for number in range(4)]
    assert any(one != other for one, other in together), "two draws of a sentence differ"
