"""The joint n-gram model: alignments against all there are, files, and what it decides."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_translators import digit_pairs
from warm import Warm

from nlpkit.errors import NlpkitError
from nlpkit.generate.beam import Hypothesis
from nlpkit.models import joint_ngram
from nlpkit.models.joint_ngram import MOST, NEVER, JointNgram
from nlpkit.tasks.translate.data import Pair
from nlpkit.tasks.translate.model import Answer, Translator
from nlpkit.tasks.translate.rerank import choose_weight, rerank
from nlpkit.tasks.translate.settings import PredictSettings, TranslateSettings
from nlpkit.tasks.translate.train import TranslateRun

VOCAB = 12
RULES = {4: [5], 5: [6, 7], 6: [], 7: [8, 9, 10]}  # what a source token writes


def lists(words: list[list[int]]) -> tuple[list[list[int]], list[list[int]]]:
    return words, [[token for letter in word for token in RULES[letter]] for word in words]


def every_word(longest: int = 4) -> list[list[int]]:
    return [
        list(word)
        for length in range(1, longest + 1)
        for word in itertools.product(RULES, repeat=length)
    ]


@pytest.fixture(scope="module")
def model() -> JointNgram:
    return trained(*lists(every_word()))


def trained(sources: list[list[int]], targets: list[list[int]]) -> JointNgram:
    found = JointNgram.train(sources, targets, VOCAB)
    assert found is not None
    return found


def alignments(source: list[int], target: list[int]) -> list[list[tuple[int, ...]]]:
    """Everything that the source's tokens could have written, one list for each way."""
    if not source:
        return [[]] if not target else []
    return [
        [(source[0], *target[:k]), *rest]
        for k in range(min(MOST, len(target)) + 1)
        for rest in alignments(source[1:], target[k:])
    ]


def key(unit: tuple[int, ...]) -> int:
    source, *written = unit
    digits = [*(token + 1 for token in written), 0, 0, 0][:MOST]
    total = source
    for digit in digits:
        total = total * (VOCAB + 1) + digit
    return total


rows = st.lists(st.integers(4, 7), min_size=1, max_size=4)
goals = st.lists(st.integers(4, 11), max_size=6)


