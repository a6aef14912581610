"""The word features of ``model`` in numpy: two rows for each distinct word, remembered.

One is what the first layer of the sentence encoder makes of the word by itself, the other what the
word's linear features score, for every place where the word may stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nlpkit.nn.encoder_config import EncoderConfig
from nlpkit.nn.inference import Floats, Ids, NumpyEncoder, Weights, under
from nlpkit.tasks.tag.features import CHAR_DIM, CHAR_FILTERS, SLOPE, FeatureExtractor, WordFeatures
from nlpkit.tasks.tag.hashed_features import FAR_FEATURES, find_rows
from nlpkit.tasks.tag.settings import ResolvedTagger

WORDS_AT_ONCE = 128
REACHES = ("near", "far")  # tables of linear features
ROOM = 8192  # rows to begin with; what is not used costs nothing
REMEMBERED = 20_000  # distinct words before the tables are emptied: memory stays bounded


class _LinearTable:
    """Known features, in order, and their scores: rows from 1 on."""

    def __init__(self, weights: Weights) -> None:
        self.known: Ids = weights["known"].astype(np.int64)
        self.table = weights["table.weight"]


class NumpyWords:
    """Rows of words, worked out when first seen; row 0 is no word.

    ``first`` (R, width) is for the encoder, ``said`` (R, places K) are the scores of features.
    """

    def __init__(
        self,
        settings: ResolvedTagger,
        extractor: FeatureExtractor,
        weights: Weights,
        linear: Weights,
        enter: Callable[[Floats], Floats],
    ) -> None:
        self.settings, self.extractor, self.weights = settings, extractor, weights
        self.linear_tables = [
            _LinearTable(under(f"{reach}.", linear)) for reach in REACHES if linear
        ]
        self.linear_of_vector = linear.get("of_vector.weight")  # (places K, vector)
        self.linear_width = sum(part.table.shape[1] for part in self.linear_tables)
        self.unknown = extractor.words.unknown
        self._enter = enter
        self._rows: dict[str, int] = {}
        mixed = np.zeros((1, len(weights["mix.bias"])), np.float32)
        self.first = _longer(np.zeros_like(enter(mixed)), ROOM)
        self.said = _longer(np.zeros((1, self.linear_width), np.float32), ROOM)
        if settings.chars == "cnn":
            kernel = weights["chars.convolution.weight"]  # (F, D, 3)
            # a character's share in the response of each filter at each of the three taps, so that
            # a convolution is three look-ups and no product
            self._taps = [
                weights["chars.embedding.weight"] @ kernel[:, :, tap].T
                for tap in range(kernel.shape[2])
            ]
        elif settings.chars == "lstm":
            self._char_encoder = NumpyEncoder(
                EncoderConfig("lstm", CHAR_DIM, CHAR_FILTERS // 2), under("chars.", weights)
            )
            self._char_rows = self._char_encoder.first(weights["chars.embedding.weight"])

    def look_up(self, words: Sequence[str]) -> Ids:
        """Which row is whose, (N,)."""
        if len(self._rows) > REMEMBERED:
            self._rows.clear()
        rows = self._rows
        new = [word for word in dict.fromkeys(words) if word not in rows]
        if new:
            self._remember(new)
        return np.fromiter(map(rows.__getitem__, words), np.int64, len(words))

    def _remember(self, words: list[str]) -> None:
        begin = 1 + len(self._rows)
        end = begin + len(words)
        if end > len(self.first):
            self.first, self.said = _longer(self.first, 2 * end), _longer(self.said, 2 * end)
        features = self.extractor.features(words)
        self.first[begin:end] = self._enter(self._encode(features))
        self.said[begin:end] = self._linear_scores(features)
        self._rows.update(zip(words, range(begin, end), strict=True))

    def _linear_scores(self, features: WordFeatures) -> Floats:
        """What linear features score at every place where the word may stand, (U, places K)."""
        scores: Floats = np.zeros((len(features), self.linear_width), np.float32)
        end = 0
        for part, of_word in zip(
            self.linear_tables, (features.hashes, features.hashes[:, FAR_FEATURES]), strict=False
        ):
            begin, end = end, end + part.table.shape[1]
            for feature in of_word.T:
                scores[:, begin:end] += part.table[find_rows(part.known, feature)]
        if self.linear_of_vector is not None:
            scores += self.weights["vectors"][features.vectors] @ self.linear_of_vector.T
        return scores

    def _encode(self, features: WordFeatures) -> Floats:
        weights = self.weights
        parts = [weights["word.weight"][features.words]]
        if self.settings.chars == "cnn":
            parts.append(self._convolve(features.characters))
        elif self.settings.chars == "lstm":
            parts.append(self._read_characters(features.characters))
        parts.append(weights["affixes.weight"][features.affixes].sum(axis=1))
        if "vectors" in weights:
            rows = weights["vectors"][features.vectors]
            if "correction.weight" in weights:
                known = (features.words != self.unknown)[:, None]
                rows = rows + weights["correction.weight"][features.words] * known
            parts.append(rows)
        mixed: Floats = np.concatenate(parts, axis=1) @ weights["mix.weight"].T
        mixed += weights["mix.bias"]
        return np.maximum(mixed, np.float32(SLOPE) * mixed)

    def _convolve(self, characters: Ids) -> Floats:
        """The highest response of each filter over the characters, (U, L) -> (U, F)."""
        lengths = (characters != 0).sum(axis=1)
        order = np.argsort(lengths, kind="stable")
        highest: Floats = np.empty((len(order), self._taps[0].shape[1]), np.float32)
        # words of like length together: little time goes into padding
        for start in range(0, len(order), WORDS_AT_ONCE):
            rows = order[start : start + WORDS_AT_ONCE]
            highest[rows] = self._responses(characters[rows, : lengths[rows[-1]]])
        return highest

    def _responses(self, characters: Ids) -> Floats:
        before, here, after = self._taps
        responses = here[characters]  # (U, L, F)
        responses[:, 1:] += before[characters[:, :-1]]
        responses[:, :-1] += after[characters[:, 1:]]
        responses += self.weights["chars.convolution.bias"]
        responses[characters == 0] = 0
        highest: Floats = responses.max(axis=1)
        return np.maximum(highest, 0)

    def _read_characters(self, characters: Ids) -> Floats:
        """The last state of each direction of an LSTM over the characters."""
        lengths = (characters != 0).sum(axis=1)
        order = np.argsort(-lengths, kind="stable")
        states = self._char_encoder(
            self._char_rows, characters[order], lengths[order]
        )  # (U, L, 2 H)
        half = states.shape[2] // 2
        ends = states[np.arange(len(order)), lengths[order] - 1, :half]
        last = np.concatenate([ends, states[:, 0, half:]], axis=1)
        restored: Floats = np.empty_like(last)
        restored[order] = last
        return restored


def _longer(table: Floats, rows: int) -> Floats:
    longer: Floats = np.empty((rows, table.shape[1]), np.float32)
    longer[: len(table)] = table
    return longer
