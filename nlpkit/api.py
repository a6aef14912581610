"""Training from Python: one call for each kind of model, with the engines of the commands.

Data is a path, or an iterable of what its file would hold. Settings are keywords: the fields of the
settings class that each function names. ``on_progress`` is called with a record after each step.
What comes back is the trained model, ready to be used and to ``save(path)``. Nothing is printed;
random state and numbers of threads of the process stay as they are. Language models are in
``api_text``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from nlpkit.api_data import (
    PathName,
    Sentences,
    Text,
    blocks_of,
    lines_of,
    make_settings,
    not_text,
    path_of,
    peek,
    trained,
)
from nlpkit.errors import NlpkitError

if TYPE_CHECKING:
    from nlpkit.tasks.classify.data import LabelFormat
    from nlpkit.tasks.classify.predictor import Classifier
    from nlpkit.tasks.names.model import NamesModel
    from nlpkit.tasks.qa.model import QaModel
    from nlpkit.tasks.tag.predictor import Tagger
    from nlpkit.tasks.translate.model import Translator
    from nlpkit.text.conll import TagFormat
    from nlpkit.training.run import Progress
    from nlpkit.vectors.store import Vectors
    from nlpkit.word2vec.model import Word2Vec
    from nlpkit.word2vec.state import WordProgress

TaggedSentences = Iterable[Sequence[tuple[str, str]]]  # lists of (token, tag)
LabelledTexts = Iterable[tuple[str, str | Sequence[str]]]  # (text, label) or (text, labels)


def train_word2vec(
    text: Text | Sentences,
    *,
    tokenizer: str = "whitespace",
    pattern: str | None = None,
    lower: bool = False,
    vocab: PathName | None = None,
    init: PathName | None = None,
    device: str = "auto",
    engine: Literal["numba", "torch"] | None = None,
    on_progress: Callable[[WordProgress], None] | None = None,
    **settings: Any,
) -> Word2Vec:
    """Word vectors from a text, a sentence per line, or from lists of tokens.

    Settings are those of ``nlpkit.word2vec.config.Word2VecConfig``; ``threads=1`` gives the same
    bits every time. ``vocab`` and ``init`` are files of words to keep and of vectors to start from.

    >>> lines = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> vectors = train_word2vec(lines, dim=8, epochs=1, threads=1)
    >>> vectors
    <Word2Vec: 7 words, 8 dimensions>
    """
    from nlpkit.text.pipeline import TokenSettings
    from nlpkit.word2vec.config import Word2VecConfig
    from nlpkit.word2vec.model import begin_text
    from nlpkit.word2vec.train import pick_device

    config = make_settings("train_word2vec", Word2VecConfig, settings)
    first, items = peek(text)
    is_text = first is None or isinstance(first, str | os.PathLike)
    run = begin_text(
        blocks_of(text, items) if is_text else items,
        config,
        TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower),
        sentences=not is_text,
        vocab=path_of(vocab),
        init=path_of(init),
        device=pick_device(device),
        engine=engine,
        trial=device == "auto",
    )
    return trained(run, on_progress)


def vectors_from_counts(
    text: Text | Sentences,
    *,
    tokenizer: str = "whitespace",
    pattern: str | None = None,
    lower: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Vectors:
    """Word vectors by counting which words stand near which: ``method`` svd or glove.

    Settings are those of ``nlpkit.vectors.settings.CountSettings``.

    >>> lines = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> vectors_from_counts(lines, dim=4)
    <Vectors: 7 words, 4 dimensions>
    """
    from nlpkit.text.pipeline import TokenSettings
    from nlpkit.vectors.counts import vectors_from_counts
    from nlpkit.vectors.glove_run import GloveRun
    from nlpkit.vectors.settings import CountMethod, CountSettings
    from nlpkit.vectors.store import Vectors
    from nlpkit.vectors.words import ListedWords
    from nlpkit.word2vec.config import Word2VecConfig
    from nlpkit.word2vec.store import read_corpus, read_sentences

    wanted = make_settings("vectors_from_counts", CountSettings, settings)
    rules = Word2VecConfig(min_count=wanted.min_count, max_vocab=wanted.max_vocab)
    first, items = peek(text)
    if first is None or isinstance(first, str | os.PathLike):
        tokens = TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower)
        corpus, text_hash = read_corpus(blocks_of(text, items), rules, tokens)
    else:
        corpus, text_hash = read_sentences(items, rules)
    words = ListedWords(corpus.words, corpus.counts)
    if wanted.method is CountMethod.GLOVE:
        found: Vectors = GloveRun(corpus.ids, words, text_hash, wanted).train(
            on_progress=on_progress
        )
        return found
    return Vectors(words, vectors_from_counts(corpus.ids, len(words), wanted))


def train_tagger(
    sentences: PathName | TaggedSentences,
    *,
    dev: PathName | TaggedSentences | None = None,
    vectors: PathName | Vectors | None = None,
    format: TagFormat | None = None,
    column: str | None = None,
    token_column: int | None = None,
    tag_column: int | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Tagger:
    """A tagger from sentences, each a list of (token, tag) pairs, or from a file of them.

    Settings are those of ``nlpkit.tasks.tag.settings.TaggerSettings``. The best epoch on the
    sentences of ``dev`` is kept. ``format`` and the columns say how files are written, where that
    is not detected.

    >>> sentences = [[("the", "DET"), ("dog", "NOUN")], [("a", "DET"), ("cat", "NOUN")]] * 10
    >>> train_tagger(sentences, epochs=20, hidden=8, word_dim=8).tag(["the", "cat"])
    ['DET', 'NOUN']
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.tag.layouts import LayoutChoice
    from nlpkit.tasks.tag.pretrained_train import tagger_run
    from nlpkit.tasks.tag.reading import read_tagged, tagged_sentences
    from nlpkit.tasks.tag.settings import TaggerSettings
    from nlpkit.tasks.tag.train import TrainingData

    choice = LayoutChoice(format, column, token_column, tag_column)

    def read(data: PathName | TaggedSentences) -> Any:
        path = path_of(data)
        return tagged_sentences(not_text(data)) if path is None else read_tagged([path], choice)

    found, layout = read(sentences)
    run = tagger_run(
        TrainingData.of(found, layout),
        make_settings("train_tagger", TaggerSettings, settings),
        dev=[] if dev is None else read(dev)[0],
        vectors=vectors,
        device=pick_device(device, sparse=True),
    )
    return trained(run, on_progress)


