"""fastText's classifiers (``.bin`` and quantised ``.ftz``), answering as fastText does.

A text is the mean of the rows of its words, of their character n-grams and of its word n-grams;
one linear layer gives the labels, by softmax, by a Huffman tree of the labels (hs), or each label
by itself (ova, ns).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.tasks.classify.data import Text, join_texts
from nlpkit.tasks.classify.predictor import Classifier
from nlpkit.text.vocab import Vocab
from nlpkit.vectors.fasttext import HS, MAGIC, SOFTMAX, SUPERVISED, FastTextModel, read_model
from nlpkit.vectors.ngrams import END_OF_SENTENCE, bucket_rows, hash_ngram
from nlpkit.vectors.source import open_source

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

LABEL = "__label__"
_EPSILON = 1e-5  # fastText adds it before each logarithm
_WORD_NGRAM = 116049371
_TEXTS_AT_ONCE = 512
_MOST_CACHED = 1 << 18  # tokens
_WIDE = 0xFFFFFFFFFFFFFFFF


def open_classifier(path: str) -> AnyClassifier:
    """A classifier from its folder, or from a file of fastText's."""
    if os.path.isfile(path):
        with open_source(path, "surrogateescape") as source:
            if source.data[:4] == MAGIC:
                return FastTextClassifier(read_model(source))
        raise NlpkitError(
            f"{path} is no classifier", hint="a folder of classify train, fastText's .bin or .ftz"
        )
    return Classifier.load(path)


@dataclass(frozen=True)
class _Settings:
    multi_label: bool = False


class FastTextClassifier:
    """A classifier that fastText trained.

    >>> FastTextClassifier.load("lid.176.ftz").predict(["Guten Tag"])  # doctest: +SKIP
    ['de']
    """

    settings = _Settings()

    def __init__(self, model: FastTextModel) -> None:
        if model.arguments["model"] != SUPERVISED or model.output is None or not model.labels:
            raise NlpkitError(
                f"{model.name} holds word vectors, not a classifier", hint="nlpkit vectors"
            )
        self._model = model
        names = [label.removeprefix(LABEL) for label in model.labels]
        self.labels = Vocab(names, model.label_counts.tolist())
        self._ids = {word: row for row, word in enumerate(model.words)}
        self._known_labels = frozenset(model.labels)
        self._rows: dict[str, Rows] = {}  # of tokens seen lately
        self._kept: dict[int, int] | None = None
        if model.pruned is not None:
            self._kept = dict(model.pruned.tolist())
        self._tree = label_tree(model.label_counts) if model.arguments["loss"] == HS else None

    @classmethod
    def load(cls, path: str) -> FastTextClassifier:
        """A classifier from fastText's ``.bin`` or ``.ftz``."""
        found = open_classifier(path)
        if not isinstance(found, cls):
            raise NlpkitError(f"{path} is not a classifier of fastText's")
        return found

    def predict(self, texts: Sequence[str], *, threshold: float = 0.5) -> list[str]:
        """The likeliest label of each text; ``threshold`` is for classifiers of several labels."""
        return [self.labels.tokens[index] for index in self.probabilities(texts).argmax(axis=1)]

    def probabilities(self, texts: Sequence[Text]) -> Floats:
        """The probability of each label, (B, K)."""
        found = [np.zeros((0, len(self.labels)), np.float32)]
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            hidden = self._hidden(
                [tokens_of(join_texts(text)) for text in texts[start : start + _TEXTS_AT_ONCE]]
            )
            found.append(self._outputs(hidden))
        return np.concatenate(found)

    def _hidden(self, texts: list[list[str]]) -> Floats:
        """The mean of the rows of each text's features, (B, D)."""
        self._remember({token for text in texts for token in text})
        hidden = np.zeros((len(texts), self._model.input.shape[1]), np.float32)
        for place, text in enumerate(texts):
            kept = [token for token in text if not self._is_label(token)]
            features = [self._rows[token] for token in kept]
            rows = np.concatenate([*features, self._word_ngrams(kept)])
            if len(rows):
                hidden[place] = self._model.input[rows].mean(axis=0)
        return hidden

    def _is_label(self, token: str) -> bool:
        return token in self._known_labels or (token not in self._ids and token.startswith(LABEL))

    def _remember(self, tokens: set[str]) -> None:
        """Work out the rows of tokens that are new, all at once."""
        if len(self._rows) > _MOST_CACHED:
            self._rows.clear()
        new = [token for token in tokens if token not in self._rows]
        arguments = self._model.arguments
        if self._model.has_ngrams and new:
            shortest = max(1, arguments["shortest"])
            rows, edges = bucket_rows(new, arguments["buckets"], shortest, arguments["longest"])
        else:
            rows, edges = np.zeros(0, np.int64), np.zeros(len(new) + 1, np.int64)
        for place, token in enumerate(new):
            own = self._ids.get(token)
            buckets = rows[edges[place] : edges[place + 1]]
            first = np.array([] if own is None else [own], np.int64)
            self._rows[token] = np.concatenate([first, self._bucket_rows(buckets)])

    def _bucket_rows(self, buckets: Rows) -> Rows:
        """Rows of buckets; those that were pruned have none."""
        if self._kept is not None:
            kept = self._kept
            found = [kept[bucket] for bucket in buckets.tolist() if bucket in kept]
            buckets = np.array(found, np.int64)
        return buckets + len(self._ids)

    def _word_ngrams(self, tokens: list[str]) -> Rows:
        length = self._model.arguments["word_ngrams"]
        if length <= 1:
            return np.zeros(0, np.int64)
        # a hash of 32 bits is taken as signed, and spread over 64
        hashes = [hash_ngram(token.encode("utf-8", "surrogateescape")) for token in tokens]
        signed = [value - (1 << 32) if value >> 31 else value for value in hashes]
        buckets = []
        for start, first in enumerate(signed):
            value = first & _WIDE
            for other in signed[start + 1 : start + length]:
                value = (value * _WORD_NGRAM + other) & _WIDE
                buckets.append(value % self._model.arguments["buckets"])
        return self._bucket_rows(np.array(buckets, np.int64))

    def _outputs(self, hidden: Floats) -> Floats:
        """From hidden states (B, D) to probabilities (B, K)."""
        scores: Any = (hidden @ self._model.output.T).astype(np.float64)  # type: ignore[union-attr]
        loss = self._model.arguments["loss"]
        if loss == SOFTMAX:
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
        if self._tree is None:
            return _table_sigmoid(scores).astype(np.float32)
        shares = 1 / (1 + np.exp(-scores))
        size = len(self.labels)
        logs = np.zeros((len(hidden), 2 * size - 1))
        for node in range(2 * size - 2, size - 1, -1):  # from the root down
            left, right = self._tree[node - size]
            going_right = shares[:, node - size]
            logs[:, left] = logs[:, node] + np.log(1 - going_right + _EPSILON)
            logs[:, right] = logs[:, node] + np.log(going_right + _EPSILON)
        return np.exp(logs[:, :size]).astype(np.float32)


