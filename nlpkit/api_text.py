"""Language models from Python: of the next token, of masked tokens, of both directions.

As in ``api``: data is a path or what its file would hold, settings are keywords.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from nlpkit.api_data import (
    PathName,
    Sentences,
    Text,
    blocks_of,
    make_settings,
    peek,
    plain,
    trained,
)

if TYPE_CHECKING:
    from nlpkit.models.bert_model import BertModel
    from nlpkit.models.elmo_model import ElmoModel
    from nlpkit.tasks.lm.model import GptModel, TextModel
    from nlpkit.text.codec import Codec
    from nlpkit.text.subwords import Subwords
    from nlpkit.text.wordpiece import WordPiece
    from nlpkit.training.run import Progress
    from nlpkit.vectors.store import Vectors


def train_gpt(
    text: Text | Iterable[tuple[str, str]],
    *,
    tokenizer: PathName | Subwords | None = None,
    init: PathName | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> GptModel:
    """A GPT from a text: a file, several, or lines; or from (prompt, completion) pairs.

    Settings are those of ``nlpkit.tasks.lm.settings.GptSettings``. The ``tokenizer`` is "char",
    "byte", a ``tokenizer.json`` or a ``Subwords``; ``init`` is a model to go on from.

    >>> gpt = train_gpt(["to be or not to be"] * 50, layers=1, dim=16, block_size=8, max_iters=5)
    >>> len(gpt.sample("to be", 10))
    10
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.lm.examples import Example
    from nlpkit.tasks.lm.run import GptRun
    from nlpkit.tasks.lm.settings import GptSettings, LmSettings
    from nlpkit.tasks.lm.train_examples import ExamplesRun

    wanted = make_settings("train_gpt", GptSettings, settings)
    more = {"tokenizer": plain(tokenizer), "init": init, "device": pick_device(device)}
    first, items = peek(text)
    if isinstance(first, tuple):
        examples = [Example(*pair) for pair in items]
        return trained(ExamplesRun(examples, LmSettings(**vars(wanted)), **more), on_progress)
    return trained(GptRun(blocks_of(text, items), wanted, **more), on_progress)


def train_lm(
    text: Text,
    *,
    tokenizer: PathName | Codec | None = None,
    init: PathName | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> TextModel:
    """A language model of any kind from a text: ``model`` ngram, mlp, rnn, lstm, gru or gpt.

    Settings are those of ``nlpkit.tasks.lm.settings.LmSettings``. The ``tokenizer`` is "char",
    "byte", "word", "whitespace", a ``tokenizer.json`` or a codec.

    >>> lm = train_lm(["to be or not to be"] * 50, model="ngram", order=3, tokenizer="word")
    >>> lm
    <TextModel: ngram, 36 parameters, order 3, vocabulary 6>
    >>> lm.score("to be or not").perplexity < lm.score("not not or or").perplexity
    True
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.lm.run import LmRun
    from nlpkit.tasks.lm.settings import LmSettings

    run = LmRun(
        blocks_of(text),
        make_settings("train_lm", LmSettings, settings),
        tokenizer=plain(tokenizer),
        init=init,
        device=pick_device(device),
    )
    return trained(run, on_progress)


def train_bert(
    text: Text,
    *,
    tokenizer: PathName | WordPiece | None = None,
    vectors: PathName | Vectors | None = None,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> BertModel:
    """A BERT from a text, whose empty lines separate documents.

    Settings are those of ``nlpkit.tasks.bert.settings.BertTraining``. Without a ``tokenizer``, a
    WordPiece vocabulary is learned from the text; embeddings may start from word ``vectors``.

    >>> lines = ["the cat sat on the mat .", "the dog sat on the rug ."] * 40
    >>> bert = train_bert(lines, layers=1, dim=16, heads=2, vocab_size=60, length=16, max_iters=5)
    >>> bert.vectors(["the cat sat ."]).shape
    torch.Size([1, 16])
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.bert.data import tokenize_lines
    from nlpkit.tasks.bert.settings import BertTraining
    from nlpkit.tasks.bert.train import BertRun
    from nlpkit.vectors import formats

    wanted = make_settings("train_bert", BertTraining, settings).resolve()
    lines = [line for block in blocks_of(text) for line in block.lines()]
    encoded, codec = tokenize_lines(lines, plain(tokenizer), wanted)
    given = formats.given(vectors)
    return trained(BertRun(encoded, codec, wanted, pick_device(device), vectors=given), on_progress)


def train_elmo(
    text: Text | Sentences,
    *,
    tokenizer: str = "whitespace",
    pattern: str | None = None,
    lower: bool = False,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> ElmoModel:
    """An ELMo from a text, a sentence per line, or from lists of tokens.

    Settings are those of ``nlpkit.tasks.elmo.settings.ElmoSettings``.

    >>> lines = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> elmo = train_elmo(lines, dim=8, hidden=16, filters=16, epochs=1)
    >>> [vectors.shape for vectors in elmo.embed([["the", "cat"]])]  # (layers, words, numbers)
    [(3, 2, 16)]
    """
    from nlpkit.device import pick_device
    from nlpkit.tasks.elmo.settings import ElmoSettings
    from nlpkit.tasks.elmo.train import ElmoRun
    from nlpkit.tasks.elmo.train import Sentences as Corpus
    from nlpkit.text.pipeline import TokenSettings, read_tokens

    wanted = make_settings("train_elmo", ElmoSettings, settings)
    first, items = peek(text)
    if first is None or isinstance(first, str | os.PathLike):
        tokens = TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower)
        blocks = read_tokens(blocks_of(text, items), tokens)
        items = (line for lines in blocks for line in lines)
    return trained(ElmoRun(Corpus.read(items), wanted, pick_device(device)), on_progress)