def train_classifier(
    examples: PathName | LabelledTexts,
    *,
    dev: PathName | LabelledTexts | None = None,
    vectors: PathName | Vectors | None = None,
    format: LabelFormat | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Classifier:
    """A classifier from (text, label) pairs, or from a file or folder of labelled texts.

    Settings are those of ``nlpkit.tasks.classify.settings.ClassifierSettings``. The best epoch on
    the texts of ``dev`` is kept.

    >>> pairs = [("I liked it", "good"), ("so very dull", "bad")] * 10
    >>> train_classifier(pairs).predict(["I liked the view", "dull food"])
    ['good', 'bad']
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.classify.data import labelled_texts, read_examples
    from nlpkit.tasks.classify.pretrained_train import classifier_run
    from nlpkit.tasks.classify.settings import ClassifierSettings

    wanted = make_settings("train_classifier", ClassifierSettings, settings)

    def read(data: PathName | LabelledTexts, split: Literal["train", "test"]) -> Any:
        path = path_of(data)
        if path is None:
            return labelled_texts(not_text(data))
        several = wanted.multi_label
        return read_examples(path, format=format, split=split, multi_label=several)

    run = classifier_run(
        read(examples, "train"),
        wanted,
        dev=[] if dev is None else read(dev, "test"),
        vectors=vectors,
        device=pick_device(device, sparse=True),
    )
    return trained(run, on_progress)


def train_seq2seq(
    pairs: PathName | Iterable[tuple[str, str]],
    *,
    dev: PathName | Iterable[tuple[str, str]] | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Translator:
    """An encoder-decoder from (source, target) pairs, or from a file of them.

    Settings are those of ``nlpkit.tasks.translate.settings.TranslateSettings``. The best weights on
    the pairs of ``dev`` are kept.

    >>> words = {"1": "one", "2": "two", "3": "three", "4": "four"}
    >>> pairs = [(f"{a} {b}", f"{words[a]} {words[b]}") for a in words for b in words] * 4
    >>> model = train_seq2seq(pairs, tokenizer="word", dim=32, epochs=40, batch_tokens=60)
    >>> model.translate(["4 2"])
    ['four two']
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.translate.data import Pair, read_pairs
    from nlpkit.tasks.translate.settings import TranslateSettings
    from nlpkit.tasks.translate.train import TranslateRun

    def read(data: PathName | Iterable[tuple[str, str]]) -> list[Pair]:
        path = path_of(data)
        if path is not None:
            return read_pairs(path)
        return [Pair(*pair) for pair in data]  # type: ignore[union-attr]

    wanted = make_settings("train_seq2seq", TranslateSettings, settings)
    held = [] if dev is None else read(dev)
    run = TranslateRun(read(pairs), wanted, dev=held, device=pick_device(device))
    found: Translator = trained(run, on_progress)
    return found


def train_names(
    names: Text | Iterable[tuple[str, str]],
    *,
    heldout: Text | Iterable[tuple[str, str]] | None = None,
    test_fraction: float | None = None,
    test_size: int | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> NamesModel:
    """A generator of names like those given, which may be (name, label) pairs.

    Settings are those of ``nlpkit.tasks.names.settings.NamesSettings``. A tenth of the names is
    held out, unless ``test_fraction``, ``test_size`` or the names ``heldout`` say otherwise.

    >>> train_names(["Anna", "Hanna", "Nana", "Ana", "Hana"], model="ngram").sample(1, prefix="Ha")
    ['Hana']
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.names.data import parse_names
    from nlpkit.tasks.names.settings import NamesSettings
    from nlpkit.tasks.names.train import NamesRun

    wanted = make_settings("train_names", NamesSettings, settings)
    if sum(value is not None for value in (heldout, test_fraction, test_size)) > 1:
        raise NlpkitError("give one of heldout, test_fraction and test_size")
    run = NamesRun(
        parse_names(lines_of(names)),
        wanted,
        heldout=None if heldout is None else parse_names(lines_of(heldout)),
        fraction=test_fraction,
        size=test_size,
        device=pick_device(device),
    )
    return trained(run, on_progress)


def train_qa(
    questions: PathName | Iterable[tuple[str, str, str]],
    *,
    pretrained: PathName,
    dev: PathName | Iterable[tuple[str, str, str]] | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> QaModel:
    """A reader that finds the answers to questions in texts, from the BERT ``pretrained``.

    Questions are (question, text, answer); an empty answer says that the text has none. A file is
    SQuAD's JSON or TSV. Settings are those of ``nlpkit.tasks.qa.settings.QaSettings``; the best
    epoch on the questions of ``dev`` is kept.

    >>> facts = [("Who sat?", "The cat sat.", "The cat"), ("Who ate?", "A dog ate.", "A dog")]
    >>> train_qa(facts, pretrained="world.bert", epochs=3)  # doctest: +SKIP
    <QaModel: bert, windows of 64 tokens>
    """
    from nlpkit.device import pick_device
    from nlpkit.models.finetune import open_encoder
    from nlpkit.tasks.qa.data import asked, check_answers, read_questions
    from nlpkit.tasks.qa.model import need_bert
    from nlpkit.tasks.qa.settings import QaSettings
    from nlpkit.tasks.qa.train import QaRun

    def read(data: Any, split: Literal["train", "test"]) -> Any:
        path = path_of(data)
        if path is None:
            return asked(not_text(data))
        return read_questions(path, split=split)

    wanted = make_settings("train_qa", QaSettings, settings)
    found = read(questions, "train")
    check_answers(found, path_of(questions) or "questions")
    run = QaRun(
        found,
        need_bert(open_encoder(pretrained), pretrained),
        wanted,
        dev=[] if dev is None else read(dev, "test"),
        device=pick_device(device),
        pretrained=os.fspath(pretrained),
    )
    return trained(run, on_progress)
