"""A trained classifier at work, in numpy alone: texts in, probabilities of labels out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nlpkit import modeldir
from nlpkit.classifier.features import BagMaker, Bags, FeatureIndex
from nlpkit.classifier.settings import ClassifierSettings
from nlpkit.errors import NlpkitError
from nlpkit.nn.inference import Floats, Ids, NumpyEncoder, Weights, read_arrays, under
from nlpkit.vocab import UNK, Vocab

KIND = "classifier"
LABELS, WORDS, VECTOR_WORDS = "labels.tsv", "words.tsv", "vector-words.txt"
LONGEST = 1000  # words that a sequence model looks at; the bag looks at all
BATCH_WORDS = 8192
BATCH_ROWS = 128
ATTENTION_CELLS = 1 << 21  # of a transformer's (B, T, T)
BAG_TEXTS = 2048


class WordIds:
    """Vocabularies of a sequence model: ids of words and rows of given vectors."""

    def __init__(self, words: Vocab, vector_words: Sequence[str] = ()) -> None:
        self.words, self.vector_words = words, list(vector_words)
        self._rows = {word: row for row, word in enumerate(self.vector_words, 1)}
        self._unknown = words.ids[UNK]

    def look_up(self, tokens: Sequence[str]) -> tuple[list[int], list[int]]:
        """Ids and vector rows of a text's words; a text without words is one unknown word."""
        kept = tokens[:LONGEST] or [UNK]
        ids, unknown, rows = self.words.ids, self._unknown, self._rows
        return (
            [ids.get(token, unknown) for token in kept],
            [rows.get(token) or rows.get(token.lower(), 0) for token in kept],
        )


class Classifier:
    """Labels, vocabularies and weights."""

    def __init__(
        self,
        settings: ClassifierSettings,
        labels: Vocab,
        weights: Weights,
        words: WordIds | None = None,
    ) -> None:
        self.settings, self.labels, self.words, self.weights = settings, labels, words, weights
        self.bags = BagMaker(settings.tokenizer, lower=settings.lower, ngrams=settings.ngrams)
        self.bias = weights["output.bias"]
        if len(labels) != len(self.bias):
            raise ValueError(f"{len(labels)} labels are listed and {len(self.bias)} have weights")
        if words is None:
            # the two linear steps of a bag are one
            self._index = FeatureIndex(weights["features"].view(np.uint64))
            self._scores = weights["embedding.weight"] @ weights["output.weight"].T  # (F, K)
            if len(self._index.known) != len(self._scores):
                raise ValueError("features and embeddings differ in number")
        else:
            if len(words.words) != len(weights["embedding.weight"]):
                raise ValueError("words and embeddings differ in number")
            self._encoder = NumpyEncoder(settings.model, under("encoder.", weights), one_way=False)

    def probabilities(self, texts: Sequence[str]) -> Floats:
        """The probability of each label, (B, K); the rows add up to 1 unless multi-label."""
        if self.words is None:
            return self._shares(self._bag_scores(texts, self.bags.bags))
        return self.probabilities_of([self.bags.tokens(text) for text in texts])

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
            features, starts = self._index.rows(make_bags(items[start : start + BAG_TEXTS]))
            # the running total at the end of a text less that at its start is the text's sum
            running = np.zeros((len(features) + 1, len(self.labels)))
            np.cumsum(self._scores[features], axis=0, dtype=np.float64, out=running[1:])
            added = running[starts[1:]] - running[starts[:-1]]
            counts = np.maximum(np.diff(starts), 1)[:, None]
            found.append((added / np.sqrt(counts) + self.bias).astype(np.float32))
        return np.concatenate(found)

    def _sequence_scores(self, rows: Sequence[Sequence[str]]) -> Floats:
        assert self.words is not None
        looked_up = [self.words.look_up(row) for row in rows]
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

    @classmethod
    def load(cls, path: str) -> Classifier:
        """A classifier from its folder."""
        config = modeldir.load_config(path, kind=KIND)
        folder = Path(path)
        weights = read_arrays(folder)
        try:
            settings = ClassifierSettings(**config.settings)
            words = None
            if settings.model != "bow":
                listed = folder / VECTOR_WORDS
                known = listed.read_text("utf-8").split("\n")[:-1] if listed.exists() else []
                words = WordIds(Vocab.load(str(folder / WORDS)), known)
            return cls(settings, Vocab.load(str(folder / LABELS)), weights, words)
        except (KeyError, TypeError, ValueError, IndexError, OSError) as error:
            raise NlpkitError(
                f"{path} is damaged: {error!r}", hint="train or copy the model again"
            ) from None

    def write(self, folder: Path, tensors: Mapping[str, Any]) -> None:
        """Everything but config.json into a folder that ``modeldir.create`` gave."""
        self.labels.save(str(folder / LABELS))
        if self.words is not None:
            self.words.words.save(str(folder / WORDS))
            if self.words.vector_words:
                lines = "".join(word + "\n" for word in self.words.vector_words)
                (folder / VECTOR_WORDS).write_text(lines, encoding="utf-8", newline="\n")
        modeldir.write_weights(folder, tensors)