@given(st.lists(st.tuples(rows, goals), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_posteriors_are_those_of_all_alignments(
    pairs: list[tuple[list[int], list[int]]], seed: int
) -> None:
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    keys, lengths = joint_ngram._lattice(sources, targets, VOCAB)
    units = np.unique(np.append(keys[keys >= 0], 0))
    chances = np.random.default_rng(seed).uniform(0.01, 1.0, len(units))
    where = joint_ngram._find(units, keys)
    found = joint_ngram._posteriors(np.concatenate([chances, [1.0, 0.0]])[where], lengths)
    counts = np.bincount(where.ravel(), found.ravel(), len(units) + 2)[: len(units)]
    expected = np.zeros(len(units))
    for source, target in pairs:
        ways = alignments(source, target)
        used = [[int(np.searchsorted(units, key(unit))) for unit in way] for way in ways]
        weights = np.array([chances[places].prod() for places in used])
        for places, weight in zip(used, weights, strict=True):
            np.add.at(expected, places, weight / weights.sum())
    np.testing.assert_allclose(counts, expected, atol=1e-9)


@given(st.lists(st.tuples(rows, goals), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_a_score_is_that_of_the_likeliest_alignment(
    model: JointNgram, pairs: list[tuple[list[int], list[int]]]
) -> None:
    scores = model.score([source for source, _ in pairs], [target for _, target in pairs])
    for (source, target), score in zip(pairs, scores, strict=True):
        ways = [[key(unit) for unit in way] for way in alignments(source, target)]
        if not ways:
            assert score == NEVER
            continue
        places = [joint_ngram._find(model.units, np.array(way)) for way in ways]
        table = np.concatenate([model.logs, [0.0, joint_ngram._FLOOR]])
        best = [table[place].sum() for place in places]
        words = np.concatenate([np.arange(len(model.units)) + 2, [-1, 1]]).astype(np.int32)
        totals = [
            float(model.trie.score(np.append(words[place], 0).astype(np.int32), 1)[0].sum())
            for place, one in zip(places, best, strict=True)
            if one > max(best) - 1e-9
        ]
        assert any(score == pytest.approx(total, abs=1e-3) for total in totals)


def test_the_rules_behind_the_pairs_are_found(model: JointNgram) -> None:
    likely = model.units[model.logs > np.log(0.1)]
    assert sorted(likely.tolist()) == sorted(key((s, *t)) for s, t in RULES.items())
    source = [7, 4, 5]
    good, worse = model.score([source, source], [[8, 9, 10, 5, 6, 7], [8, 9, 5, 6, 7]])
    assert good > worse + 3


def test_scores_do_not_depend_on_what_else_is_asked(
    model: JointNgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, targets = lists(every_word(3))
    together = model.score(sources, targets)
    alone = [model.score([s], [t])[0] for s, t in zip(sources, targets, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    monkeypatch.setattr(joint_ngram, "_CELLS", 100)
    np.testing.assert_allclose(model.score(sources, targets), together, atol=1e-5)
    assert model.score([], []).shape == (0,)


def test_long_pairs_do_not_underflow() -> None:
    sources, targets = lists([[4, 5, 7, 6] * 100, [6] * 390 + [7] * 10, [7] * 390 + [6]] * 3)
    model = trained(sources, targets)
    scores = model.score([*sources[:3], [6, 7] * 1000], [*targets[:3], [8, 9, 10] * 1000])
    assert np.all((scores[:3] > NEVER / 2) & (scores[:3] < 0))
    assert scores[3] == NEVER


def test_pairs_that_cannot_be_aligned_teach_nothing() -> None:
    assert JointNgram.train([[4], []], [[5] * 4, [5]], VOCAB) is None
    one = trained([[4], [4]], [[5] * 4, [5]])
    assert one.units.tolist() == [key((4, 5))]


def test_what_was_never_seen_is_unlikely_and_no_error(model: JointNgram) -> None:
    known, unseen, endless, empty = model.score(
        [[4], [11], [4], [6]], [[5], [5], [5] * (MOST + 1), []]
    )
    assert NEVER < unseen < known
    assert endless == NEVER
    assert NEVER < empty < 0


def test_it_comes_back_from_its_folder(model: JointNgram, tmp_path: Path) -> None:
    model.weight = 0.75
    model.write(tmp_path)
    again = JointNgram.read(tmp_path, VOCAB)
    assert again is not None
    assert again.weight == 0.75
    sources, targets = lists(every_word(2))
    np.testing.assert_array_equal(again.score(sources, targets), model.score(sources, targets))


@pytest.mark.parametrize(
    "damage",
    [
        {"units": [1]},
        {"logs": []},
        {"units": [], "logs": []},
        {"weight": "much"},
        {"weight": float("nan")},
        {"levels": [1, 2]},
    ],
    ids=str,
)
def test_a_damaged_file_is_refused_in_one_line(
    model: JointNgram, damage: dict[str, object], tmp_path: Path
) -> None:
    model.write(tmp_path)
    file = tmp_path / "joint.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **damage}))
    with pytest.raises(NlpkitError) as told:
        JointNgram.read(tmp_path, VOCAB)
    assert "\n" not in str(told.value)


def hypothesis(ids: list[int], score: float, complete: bool = True) -> Hypothesis:
    return Hypothesis(score if complete else score - 1e4, score, ids, None, complete)


def test_answers_are_ranked_by_both(model: JointNgram) -> None:
    source = [7, 4]
    right, wrong = hypothesis([8, 9, 10, 5], -1.1), hypothesis([5, 5, 5, 5], -1.0)
    model.weight = 0.0
    assert rerank(model, [source], [[wrong, right]], 1.0)[0][0].ids == wrong.ids
    model.weight = 0.5
    [[first, second]] = rerank(model, [source], [[wrong, right]], 1.0)
    assert (first.ids, second.ids) == (right.ids, wrong.ids)
    assert first.score > second.score
    assert first.log_probability == -1.1  # the network's own
    # what lacks a term comes last all the same
    lacking = hypothesis(right.ids, -0.1, complete=False)
    assert rerank(model, [source], [[lacking, wrong]], 1.0)[0][0].ids == wrong.ids


def noisy_run(count: int = 300, **changes: object) -> TranslateRun:
    """A network that has learned too little to be right without help."""
    tiny = {"tokenizer": "whitespace", "dim": 16, "batch_tokens": 100, "dtype": "float32"}
    tiny |= {"max_iters": 60, "joint_ngram": "yes", **changes}
    return TranslateRun(digit_pairs(count), TranslateSettings(**tiny))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def helped() -> tuple[TranslateRun, Translator]:
    run = noisy_run()
    translator = run.train()
    assert isinstance(translator, Translator)
    return run, translator


def test_it_helps_a_network_that_learned_little(
    helped: tuple[TranslateRun, Translator], tmp_path: Path, warm: Warm
) -> None:
    run, translator = helped
    assert translator.joint is not None
    assert translator.joint.weight > 0
    assert run.worth is not None
    assert run.worth[0] < run.worth[1]
    texts = [pair.source for pair in digit_pairs(60, seed=5)]
    goals = [pair.target for pair in digit_pairs(60, seed=5)]
    with_it = translator.translate(texts)
    joint, translator.joint = translator.joint, None
    without = translator.translate(texts)
    translator.joint = joint

    def right(answers: list[str]) -> int:
        return sum(answer == goal for answer, goal in zip(answers, goals, strict=True))

    assert right(with_it) > right(without)
    path = tmp_path / "m.model"
    translator.save(path)
    shown = warm.ok(tmp_path, "seq2seq", "predict", str(path), input="\n".join(texts) + "\n")
    assert shown.splitlines() == with_it


@pytest.mark.parametrize(("won", "lost", "used"), [(12, 10, True), (10, 12, True), (10, 30, False)])
def test_it_is_left_out_where_it_loses_more_than_chance_would(
    won: int, lost: int, used: bool
) -> None:
    """Most answers are right already, and more surely so with counts, which give them weight."""
    network = [-0.1] * won + [0.1] * (lost + 200)  # by how much what is right is ahead
    counts = [1.0] * won + [-1.0] * lost + [1.0] * 200
    translator, joint = Mock(), Mock()
    translator.length_penalty.return_value = 0.0
    translator.encode_sources.return_value = [[4, 2]] * len(network)
    translator.predict.return_value = [
        [Answer("right", ahead, ahead, [5]), Answer("wrong", 0.0, 0.0, [6])] for ahead in network
    ]
    joint.score.return_value = np.array([log for ahead in counts for log in (ahead, 0.0)])
    shares = choose_weight(joint, translator, [Pair("a", "right")] * len(network))
    assert (joint.weight > 0) == used
    assert shares == pytest.approx([1 - won / len(network), 1 - lost / len(network)])


def test_once_the_weight_is_known_held_out_pairs_are_counted_too(
    helped: tuple[TranslateRun, Translator],
) -> None:
    run, translator = helped
    assert translator.joint is not None
    held = (
        [run.source.encode(pair.source) for pair in run.tuning],
        [run.target.encode(pair.target) for pair in run.tuning],
    )
    sources, targets = ([row[:-1] for row in rows] for rows in (run.sources, run.targets))
    less, whole = (
        JointNgram.train([*sources, *more[0]], [*targets, *more[1]], len(run.target))
        for more in (([], []), held)
    )
    assert less is not None
    assert whole is not None
    assert len(less.trie.words) < len(whole.trie.words) == len(translator.joint.trie.words)


def test_the_first_of_the_best_is_the_answer_at_any_batch_size(
    helped: tuple[TranslateRun, Translator],
) -> None:
    translator = helped[1]
    texts = [pair.source for pair in digit_pairs(30, seed=6)]
    best = translator.translate(texts)
    several = translator.predict(texts, PredictSettings(nbest=5, batch_size=7))
    assert [answers[0].text for answers in several] == best
    assert all(
        one.score >= other.score
        for answers in several
        for one, other in itertools.pairwise(answers)
    )


def test_greedy_answers_are_the_networks_own(helped: tuple[TranslateRun, Translator]) -> None:
    translator = helped[1]
    texts = [pair.source for pair in digit_pairs(30, seed=6)]
    greedy = translator.translate(texts, beams=1)
    joint, translator.joint = translator.joint, None
    assert translator.translate(texts, beams=1) == greedy
    translator.joint = joint


def test_pairs_that_decide_are_not_learned_from() -> None:
    run = noisy_run(200)
    assert len(run.tuning) == 10
    assert len(run.sources) == len(run.targets) == 190
    assert not noisy_run(200, joint_ngram="no").tuning
    assert not noisy_run(200, joint_ngram="auto").tuning  # too few for characters to need it
    with pytest.raises(NlpkitError, match="100 pairs"):
        noisy_run(50)


def test_what_does_not_help_is_left_out(
    helped: tuple[TranslateRun, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, translator = helped
    joint = trained([[5]] * 20, [[6]] * 20)  # knows nothing of it
    monkeypatch.setattr(translator, "joint", None)
    right = [Pair(one.source, translator.translate([one.source])[0]) for one in run.tuning]
    alone, _ = choose_weight(joint, translator, right)
    assert (joint.weight, alone) == (0.0, 1.0)
    nowhere = [Pair(one.source, "nothing says this") for one in right]
    assert (choose_weight(joint, translator, nowhere), joint.weight) == ((0.0, 0.0), 0.0)


def test_the_same_pairs_give_the_same_model() -> None:
    torch.manual_seed(1)
    once, again = (trained(*lists(every_word(3))) for _ in range(2))
    np.testing.assert_array_equal(once.units, again.units)
    np.testing.assert_array_equal(once.trie.nodes, again.trie.nodes)
