"""Classifiers on pre-trained encoders, and of two texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_berts import tiny_bert

from nlpkit import modeldir
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.models.build import build_model
from nlpkit.models.elmo import Elmo, ElmoArchitecture
from nlpkit.models.elmo_model import ElmoModel
from nlpkit.models.finetune import BertEncoder, PretrainedEncoder, open_encoder
from nlpkit.models.finetune_rates import layer_rates, parse_freeze
from nlpkit.models.settings import ModelSettings
from nlpkit.nn.quantized import PackedLinear
from nlpkit.tasks.classify.data import Example, pair_of, read_examples
from nlpkit.tasks.classify.predictor import Classifier
from nlpkit.tasks.classify.pretrained import TextHead
from nlpkit.tasks.classify.pretrained_train import PretrainedRun, classifier_run
from nlpkit.tasks.classify.settings import ClassifierSettings, TextTuning
from nlpkit.tasks.classify.train import ClassifierRun
from nlpkit.tasks.lm.model import GptModel
from nlpkit.text.codec import Bytes
from nlpkit.vectors.store import Vectors

GOOD = "lovely kind friendly wonderful".split()
BAD = "rude cold dirty awful".split()
NOUNS = "cook fish table waiter".split()


def examples(count: int, seed: int = 1) -> list[Example]:
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        word = random.choice(GOOD if number % 2 else BAD)
        text = f"the {random.choice(NOUNS)} was {word}"
        made.append(Example(text, ("good" if number % 2 else "bad",)))
    return made


def pairs(count: int, seed: int = 1) -> list[Example]:
    """Whether the second text names the noun of the first."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        one, other = random.permutation(NOUNS)[:2]
        said = one if number % 2 else other
        made.append(
            Example(f"the {one} was here", ("same" if number % 2 else "other",), f"a {said}")
        )
    return made


def model(folder: Path, kind: str) -> str:
    path = folder / f"tiny.{kind}"
    if path.exists():
        return str(path)
    texts = [one.joined for one in [*examples(80), *pairs(80)]]
    if kind == "bert":
        tiny_bert(texts).save(path)
    elif kind == "elmo":
        elmo = Elmo(ElmoArchitecture(dim=8, hidden=12, char_dim=4, longest_word=12))
        elmo.initialize(torch.Generator().manual_seed(1))
        ElmoModel(elmo.eval(), None).save(path)
    else:
        settings = ModelSettings(vocab_size=256, dim=16, layers=1, heads=2, block_size=64)
        GptModel(build_model(settings, 1), Bytes()).save(path)
    return str(path)


def test_what_the_vocabulary_lacks_is_told_apart(tmp_path: Path) -> None:
    marked = [
        Example(f"the {noun} was here {mark}", (mark,)) for noun in NOUNS * 3 for mark in ("!", "?")
    ]
    settings = ClassifierSettings(
        pretrained=model(tmp_path, "bert"), epochs=40, batch_size=4, lr=0.003
    )
    classifier_run(marked, settings).train(tmp_path / "trained")
    loaded = Classifier.load(tmp_path / "trained")
    assert loaded.predict(["the table was here !", "the table was here ?"]) == ["!", "?"]


@pytest.mark.parametrize(
    ("kind", "freeze", "pooling"),
    [
        ("bert", None, None),
        ("bert", "1", "attention"),
        ("bert", "all", "average"),
        ("elmo", None, "max"),
        ("elmo", "0", "average"),
        ("gpt", None, None),
    ],
)
def test_an_encoder_learns_labels_is_saved_and_loaded(
    tmp_path: Path, kind: str, freeze: str | None, pooling: str | None
) -> None:
    settings = ClassifierSettings(
        pretrained=model(tmp_path, kind),
        freeze=freeze,
        pooling=pooling,  # type: ignore[arg-type]
        epochs=16 if kind == "bert" else (80 if freeze is None else 20),
        lr=0.02 if freeze == "all" or (kind, freeze) == ("elmo", None) else 0.003,
    )
    run = classifier_run(examples(60), settings)
    assert isinstance(run, PretrainedRun)
    run.train(tmp_path / "trained")
    texts = [example.text for example in examples(40, seed=2)]
    loaded = Classifier.load(tmp_path / "trained")
    np.testing.assert_allclose(
        loaded.probabilities(texts), run.classifier().probabilities(texts), atol=1e-5
    )
    right = sum(
        label == example.labels[0]
        for label, example in zip(loaded.predict(texts), examples(40, seed=2), strict=True)
    )
    assert right >= 34
    config = modeldir.load_config(tmp_path / "trained")
    if kind == "elmo":
        assert sum(config.settings["mix"]["layers"]) == pytest.approx(1)


