"""Training from Python: one call for each kind of model, with the engines of the commands.

Data is a path, or an iterable of what its file would hold. Settings are keywords: the fields of the
settings class that each function names. ``on_progress`` is called with a record after each step.
What comes back is the trained model, ready to be used and to ``save(path)``. Nothing is printed;
random state and numbers of threads of the process stay as they are.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from nlpkit import schema, textio
from nlpkit.errors import NlpkitError
from nlpkit.textio import TextBlock

if TYPE_CHECKING:
    from nlpkit.tasks.classify.data import LabelFormat
    from nlpkit.tasks.classify.predictor import Classifier
    from nlpkit.tasks.lm.model import GptModel
    from nlpkit.tasks.names.model import NamesModel
    from nlpkit.tasks.tag.predictor import Tagger
    from nlpkit.tasks.translate.model import Translator
    from nlpkit.text.conll import TagFormat
    from nlpkit.text.subwords import Subwords
    from nlpkit.training.run import Progress, Run
    from nlpkit.vectors.store import Vectors
    from nlpkit.word2vec.model import Word2Vec
    from nlpkit.word2vec.state import WordProgress

PathName = str | os.PathLike[str]
Text = PathName | Iterable[str] | Iterable[os.PathLike[str]]  # a file, lines, or several files
Sentences = Iterable[Sequence[str]]  # lists of tokens
TaggedSentences = Iterable[Sequence[tuple[str, str]]]  # lists of (token, tag)
LabelledTexts = Iterable[tuple[str, str | Sequence[str]]]  # (text, label) or (text, labels)
Settings = TypeVar("Settings")
_LINES_AT_ONCE = 10_000


# --- one function for each kind of model --------------------------------------------------------


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

    config = _settings("train_word2vec", Word2VecConfig, settings)
    first, items = _peek(text)
    is_text = first is None or isinstance(first, str | os.PathLike)
    run = begin_text(
        _blocks(text, items) if is_text else items,
        config,
        TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower),
        sentences=not is_text,
        vocab=_path(vocab),
        init=_path(init),
        device=pick_device(device),
        engine=engine,
    )
    return _trained(run, on_progress)


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
        path = _path(data)
        return tagged_sentences(_not_text(data)) if path is None else read_tagged([path], choice)

    found, layout = read(sentences)
    run = tagger_run(
        TrainingData.of(found, layout),
        _settings("train_tagger", TaggerSettings, settings),
        dev=[] if dev is None else read(dev)[0],
        vectors=vectors,
        device=pick_device(device, sparse=True),
    )
    return _trained(run, on_progress)


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

    wanted = _settings("train_classifier", ClassifierSettings, settings)

    def read(data: PathName | LabelledTexts, split: Literal["train", "test"]) -> Any:
        path = _path(data)
        if path is None:
            return labelled_texts(_not_text(data))
        several = wanted.multi_label
        return read_examples(path, format=format, split=split, multi_label=several)

    run = classifier_run(
        read(examples, "train"),
        wanted,
        dev=[] if dev is None else read(dev, "test"),
        vectors=vectors,
        device=pick_device(device, sparse=True),
    )
    return _trained(run, on_progress)


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
        path = _path(data)
        if path is not None:
            return read_pairs(path)
        return [Pair(*pair) for pair in data]  # type: ignore[union-attr]

    wanted = _settings("train_seq2seq", TranslateSettings, settings)
    held = [] if dev is None else read(dev)
    run = TranslateRun(read(pairs), wanted, dev=held, device=pick_device(device))
    found: Translator = _trained(run, on_progress)
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

    wanted = _settings("train_names", NamesSettings, settings)
    if sum(value is not None for value in (heldout, test_fraction, test_size)) > 1:
        raise NlpkitError("give one of heldout, test_fraction and test_size")
    run = NamesRun(
        parse_names(_lines(names)),
        wanted,
        heldout=None if heldout is None else parse_names(_lines(heldout)),
        fraction=test_fraction,
        size=test_size,
        device=pick_device(device),
    )
    return _trained(run, on_progress)


def train_gpt(
    text: Text,
    *,
    tokenizer: PathName | Subwords | None = None,
    init: PathName | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> GptModel:
    """A GPT from a text: a file, several, or lines.

    Settings are those of ``nlpkit.tasks.lm.settings.GptSettings``. The ``tokenizer`` is "char",
    "byte", a ``tokenizer.json`` or a ``Subwords``; ``init`` is a model to go on from.

    >>> gpt = train_gpt(["to be or not to be"] * 50, layers=1, dim=16, block_size=8, max_iters=5)
    >>> len(gpt.sample("to be", 10))
    10
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.lm.run import GptRun
    from nlpkit.tasks.lm.settings import GptSettings

    run = GptRun(
        _blocks(text),
        _settings("train_gpt", GptSettings, settings),
        tokenizer=_plain(tokenizer),
        init=init,
        device=pick_device(device),
    )
    return _trained(run, on_progress)


# --- settings and training ----------------------------------------------------------------------


def _settings(function: str, kind: type[Settings], given: dict[str, Any]) -> Settings:
    """Settings from keywords, with their names, types and ranges checked."""
    known = [field.name for field in fields(kind) if field.init]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise NlpkitError(f"{function} has no setting {name!r}", hint=", ".join(known))
    plain = {name: _plain(value) for name, value in given.items()}
    try:
        return schema.read(kind, plain, function)
    except NlpkitError as error:  # its hint is for files
        raise NlpkitError(error.message) from None


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _trained(run: Run, on_progress: Callable[[Any], None] | None) -> Any:
    model = run.train(on_progress=on_progress)
    model.config.command = []  # no command made it
    return model


# --- data ---------------------------------------------------------------------------------------


def _path(data: Any) -> str | None:
    """The path, where data is one."""
    return os.fspath(data) if isinstance(data, str | os.PathLike) else None


def _not_text(data: Any) -> Any:
    """Items that are not lines, or an error: a list of strings is easily given for pairs."""
    first, items = _peek(data)
    if isinstance(first, str):
        raise NlpkitError(f"expected pairs, not text: {first[:40]!r}", hint="a path, or pairs")
    return items


def _peek(data: Any) -> tuple[Any, Iterator[Any]]:
    """The first item, or None, and all items; a path is the only item."""
    items = iter([data] if isinstance(data, str | os.PathLike) else data)
    start = list(itertools.islice(items, 1))
    return (start[0] if start else None), itertools.chain(start, items)


def _blocks(text: Any, items: Iterator[Any] | None = None) -> Iterator[TextBlock]:
    """Blocks of a file, of several files, or of lines; ``items`` are those already looked at."""
    path = _path(text)
    if path is not None:
        yield from textio.read_blocks([path])
        return
    first, items = _peek(text if items is None else items)
    if isinstance(first, os.PathLike):
        yield from textio.read_blocks(os.fspath(item) for item in items)
        return
    number = 1
    while lines := list(itertools.islice(items, _LINES_AT_ONCE)):
        whole = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        yield TextBlock(whole.encode(), "lines", number)
        number += whole.count("\n")


def _lines(names: Any) -> Iterator[str]:
    """Lines of a file or of an iterable, whose pairs are joined by a tab."""
    first, items = _peek(names)
    if isinstance(first, tuple):
        yield from ("\t".join(item) for item in items)
        return
    for block in _blocks(names, items):
        yield from block.lines()
