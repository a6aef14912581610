"""Training: the same seed gives the same bytes, vectors reach unseen words, bad data is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_taggers import ENTITIES, LAYOUT, run_of, sentence

from nlpkit.errors import NlpkitError
from nlpkit.samples import sample_folder
from nlpkit.tasks.tag.check import check_data, check_overlap
from nlpkit.tasks.tag.hashed_features import N_AFFIXES, feature_hashes, find_rows
from nlpkit.tasks.tag.layouts import LayoutChoice
from nlpkit.tasks.tag.reading import read_tagged
from nlpkit.tasks.tag.settings import TaggerSettings
from nlpkit.tasks.tag.train import TaggerRun, TrainingData
from nlpkit.vectors.store import Vectors

TAGS = [sentence("the/DET", "dog/NOUN", "barks/VERB"), sentence("a/DET", "cat/NOUN")]


def test_same_seed_same_weights() -> None:
    runs = [run_of(TAGS, seed=seed, epochs=2) for seed in (1, 1, 2)]
    for run in runs:
        for _ in run.trainer.fit():
            pass
    first, second, third = (run.model.state_dict() for run in runs)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], third[name]) for name in first)


def test_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    whole, broken, resumed = (run_of(ENTITIES, epochs=4) for _ in range(3))
    for _ in whole.trainer.fit():
        pass
    for progress in broken.trainer.fit():
        if progress.step == 5:
            break
    broken.trainer.save(tmp_path / "c", {}, "x")
    resumed.trainer.load(tmp_path / "c", {}, "x")
    for _ in resumed.trainer.fit():
        pass
    expected, found = whole.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_what_speaks_for_one_tag_of_a_type_speaks_for_the_others() -> None:
    run = run_of(ENTITIES, epochs=10)
    for _ in run.trainer.fit():
        pass
    weights = run.model.weights()
    (row,) = find_rows(weights["clues.near.known"].numpy(), feature_hashes(["Rio"])[:, N_AFFIXES])
    table = weights["clues.near.table.weight"].unflatten(1, (3, len(run.tags)))
    said = dict(zip(run.tags.tokens, table[row, 1].tolist(), strict=True))  # of the word itself
    # Rio was always one token alone
    assert said["S-LOC"] == max(said.values())
    assert said["B-LOC"] > said["B-PER"] + 0.05
    assert said["I-LOC"] > said["I-PER"] + 0.05


def test_right_context_tells_the_two_teddies_apart() -> None:
    path = str(sample_folder() / "tagged-train.conllu")
    sentences, layout = read_tagged([path], LayoutChoice(column="misc:NER"))
    data = TrainingData.of(sentences, layout)
    told_apart = {}
    for causal in (False, True):
        settings = TaggerSettings(causal=causal, epochs=4, hidden=32, lr=8e-3)
        torch.set_num_threads(1)
        run = TaggerRun(data, settings)
        for _ in run.trainer.fit():
            pass
        run.trainer.keep_best()
        tagger = run.tagger()
        texts = [
            "He said Teddy Roosevelt was a great president".split(),
            "He said Teddy bears are on sale".split(),
        ]
        person, bear = tagger.scores(texts)
        told_apart[causal] = not np.allclose(person[2], bear[2], atol=1e-6)
        tags = tagger.tag_sentences(texts)
        if causal:
            assert tags[0][:3] == tags[1][:3]
        else:
            assert tags[0][2] == "B-PER"
            assert tags[1][2] == "O"
    assert told_apart == {False: True, True: False}


def test_a_crf_is_not_causal() -> None:
    assert TaggerSettings(causal=True).resolve(entities=True, tokens=10, tags=3).crf == "no"
    with pytest.raises(NlpkitError, match="not causal"):
        TaggerSettings(causal=True, crf="yes").resolve(entities=True, tokens=10, tags=3)


@pytest.mark.parametrize("fine_tune", [False, True])
def test_vectors_carry_a_tag_to_words_never_seen(fine_tune: bool) -> None:
    farmers = [
        sentence(f"{fruit}/FRUIT", f"{verb}/VERB")
        for fruit in ("orange", "apple", "pear")
        for verb in ("grows", "falls", "rots")
    ]
    directions = np.eye(4, dtype=np.float32) * 3
    fruit, verb = directions[0], directions[1]
    words = ["orange", "apple", "pear", "durian", "grows", "falls", "rots", "ripens"]
    matrix = np.stack([fruit] * 4 + [verb] * 4)
    run = TaggerRun(
        TrainingData.of(farmers, LAYOUT),
        TaggerSettings(
            hidden=8,
            epochs=40,
            lr=0.02,
            fine_tune=fine_tune,
            word_dropout=2.0,
            chars="none",
            affixes="no",
            batch_tokens=8,
            dropout=0.0,
        ),
        vectors=Vectors(words, matrix),
    )
    for _ in run.trainer.fit():
        pass
    run.model.eval()
    assert run.tagger().tag_sentences([["durian", "ripens"]]) == [["FRUIT", "VERB"]]


def test_characters_as_units() -> None:
    pairs = [("ACGACG", "NNNCCC"), ("GACTTT", "NNNCCC"), ("ACGTTT", "NNNCCC")]
    data = [sentence(*(f"{a}/{b}" for a, b in zip(*pair, strict=True))) for pair in pairs]
    run = run_of(data, unit="char", epochs=40, lr=0.02)
    for _ in run.trainer.fit():
        pass
    run.model.eval()
    assert run.settings.chars == "none"
    assert "".join(run.tagger().tag_sentences([list("ACGTTT")])[0]) == "NNNCCC"


def test_iob1_in_is_iob1_out() -> None:
    data = [sentence("Ann/I-P", "Bob/B-P", "ran/O")] * 3
    run = run_of(data, epochs=60, lr=0.02, dropout=0.0)
    for _ in run.trainer.fit():
        pass
    run.model.eval()
    assert run.data.scheme == "IOB1"
    assert run.tagger().tag_sentences([data[0].tokens]) == [["I-P", "B-P", "O"]]


def test_dev_sentences_choose_the_epoch(tmp_path: Path) -> None:
    data = TrainingData.of(ENTITIES, LAYOUT)
    run = TaggerRun(data, TaggerSettings(hidden=8, epochs=3), dev=ENTITIES)
    heldout = [p.heldout for p in run.trainer.fit() if p.heldout is not None]
    assert len(heldout) == 3
    run.finish().save(tmp_path / "m")
    assert run.trainer.counters.best_loss == min(heldout)


def test_data_without_tags_or_sentences_is_refused() -> None:
    with pytest.raises(NlpkitError, match="no tagged sentence"):
        TrainingData.of([replace(TAGS[0], tokens=[], tags=[], rows=[])], LAYOUT)
    with pytest.raises(NlpkitError, match="tokens without tags"):
        TrainingData.of([replace(TAGS[0], tags=[])], LAYOUT)
    with pytest.raises(NlpkitError, match="holds _ everywhere"):
        TrainingData.of([sentence("a/_", "b/_")], LAYOUT)


def test_one_tag_and_one_token_still_train() -> None:
    run = run_of([sentence("a/X")])
    for _ in run.trainer.fit():
        pass
    run.model.eval()
    assert run.tagger().tag_sentences([["b", "c"]]) == [["X", "X"]]


def test_check_reports_what_is_wrong() -> None:
    data = [*ENTITIES, ENTITIES[0], sentence("Ann/O", "met/I-PER")]
    report = check_data("f", data)
    assert (report.sentences, report.duplicates, report.contradictions) == (6, 1, 0)
    assert report.illegal == ["test: line 2: I-PER after O"]
    assert report.entities["PER"] == 6
    overlap = check_overlap("f", ENTITIES, "g", [ENTITIES[0], sentence("Zed/B-ORG", "ran/O")])
    assert (overlap.shared, overlap.new_tags) == (1, ["B-ORG"])
    assert overlap.unknown_rate == 2 / 8