def test_two_texts_are_told_apart_by_their_segments(tmp_path: Path) -> None:
    tuning = TextTuning(epochs=30, lr=0.003, layer_decay=1.0, dropout=0.0)
    encoder = open_encoder(model(tmp_path, "bert"))
    reading, cut = encoder.fit_room([7, 8], [9])
    assert reading.segments == [0, 0, 0, 0, 1, 1]
    assert not cut
    run = PretrainedRun(pairs(120), encoder, tuning)
    found = run.train()
    assert run.settings.pairs
    asked = pairs(40, seed=2)
    right = sum(
        label == one.labels[0]
        for label, one in zip(found.predict([one.texts for one in asked]), asked, strict=True)
    )
    assert right >= 30


def test_a_bag_of_words_takes_two_texts_too() -> None:
    wet = [Example("it rains", ("yes",), "it is wet"), Example("it rains", ("no",), "it is dry")]
    found = ClassifierRun(wet * 10, ClassifierSettings()).train()
    assert found.settings.pairs
    assert found.predict([("it rains", "it is wet"), ("it rains", "it is dry")]) == ["yes", "no"]


def test_frozen_layers_keep_their_weights_and_higher_ones_learn_faster() -> None:
    encoder = BertEncoder(tiny_bert(["a b c"]))
    head = torch.nn.Linear(encoder.size, 2)
    frozen = parse_freeze("1", encoder)
    assert frozen == 2
    groups = layer_rates(encoder, head, frozen=frozen, lr=1.0, decay=0.5)
    assert sorted({group["lr"] for group in groups}) == [1.0, 10.0]
    assert not encoder.model.embedding.weight.requires_grad
    assert not encoder.model.blocks[0].up.weight.requires_grad  # type: ignore[union-attr]
    assert encoder.model.blocks[1].up.weight.requires_grad  # type: ignore[union-attr]
    rates = {group["lr"] for group in layer_rates(encoder, head, frozen=0, lr=1.0, decay=0.5)}
    assert sorted(rates) == [0.25, 0.5, 1.0, 10.0]
    for wrong in ("3", "some", "-1"):
        with pytest.raises(NlpkitError, match="freeze"):
            parse_freeze(wrong, encoder)


def test_a_cached_encoder_teaches_what_it_does_read_anew(tmp_path: Path) -> None:
    path = model(tmp_path, "bert")
    tuning = TextTuning(freeze="all", epochs=2, dropout=0.0, lr=0.01)
    runs = [PretrainedRun(examples(30), open_encoder(path), tuning) for _ in range(2)]
    runs[1]._cache = None
    one, other = (run.train() for run in runs)
    torch.testing.assert_close(
        one.network.head.output.weight, other.network.head.output.weight, atol=1e-5, rtol=1e-4
    )


def test_padding_changes_no_pooling() -> None:
    states = torch.randn(1, 2, 5, 4)
    mask = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    for pooling in ("average", "max", "first", "last", "attention"):
        head = TextHead(1, 4, pooling, 2, 0.0)  # type: ignore[arg-type]
        if head.query is not None:
            torch.nn.init.normal_(head.query)
        torch.testing.assert_close(
            head(states, mask)[0], head(states[:, :1, :3], mask[:1, :3])[0], msg=pooling
        )


