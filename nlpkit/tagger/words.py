"""The word features of ``model`` in numpy: one row for each distinct word, remembered.

A row has what the encoder takes, and behind it what the word's clues score, for every place where
the word may stand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nlpkit.nn.inference import Floats, Ids, NumpyEncoder, Weights, under
from nlpkit.tagger.features import FAR_CLUES, Lexicon, WordFeatures, find_rows
from nlpkit.tagger.settings import TaggerSettings
from nlpkit.vocab import UNK

WORDS_AT_ONCE = 128
REACHES = ("near", "far")  # tables of clues
REMEMBERED = 50_000  # distinct words before the table is emptied: memory stays bounded


class _ClueTable:
    """Known clues, in order, and their scores: rows from 1 on."""

    def __init__(self, weights: Weights) -> None:
        self.known: Ids = weights["known"].astype(np.int64)
        self.table = weights["table.weight"]


class NumpyWords:
    """Rows (U, mix + places K) of words, worked out when first seen."""

    def __init__(
        self, settings: TaggerSettings, lexicon: Lexicon, weights: Weights, clues: Weights
    ) -> None:
        self.settings, self.lexicon, self.weights = settings, lexicon, weights
        self.clue_tables = [_ClueTable(under(f"{reach}.", clues)) for reach in REACHES if clues]
        self.clue_of_vector = clues.get("of_vector.weight")  # (places K, vector)
        self.clue_width = sum(part.table.shape[1] for part in self.clue_tables)
        self.mix = len(weights["mix.bias"])
        self.unknown = lexicon.words.ids[UNK]
        self._rows: dict[str, int] = {}
        self._table: Floats = np.empty((1024, self.mix + self.clue_width), np.float32)
        if settings.chars == "cnn":
            kernel = weights["chars.convolution.weight"]  # (F, D, 3)
            # a character's share in the response of each filter at each of the three taps, so that
            # a convolution is three look-ups and no product
            self._taps = [
                weights["chars.embedding.weight"] @ kernel[:, :, tap].T
                for tap in range(kernel.shape[2])
            ]
        elif settings.chars == "lstm":
            self._char_encoder = NumpyEncoder("lstm", under("chars.", weights), one_way=False)

    def look_up(self, words: Sequence[str]) -> tuple[Floats, Ids]:
        """The rows of the distinct words among these, and which is whose, (N,)."""
        if len(self._rows) > REMEMBERED:
            self._rows.clear()
        rows = self._rows
        new = [word for word in dict.fromkeys(words) if word not in rows]
        if new:
            self._remember(new)
        ids = np.fromiter((rows[word] for word in words), np.int64, len(words))
        distinct, places = np.unique(ids, return_inverse=True)
        return self._table[distinct], places

    def _remember(self, words: list[str]) -> None:
        first = len(self._rows)
        last = first + len(words)
        if last > len(self._table):
            grown = np.empty((2 * last, self._table.shape[1]), np.float32)
            grown[:first] = self._table[:first]
            self._table = grown
        features = self.lexicon.features(words)
        self._table[first:last, : self.mix] = self._encode(features)
        self._table[first:last, self.mix :] = self._score_clues(features)
        self._rows.update(zip(words, range(first, last), strict=True))

    def _score_clues(self, features: WordFeatures) -> Floats:
        """What the clues score at every place where the word may stand, (U, places K)."""
        scores: Floats = np.zeros((len(features), self.clue_width), np.float32)
        end = 0
        for part, of_word in zip(
            self.clue_tables, (features.clues, features.clues[:, FAR_CLUES]), strict=False
        ):
            begin, end = end, end + part.table.shape[1]
            for clue in of_word.T:
                scores[:, begin:end] += part.table[find_rows(part.known, clue)]
        if self.clue_of_vector is not None:
            scores += self.weights["vectors"][features.vectors] @ self.clue_of_vector.T
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
        return mixed + weights["mix.bias"]

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
        table = self.weights["chars.embedding.weight"]
        states = self._char_encoder(table, characters[order], lengths[order])  # (U, L, 2 H)
        half = states.shape[2] // 2
        ends = states[np.arange(len(order)), lengths[order] - 1, :half]
        last = np.concatenate([ends, states[:, 0, half:]], axis=1)
        restored: Floats = np.empty_like(last)
        restored[order] = last
        return restored
