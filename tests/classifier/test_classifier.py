"""Classifiers: every model learns, numpy equals torch, batches equal one at a time."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from nlpkit.errors import NlpkitError, UsageError
from nlpkit.samples import sample_folder
from nlpkit.tasks.classify import bow, features
from nlpkit.tasks.classify.bow import LEAST, STRENGTHS, Bow
from nlpkit.tasks.classify.data import Example, Names, read_examples
from nlpkit.tasks.classify.explain import explain
from nlpkit.tasks.classify.features import BagMaker, Bags, FeatureIndex, text_weights
from nlpkit.tasks.classify.predictor import Classifier, known_words
from nlpkit.tasks.classify.scores import score_labels
from nlpkit.tasks.classify.settings import ClassifierSettings
from nlpkit.tasks.classify.train import ClassifierRun
from nlpkit.text.pipeline import Tokens, TokenSettings
from nlpkit.text.subwords import Subwords
from nlpkit.training.batches import Ragged
from nlpkit.vectors.store import Vectors

KINDS = ["bow", "cnn", "lstm", "gru", "transformer"]
FOODS = ["soup", "lamb", "tea", "rice", "cake"]
REVIEWS = [
    Example(f"the {food} was {word}", (label,))
    for food in FOODS
    for word, label in [("great", "good"), ("lovely", "good"), ("cold", "bad"), ("awful", "bad")]
]
TEXTS = [example.text for example in REVIEWS] + ["", "great great cold", "new words only here now"]


def trained(
    model: str,
    examples: list[Example] = REVIEWS,
    dev: Sequence[Example] = (),
    **settings: object,
) -> ClassifierRun:
    torch.set_num_threads(1)
    values: dict[str, object] = {"model": model, "epochs": 6}
    if model != "bow":
        values |= {"hidden": 8, "batch_size": 4, "dropout": 0.1, "dim": 8, "lr": 0.02}
    run = ClassifierRun(examples, ClassifierSettings(**{**values, **settings}), dev=dev)  # type: ignore[arg-type]
    for _ in run.trainer.fit():
        pass
    run.model.eval()
    return run


@pytest.mark.parametrize("model", KINDS)
def test_every_model_learns(model: str) -> None:
    sizes: dict[str, Any] = {} if model == "bow" else {"epochs": 12, "hidden": 16}
    classifier = trained(model, **sizes).classifier()
    assert score_labels(REVIEWS, classifier).accuracy == 1.0


@pytest.mark.parametrize("model", KINDS[1:])
@pytest.mark.parametrize("pooling", ["max", "average", "last"])
def test_numpy_gives_what_torch_gives_alone_and_together(model: str, pooling: str) -> None:
    run = trained(model, pooling=pooling, layers=2, epochs=1)
    classifier = run.classifier()
    rows = [classifier.bags.tokens(text) for text in TEXTS]
    together = classifier.scores_of(rows)
    order = list(range(len(rows)))
    random.Random(0).shuffle(order)
    assert np.abs(classifier.scores_of([rows[i] for i in order]) - together[order]).max() < 1e-5
    for place, row in enumerate(rows):
        found = padded_inputs(classifier, [row])
        with torch.no_grad():
            expected = run.model(*map(torch.from_numpy, found)).numpy()[0]
        assert np.abs(together[place] - expected).max() < 1e-5
    found = padded_inputs(classifier, rows)
    assert not found[2].all()
    with torch.no_grad():
        expected = run.model(*map(torch.from_numpy, found)).numpy()
    assert np.abs(together - expected).max() < 1e-5


def padded_inputs(classifier: Classifier, rows: list[list[str]]) -> tuple[np.ndarray, ...]:
    assert classifier.words is not None
    looked_up = [known_words(classifier.words, row) for row in rows]
    ids, vectors = (Ragged(part).pad(range(len(rows))) for part in zip(*looked_up, strict=True))
    return ids.ids, vectors.ids, ids.mask


def test_probabilities_add_up() -> None:
    classifier = trained("bow").classifier()
    assert np.allclose(classifier.probabilities(TEXTS).sum(axis=1), 1, atol=1e-6)
    assert classifier.probabilities([]).shape == (0, 2)


@pytest.mark.parametrize("labels", ["two", "three", "several"])
def test_the_regressions_are_those_of_scikit_learn(labels: str) -> None:
    examples = list(REVIEWS)
    if labels != "two":
        examples += [Example(f"no {food} at all", ("neither",)) for food in FOODS]
    if labels == "several":
        examples += [Example("great and cold", ("good", "bad"))]
    run = trained("bow", examples, epochs=60)
    assert isinstance(run.model, Bow)
    parts = (run._rows.weights * run.model.inverse[run._rows.features], *run._rows[:2])
    table = csr_matrix(parts, shape=(len(examples), len(run.features)))
    learned = (
        run.model.weights.detach()
        .numpy()
        .reshape(-1, len(STRENGTHS), len(run.features) + 1, len(run.labels))
    )
    out = run.model.parts[0]
    for found, texts in (
        (learned[-1], slice(None)),
        (learned[0], np.delete(np.arange(len(examples)), out)),
    ):
        for weights, strength in zip(found, STRENGTHS, strict=True):
            scores = table @ weights[:-1] + weights[-1]
            peer = LogisticRegression(C=strength, tol=1e-8, max_iter=1000)
            if labels == "several":
                for label in range(3):
                    peer.fit(table[texts], run.targets[texts, label])
                    assert np.abs(peer.decision_function(table) - scores[:, label]).max() < 0.05
                continue
            # two labels have a row of weights each, half as far from nothing: half the penalty
            peer.C = strength * (2 if labels == "two" else 1)
            peer.fit(table[texts], run.targets[texts].argmax(axis=1))
            assert np.abs(peer.predict_proba(table) - softmax(scores, axis=1)).max() < 0.01


def test_held_out_loss_decides_between_the_regression_and_naive_bayes() -> None:
    run = trained("bow")
    assert isinstance(run.model, Bow)
    assert sorted(np.concatenate(run.model.parts)) == list(range(len(REVIEWS)))
    loss, number, shares = run.model.choose()
    assert shares[0] >= LEAST
    learned = run.model.weights[-len(STRENGTHS) :][number].detach().view(-1, 2).numpy()
    expected = learned[:-1] * run.model.inverse[:, None] * shares[0] + run.model.bayes * shares[1]
    weights = run.classifier().weights
    made = weights["embedding.weight"] @ weights["output.weight"].T
    assert np.abs(made - expected).max() < 1e-5
    right = trained("bow", dev=REVIEWS[:4])  # held out by the user: all others are learned from
    assert isinstance(right.model, Bow)
    assert right.model.parts == []
    assert len(right.model.weights) == len(STRENGTHS)
    assert len(right.model._held_targets) == 4
    unknown = [Example("the tea was green", ("new",))]
    ignoring = trained("bow", dev=unknown).model
    assert isinstance(ignoring, Bow)
    assert ignoring.choose()[0] == loss


def test_rare_features_are_left_out_where_memory_would_not_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = len(trained("bow").features)
    numbers = 2 * bow.n_regressions(len(REVIEWS), dev=False)  # of two labels
    monkeypatch.setattr(bow, "LARGEST", every * numbers - 1)
    run = trained("bow")
    assert len(run.features) < every
    kept = set(run.features.tolist())
    texts_with = Counter(run._maker.bags(TEXTS[: len(REVIEWS)]).features.tolist())
    left_out = [texts for feature, texts in texts_with.items() if feature not in kept]
    assert max(left_out) < min(texts_with[feature] for feature in kept)
    assert score_labels(REVIEWS, run.classifier()).accuracy == 1.0


def test_regressions_for_which_there_is_no_memory_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nlpkit.memory.available_memory", lambda: 10_000)
    with pytest.raises(NlpkitError, match=r"training 12 regressions of .* needs .* of memory"):
        trained("bow")


def test_what_a_bow_has_no_use_for_is_refused() -> None:
    with pytest.raises(UsageError, match="`dropout` is for the other models, not for bow"):
        ClassifierSettings(dropout=0.1).resolve(texts=10)
    resolved = ClassifierSettings().resolve(texts=10)
    assert ClassifierSettings(dim=resolved.dim, lr=resolved.lr).resolve(texts=10) == resolved


def test_bigrams_see_what_words_alone_do_not() -> None:
    examples = [
        Example(f"{a} {b}", (label,))
        for a, b, label in [
            ("not", "good", "bad"),
            ("very", "good", "fine"),
            ("not", "bad", "fine"),
            ("very", "bad", "bad"),
        ]
    ] * 5
    run = trained("bow", examples, ngrams=2)
    assert score_labels(examples, run.classifier()).accuracy == 1.0


def test_several_labels_a_text() -> None:
    examples = [
        Example("red round", ("red", "round")),
        Example("red square", ("red",)),
        Example("blue round", ("round",)),
        Example("blue square", ()),
    ] * 6
    classifier = trained("bow", examples, multi_label=True).classifier()
    scores = score_labels(examples, classifier)
    assert scores.accuracy == 1.0
    assert scores.micro.f1 == 1.0
    assert ClassifierRun(examples, ClassifierSettings()).settings.multi_label


@pytest.mark.parametrize("fine_tune", [False, True])
def test_vectors_carry_a_label_to_words_never_seen(fine_tune: bool) -> None:
    words = ["great", "lovely", "superb", "cold", "awful", "dreadful"]
    matrix = np.array([[3, 0]] * 3 + [[0, 3]] * 3, np.float32)
    run = ClassifierRun(
        REVIEWS,
        ClassifierSettings(
            model="cnn", dim=2, hidden=8, epochs=25, lr=0.02, fine_tune=fine_tune, dropout=0.0
        ),
        vectors=Vectors(words, matrix),
    )
    for _ in run.trainer.fit():
        pass
    run.model.eval()
    found = run.classifier().probabilities(["the tea was superb", "the tea was dreadful"])
    names = run.labels.tokens
    assert [names[index] for index in found.argmax(axis=1)] == ["good", "bad"]


@pytest.mark.parametrize("model", ["bow", "lstm"])
def test_same_seed_same_weights_and_resume(model: str, tmp_path: Path) -> None:
    whole = trained(model, epochs=6 if model == "bow" else 2).model.state_dict()
    runs = [
        ClassifierRun(
            REVIEWS,
            ClassifierSettings(
                model=model,  # type: ignore[arg-type]
                epochs=6 if model == "bow" else 2,
                hidden=8,
                batch_size=None if model == "bow" else 4,
                dropout=None if model == "bow" else 0.1,
                dim=None if model == "bow" else 8,
                lr=None if model == "bow" else 0.02,
            ),
        )
        for _ in range(2)
    ]
    for progress in runs[0].trainer.fit():
        if progress.step == 3:
            break
    runs[0].trainer.save(tmp_path / "c", {}, "x")
    runs[1].trainer.load(tmp_path / "c", {}, "x")
    for _ in runs[1].trainer.fit():
        pass
    resumed = runs[1].model.state_dict()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


@pytest.mark.parametrize("model", ["bow", "cnn"])
def test_a_saved_model_predicts_the_same_and_damage_is_named(model: str, tmp_path: Path) -> None:
    run = trained(model, epochs=1)
    run.finish().save(tmp_path / "m")
    loaded = Classifier.load(str(tmp_path / "m"))
    assert np.array_equal(loaded.probabilities(TEXTS), run.classifier().probabilities(TEXTS))
    for name in ("labels.tsv", "weights.safetensors"):
        file = tmp_path / "m" / name
        whole = file.read_bytes()
        file.write_bytes(whole[:5])
        with pytest.raises(NlpkitError, match="m"):
            Classifier.load(str(tmp_path / "m"))
        file.write_bytes(whole)


def test_the_word_that_decides_has_the_most_influence() -> None:
    classifier = trained("bow").classifier()
    text = "The  soup was GREAT"
    found = explain(classifier, text)
    assert found.label == "good"
    words = [text[start:end] for start, end in found.spans]
    assert words[int(np.argmax(found.influence))] == "GREAT"
    against = explain(classifier, text, "bad")
    assert against.influence[3] == pytest.approx(-found.influence[3], abs=1e-3)
    assert explain(classifier, "").influence == []


def test_features_are_once_a_text_and_end_with_it() -> None:
    maker = BagMaker("whitespace", lower=True, ngrams=3)
    bags = maker.bags(["a a a", "A", "a a a", ""])
    parts = [
        bags.features[s:e].tolist() for s, e in zip(bags.starts, bags.starts[1:], strict=False)
    ]
    # words a, edge; pairs ^a, aa, a$; threes ^aa, aaa, aa$
    assert [len(part) for part in parts] == [8, 5, 8, 2]
    assert parts[0] == parts[2]
    alone = maker.bags(["a a a"])
    assert alone.features.tolist() == parts[0]
    assert [len(part) for part in FeatureIndex(np.zeros(0, np.uint64)).rows(bags)] == [0, 5]


def test_every_known_feature_is_found_and_no_other() -> None:
    generator = np.random.default_rng(0)
    known = np.unique(generator.integers(0, 1 << 48, 5000, dtype=np.uint64))
    asked = np.concatenate([known[::3], known[::7] + np.uint64(1)])
    rows, starts = FeatureIndex(known).rows(Bags(asked, np.array([0, len(asked)])))
    expected = [i for i, x in enumerate(known.tolist()) if x in set(asked.tolist())]
    assert sorted(set(rows.tolist())) == expected
    assert starts[-1] == len(rows)


def test_parts_join_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = BagMaker("whitespace", lower=False, ngrams=2)
    texts = [f"a {number} b" for number in range(10)] + [""]
    whole = maker.bags(texts)
    monkeypatch.setattr("nlpkit.tasks.classify.features.TEXTS_AT_ONCE", 3)
    parts = maker.bags(texts)
    assert parts.features.tolist() == whole.features.tolist()
    assert parts.starts.tolist() == whole.starts.tolist()


def test_many_distinct_words_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nlpkit.tasks.classify.features.REMEMBERED", 3)
    maker = BagMaker("whitespace", lower=False, ngrams=1)
    texts = [f"w{number} w{number + 1}" for number in range(9)]
    together = maker.bags(texts)
    alone = [feature for text in texts for feature in maker.bags([text]).features.tolist()]
    assert together.features.tolist() == alone


def test_calibration_and_unseen_labels() -> None:
    classifier = trained("bow").classifier()
    scores = score_labels([*REVIEWS, Example("the soup was great", ("odd",))], classifier)
    assert scores.labels["odd"].recall == 0.0
    assert 0 <= scores.calibration_error <= 1
    assert sum(part.decisions for part in scores.bins) == len(REVIEWS) + 1
    assert scores.macro_f1 == pytest.approx((1.0 + scores.labels["good"].f1) / 3)


def test_sample_reviews_are_learned() -> None:
    path = str(sample_folder() / "reviews.tsv")
    run = ClassifierRun(read_examples(path), ClassifierSettings())
    for _ in run.trainer.fit():
        pass
    run.trainer.keep_best()
    assert score_labels(read_examples(path, split="test"), run.classifier()).accuracy > 0.9


# --- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "good\tI liked it\nbad\tI did not\nbad\tSo so\n"),
        ("b.tsv", "I liked it\tgood\r\nI did not\tbad\r\nSo so\tbad\r\n"),
        ("c.tsv", "id\ttext\tlabel\n1\tI liked it\tgood\n2\tI did not\tbad\n3\tSo so\tbad\n"),
        ("d.txt", "__label__good I liked it\n__label__bad I did not\n\n__label__bad So so\n"),
        (
            "e.jsonl",
            '{"text": "I liked it", "label": "good"}\n{"label": ["bad"], "text": "I did not"}\n'
            '{"text": "So so", "labels": ["bad"]}\n',
        ),
    ],
)
def test_formats_are_found_out(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    expected = [("I liked it", ("good",)), ("I did not", ("bad",)), ("So so", ("bad",))]
    assert [example[:2] for example in read_examples(str(tmp_path / name))] == expected


def test_a_folder_for_each_label(tmp_path: Path) -> None:
    for label, text in [("good", "I liked it\nall"), ("bad", "I did not")]:
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.txt").write_text(text)
    expected = [("I did not", ("bad",)), ("I liked it all", ("good",))]
    assert [example[:2] for example in read_examples(str(tmp_path))] == expected


def test_several_labels_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("__label__a __label__b x y\n")
    assert read_examples(str(file)) == [Example("x y", ("a", "b"))]
    file.write_text("a, b\tx y\n\tz\n")
    assert read_examples(str(file), multi_label=True) == [
        Example("x y", ("a", "b")),
        Example("z", ()),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing in it"),
        ("just some text\nand more\n", "no labels were recognised.*`input` csv"),
        ("a\tb\tc\n", "3 columns and no header"),
        ("good\tyes\nbad\nbad\tno\n", "line 2: expected 2 columns between tabs, found 1"),
        ("good\tyes\n\tno\nbad\tmaybe\nbad\tso\n", "line 2: the label is empty"),
        ("__label__a x\n__label__b z\ny\n", "line 3: no __label__"),
        ('{"text": "x", "label": "a"}\n{"text": 3}\n', "line 2: no text"),
        ('{"text": "x"}\n', "line 1: no label"),
        ('{"text": "x", "label": 1.5}\n', "line 1: 1.5 is no label .*a text or a whole number"),
        ('{"text": "x"\n', "line 1: not JSON"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "f").write_text(text)
    with pytest.raises(NlpkitError, match=message):
        read_examples(str(tmp_path / "f"))


@given(st.lists(st.text(st.sampled_from("aB.'n t-$2é\u00a0\n"), max_size=12), max_size=5))
def test_texts_have_the_features_of_their_tokens(texts: list[str]) -> None:
    maker = BagMaker("word", lower=True, ngrams=2)
    straight = maker.bags(texts)
    by_tokens = maker.bags_of([maker.tokens(text) for text in texts])
    assert straight.features.tolist() == by_tokens.features.tolist()
    assert straight.starts.tolist() == by_tokens.starts.tolist()


def test_pieces_that_were_forgotten_are_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = BagMaker("word", lower=True, ngrams=2)
    texts = ["a good meal.", "no good", "a good meal."]
    before = maker.bags(texts).features.tolist()
    monkeypatch.setattr(features, "REMEMBERED", 1)
    assert maker.bags(texts).features.tolist() == before


# --- what a model folder holds ------------------------------------------------------------------


@pytest.mark.parametrize("model", KINDS)
def test_any_label_and_any_token_come_back_from_the_folder(model: str, tmp_path: Path) -> None:
    labels = ["a\nb", "a\\nb", "\ud800", "", "a\tb", "\ufeffc"]
    texts = [f"{label}\n\t{'xyzuvw'[place]}\r" for place, label in enumerate(labels)]
    examples = [Example(text, (label,)) for text, label in zip(texts, labels, strict=True)]
    run = trained(model, examples, epochs=1, tokenizer="char", lower=False)
    run.finish().save(tmp_path / "m")
    loaded = Classifier.load(str(tmp_path / "m"))
    assert loaded.labels.tokens == run.labels.tokens
    assert set(loaded.labels.tokens) == set(labels)
    assert np.array_equal(loaded.probabilities(texts), run.classifier().probabilities(texts))
    if loaded.words is not None:
        assert {"\n", "\t", "\r", "\ud800"} <= set(loaded.words.vocab.tokens)


@pytest.mark.parametrize("model", ["bow", "cnn"])
@pytest.mark.parametrize("as_folder", [False, True])
def test_the_subword_model_is_inside(model: str, as_folder: bool, tmp_path: Path) -> None:
    Subwords.train(TEXTS * 3, vocab_size=280).save(str(tmp_path / "tokenizer.json"))
    path = tmp_path if as_folder else tmp_path / "tokenizer.json"
    run = trained(model, epochs=1, tokenizer=str(path))
    (tmp_path / "tokenizer.json").unlink()
    run.finish().save(tmp_path / "m")
    (tmp_path / "m").rename(tmp_path / "moved")
    loaded = Classifier.load(str(tmp_path / "moved"))
    assert np.array_equal(loaded.probabilities(TEXTS), run.classifier().probabilities(TEXTS))
    assert str(tmp_path) not in (tmp_path / "moved" / "config.json").read_text().split("command")[0]


def change_settings(model: Path, **changes: object) -> None:
    """Settings as 0.1.0 wrote them, which knew no pattern."""
    config = json.loads((model / "config.json").read_text())
    config["settings"].update(changes)
    del config["settings"]["pattern"]
    (model / "config.json").write_text(json.dumps(config))


def test_a_model_of_0_1_0_finds_the_subword_model_where_it_was(tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    Subwords.train(TEXTS * 3, vocab_size=280).save(str(tokenizer))
    run = trained("bow", epochs=1, tokenizer=str(tokenizer))
    run.finish().save(tmp_path / "m")
    change_settings(tmp_path / "m", tokenizer=str(tokenizer))
    loaded = Classifier.load(str(tmp_path / "m"))
    assert np.array_equal(loaded.probabilities(TEXTS), run.classifier().probabilities(TEXTS))
    tokenizer.unlink()
    with pytest.raises(NlpkitError, match=r"m needs .*tokenizer\.json, which is not there"):
        Classifier.load(str(tmp_path / "m"))


@pytest.mark.parametrize("name", ["word", "simple", "whitespace", "char", "gpt2", "regex"])
@pytest.mark.parametrize("lower", [False, True])
def test_tokens_are_those_of_tokenize(name: str, lower: bool) -> None:
    text = "On Mon. the U.S. said: İstanbul, I'M HERE etc."
    pattern = r"[A-Z]\w*" if name == "regex" else None
    maker = BagMaker(name, lower=lower, ngrams=1, pattern=pattern)
    pipeline = Tokens(TokenSettings(tokenizer=name, pattern=pattern, lower=lower))
    assert maker.tokens(text) == pipeline.tokens(text)
    spelled = [text[start:end] for start, end in maker.spans(text)]
    assert [word.lower() if lower else word for word in spelled] == maker.tokens(text)


def test_a_model_of_0_1_0_lowers_the_text_before_it_is_cut(tmp_path: Path) -> None:
    examples = [Example("on Mon. it rained", ("bad",)), Example("on Tue. it shone", ("good",))]
    run = trained("bow", examples, epochs=1)
    run.finish().save(tmp_path / "m")
    assert Classifier.load(str(tmp_path / "m")).bags.tokens("On Mon.") == ["on", "mon."]
    change_settings(tmp_path / "m")
    old = Classifier.load(str(tmp_path / "m"))
    assert old.bags.tokens("On Mon.") == ["on", "mon", "."]
    as_it_was = BagMaker("word", lower=False, ngrams=2).bags(["on mon. it rained"])
    assert old.bags.bags(["On Mon. it rained"]).features.tolist() == as_it_was.features.tolist()


# --- texts that have nothing in common ----------------------------------------------------------

ENDINGS = {"pl": "owski", "ru": "enkov", "se": "sson", "es": "ez"}


def surnames(count: int, seed: int) -> list[Example]:
    """Names that only their endings tell apart."""
    draw = random.Random(seed)
    stems = {"".join(draw.choices("abdegiklmnoprtu", k=6)) for _ in range(count)}
    languages = sorted(ENDINGS)
    return [
        Example((stem + ENDINGS[languages[place % 4]]).title(), (languages[place % 4],))
        for place, stem in enumerate(sorted(stems))
    ]


@pytest.mark.parametrize("model", ["bow", "cnn"])
def test_new_words_only_are_noticed(model: str) -> None:
    def run(examples: list[Example], dev: list[Example], tokenizer: str) -> ClassifierRun:
        settings = ClassifierSettings(model=model, tokenizer=tokenizer, ngrams=4, dim=8, hidden=8)  # type: ignore[arg-type]
        return ClassifierRun(examples, settings, dev=dev)

    names, others = surnames(200, 1), surnames(50, 2)
    assert run(names, [], "word").unfamiliar() > 0.95
    assert run(names, others, "word").unfamiliar() > 0.95
    assert run(names, [], "char").unfamiliar() == 0
    assert run(names, others, "char").unfamiliar() == 0
    assert run(REVIEWS, [], "word").unfamiliar() == 0
    assert run(REVIEWS, [*REVIEWS, *others[:20]], "word").unfamiliar() == 0.5


def test_csv_json_and_several_files_with_columns_of_any_name(tmp_path: Path) -> None:
    table, lines = tmp_path / "a.csv", tmp_path / "b.jsonl"
    table.write_text('id,body,stars\n1,"so, so",3\n2,fine,5\n')
    lines.write_text('{"body": "bad", "stars": 1}\n{"body": "ok", "stars": 3.0}\n')
    found = read_examples([str(table), str(lines)], names=Names("body", "stars"))
    expected = [("so, so", "3"), ("fine", "5"), ("bad", "1"), ("ok", "3")]
    assert [(example.text, *example.labels) for example in found] == expected
    with pytest.raises(NlpkitError, match="line 2: no label"):
        read_examples(str(table))
    with pytest.raises(NlpkitError, match=r"line 2: no label in it .*two of id, body, stars"):
        read_examples(str(table), names=Names("body", "label"))


def test_columns_of_tsv_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("id\tsays\tkind\n1\tfine\tgood\n2\tso so\tbad\n")
    found = read_examples(str(path), names=Names("says", "kind"))
    assert found == [Example("fine", ("good",)), Example("so so", ("bad",))]
    with pytest.raises(NlpkitError, match="names of the header: id, says, kind"):
        read_examples(str(path), names=Names("says", "label"))


def test_a_word_that_is_there_often_counts_more_but_not_as_often() -> None:
    maker = BagMaker("whitespace", lower=True, ngrams=1)
    bags = maker.bags(["a a a a b", "", "b"])
    assert bags.counts is not None
    assert sorted(bags.counts[: bags.starts[1]].tolist()) == [1, 2, 4]  # b, the edges, a
    weights = text_weights(bags.starts, bags.counts, sublinear=True)
    for start, end in itertools.pairwise(bags.starts.tolist()):
        assert (weights[start:end] ** 2).sum() == pytest.approx(1, abs=1e-5)
    first = weights[: bags.starts[1]]
    assert first.max() / first.min() == pytest.approx(1 + np.log(4), rel=1e-5)
    plain = text_weights(bags.starts, bags.counts, sublinear=False)
    assert plain[: bags.starts[1]] == pytest.approx(1 / np.sqrt(bags.starts[1]))


def test_how_often_a_word_stands_in_long_texts_is_learned() -> None:
    generator = np.random.default_rng(3)
    words = [f"w{number}" for number in range(40)]
    examples = []
    for number in range(120):  # both words are in every text: only how often tells the label
        often, seldom = ("red", "blue") if number % 2 else ("blue", "red")
        text = [often] * 12 + [seldom] * 2 + generator.choice(words, 120).tolist()
        examples.append(Example(" ".join(generator.permutation(text)), (often,)))
    settings = ClassifierSettings(ngrams=1)
    classifier = ClassifierRun(examples[:80], settings).train()
    found = classifier.predict([example.text for example in examples[80:]])
    right = [one == example.labels[0] for one, example in zip(found, examples[80:], strict=True)]
    assert np.mean(right) > 0.9
    once = ClassifierRun(examples[:80], replace(settings, counts="binary")).train()
    blind = once.predict([example.text for example in examples[80:]])
    assert np.mean([a == e.labels[0] for a, e in zip(blind, examples[80:], strict=True)]) < 0.8


def test_a_model_without_counts_in_its_settings_counts_each_feature_once(tmp_path: Path) -> None:
    examples = [Example("good good tea", ("a",)), Example("bad tea tea", ("b",))] * 4
    run = ClassifierRun(examples, ClassifierSettings(counts="binary", ngrams=1, epochs=2))
    run.train(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    del config["settings"]["counts"]
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    old = Classifier.load(tmp_path / "m")
    assert old.settings.counts == "binary"
    once, twice = old.probabilities(["good tea", "good tea good tea"])
    assert once.tolist() == twice.tolist()