@pytest.mark.parametrize("kind", ["int8", "bfloat16"])
def test_smaller_numbers_change_probabilities_a_little(tmp_path: Path, kind: str) -> None:
    encoder = BertEncoder(tiny_bert([one.text for one in examples(80)], dim=64))
    found = PretrainedRun(examples(60), encoder, TextTuning(epochs=10, lr=0.003)).train()
    texts = [example.text for example in examples(20, seed=3)]
    before = found.probabilities(texts)
    try:
        found.quantize(kind)
    except NlpkitError as error:
        pytest.skip(error.message)
    after = found.probabilities(texts)
    assert np.abs(before - after).max() < 0.1
    assert (before.argmax(axis=1) == after.argmax(axis=1)).mean() >= 0.95


def test_packed_weights_change_nothing() -> None:
    encoder = BertEncoder(tiny_bert([one.text for one in examples(80)], dim=64))
    found = PretrainedRun(examples(20), encoder, TextTuning(epochs=1)).train()
    texts = [example.text for example in examples(20, seed=3)]
    before = found.probabilities(texts)
    found.pack()
    packed = [part for part in found.network.modules() if isinstance(part, PackedLinear)]
    assert len(packed) >= 5, "the layers of a block"
    assert [part.then for part in packed].count("gelu") == encoder.settings.layers
    np.testing.assert_allclose(found.probabilities(texts), before, atol=1e-5)


def test_long_texts_are_cut_and_counted() -> None:
    encoder = BertEncoder(tiny_bert(["a"], block_size=12))
    many = [Example("a " * 40, ("x",)), Example("a", ("y",)), Example(" ", ("y",))]
    run = PretrainedRun(many, encoder, TextTuning(epochs=1))
    assert run.warnings() == [
        "1 of 3 texts are empty: they teach nothing",
        "1 of 3 texts are longer than the encoder reads, and are cut",
    ]
    reading, _ = encoder.fit_room([5] * 20, [6] * 3)
    assert len(reading.ids) == 12
    assert reading.ids.count(6) == 3, "the longer text is cut"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ClassifierSettings(pooling="first"), "`pooling` first needs `pretrained`"),
        (ClassifierSettings(freeze="all"), "`freeze` needs `pretrained`"),
        (ClassifierSettings(pretrained="x", model="lstm"), "contradict"),
    ],
)
def test_settings_that_do_not_go_together(settings: ClassifierSettings, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        classifier_run(examples(4), settings)


def test_what_an_encoder_cannot_do_is_one_line(tmp_path: Path) -> None:
    encoder: PretrainedEncoder = open_encoder(model(tmp_path, "gpt"))
    with pytest.raises(NlpkitError, match="has seen no other"):
        PretrainedRun(examples(4), encoder, TextTuning(pooling="first"))
    with pytest.raises(NlpkitError, match="one label only, bad"):
        PretrainedRun(examples(1), encoder, TextTuning())
    ClassifierRun(examples(4), ClassifierSettings()).train(tmp_path / "bow")
    with pytest.raises(NlpkitError, match="is a classifier model, which gives no states"):
        open_encoder(tmp_path / "bow")
    Vectors(["a"], np.ones((1, 2), np.float32)).save(tmp_path / "v")
    with pytest.raises(NlpkitError, match="is a vectors model, which gives no states"):
        open_encoder(tmp_path / "v")
    with pytest.raises(NlpkitError, match="no such model"):
        open_encoder(tmp_path / "nowhere")


def test_a_second_text_that_is_sometimes_missing_is_named(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("label\ttext\ttext2\nyes\ta\tb\nno\tc\t\n")
    with pytest.raises(NlpkitError, match="line 3: no second text"):
        read_examples(str(file))
    file.write_text('{"text": "a", "text2": "b", "label": "x"}\n{"text": "a", "label": "y"}\n')
    with pytest.raises(NlpkitError, match="line 2: no second text"):
        read_examples(str(file))
    assert pair_of("a", {"text2": "b"}, "line 1") == ("a", "b")
    with pytest.raises(NlpkitError, match="line 2: no second text"):
        pair_of("c", {}, "line 2")
