"""From Python: train from iterables and from paths, save, load, ask."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nlpkit
from nlpkit import modeldir, registry
from nlpkit.errors import NlpkitError
from nlpkit.text.subwords import Subwords

LINES = ["the king sat with the queen", "the man and the woman saw the king", "a dog barks"] * 8
TAGGED = [[("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")], [("a", "DET"), ("cat", "NOUN")]] * 8
LABELLED = [("I liked the soup", "good"), ("cold and dull", "bad"), ("a fine view", "good")] * 8
NAMES = ["Anna", "Hanna", "Nana", "Hana", "Ana", "Johanna", "Jana", "Marianne", "Anne", "Hanne"]

LANGUAGE_MODELS: dict[str, dict[str, Any]] = {
    "train_lm": {"model": "gru", "dim": 8, "max_iters": 2, "block_size": 8},
    "train_bert": {
        **{"layers": 1, "heads": 2, "dim": 8, "length": 16},
        **{"vocab_size": 60, "max_iters": 2, "batch_size": 4, "val_fraction": 0.2},
    },
    "train_elmo": {"dim": 4, "hidden": 8, "filters": 16, "min_count": 1, "epochs": 0.5},
}
WORD2VEC = {"dim": 6, "epochs": 2, "min_count": 1, "threads": 1}
TAGGER = {"epochs": 3, "hidden": 4, "word_dim": 4}
GPT = {"layers": 1, "heads": 2, "dim": 8, "block_size": 8, "batch_size": 4, "max_iters": 4}
NAME_MODEL = {"layers": 1, "heads": 2, "dim": 8, "epochs": 1}


@pytest.fixture(autouse=True)
def process_state() -> Iterator[None]:
    """Nothing that a test of this page does may change what belongs to the whole process."""

    def state() -> tuple[Any, ...]:
        numbers = np.random.get_state(legacy=True)
        return (
            random.getstate(),
            torch.get_rng_state().tolist(),
            (numbers[0], numbers[1].tolist(), *numbers[2:]),
            torch.get_num_threads(),
            torch.get_default_dtype(),
        )

    before = state()
    yield
    assert state() == before


@pytest.fixture(autouse=True)
def silence(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert capfd.readouterr() == ("", "")


def files_of(path: Path) -> dict[str, bytes]:
    """A folder but for when, how fast and from which file it was made."""
    changing = (modeldir.CONFIG, modeldir.METRICS)
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name not in changing}


def same_twice(trained: list[Any], folder: Path) -> Any:
    """Equal models are equal files; gives the one that was loaded again."""
    for number, model in enumerate(trained):
        model.save(folder / f"{number}.model")
    first, *others = (folder / f"{number}.model" for number in range(len(trained)))
    config = modeldir.load_config(first)
    assert config.command == []
    for other in others:
        assert files_of(other) == files_of(first)
        found = modeldir.load_config(other)
        assert (found.settings, found.data_hash) == (config.settings, config.data_hash)
    return nlpkit.load(first)


def test_word2vec_from_a_path_from_lines_and_from_tokens(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    seen: list[Any] = []
    trained = [
        nlpkit.train_word2vec(path, on_progress=seen.append, **WORD2VEC),
        nlpkit.train_word2vec(iter(LINES), **WORD2VEC),
        nlpkit.train_word2vec((line.split() for line in LINES), **WORD2VEC),
        nlpkit.train_word2vec([path], **WORD2VEC),
    ]
    assert seen[-1].fraction == 1
    vectors = same_twice(trained, tmp_path)
    assert repr(vectors) == f"<Vectors: {len(trained[0])} words, 6 dimensions>"
    np.testing.assert_array_equal(vectors["king"], trained[0]["king"])
    assert "king" in vectors
    assert "sovereign" not in vectors
    assert list(vectors)[0] == "the"
    assert vectors.nearest("king", 5) == trained[0].nearest("king", 5)
    assert vectors.nearest(["king", "woman"], 1, minus=["man"], metric="dot")[0].word in vectors
    assert vectors.analogy("man", "king", "woman", 2) == trained[0].analogy(
        "man", "king", "woman", 2
    )
    assert vectors.similarity("king", "king") == pytest.approx(1)
    with pytest.raises(KeyError, match=r"unknown word: 'kign'.*king"):
        vectors["kign"]


def test_vectors_are_saved_and_loaded_in_the_formats_of_others(tmp_path: Path) -> None:
    vectors = nlpkit.train_word2vec(LINES, **WORD2VEC)
    for name in ("v.txt", "v.bin", "v.vec", "v.model"):
        vectors.save(tmp_path / name)
        np.testing.assert_allclose(nlpkit.load(tmp_path / name)["king"], vectors["king"], atol=1e-6)
    nlpkit.load(tmp_path / "v.txt").save(tmp_path / "again", "folder")
    assert modeldir.load_config(tmp_path / "again").kind == registry.VECTORS
    with pytest.raises(NlpkitError, match="exists already"):
        vectors.save(tmp_path / "v.model")
    vectors.save(tmp_path / "v.model", force=True)


def test_a_tagger_from_a_path_and_from_pairs(tmp_path: Path) -> None:
    path = tmp_path / "tagged.tsv"
    columns = ["".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in TAGGED]
    path.write_text("\n".join(columns) + "\n")
    seen: list[Any] = []
    trained = [
        nlpkit.train_tagger(str(path), **TAGGER),
        nlpkit.train_tagger(iter(TAGGED), on_progress=seen.append, **TAGGER),
    ]
    assert [progress.step for progress in seen] == list(range(1, len(seen) + 1))
    tagger = same_twice(trained, tmp_path)
    texts = [["the", "cat", "barks"], [], ["a", "dog"]]
    assert tagger.tag_sentences(texts) == trained[1].tag_sentences(texts)
    assert tagger.tag(texts[0]) == tagger.tag_sentences(texts)[0]
    assert "3 tags" in repr(tagger)
    tagger.save(tmp_path / "again.model")
    assert files_of(tmp_path / "again.model") == files_of(tmp_path / "0.model")
    for wrong in ("the cat", texts):
        with pytest.raises(TypeError, match="tokens are"):
            tagger.tag(wrong)
    with pytest.raises(TypeError, match="list of words, not text"):
        tagger.tag_sentences(["the cat"])


def test_a_tagger_keeps_the_best_epoch_on_held_out_sentences(tmp_path: Path) -> None:
    vectors = nlpkit.train_word2vec(LINES, **WORD2VEC)
    vectors.save(tmp_path / "v.txt")
    tagger = nlpkit.train_tagger(TAGGED, dev=TAGGED[:2], vectors=vectors, fine_tune=True, **TAGGER)
    assert tagger.config.metrics["dev_accuracy"] > 0
    assert tagger.curve
    again = nlpkit.train_tagger(
        TAGGED, dev=TAGGED[:2], vectors=tmp_path / "v.txt", fine_tune=True, **TAGGER
    )
    assert again.tag(["the", "dog"]) == tagger.tag(["the", "dog"])


def test_a_classifier_from_a_path_and_from_pairs(tmp_path: Path) -> None:
    path = tmp_path / "labelled.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in LABELLED))
    trained = [nlpkit.train_classifier(path), nlpkit.train_classifier(iter(LABELLED))]
    classifier = same_twice(trained, tmp_path)
    assert classifier.predict(["so dull and cold", "I liked it"]) == ["bad", "good"]
    np.testing.assert_array_equal(
        classifier.probabilities(["dull"]), trained[0].probabilities(["dull"])
    )
    assert repr(classifier) == "<Classifier: bow, 2 labels>"
    classifier.save(tmp_path / "again.model")
    assert files_of(tmp_path / "again.model") == files_of(tmp_path / "0.model")
    with pytest.raises(TypeError, match="not one text"):
        classifier.predict("a dull soup")


def test_a_classifier_of_several_labels() -> None:
    pairs = [("hot soup", ["food", "warm"]), ("hot sun", ["warm"]), ("a stone", [])] * 10
    classifier = nlpkit.train_classifier(pairs, dev=pairs[:3])
    assert [set(found) for found in classifier.predict(["hot soup", "a stone"])] == [
        {"food", "warm"},
        set(),
    ]
    assert "several" in repr(classifier)


@pytest.mark.parametrize("model", ["gpt", "gru", "ngram"])
def test_names_from_a_path_and_from_a_list(model: str, tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("".join(f"{name}\n" for name in NAMES))
    seen: list[Any] = []
    trained = [
        nlpkit.train_names(path, model=model, **NAME_MODEL),
        nlpkit.train_names(iter(NAMES), model=model, on_progress=seen.append, **NAME_MODEL),
    ]
    assert bool(seen) == (model != "ngram")
    named = same_twice(trained, tmp_path)
    wishes: dict[str, Any] = {"max_length": 12, "temperature": 0.8}
    assert named.sample(3, **wishes) == trained[0].sample(3, **wishes)
    assert named.sample(2, prefix="Ha", seed=7)[0].startswith("Ha")
    assert f"<NamesModel: {model}" in repr(named)
    with pytest.raises(TypeError, match="no constraint 'prefx'"):
        named.sample(1, prefx="Ha")


def test_names_with_labels_and_names_held_out() -> None:
    pairs = [(name, "f" if name.endswith("a") else "m") for name in NAMES]
    named = nlpkit.train_names(pairs, heldout=pairs[:2], model="ngram")
    assert named.alphabet.labels == ("f", "m")
    assert len(named.sample(2, label="f")) == 2
    with pytest.raises(NlpkitError, match="give one of heldout, test_fraction and test_size"):
        nlpkit.train_names(NAMES, test_size=1, test_fraction=0.5)


def test_a_gpt_from_a_path_and_from_lines(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    seen: list[Any] = []
    trained = [
        nlpkit.train_gpt(path, on_progress=seen.append, **GPT),
        nlpkit.train_gpt(LINES, **GPT),
        nlpkit.train_gpt([f"{line}\n" for line in LINES], **GPT),
    ]
    assert [progress.step for progress in seen] == [1, 2, 3, 4]
    gpt = same_twice(trained, tmp_path)
    assert gpt.sample("the ", 12) == trained[1].sample("the ", 12)
    assert len(gpt.sample("the ", 12, temperature=0)) == 12
    assert " " not in gpt.sample("the ", 40, stop=" ")
    assert repr(gpt).startswith("<GptModel: ")
    more = nlpkit.train_gpt(LINES, init=tmp_path / "0.model", max_iters=2, batch_size=4)
    assert more.model.settings.dim == GPT["dim"]
    with pytest.raises(NlpkitError, match="`init` brings its own `dim`"):
        nlpkit.train_gpt(LINES, init=tmp_path / "0.model", dim=16)


def test_a_gpt_of_subwords() -> None:
    subwords = Subwords.train(LINES, vocab_size=270)
    gpt = nlpkit.train_gpt(LINES, tokenizer=subwords, **GPT)
    assert gpt.codec is subwords


def test_a_gpt_of_prompts_and_completions() -> None:
    gpt = nlpkit.train_gpt([("1+1=", "2"), ("1+2=", "3")] * 8, val_fraction=0, **GPT)
    assert gpt.codec.decode(gpt.codec.encode("1+2=3")) == "1+2=3"


@pytest.mark.parametrize("name", ["train_lm", "train_bert", "train_elmo"])
def test_a_language_model_from_a_path_and_from_lines(name: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    train, sizes = getattr(nlpkit, name), LANGUAGE_MODELS[name]
    found = same_twice([train(path, **sizes), train(LINES, **sizes)], tmp_path)
    assert repr(found).startswith(f"<{type(found).__name__}: ")


def test_a_reader_from_questions_and_from_a_file(tmp_path: Path) -> None:
    nlpkit.train_bert(LINES, **LANGUAGE_MODELS["train_bert"]).save(tmp_path / "bert")
    rows = [("who barks ?", "a dog barks", "a dog"), ("who sat ?", "a dog barks", "")] * 4
    path = tmp_path / "questions.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    more = {"pretrained": tmp_path / "bert", "epochs": 1, "max_length": 16}
    trained = [nlpkit.train_qa(rows, **more), nlpkit.train_qa(path, **more)]
    reader = same_twice([*trained], tmp_path)
    assert repr(reader) == "<QaModel: bert, windows of 16 tokens>"
    assert reader.answer("who barks ?", ["a dog barks"], count=1).spans[0].text == 0
    with pytest.raises(NlpkitError, match=r"1 answer does not stand where it should"):
        nlpkit.train_qa([("who ?", "a dog", "a cat")], **more)
    with pytest.raises(NlpkitError, match=r"question 1 is not \(question, text, answer\)"):
        nlpkit.train_qa([("who ?", "a dog")], **more)


@pytest.mark.parametrize("method", ["svd", "glove"])
def test_vectors_by_counting_from_a_path_and_from_sentences(method: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    sizes: dict[str, Any] = {"method": method, "dim": 4, "epochs": 2, "threads": 1}
    one = nlpkit.vectors_from_counts(path, **sizes)
    other = nlpkit.vectors_from_counts([line.split() for line in LINES], **sizes)
    np.testing.assert_array_equal(one["king"], other["king"])
    one.save(tmp_path / "counts.model")
    assert nlpkit.load(tmp_path / "counts.model").dim == 4


@pytest.mark.parametrize("name", [name for name in dir(nlpkit) if name.startswith("train_")])
def test_settings_are_checked_by_their_names(name: str) -> None:
    data: dict[str, Any] = {"train_tagger": TAGGED, "train_classifier": LABELLED}
    given = data.get(name, LINES)
    more = {"pretrained": "none.bert"} if name == "train_qa" else {}
    train = functools.partial(getattr(nlpkit, name), **more)
    with pytest.raises(NlpkitError, match=f"{name} has no setting 'dims'.*lr"):
        train(given, dims=3)
    with pytest.raises(NlpkitError, match=f'{name}: lr is "fast", not a number') as caught:
        train(given, lr="fast")
    assert "--" not in str(caught.value)
    with pytest.raises(NlpkitError, match="lr"):
        train(given, lr=object())


def test_what_cannot_be_data_is_refused() -> None:
    for train in (nlpkit.train_tagger, nlpkit.train_classifier):
        with pytest.raises(NlpkitError, match="expected pairs, not text"):
            train(["the dog barks"])
    with pytest.raises(NlpkitError, match=r"sentence 2: .* is not a pair of a token and its tag"):
        nlpkit.train_tagger([[("a", "X")], [("b\tc", "X")]])
    with pytest.raises(NlpkitError, match=r"example 1: .* is not a pair"):
        nlpkit.train_classifier([("a", "b", "c")])
    with pytest.raises(NlpkitError, match="no text to train on"):
        nlpkit.train_gpt([], **GPT)
    with pytest.raises(NlpkitError, match="nothing to train on"):
        nlpkit.train_word2vec([])
    with pytest.raises(NlpkitError, match="there are no names"):
        nlpkit.train_names([])
    with pytest.raises(NlpkitError, match="no tagged sentence"):
        nlpkit.train_tagger([])
    with pytest.raises(NlpkitError, match="no labels to learn"):
        nlpkit.train_classifier([])


# --- the registry -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", registry.CLASSES)
def test_every_kind_has_a_class_that_loads_and_saves(kind: str) -> None:
    module, _, name = registry.CLASSES[kind].partition(":")
    __import__(module)
    found = getattr(sys.modules[module], name)
    assert callable(found.load)
    assert callable(found.save)


def test_what_is_no_model_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="no such model"):
        nlpkit.load(tmp_path / "none")
    with pytest.raises(NlpkitError, match="is not a model folder"):
        nlpkit.load(tmp_path)
    with modeldir.create(tmp_path / "m", modeldir.ModelConfig(kind="par\nser")):
        pass
    with pytest.raises(NlpkitError, match=r"is a .*, not a model") as caught:
        nlpkit.load(tmp_path / "m")
    assert "\n" not in str(caught.value)
    (tmp_path / "poem.txt").write_text("Tyger Tyger, burning bright,\n")
    with pytest.raises(NlpkitError, match="does not hold word vectors"):
        nlpkit.load(tmp_path / "poem.txt")


def test_the_package_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="module 'nlpkit' has no attribute 'trian_gpt'"):
        nlpkit.trian_gpt  # noqa: B018
