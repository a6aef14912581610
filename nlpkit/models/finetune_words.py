"""Words on a pre-trained encoder: words to subwords, states of subwords to one state a word.

A word's state is that of its first subword (of a causal model the last, which has seen the word),
or the mean of all. A sentence that is longer than the encoder reads goes in windows that overlap;
each word has the state of where it stands furthest from an edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nlpkit.models.finetune import PretrainedEncoder, Reading
from nlpkit.models.finetune_states import CachedStates, room_for_states
from nlpkit.nn.encoder import Encoded
from nlpkit.nn.layer_mix import LayerMix
from nlpkit.openmp import sharing_cores
from nlpkit.training.batches import Ragged, plan

BATCH_TOKENS = 1024
WordPooling = Literal["first", "mean"]


class WordReading(NamedTuple):
    """Words as an encoder reads them."""

    reading: Reading
    owners: list[int]  # for each id the number of its word, from 1 on; 0 for marks
    places: list[int]  # for each word the id whose state is taken


def word_windows(counts: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Stretches of words whose subwords fit into ``room``, a quarter of it into the one before.

    >>> word_windows([1, 1, 2, 1, 1, 1], 4)
    [(0, 3), (3, 6)]
    >>> word_windows([1] * 9, 4)
    [(0, 4), (3, 7), (6, 9)]
    """
    windows: list[tuple[int, int]] = []
    start = 0
    while True:
        end, used = start, 0
        while end < len(counts) and (used + counts[end] <= room or end == start):
            used += counts[end]
            end += 1
        windows.append((start, end))
        if end >= len(counts):
            return windows
        back, shared = end, 0
        most = min(max(1, room // 4), room - counts[end])  # the next word has to fit in, too
        while back - 1 > start and shared + counts[back - 1] <= most:
            back -= 1
            shared += counts[back]
        start = back


def mean_by_word(states: Tensor, owners: Tensor, words: int) -> Tensor:
    """The mean state (B, W, C) of the subwords of each word; ``owners`` (B, T) are from 1 on."""
    batch, _, width = states.shape
    sums = states.new_zeros(batch, words + 1, width)
    sums.scatter_add_(1, owners[:, :, None].expand_as(states), states)
    counts = states.new_zeros(batch, words + 1)
    counts.scatter_add_(1, owners, torch.ones_like(owners, dtype=states.dtype))
    return (sums / counts.clamp_min(1)[:, :, None])[:, 1:]


class WordColumns:
    """Many readings of words as columns of numbers, to be padded and read by batches."""

    def __init__(self, readings: Sequence[WordReading]) -> None:
        self.ids = Ragged([one.reading.ids for one in readings])
        self.others = (
            Ragged([one.reading.segments for one in readings]),
            Ragged([one.owners for one in readings]),
            Ragged([one.places for one in readings]),
        )

    def tensors(
        self, rows: NDArray[np.int64], pad_id: int, device: torch.device
    ) -> tuple[Tensor, ...]:
        """Ids, mask, segments and owners (B, T) and places (B, W) of some of them."""
        idx, mask = self.ids.pad(rows, pad_id).tensors(device)
        return idx, mask, *(column.pad(rows).tensors(device)[0] for column in self.others)


class WordStates(nn.Module):
    """A ``TokenEncoder``: words in, one state of a BERT, ELMo or GPT for each word out."""

    def __init__(self, encoder: PretrainedEncoder, pooling: WordPooling = "first") -> None:
        super().__init__()
        self.encoder, self.pooling = encoder, pooling
        self.size = encoder.size
        self.mix = LayerMix(encoder.layers) if encoder.layers > 1 else None

    def read(self, words: Sequence[str]) -> WordReading:
        """Words between marks; a word with more subwords than there is room for is cut."""
        encoder = self.encoder
        ids, counts = encoder.encode_words(words)
        room = len(ids) if encoder.room is None else encoder.room - encoder.before - encoder.behind
        reading = encoder.wrap(ids[:room])
        owners = [word for word, count in enumerate(counts, 1) for _ in range(count)][:room]
        owners = [0] * encoder.before + owners
        owners += [0] * (len(reading.ids) - len(owners))
        ends = np.minimum(np.cumsum(counts), room)
        firsts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        chosen = ends - 1 if encoder.pools_last else np.minimum(firsts, room - 1)
        return WordReading(reading, owners, (chosen + encoder.before).tolist())

    def forward(self, layers: Tensor, owners: Tensor, places: Tensor) -> Tensor:
        """Layers of states (L, B, T, C) -> states of words (B, W, C)."""
        return self._of_words(self.mixed(layers), owners, places)

    def mixed(self, layers: Tensor) -> Tensor:
        """Layers (L, ..., C) -> states (..., C)."""
        return layers[0] if self.mix is None else self.mix(layers)

    def _of_words(self, states: Tensor, owners: Tensor, places: Tensor) -> Tensor:
        """States of subwords (B, T, C) -> states of words (B, W, C)."""
        if self.pooling == "mean":
            return mean_by_word(states, owners, places.size(1))
        return states.gather(1, places[:, :, None].expand(-1, -1, states.size(2)))

    def layers_of(
        self, idx: Tensor, mask: Tensor, segments: Tensor, owners: Tensor, places: Tensor
    ) -> Tensor:
        """What the encoder says of words, (L, B, W, C)."""
        layers = self.encoder(idx, segments, mask)
        return torch.stack([self._of_words(one, owners, places) for one in layers])

    def encode(self, sentences: Sequence[Sequence[str]]) -> Encoded:
        """The states of all words, (B, W, C); sentences of like length are read together."""
        layers = self.read_layers(sentences)
        lengths = torch.tensor(list(map(len, sentences)), device=layers.states.device)
        mask = torch.arange(max(map(len, sentences), default=0), device=lengths.device)
        mask = mask < lengths[:, None]
        states = self.mixed(layers.pad(np.arange(len(sentences)), mask))
        return Encoded(states * mask[:, :, None], mask)

    def read_layers(self, sentences: Sequence[Sequence[str]]) -> CachedStates:
        """What the encoder says of all words, to be mixed and looked at by sentences."""
        device = next(self.encoder.parameters()).device
        windows = [
            (number, *window)
            for number, words in enumerate(sentences)
            for window in self._windows(words)
        ]
        readings = [self.read(sentences[n][start:end]) for n, start, end in windows]
        found = room_for_states(self.encoder, np.array(list(map(len, sentences)), np.int64), device)
        far = np.full(found.states.size(1), -1)
        for row, layers in self._layers(readings, device):
            number, start, end = windows[row]
            inside, count = np.arange(end - start), len(sentences[number])
            # an edge of the sentence is none of the window's making
            left = inside + (count if start == 0 else 0)
            right = inside[::-1] + (count if end == count else 0)
            depth = np.minimum(left, right)
            here = slice(found.starts[number] + start, found.starts[number] + end)
            better = depth > far[here]
            far[here][better] = depth[better]
            chosen = torch.from_numpy(better).to(device)
            found.states[:, here][:, chosen] = layers[:, chosen]
        return found

    def _windows(self, words: Sequence[str]) -> list[tuple[int, int]]:
        encoder = self.encoder
        if not words or encoder.room is None:
            return [(0, len(words))] if words else []
        room = encoder.room - encoder.before - encoder.behind
        return word_windows(encoder.encode_words(words)[1], room)

    def _layers(
        self, readings: Sequence[WordReading], device: torch.device
    ) -> Iterator[tuple[int, Tensor]]:
        """For each reading, by number, the layers of its words (L, W, C)."""
        columns = WordColumns(readings)
        for rows in sharing_cores(plan(columns.ids.lengths, BATCH_TOKENS)):
            layers = self.layers_of(*columns.tensors(rows, self.encoder.pad_id, device))
            for place, row in enumerate(rows.tolist()):
                yield row, layers[:, place, : len(readings[row].places)]
