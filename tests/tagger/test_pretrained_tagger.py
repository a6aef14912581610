"""Taggers on pre-trained encoders."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_kinds import TAGGED
from small_taggers import LAYOUT, sentence
from tiny_berts import tiny_bert

from nlpkit.errors import NlpkitError, UsageError
from nlpkit.models.build import build_model
from nlpkit.models.elmo import Elmo, ElmoArchitecture
from nlpkit.models.elmo_model import ElmoModel
from nlpkit.models.finetune import BertEncoder, ElmoEncoder, GptEncoder, PretrainedEncoder
from nlpkit.models.finetune_words import WordStates, mean_by_word, word_windows
from nlpkit.models.gpt import GPT
from nlpkit.models.settings import ModelSettings
from nlpkit.nn.encoder import TokenEncoder
from nlpkit.tasks.tag import pretrained_train
from nlpkit.tasks.tag.features import FeatureExtractor
from nlpkit.tasks.tag.head import TagHead
from nlpkit.tasks.tag.model import FeatureEncoder
from nlpkit.tasks.tag.predictor import Tagger
from nlpkit.tasks.tag.pretrained import PretrainedTagger, StatesTagger
from nlpkit.tasks.tag.pretrained_train import PretrainedTaggerRun, fitting, tagger_run
from nlpkit.tasks.tag.settings import TaggerSettings, TagTuning
from nlpkit.tasks.tag.train import TaggerRun, TrainingData
from nlpkit.text.codec import Bytes
from nlpkit.vectors.store import Vectors


def data(text: str) -> TrainingData:
    return TrainingData.of([sentence(*line.split()) for line in text.splitlines()], LAYOUT)


ENTITIES = "Ann/B-PER Lee/I-PER met/O Bob/B-PER ./O\nin/O New/B-LOC York/I-LOC it/O rains/O\n"


def encoder(kind: str) -> PretrainedEncoder:
    if kind == "bert":
        return BertEncoder(tiny_bert([TAGGED.replace("/", " "), ENTITIES.replace("/", " ")]))
    if kind == "elmo":
        elmo = Elmo(ElmoArchitecture(dim=8, hidden=12, char_dim=4, longest_word=12))
        elmo.initialize(torch.Generator().manual_seed(1))
        return ElmoEncoder(ElmoModel(elmo.eval(), None))
    model = build_model(ModelSettings(vocab_size=256, dim=16, layers=1, heads=2, block_size=64), 1)
    assert isinstance(model, GPT)
    return GptEncoder(model, Bytes())


@pytest.mark.parametrize(
    ("kind", "freeze", "pieces"),
    [
        ("bert", None, "first"),
        ("bert", "all", "mean"),
        ("elmo", None, "first"),
        ("gpt", "0", "mean"),
    ],
)
@pytest.mark.parametrize("text", [TAGGED, ENTITIES])
def test_an_encoder_learns_tags_is_saved_and_loaded(
    tmp_path: Path, kind: str, freeze: str | None, pieces: str, text: str
) -> None:
    tagged = data(text)
    frozen = freeze == "all" or (kind, freeze) == ("elmo", None)
    tuning = TagTuning(
        freeze=freeze,
        pieces=pieces,  # type: ignore[arg-type]
        epochs=60 if frozen else 30,
        lr=0.05 if frozen else 0.01,
        batch_tokens=64,
        dropout=0.0,
        layer_decay=1.0,
    )
    run = PretrainedTaggerRun(tagged, encoder(kind), tuning)
    trained = run.train(tmp_path / "trained")
    loaded = Tagger.load(tmp_path / "trained")
    sentences = [sentence.tokens for sentence in tagged.sentences]
    assert loaded.tag_sentences(sentences) == trained.tag_sentences(sentences)
    right = [
        tag == gold
        for tags, sentence in zip(loaded.tag_sentences(sentences), tagged.sentences, strict=True)
        for tag, gold in zip(tags, sentence.tags, strict=True)
    ]
    assert np.mean(right) > 0.7
    assert loaded.tag([]) == []
    assert loaded.scheme == tagged.scheme


@pytest.mark.parametrize(("kind", "pieces"), [("bert", "mean"), ("elmo", "first"), ("gpt", "mean")])
def test_every_encoder_learns_tags_in_bfloat16_too(kind: str, pieces: Any) -> None:
    settings = TagTuning(dtype="bfloat16", freeze="0", pieces=pieces, max_iters=2)
    try:
        run = PretrainedTaggerRun(data(TAGGED), encoder(kind), settings)
    except NlpkitError as error:  # a processor without
        pytest.skip(error.message)
    losses = [progress.loss for progress in run.steps()]
    assert len(losses) == 2
    assert np.isfinite(losses).all()


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.integers(4, 12))
def test_windows_of_words_fit_and_lose_none(counts: list[int], room: int) -> None:
    windows = word_windows(counts, room)
    assert set().union(*(range(*one) for one in windows)) == set(range(len(counts)))
    for start, end in windows:
        assert sum(counts[start:end]) <= room or end == start + 1
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(windows))


def test_a_long_sentence_is_tagged_in_windows_like_a_short_one() -> None:
    tagged = data(TAGGED)
    tuning = TagTuning(epochs=25, lr=0.01, batch_tokens=64, layer_decay=1.0)
    run = PretrainedTaggerRun(tagged, encoder("bert"), tuning)
    tagger = run.train()
    one = tagged.sentences[0].tokens
    many = tagger.tag(one * 30)
    assert len(many) == 30 * len(one)
    assert np.mean([a == b for a, b in zip(many, tagger.tag(one) * 30, strict=True)]) > 0.8
    long = tagged.sentences[0]
    pieces = fitting(long, BertEncoder(tiny_bert([], block_size=12)), entities=False)
    assert [p.stop - p.start for p in pieces] != [len(long.tokens)]
    assert pieces[-1].stop == len(long.tokens)


def test_a_word_has_the_state_of_its_first_piece_or_their_mean() -> None:
    words = WordStates(encoder("bert")).read(["Ann", "zzz"])
    assert words.owners == [0, 1, 2, 2, 2, 0]
    assert words.places == [1, 2]
    states = torch.arange(6.0).view(1, 6, 1)
    means = mean_by_word(states, torch.tensor([words.owners]), 2)
    assert means.flatten().tolist() == [1.0, 3.0]
    causal = WordStates(encoder("gpt")).read(["ab", "c"])
    assert causal.places == [1, 3], "the last of a causal model"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (TaggerSettings(freeze="all"), "`freeze` needs `pretrained`"),
        (TaggerSettings(layer_decay=0.5), "`layer_decay` needs `pretrained`"),
        (TaggerSettings(pieces="mean"), "`pieces` needs `pretrained`"),
        (TaggerSettings(features="yes"), "`features` needs `pretrained`"),
        (TaggerSettings(pretrained="x", freeze="all", layer_decay=0.5), "`freeze` all"),
        (TaggerSettings(pretrained="x", causal=True), "seen from both sides"),
        (
            TaggerSettings(pretrained="x", features="no", hidden=7),
            "`hidden` needs `encoder` or `features` yes",
        ),
        (
            TaggerSettings(pretrained="x", features="no", word_dim=7),
            "`word_dim` needs `features` yes",
        ),
        (
            TaggerSettings(pretrained="x", features="no", chars="lstm"),
            "`chars` needs `features` yes",
        ),
        (TaggerSettings(pretrained="x", encoder="lstm", norm="post"), "need `encoder` transformer"),
    ],
)
def test_settings_that_do_not_go_together(
    settings: TaggerSettings, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretrained_train, "open_encoder", lambda path: encoder("bert"))
    with pytest.raises(UsageError, match=message):
        tagger_run(data(TAGGED), settings)


@pytest.mark.parametrize("freeze", [None, "all"])
def test_vectors_stand_beside_states(freeze: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained_train, "open_encoder", lambda path: encoder("bert"))
    vectors = Vectors(["Ann", "rains"], np.eye(2, dtype=np.float32))
    settings = TaggerSettings(pretrained="x", freeze=freeze, max_iters=2)
    with pytest.raises(UsageError, match="`vectors` need `features` yes"):
        tagger_run(data(TAGGED), replace(settings, features="no"), vectors=vectors)
    tagger = tagger_run(data(TAGGED), settings, vectors=vectors).train()
    assert tagger.weights["words.vectors"].shape == (3, 2)


@pytest.mark.parametrize("freeze", ["0", "all"])
@pytest.mark.parametrize(
    ("kind", "pieces", "context"),
    [("bert", "mean", "cnn"), ("elmo", "first", "lstm"), ("gpt", "first", "transformer")],
)
@pytest.mark.parametrize("text", [TAGGED, ENTITIES])
def test_features_stand_beside_the_states_of_an_encoder(
    tmp_path: Path,
    kind: str,
    pieces: Any,
    context: Any,
    text: str,
    freeze: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tagged = data(text)
    given = encoder(kind)
    before = [parameter.detach().clone() for stage in given.stages()[1:] for parameter in stage]
    monkeypatch.setattr(pretrained_train, "open_encoder", lambda path: given)
    settings = TaggerSettings(
        pretrained="x", freeze=freeze, pieces=pieces, encoder=context, hidden=8, epochs=30, lr=0.02
    )
    run = tagger_run(tagged, settings)
    assert isinstance(run, TaggerRun)
    trained = run.train(tmp_path / "trained")
    loaded = Tagger.load(tmp_path / "trained")
    assert isinstance(loaded, StatesTagger)
    sentences = [sentence.tokens for sentence in tagged.sentences]
    assert loaded.tag_sentences(sentences) == [sentence.tags for sentence in tagged.sentences]
    assert ("mix" in loaded.config.settings) == (kind == "elmo")
    # prediction, in numpy, is what was trained, in torch
    batch = run._arrays.batch(np.arange(1))
    positions, mask = batch.words.tensors()
    with torch.no_grad():
        layers = run._read_layers(np.arange(1), mask)
        scores = run.model.eval()(batch.features, positions, mask, layers)[0].numpy()
    for tagger in (trained, loaded):
        np.testing.assert_allclose(tagger.scores(sentences[:1])[0], scores, atol=1e-4)
    after = [parameter for stage in given.stages()[1:] for parameter in stage]
    moved = [not torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    assert all(moved) if freeze == "0" else not any(moved)
    # and the states count: words that no feature tells apart get other scores in other places
    plain = replace(settings, pretrained=None, freeze=None, pieces="first")
    n_in = tagger_run(tagged, plain).model.tokens.encoder.state_dict()
    with_states = run.model.tokens.encoder.state_dict()
    wider = [name for name in n_in if with_states[name].shape != n_in[name].shape]
    assert wider, "the encoder reads states too"


def test_a_long_sentence_is_cut_to_what_a_trained_encoder_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = BertEncoder(tiny_bert([TAGGED.replace("/", " ")], block_size=12))
    monkeypatch.setattr(pretrained_train, "open_encoder", lambda path: small)
    words = [word for _ in range(5) for word in TAGGED.split("\n")[0].split()]
    long = TrainingData.of([sentence(*words)], LAYOUT)
    tagger = tagger_run(long, TaggerSettings(pretrained="x", max_iters=2)).train()
    assert len(tagger.tag(long.sentences[0].tokens)) == len(words)


def test_what_the_vocabulary_lacks_is_told_apart(tmp_path: Path) -> None:
    text = "a/DET b/NOUN ,/COMMA a/DET b/NOUN !/MARK\na/DET b/NOUN !/MARK a/DET b/NOUN ,/COMMA"
    tagged = data(text)
    given = encoder("bert")
    assert given.encode_words([",", "!"])[0] == given.encode_words(["!", ","])[0], "[UNK] both"
    tuning = TagTuning(epochs=60, lr=0.01, batch_tokens=64, layer_decay=1.0)
    PretrainedTaggerRun(tagged, given, tuning).train(tmp_path / "trained")
    loaded = Tagger.load(tmp_path / "trained")
    assert loaded.tag(["a", "b", ","])[-1] == "COMMA"
    assert loaded.tag(["a", "b", "!"])[-1] == "MARK"
    frozen = encoder("bert")
    PretrainedTaggerRun(tagged, frozen, replace(tuning, freeze="1", max_iters=1)).train()
    assert frozen.encode_words([","]) == encoder("bert").encode_words([","]), "as it is"


@pytest.mark.parametrize(
    ("features", "dim", "freeze", "beside"),
    [
        ("auto", 32, None, True),
        ("auto", 384, None, False),
        ("auto", 384, "all", True),
        ("yes", 384, None, True),
        ("no", 32, None, False),
    ],
)
def test_features_stand_beside_small_and_frozen_encoders_unless_told_otherwise(
    features: Any, dim: int, freeze: str | None, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = BertEncoder(tiny_bert([], dim=dim))
    monkeypatch.setattr(pretrained_train, "open_encoder", lambda path: given)
    run = tagger_run(data(TAGGED), TaggerSettings(pretrained="x", features=features, freeze=freeze))
    assert isinstance(run, TaggerRun if beside else PretrainedTaggerRun)


def test_features_may_stay_away_from_a_frozen_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained_train, "open_encoder", lambda path: encoder("elmo"))
    run = tagger_run(data(TAGGED), TaggerSettings(pretrained="x", features="no"))
    assert isinstance(run, PretrainedTaggerRun)


SENTENCES = [["Ann", "met", "Bob"], ["it", "rains", "in", "New", "York"], []]


def any_encoder(kind: str) -> TokenEncoder:
    if kind in ("bert", "elmo", "gpt"):
        return WordStates(encoder(kind)).eval()
    words = [word for words in SENTENCES for word in words]
    vectors = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    given = vectors if kind == "vectors" else None
    chars: Any = "lstm" if kind == "characters" else "cnn"
    chosen: Any = kind if given is None and kind != "characters" else "lstm"
    settings = TaggerSettings(encoder=chosen, chars=chars).resolve(entities=True, tokens=8, tags=3)
    known = ["Ann", "York"] if given is not None else []
    extractor = FeatureExtractor.build(words, known, affixes=settings.affixes == "yes")
    return FeatureEncoder(settings, extractor, given).eval()


@pytest.mark.parametrize(
    "kind",
    ["vectors", "characters", "lstm", "gru", "cnn", "transformer", "bert", "elmo", "gpt"],
)
def test_every_encoder_takes_tokens_and_gives_states_and_a_mask(kind: str) -> None:
    encoder = any_encoder(kind)
    with torch.no_grad():
        states, mask = encoder.encode(SENTENCES)
        assert states.shape == (3, 5, encoder.size)
        assert mask.sum(dim=1).tolist() == [3, 5, 0]
        # a sentence gets what it would get alone: padding and neighbours do not matter
        alone, _ = encoder.encode(SENTENCES[:1])
        torch.testing.assert_close(alone[0], states[0, :3], atol=1e-5, rtol=1e-4)
        head = TagHead(encoder.size, 4, torch.nn.Identity(), crf=True)
        assert head(states, mask).shape == (3, 5, 4)


@pytest.mark.parametrize("context", ["lstm", "transformer"])
def test_an_encoder_may_stand_on_a_frozen_one(tmp_path: Path, context: Any) -> None:
    tagged = data(ENTITIES)
    tuning = TagTuning(
        context=context, hidden=8, freeze="all", epochs=60, lr=0.02, batch_tokens=64, dropout=0.0
    )
    trained = PretrainedTaggerRun(tagged, encoder("elmo"), tuning).train(tmp_path / "trained")
    loaded = Tagger.load(tmp_path / "trained")
    sentences = [sentence.tokens for sentence in tagged.sentences]
    found = loaded.tag_sentences(sentences)
    assert found == trained.tag_sentences(sentences)
    assert found == [sentence.tags for sentence in tagged.sentences]
    assert isinstance(loaded, PretrainedTagger)
    assert loaded.network.head.context is not None
