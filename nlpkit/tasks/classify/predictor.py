"""A trained classifier at work, in numpy alone: texts in, probabilities of labels out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.nn.encoder_config import within
from nlpkit.nn.inference import (
    Floats,
    Ids,
    NumpyEncoder,
    Weights,
    read_arrays,
    under,
    write_arrays,
)
from nlpkit.registry import CLASSIFIER
from nlpkit.schema import AGAIN
from nlpkit.tasks.classify.data import Text, join_texts
from nlpkit.tasks.classify.features import BagMaker, Bags, FeatureIndex, text_weights
from nlpkit.tasks.classify.settings import ResolvedClassifier
from nlpkit.text.codec import save_codec
from nlpkit.text.subwords import SubwordTokenizer
from nlpkit.text.vocab import UNK, Vocab
from nlpkit.text.vocab_codec import WORDS, VocabCodec

LABELS = "labels.tsv"
TOKENIZER = "tokenizer.json"  # the subword model, when that is the tokeniser
LONGEST = 1000  # words that a sequence model looks at; the bag looks at all
BATCH_WORDS = 8192
BATCH_ROWS = 128
ATTENTION_CELLS = 1 << 21  # of a transformer's (B, T, T)
BAG_TEXTS = 2048
INPUTS = ("embedding.weight", "vectors")  # tables of what an encoder stands on


def known_words(codec: VocabCodec, tokens: Sequence[str]) -> tuple[list[int], list[int]]:
    """Ids and vector rows of a text's words; a text without words is one unknown word."""
    kept = tokens[:LONGEST] or [UNK]
    return codec.encode_tokens(kept), codec.vector_rows(kept)


def decide(
    names: Sequence[str], probabilities: Floats, threshold: float | None
) -> list[tuple[str, ...]]:
    """The labels of each text: all with the threshold or more, or without one the likeliest."""
    if threshold is None:
        return [(names[index],) for index in probabilities.argmax(axis=1).tolist()]
    return [
        tuple(names[i] for i in np.flatnonzero(row >= threshold).tolist()) for row in probabilities
    ]


def make_bags(settings: ResolvedClassifier, *, lower_first: bool = False) -> BagMaker:
    """What turns texts into tokens and features."""
    return BagMaker(
        settings.tokenizer,
        pattern=settings.pattern,
        lower=settings.lower,
        ngrams=settings.ngrams,
        lower_first=lower_first,
    )


def _in_folder(settings: ResolvedClassifier, folder: Path) -> ResolvedClassifier:
    """Settings with the whole path of the tokeniser that lies in the folder of a model."""
    if settings.tokenizer == TOKENIZER:
        return replace(settings, tokenizer=str(folder / TOKENIZER))
    if os.path.isabs(settings.tokenizer) and not os.path.exists(settings.tokenizer):
        raise NlpkitError(  # a model of 0.1.0, which remembered a path
            f"{folder} needs {settings.tokenizer}, which is not there",
            hint="put it back, or train the model again",
        )
    return settings


def check_weights(
    weights: Weights,
    settings: ResolvedClassifier,
    labels: Vocab,
    words: VocabCodec | None,
    folder: Path,
) -> None:
    """Refuse weights that are not those of a classifier with these settings, labels and words."""
    where = str(folder / modeldir.WEIGHTS)
    if settings.layers > len(weights) and words is not None:
        raise NlpkitError(f"{where} has too few tensors for {settings.layers} layers", hint=AGAIN)
    vectors = weights.get("vectors")
    given = words is not None and words.vector_words and vectors is not None and vectors.ndim == 2
    vector_dim = vectors.shape[1] if given and vectors is not None else 0
    shapes = tensor_shapes(settings, labels, words, vector_dim)
    schema.check_tensors(weights, shapes, where, whole=["features"])


