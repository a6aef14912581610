"""A small model of every kind, with the weights it begins with, and a way to use each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tiny_berts import tiny_bert

from nlpkit import modeldir, registry
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.models.build import build_model
from nlpkit.models.elmo_model import ElmoModel
from nlpkit.models.finetune import BertEncoder
from nlpkit.models.ngram import NGram
from nlpkit.models.settings import MODEL_NAMES, ModelSettings
from nlpkit.tasks.classify.data import Example
from nlpkit.tasks.classify.predictor import Classifier
from nlpkit.tasks.classify.pretrained_train import PretrainedRun
from nlpkit.tasks.classify.settings import ClassifierSettings, TextTuning
from nlpkit.tasks.classify.train import ClassifierRun
from nlpkit.tasks.elmo.settings import ElmoSettings
from nlpkit.tasks.elmo.train import ElmoRun, Sentences
from nlpkit.tasks.lm.model import GptModel
from nlpkit.tasks.names.data import Alphabet, Name, NameBatches
from nlpkit.tasks.names.model import NamesModel
from nlpkit.tasks.qa.model import QaModel, QaNetwork
from nlpkit.tasks.qa.settings import QaSettings
from nlpkit.tasks.tag.predictor import Tagger
from nlpkit.tasks.tag.pretrained_train import PretrainedTaggerRun
from nlpkit.tasks.tag.settings import TaggerSettings, TagTuning
from nlpkit.tasks.tag.train import TaggerRun, TrainingData
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Bytes, Codec
from nlpkit.text.conll import Layout, Sentence, read_sentences, with_tags
from nlpkit.text.subwords import Subwords
from nlpkit.vectors.folder import read_context, read_folder, write_folder
from nlpkit.vectors.store import Vectors
from nlpkit.word2vec.config import Loss, Word2VecConfig
from nlpkit.word2vec.model import Word2VecRun
from nlpkit.word2vec.store import build_store
from nlpkit.word2vec.train import Word2VecTrainer

TEXT = "the king saw the old queen\nthe queen ran to the house\n" * 5
ENCODERS = ("lstm", "gru", "cnn", "transformer")
SMALL = {"dim": 16, "layers": 1, "heads": 2, "block_size": 16}
LINES = [("Ann\tB-P\n", "f", 1), ("met\tO\n", "f", 2), ("Bob\tB-P\n", "f", 3), ("\n", "f", 4)]


def make_vectors(path: Path) -> None:
    write_folder(word_vectors(), str(path))


def word_vectors() -> Vectors:
    words = ["the", "king", "queen", "Ann"]
    return Vectors(words, torch.randn(4, 6, generator=torch.manual_seed(1)).numpy())


def make_word2vec(path: Path, loss: Loss) -> None:
    config = Word2VecConfig(dim=8, min_count=1, threads=1, loss=loss)
    store = build_store([TEXT.encode()], config)
    tokens = {"tokenizer": "whitespace", "pattern": None, "lower": False}
    Word2VecRun(store, config, Word2VecTrainer(store, config), "", tokens, []).result().save(path)


def use_vectors(path: Path) -> None:
    vectors = read_folder(str(path))
    vectors.nearest_to(vectors.matrix[:2], 2)
    vectors.words.find("king")
    assert len(list(vectors.words)) == len(vectors)
    assert vectors.words.counts is None or len(vectors.words.counts) == len(vectors)
    read_context(str(path))


def make_names(path: Path, model: Any) -> None:
    data = [Name("Anna"), Name("Nan"), Name("Bob")]
    alphabet = Alphabet.from_names(data)
    settings = ModelSettings(
        model=model, vocab_size=len(alphabet), starts=alphabet.starts, order=2, **SMALL
    )
    built = build_model(settings)
    if isinstance(built, NGram):
        batches = NameBatches(data, alphabet, batch_size=3, packed=False, seed=1)
        built.count([tuple(map(torch.from_numpy, batches[0]))])  # type: ignore[list-item]
    config = modeldir.ModelConfig(
        kind=registry.NAMES, settings={"architecture": settings.to_dict()}
    )
    with modeldir.create(path, config) as folder:
        NamesModel(built, alphabet, data).write(folder)


def use_names(path: Path) -> None:
    NamesModel.load(path).nats([Name("Anna")])


def make_gpt(path: Path, codec: Codec) -> None:
    settings = ModelSettings(vocab_size=len(codec), **SMALL)
    config = modeldir.ModelConfig(kind=registry.GPT, settings={"architecture": settings.to_dict()})
    with modeldir.create(path, config) as folder:
        GptModel(build_model(settings), codec).write(folder)


def use_gpt(path: Path) -> None:
    gpt = GptModel.load(path)
    for _ in gpt.continue_prompts(["the"], 3, SamplingSettings(), 1):
        pass
    gpt.score("the king")


def tagged() -> TrainingData:
    layout = Layout("columns", 0, 1, 2)
    sentences: list[Sentence] = list(read_sentences(LINES, layout))
    return TrainingData.of(sentences, layout)


def tagger_run(vectors: Vectors | None = None, **settings: Any) -> TaggerRun:
    small = {"hidden": 4, "word_dim": 4, **settings}
    return TaggerRun(tagged(), TaggerSettings(**small), vectors=vectors)


def make_tagger(path: Path, **settings: Any) -> None:
    vectors = word_vectors() if settings.get("fine_tune") else None
    tagger_run(vectors, **settings).finish().save(path)


def use_tagger(path: Path) -> None:
    tagger = Tagger.load(str(path))
    found = tagger.tag_sentences([["Ann", "met", "Zoe"], ["Rio"]])
    for scores in tagger.scores([["Ann", "met"]]):
        tagger.probabilities(scores)
    if tagger.layout.format in ("columns", "conllu"):
        for sentence in read_sentences(LINES, tagger.layout, tagged=False):
            tags = found[0][: len(sentence.tokens)]
            with_tags(sentence, tags + ["O"] * (len(sentence.tokens) - len(tags)), tagger.layout)


def classifier_run(model: Any, vectors: Vectors | None = None) -> ClassifierRun:
    examples = [Example("good old king", ("a",)), Example("bad queen", ("b",))]
    settings = ClassifierSettings(model=model, dim=None if model == "bow" else 4, hidden=4)
    return ClassifierRun(examples, settings, vectors=vectors)


def make_classifier(path: Path, model: str) -> None:
    vectors = word_vectors() if model == "cnn" else None
    classifier_run(model, vectors).finish().save(path)


def use_classifier(path: Path) -> None:
    Classifier.load(str(path)).probabilities(["a good king", ""])


def make_elmo(path: Path) -> None:
    sentences = Sentences.read([["the", "king"], ["the", "old", "queen"]])
    small = {"dim": 4, "hidden": 6, "filters": 16, "min_count": 1, "longest_word": 8}
    ElmoRun(sentences, ElmoSettings(**small)).finish().save(path)  # type: ignore[arg-type]


def use_elmo(path: Path) -> None:
    list(ElmoModel.load(path).embed([["the", "king"], []]))


def make_qa(path: Path) -> None:
    encoder = BertEncoder(tiny_bert(["who ann is here"], block_size=16, dim=8))
    QaModel(QaNetwork(encoder).eval(), QaSettings(), 0.5).save(path)


def use_qa(path: Path) -> None:
    QaModel.load(path).answer("who", ["ann is here " * 9])


def make_tuned_classifier(path: Path) -> None:
    examples = [Example("good old king", ("a",)), Example("bad queen", ("b",))]
    encoder = BertEncoder(tiny_bert(["good old king bad queen"], block_size=16, dim=8))
    PretrainedRun(examples, encoder, TextTuning(epochs=1)).finish().save(path)


def make_tuned_tagger(path: Path) -> None:
    encoder = BertEncoder(tiny_bert(["ann met bob"], block_size=16, dim=8))
    PretrainedTaggerRun(tagged(), encoder, TagTuning(epochs=1)).finish().save(path)


# what makes a model in a folder, and what uses one
KINDS: dict[str, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
    "vectors": (make_vectors, use_vectors),
    **{
        f"word2vec {loss.value}": (lambda path, loss=loss: make_word2vec(path, loss), use_vectors)
        for loss in (Loss.NS, Loss.HS)
    },
    **{
        f"names {name}": (lambda path, name=name: make_names(path, name), use_names)
        for name in MODEL_NAMES
    },
    "gpt char": (lambda path: make_gpt(path, Characters.from_text([TEXT])), use_gpt),
    "gpt byte": (lambda path: make_gpt(path, Bytes()), use_gpt),
    "gpt subword": (
        lambda path: make_gpt(path, Subwords.train([TEXT], vocab_size=280)),
        use_gpt,
    ),
    **{
        f"tagger {name}": (lambda path, name=name: make_tagger(path, encoder=name), use_tagger)
        for name in ENCODERS
    },
    "tagger with vectors": (
        lambda path: make_tagger(path, fine_tune=True, chars="lstm"),
        use_tagger,
    ),
    "tagger causal": (
        lambda path: make_tagger(path, causal=True, linear_features="no"),
        use_tagger,
    ),
    **{
        f"classifier {name}": (lambda path, name=name: make_classifier(path, name), use_classifier)
        for name in ("bow", *ENCODERS)
    },
    "elmo": (make_elmo, use_elmo),
    "qa": (make_qa, use_qa),
    "classifier on an encoder": (make_tuned_classifier, use_classifier),
    "tagger on an encoder": (make_tuned_tagger, use_tagger),
}