def _table_sigmoid(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sigmoid as fastText looks it up: by steps of 1/32 from -8 to 8."""
    steps = np.floor(np.clip(scores, -8, 8) * 32) / 32
    return np.where(scores < -8, 0.0, np.where(scores > 8, 1.0, 1 / (1 + np.exp(-steps))))


def tokens_of(text: str) -> list[str]:
    """The words of a line as fastText reads it, with the end of the line as the last.

    >>> tokens_of("a  b")
    ['a', 'b', '</s>']
    """
    data = text.encode("utf-8", "surrogateescape").replace(b"\0", b" ")
    tokens = [token.decode("utf-8", "surrogateescape") for token in data.split()]
    if END_OF_SENTENCE in tokens:
        tokens = tokens[: tokens.index(END_OF_SENTENCE)]
    return [*tokens, END_OF_SENTENCE]


def label_tree(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The two children of each inner node of the Huffman tree over labels, most frequent first.

    Nodes below ``len(counts)`` are labels, the last one is the root.

    >>> label_tree(np.array([5, 2, 1])).tolist()
    [[2, 1], [3, 0]]
    """
    size = len(counts)
    totals = [*counts.tolist(), *[10**15] * (size - 1)]
    children = np.zeros((max(size - 1, 0), 2), np.int64)
    leaf, node = size - 1, size
    for made in range(size, 2 * size - 1):
        for side in range(2):
            if leaf >= 0 and totals[leaf] < totals[node]:
                children[made - size, side], leaf = leaf, leaf - 1
            else:
                children[made - size, side], node = node, node + 1
        totals[made] = totals[children[made - size, 0]] + totals[children[made - size, 1]]
    return children


AnyClassifier = Classifier | FastTextClassifier