def tensor_shapes(
    settings: ResolvedClassifier, labels: Vocab, words: VocabCodec | None, vector_dim: int
) -> dict[str, schema.Shape]:
    """Every tensor by name; ``vector_dim`` is the length of given vectors, 0 without any."""
    width: str | int = "width"  # a bow has a number for each label, `dim`, and maybe one more
    shapes: dict[str, schema.Shape] = {}
    if words is None:
        shapes |= {"features": ("features",), "embedding.weight": ("features", width)}
    else:
        encoder = settings.encoder_config(settings.dim + vector_dim)
        width = encoder.size
        shapes |= {"embedding.weight": (len(words), settings.dim)}
        shapes |= within("encoder.", encoder.shapes())
        if words.vector_words:
            shapes["vectors"] = (len(words.vector_words) + 1, vector_dim)
    return {**shapes, "output.weight": (len(labels), width), "output.bias": (len(labels),)}


class Classifier(modeldir.Model):
    """Labels, vocabularies and weights.

    >>> classifier = Classifier.load("reviews.model")  # doctest: +SKIP
    >>> classifier.predict(["I loved the view."])  # doctest: +SKIP
    ['positive']
    """

    def __init__(
        self,
        settings: ResolvedClassifier,
        labels: Vocab,
        weights: Weights,
        words: VocabCodec | None = None,
        bags: BagMaker | None = None,
        config: modeldir.ModelConfig | None = None,
    ) -> None:
        self.settings, self.labels, self.words, self.weights = settings, labels, words, weights
        self.bags = bags or make_bags(settings)
        self.config = config or modeldir.ModelConfig(kind=CLASSIFIER, settings=self.describe())
        self.bias = weights["output.bias"]
        if words is None:
            # the two linear steps of a bag are one
            self._index = FeatureIndex(weights["features"].view(np.uint64))
            self._scores = weights["embedding.weight"] @ weights["output.weight"].T  # (F, K)
        else:
            n_in = sum(weights[name].shape[1] for name in INPUTS if name in weights)
            encoder = settings.encoder_config(n_in)
            self._encoder = NumpyEncoder(encoder, under("encoder.", weights))

    def __repr__(self) -> str:
        several = ", several to a text" if self.settings.multi_label else ""
        return f"<Classifier: {self.settings.model}, {len(self.labels)} labels{several}>"

    def predict(
        self, texts: Sequence[Text], *, threshold: float = 0.5
    ) -> list[str] | list[tuple[str, ...]]:
        """The likeliest label of each text.

        A multi-label classifier gives a tuple for each text: the labels with a probability of
        ``threshold`` or more.
        """
        names, rows = self.labels.tokens, self.probabilities(texts)  # (B, K)
        if self.settings.multi_label:
            return decide(names, rows, threshold)
        return [labels[0] for labels in decide(names, rows, None)]

    def probabilities(self, texts: Sequence[Text]) -> Floats:
        """The probability of each label, (B, K); the rows add up to 1 unless multi-label."""
        if isinstance(texts, str):
            raise TypeError("texts are a list of texts, not one text")
        joined = [join_texts(text) for text in texts]
        if self.words is None:
            return self._shares(self._bag_scores(joined, self.bags.bags))
        return self.probabilities_of([self.bags.tokens(text) for text in joined])

    def probabilities_of(self, rows: Sequence[Sequence[str]]) -> Floats:
        """The same for texts that are tokens already."""
        return self._shares(self.scores_of(rows))

    def _shares(self, scores: Floats) -> Floats:
        if self.settings.multi_label:
            return np.reciprocal(1 + np.exp(-scores))
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Floats = scores / scores.sum(axis=1, keepdims=True)
        return shares

    def scores_of(self, rows: Sequence[Sequence[str]]) -> Floats:
        """The scores (B, K) that probabilities are made of."""
        if self.words is None:
            return self._bag_scores(rows, self.bags.bags_of)
        return self._sequence_scores(rows)

    def _bag_scores(
        self, items: Sequence[Any], make_bags: Callable[[Sequence[Any]], Bags]
    ) -> Floats:
        found = [np.zeros((0, len(self.labels)), np.float32)]
        for start in range(0, len(items), BAG_TEXTS):
            bags = make_bags(items[start : start + BAG_TEXTS])
            features, starts, counts = self._index.counted(bags)
            weights = text_weights(starts, counts, sublinear=self.settings.counts == "sublinear")
            # the running total at the end of a text less that at its start is the text's sum
            running = np.zeros((len(features) + 1, len(self.labels)))
            parts = self._scores[features] * weights[:, None]
            np.cumsum(parts, axis=0, dtype=np.float64, out=running[1:])
            added = running[starts[1:]] - running[starts[:-1]]
            found.append((added + self.bias).astype(np.float32))
        return np.concatenate(found)

    def _sequence_scores(self, rows: Sequence[Sequence[str]]) -> Floats:
        assert self.words is not None
        looked_up = [known_words(self.words, row) for row in rows]
        order = sorted(range(len(rows)), key=lambda place: -len(looked_up[place][0]))
        scores = np.zeros((len(rows), len(self.labels)), np.float32)
        start = 0
        while start < len(order):
            longest = len(looked_up[order[start]][0])
            size = min(BATCH_ROWS, max(1, BATCH_WORDS // longest))
            if self.settings.model == "transformer":
                size = min(size, max(1, ATTENTION_CELLS // longest**2))
            places = order[start : start + size]
            scores[places] = self._batch_scores([looked_up[place] for place in places])
            start += size
        return scores

    def _batch_scores(self, batch: Sequence[tuple[list[int], list[int]]]) -> Floats:
        lengths = np.array([len(ids) for ids, _ in batch])
        inside = np.arange(lengths[0]) < lengths[:, None]
        words = np.concatenate([ids for ids, _ in batch])
        rows = np.concatenate([found for _, found in batch])
        pairs, places = np.unique(np.stack([words, rows]), axis=1, return_inverse=True)
        table = self.weights["embedding.weight"][pairs[0]]
        if "vectors" in self.weights:
            table = np.concatenate([table, self.weights["vectors"][pairs[1]]], axis=1)
        positions = np.zeros(inside.shape, np.int64)
        positions[inside] = places.reshape(-1)
        states = self._encoder(self._encoder.first(table), positions, lengths)  # (B, T, C)
        pooled = self._pool(states, inside, lengths)
        scores: Floats = pooled @ self.weights["output.weight"].T + self.bias
        return scores

    def _pool(self, states: Floats, inside: Any, lengths: Ids) -> Floats:
        if self.settings.pooling == "max":
            highest: Floats = np.where(inside[:, :, None], states, -np.inf).max(axis=1)
            return highest.astype(np.float32)
        if self.settings.pooling == "average":
            return (states.sum(axis=1) / lengths[:, None]).astype(np.float32)
        last = states[np.arange(len(lengths)), lengths - 1]
        if self.settings.model in ("lstm", "gru"):
            half = states.shape[2] // 2
            return np.concatenate([last[:, :half], states[:, 0, half:]], axis=1)
        return last

    # --- files ----------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """What ``config.json`` must say of the model: the tokeniser lies beside it."""
        if isinstance(self.bags.tokenizer, SubwordTokenizer):
            return asdict(replace(self.settings, tokenizer=TOKENIZER))
        return asdict(self.settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Classifier:
        """A classifier from its folder."""
        path = modeldir.find_model(path)
        config = modeldir.load_config(path, kind=CLASSIFIER)
        if "encoder" in config.settings:
            from nlpkit.tasks.classify.pretrained import PretrainedClassifier

            return PretrainedClassifier.load(path)
        folder = Path(path)
        where = f"{folder / modeldir.CONFIG}: settings"
        settings = schema.read(ResolvedClassifier, config.settings, where)
        if "counts" not in config.settings:  # once every feature of a text counted once
            settings = replace(settings, counts="binary")
        # 0.1.0, which knew no pattern, lower-cased texts before it cut them into tokens
        old = "pattern" not in config.settings
        bags = make_bags(_in_folder(settings, folder), lower_first=old)
        words = None
        if settings.model != "bow":
            words = VocabCodec.read(folder / WORDS, cut=bags.tokens)
        labels = Vocab.load(str(folder / LABELS))
        weights = read_arrays(folder)
        check_weights(weights, settings, labels, words, folder)
        return cls(settings, labels, weights, words, bags, config)

    def write(self, folder: Path) -> None:
        """Everything but config.json into a folder that ``modeldir.create`` gave."""
        if isinstance(self.bags.tokenizer, SubwordTokenizer):
            self.bags.tokenizer.model.save(str(folder / TOKENIZER))
        self.labels.save(str(folder / LABELS))
        if self.words is not None:
            save_codec(self.words, folder)
        write_arrays(folder, self.weights)
