"""Prediction: equal to the torch model, to itself alone, and to the order of the lines."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_files import without_manifest
from small_taggers import ENTITIES, run_of, sentence

from nlpkit.errors import NlpkitError
from nlpkit.tasks.tag.batches import TaggedData, cut_long, cut_tagged
from nlpkit.tasks.tag.predictor import Tagger
from nlpkit.text.schemes import read_spans, violations
from nlpkit.vectors.store import Vectors

TEXTS = [sentence.tokens for sentence in ENTITIES] + [
    ["Zed", "met", "Ann"],
    [],
    ["unheard-of", "Wörds", "in", "Rio", "x" * 60],
]


@pytest.fixture(scope="module")
def entity_tagger() -> Tagger:
    run = run_of(ENTITIES, epochs=80, lr=0.02, dropout=0.1)
    for _ in run.trainer.fit():
        pass
    run.model.eval()
    return run.tagger()


@pytest.mark.parametrize("encoder", ["lstm", "gru", "cnn", "transformer"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("linear", ["yes", "no"])
def test_numpy_gives_what_torch_gives(encoder: str, causal: bool, linear: str) -> None:
    vectors = Vectors(["ann", "in", "Rio"], np.eye(3, 4, dtype=np.float32))
    run = run_of(
        ENTITIES,
        vectors=vectors,
        encoder=encoder,
        causal=causal,
        linear_features=linear,
        layers=2,
        crf="no",
    )
    for _ in run.trainer.fit():  # so that linear features have scores
        pass
    run.model.eval()
    found = run.tagger().scores(TEXTS)
    for words, scores in zip(TEXTS, found, strict=True):
        assert scores.shape == (len(words), len(run.tags))
        if words:
            data = TaggedData([words], [[0] * len(words)], run.extractor)
            data.features = run.model.prepared(data.features)
            features, places, _ = data.batch(np.array([0]))
            with torch.no_grad():
                expected = run.model(features, *places.tensors())[0].numpy()
            assert np.abs(scores - expected).max() < 1e-5


@pytest.mark.parametrize("crf", ["yes", "no"])
@pytest.mark.parametrize("encoder", ["lstm", "gru", "cnn", "transformer"])
def test_the_loss_does_not_depend_on_padding(encoder: str, crf: str) -> None:
    run = run_of(ENTITIES, encoder=encoder, crf=crf, chars="lstm", layers=2, epochs=2)
    for _ in run.trainer.fit():
        pass
    run.model.eval()
    run.trainer.counters.step = 0

    def losses(rows: list[int]) -> tuple[float, list[torch.Tensor]]:
        features, places, tags = run._arrays.batch(np.array(rows))
        run.model.zero_grad()
        positions, mask = places.tensors()
        loss = run.model.loss(features, positions, tags.tensors()[0], mask)
        tokens = int(mask.sum())
        (loss * tokens).backward()
        gradients = [p.grad.to_dense() for p in run.model.parameters() if p.grad is not None]
        return loss.item() * tokens, [gradient.clone() for gradient in gradients]

    together, changes = losses([0, 1, 2, 3])
    alone = [losses([row]) for row in range(4)]
    assert together == pytest.approx(sum(loss for loss, _ in alone), rel=1e-4)
    for place, change in enumerate(changes):
        added = sum(gradients[place] for _, gradients in alone)
        torch.testing.assert_close(change, added, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("chars", ["cnn", "lstm", "none"])
@pytest.mark.parametrize("affixes", ["yes", "no"])
def test_word_features_agree(chars: str, affixes: str) -> None:
    run = run_of(ENTITIES, chars=chars, affixes=affixes)
    run.model.eval()
    words = ["Ann", "zebra", "x" * 60, "Ä", "B-52"]
    features = run.extractor.features(words)
    columns = (features.words, features.vectors, features.characters, features.affixes)
    with torch.no_grad():
        expected = run.model.tokens.words(*map(torch.from_numpy, columns)).numpy()
    tagger = run.tagger()
    rows = tagger.words.look_up(words)
    assert np.abs(tagger.words.first[rows] - tagger.encoder.first(expected)).max() < 1e-5


def test_batches_give_what_one_at_a_time_gives_in_any_order(entity_tagger: Tagger) -> None:
    generator = random.Random(0)
    words = sorted({word for text in TEXTS for word in text})
    texts = [generator.choices(words, k=generator.randint(0, 30)) for _ in range(300)]
    together = entity_tagger.scores(texts)
    tags = entity_tagger.tag_sentences(texts)
    order = list(range(len(texts)))
    generator.shuffle(order)
    shuffled = entity_tagger.tag_sentences([texts[place] for place in order])
    for place, text in enumerate(texts):
        alone = entity_tagger.scores([text])[0]
        assert np.abs(together[place] - alone).max(initial=0) < 1e-5
        assert len(tags[place]) == len(text)
    assert shuffled == [tags[place] for place in order]


def test_it_learns_and_keeps_to_the_scheme(entity_tagger: Tagger) -> None:
    assert entity_tagger.tag_sentences([s.tokens for s in ENTITIES]) == [s.tags for s in ENTITIES]
    generator = random.Random(1)
    texts = [generator.choices(["Ann", "Bob", "New", "York", "Rio"], k=8) for _ in range(50)]
    for tags in entity_tagger.tag_sentences(texts):
        assert violations(tags, "IOB2") == []


def test_raw_text_is_tokenised_and_analysed(entity_tagger: Tagger) -> None:
    text = "Bob Ray left New York."
    (record,) = entity_tagger.analyse([text])
    assert record["text"] == text
    assert record["tokens"] == ["Bob", "Ray", "left", "New", "York", "."]
    assert record["tags"] == ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
    assert [(entity["text"], entity["type"]) for entity in record["entities"]] == [
        ("Bob Ray", "PER"),
        ("New York", "LOC"),
    ]
    assert all(text[one["start"] : one["end"]] == one["text"] for one in record["entities"])
    assert entity_tagger.analyse([""])[0]["tokens"] == []
    with pytest.raises(TypeError, match="list of texts"):
        entity_tagger.analyse(text)


def test_probabilities(entity_tagger: Tagger) -> None:
    scores = entity_tagger.scores([ENTITIES[0].tokens])[0]
    tags, probabilities, entities = entity_tagger.probabilities(scores)
    assert tags == ENTITIES[0].tags
    assert all(0 < probability <= 1 for probability in probabilities)
    assert [tuple(entity.span) for entity in entities] == [
        (0, 1, "PER"),
        (2, 4, "PER"),
        (5, 6, "LOC"),
    ]
    assert entities[1].probability <= min(probabilities[2:4]) + 1e-6


def test_a_very_long_sentence_is_cut(entity_tagger: Tagger) -> None:
    words = ["Ann", "met", "Bob", "Ray"] * 1250
    assert [len(range(*piece.indices(5000))) for piece in cut_long(5000)] == [1000] * 5
    tags = entity_tagger.tag_sentences([words])[0]
    assert len(tags) == 5000
    assert entity_tagger.probabilities(entity_tagger.scores([words])[0])[0] == tags
    assert [len(range(*piece.indices(7))) for piece in cut_long(7, 3)] == [3, 3, 1]


@given(st.lists(st.sampled_from(["O", "B-P", "I-P", "I-L", "S-P", "E-L"]), max_size=40))
def test_cuts_of_a_tagged_sentence_fall_between_entities(tags: list[str]) -> None:
    pieces = cut_tagged(tags, 5)
    assert [place for piece in pieces for place in range(len(tags))[piece]] == [*range(len(tags))]
    assert all(0 < piece.stop - piece.start <= 5 for piece in pieces)
    for span in read_spans(tags):
        cuts = [piece.start for piece in pieces if span.start < piece.start < span.end]
        # an entity that starts a piece and is longer than one has to be cut
        assert not cuts or span.end - span.start > 5


def test_long_sentences_are_learned_as_legal_sequences() -> None:
    long = sentence("Yes/O", "!/O", *["Bob/B-PER", "Ray/I-PER"] * 600)
    run = run_of([long, *ENTITIES])
    rows = [run.tags.decode(row) for row in run._arrays.tags]
    assert len(rows) == 2 + len(ENTITIES)
    assert [place for row in rows for place in violations(row, "BIOES")] == []
    assert sum(len(read_spans(row)) for row in rows) == 600 + 6


def test_many_distinct_words_do_not_fill_the_memory(
    entity_tagger: Tagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nlpkit.tasks.tag.words.REMEMBERED", 10)
    texts = [[f"word{number}", "Ann"] for number in range(50)]
    assert [
        entity_tagger.tag_sentences([text])[0] for text in texts
    ] == entity_tagger.tag_sentences(texts)


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    run = run_of(ENTITIES)
    for _ in run.trainer.fit():
        pass
    run.finish().save(tmp_path / "m")
    loaded = Tagger.load(str(tmp_path / "m"))
    before, after = run.tagger().scores(TEXTS), loaded.scores(TEXTS)
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert (loaded.scheme, loaded.layout) == ("IOB2", run.data.layout)


def test_a_model_with_other_hashes_is_refused(tmp_path: Path) -> None:
    run_of(ENTITIES).finish().save(tmp_path / "m")
    layout = without_manifest(tmp_path / "m") / "layout.json"
    about = json.loads(layout.read_text())
    for changed in ({**about, "version": 1}, {k: v for k, v in about.items() if k != "version"}):
        layout.write_text(json.dumps(changed))
        with pytest.raises(NlpkitError, match="another version of nlpkit"):
            Tagger.load(str(tmp_path / "m"))


@pytest.mark.parametrize("name", ["weights.safetensors", "words.tsv", "tags.tsv", "layout.json"])
def test_a_damaged_model_is_one_clear_error(tmp_path: Path, name: str) -> None:
    run_of(ENTITIES).finish().save(tmp_path / "m")
    file = tmp_path / "m" / name
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(NlpkitError, match="m"):
        Tagger.load(str(tmp_path / "m"))
    file.unlink()
    with pytest.raises(NlpkitError, match="m"):
        Tagger.load(str(tmp_path / "m"))


@pytest.mark.parametrize("encoder", ["lstm", "gru", "cnn", "transformer"])
@pytest.mark.parametrize("chars", ["cnn", "lstm", "none"])
def test_every_kind_comes_back_from_its_folder(encoder: str, chars: str, tmp_path: Path) -> None:
    odd = sentence("a\nb/x\ty", "c\rd/\ud800", "\\n/p", "\ufeffe/q")
    vectors = Vectors.from_rows(["a\nb", "c\rd", "", "\\n"], np.eye(4, dtype=np.float32), name="v")
    for vector_words in (None, vectors):
        run = run_of([odd, odd], vectors=vector_words, encoder=encoder, chars=chars)
        run.finish().save(tmp_path / "m", force=True)
        loaded = Tagger.load(str(tmp_path / "m"))
        assert loaded.tags.tokens == run.tags.tokens
        assert loaded.codec.vocab.tokens == run.extractor.words.vocab.tokens
        assert loaded.codec.vector_words == run.extractor.words.vector_words
        right, found = run.tagger().scores([odd.tokens]), loaded.scores([odd.tokens])
        assert np.array_equal(right[0], found[0])
