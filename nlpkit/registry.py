"""The one table of model kinds, and ``load``, which opens a model folder of any of them.

The kind in ``config.json`` says which class reads the folder. Classes are named as text, so that
the table costs nothing to import and the engines, which take their own kind from here, stay apart.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import Any

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError, with_article

WORD2VEC = "word2vec"  # vectors as word2vec trained them
VECTORS = "vectors"  # vectors converted, counted or computed from others
NAMES = "names"
GPT = "gpt"
LM = "lm"  # other language models of running text
TAGGER = "tagger"
CLASSIFIER = "classifier"
SEQ2SEQ = "seq2seq"
ELMO = "elmo"
BERT = "bert"
BERT_INDEX = "bert-index"
QA = "qa"

_VECTORS_CLASS = "nlpkit.vectors.store:Vectors"
CLASSES = {  # kind -> "module:class"; a class has load(path)
    WORD2VEC: _VECTORS_CLASS,
    VECTORS: _VECTORS_CLASS,
    NAMES: "nlpkit.tasks.names.model:NamesModel",
    GPT: "nlpkit.tasks.lm.model:GptModel",
    LM: "nlpkit.tasks.lm.model:TextModel",
    TAGGER: "nlpkit.tasks.tag.predictor:Tagger",
    CLASSIFIER: "nlpkit.tasks.classify.predictor:Classifier",
    SEQ2SEQ: "nlpkit.tasks.translate.model:Translator",
    ELMO: "nlpkit.models.elmo_model:ElmoModel",
    BERT: "nlpkit.models.bert_model:BertModel",
    BERT_INDEX: "nlpkit.tasks.bert.index:SearchIndex",
    QA: "nlpkit.tasks.qa.model:QaModel",
}


def load(path: str | os.PathLike[str]) -> Any:
    """The object of a model folder, whatever its kind, or the vectors of a file.

    Folders give ``Vectors``, ``NamesModel``, ``GptModel``, ``TextModel``, ``BertModel``,
    ``ElmoModel``, ``Tagger``, ``Classifier``, ``Translator``, ``QaModel`` or ``SearchIndex``; files
    of word vectors (word2vec text and binary, GloVe, fastText's .vec and .bin) give ``Vectors``. A
    checkpoint, or the path of a model whose training has not ended, gives the model as it is, with
    a warning that says how far it is.

    >>> load("pos.model").tag(["Time", "flies"])  # doctest: +SKIP
    ['NOUN', 'VERB']
    """
    path = os.fspath(modeldir.find_model(path))
    name = _VECTORS_CLASS
    if os.path.isdir(path):
        kind = modeldir.load_config(path, check_files=False).kind
        if kind not in CLASSES and kind != f"{WORD2VEC}-{modeldir.CHECKPOINT}":
            known = ", ".join(CLASSES)
            found = with_article(schema.plain(kind))
            raise NlpkitError(f"{path} is {found}, not a model", hint=f"a model: {known}")
        name = CLASSES.get(kind, _VECTORS_CLASS)
    elif not os.path.exists(path):
        raise NlpkitError(f"no such model: {path}", hint="check the path")
    module, _, class_name = name.partition(":")
    found = getattr(importlib.import_module(module), class_name)
    torch = sys.modules.get("torch")
    # layers are made with random weights before they get their own: the generator is put back
    with contextlib.nullcontext() if torch is None else torch.random.fork_rng(devices=[]):
        return found.load(path)
