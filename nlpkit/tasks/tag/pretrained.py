"""A tagger on a pre-trained encoder: words to pieces, states of pieces to words, words to tags.

A word's state is that of its first piece (of a causal model the last, which has seen the word), or
the mean of all. A sentence that is longer than the encoder reads goes in windows that overlap; each
word is scored where it stands furthest from an edge, and the CRF decides on the whole sentence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nlpkit import modeldir, schema
from nlpkit.models.finetune import PretrainedEncoder, Reading, read_encoder
from nlpkit.nn.crf import CRF
from nlpkit.nn.inference import Floats, Ids
from nlpkit.nn.layer_mix import LayerMix
from nlpkit.registry import TAGGER
from nlpkit.tasks.tag.predictor import (
    FORBIDDEN,
    INNER_SCHEME,
    LAYOUT,
    TAGS,
    VERSION,
    About,
    Tagger,
)
from nlpkit.tasks.tag.settings import TagTuning
from nlpkit.text.codec import save_codec
from nlpkit.text.conll import Layout
from nlpkit.text.schemes import Scheme, legal_transitions
from nlpkit.text.vocab import Vocab
from nlpkit.text.vocab_codec import WORDS, VocabCodec
from nlpkit.training.batches import Ragged, plan

BATCH_TOKENS = 1024
SENTENCES_AT_ONCE = 1024


class WordReading(NamedTuple):
    """Words as an encoder reads them."""

    reading: Reading
    owners: list[int]  # for each id the number of its word, from 1 on; 0 for marks
    places: list[int]  # for each word the id whose state is taken


def read_words(encoder: PretrainedEncoder, words: Sequence[str]) -> WordReading:
    """Words between marks; a word with more pieces than there is room for is cut."""
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


def word_windows(counts: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Stretches of words whose pieces fit into ``room``, a quarter of it into the one before.

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


class TagNetwork(nn.Module):
    """Encoder, and a head on the states of words."""

    def __init__(
        self,
        encoder: PretrainedEncoder,
        settings: TagTuning,
        n_tags: int,
        legal: list[list[bool]] | None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = TagHead(encoder, settings, n_tags, legal)


class TagHead(nn.Module):
    """What is learned from scratch: layers of states (L, B, T, C) -> scores of tags (B, W, K)."""

    def __init__(
        self,
        encoder: PretrainedEncoder,
        settings: TagTuning,
        n_tags: int,
        legal: list[list[bool]] | None,
    ) -> None:
        super().__init__()
        self.mix = LayerMix(encoder.layers) if encoder.layers > 1 else None
        self.pieces = settings.pieces
        self.dropout = nn.Dropout(settings.dropout)
        self.output = nn.Linear(encoder.size, n_tags)
        self.crf = CRF(n_tags, legal) if settings.crf == "yes" else None

    def forward(self, layers: Tensor, owners: Tensor, places: Tensor) -> Tensor:
        states = layers[0] if self.mix is None else self.mix(layers)  # (B, T, C)
        if self.pieces == "mean":
            states = mean_by_word(states, owners, places.size(1))
        else:
            states = states.gather(1, places[:, :, None].expand(-1, -1, states.size(2)))
        scores: Tensor = self.output(self.dropout(states))
        return scores

    def loss(self, scores: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """Of tags (B, W), of which each row has so many."""
        if self.crf is not None:
            return self.crf.loss(scores, tags, lengths)
        inside = torch.arange(tags.size(1), device=tags.device) < lengths[:, None]
        return nn.functional.cross_entropy(scores[inside], tags[inside])


def mean_by_word(states: Tensor, owners: Tensor, words: int) -> Tensor:
    """The mean state (B, W, C) of the pieces of each word; ``owners`` (B, T) are from 1 on."""
    batch, _, width = states.shape
    sums = states.new_zeros(batch, words + 1, width)
    sums.scatter_add_(1, owners[:, :, None].expand_as(states), states)
    counts = states.new_zeros(batch, words + 1)
    counts.scatter_add_(1, owners, torch.ones_like(owners, dtype=states.dtype))
    return (sums / counts.clamp_min(1)[:, :, None])[:, 1:]


class PretrainedTagger(Tagger):
    """A ``Tagger`` whose scores come from an encoder."""

    settings: TagTuning  # type: ignore[assignment]

    def __init__(
        self,
        network: TagNetwork,
        settings: TagTuning,
        words: VocabCodec,
        tags: Vocab,
        *,
        scheme: Scheme | None,
        layout: Layout,
        config: modeldir.ModelConfig | None = None,
    ) -> None:
        self.network, self.settings, self.tags = network, settings, tags
        self.codec = words  # to know which words training had
        self.scheme, self.layout = scheme, layout
        self.config = config or modeldir.ModelConfig(kind=TAGGER, settings=self.describe())
        size = len(tags) + 1
        crf = network.head.crf
        pairs = np.zeros((size, size)) if crf is None else crf.scores.detach().cpu().numpy()
        if scheme is not None:
            pairs = np.where(
                np.array(legal_transitions(tags.tokens, INNER_SCHEME)), pairs, FORBIDDEN
            )
        self.pairs = pairs.astype(np.float32)
        self.is_chain = scheme is not None or crf is not None

    def __repr__(self) -> str:
        return f"<PretrainedTagger: {self.network.encoder.kind}, {len(self.tags)} tags>"

    def describe(self) -> dict[str, Any]:
        """What ``config.json`` must say of the model."""
        given = {name: value for name, value in asdict(self.settings).items() if value is not None}
        mix = self.network.head.mix
        shown = {} if mix is None else {"mix": {"layers": mix.shares, "gamma": mix.gamma.item()}}
        return {**given, **shown, "encoder": self.network.encoder.describe()}

    def _batches(
        self, sentences: Sequence[Sequence[str]]
    ) -> Iterator[tuple[list[int], Floats, Ids]]:
        """One sentence at a time, whole: its number, scores (1, T, K) and length."""
        for start in range(0, len(sentences), SENTENCES_AT_ONCE):
            part = sentences[start : start + SENTENCES_AT_ONCE]
            self.network.encoder.forget()
            for place, scores in enumerate(self._emissions(part)):
                if len(scores):
                    yield [start + place], scores[None], np.array([len(scores)])

    def _emissions(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """The scores of all words of some sentences, from the windows they are read in."""
        encoder = self.network.encoder
        windows: list[tuple[int, int, int]] = []  # sentence, first word, end
        for number, words in enumerate(sentences):
            if not words:
                continue
            stretches = [(0, len(words))]
            if encoder.room is not None:
                room = encoder.room - encoder.before - encoder.behind
                stretches = word_windows(encoder.encode_words(words)[1], room)
            windows += [(number, a, b) for a, b in stretches]
        readings = [read_words(encoder, sentences[n][a:b]) for n, a, b in windows]
        scores = self._score_readings(readings)
        found = [np.zeros((len(words), len(self.tags)), np.float32) for words in sentences]
        depth = [np.full(len(words), -1) for words in sentences]
        for (number, start, end), row in zip(windows, scores, strict=True):
            inside = np.arange(end - start)
            # an edge of the sentence is none of the window's making
            left = inside + (len(sentences[number]) if start == 0 else 0)
            right = inside[::-1] + (len(sentences[number]) if end == len(sentences[number]) else 0)
            far = np.minimum(left, right)
            better = far > depth[number][start:end]
            found[number][start:end][better] = row[better]
            depth[number][start:end][better] = far[better]
        return found

    @torch.inference_mode()
    def _score_readings(self, readings: Sequence[WordReading]) -> list[Floats]:
        network = self.network.eval()
        device = network.head.output.weight.device
        columns = [
            Ragged([one.reading.ids for one in readings]),
            Ragged([one.reading.segments for one in readings]),
            Ragged([one.owners for one in readings]),
            Ragged([one.places for one in readings]),
        ]
        found: dict[int, Floats] = {}
        for rows in plan(columns[0].lengths, BATCH_TOKENS):
            idx, mask = columns[0].pad(rows, network.encoder.pad_id).tensors(device)
            segments, owners, places = (c.pad(rows).tensors(device)[0] for c in columns[1:])
            scores = network.head(network.encoder(idx, segments, mask), owners, places)
            for row, one in zip(rows.tolist(), scores.float().cpu().numpy(), strict=True):
                found[row] = one[: len(readings[row].places)]
        return [found[row] for row in range(len(readings))]

    # --- files ----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Everything but config.json into a folder that ``modeldir.create`` gave."""
        self.network.encoder.write(folder)
        save_codec(self.codec, folder)
        self.tags.save(str(folder / TAGS))
        about = {"scheme": self.scheme, "layout": asdict(self.layout), "version": VERSION}
        modeldir.write_text(folder / LAYOUT, json.dumps(about, indent=2) + "\n")
        modeldir.write_weights(folder, self.network.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PretrainedTagger:
        """A tagger from its folder."""
        config = modeldir.load_config(path, kind=TAGGER)
        folder = Path(path)
        values = dict(config.settings)
        described = values.pop("encoder", None)
        values.pop("mix", None)  # shown by ``info``, and among the weights
        settings = schema.read(TagTuning, values, f"{folder / modeldir.CONFIG}: settings")
        about = schema.read(About, modeldir.read_json(folder / LAYOUT), str(folder / LAYOUT))
        tags = Vocab.load(str(folder / TAGS))
        tensors = modeldir.read_weights(path)
        own = {n: tensors.pop(n) for n in list(tensors) if n.startswith("head.")}
        inner = {name.removeprefix("encoder."): tensor for name, tensor in tensors.items()}
        encoder = read_encoder(folder, described, inner)
        network = TagNetwork(encoder, settings, len(tags), None)
        expected = {
            f"head.{name}": tuple(part.shape) for name, part in network.head.state_dict().items()
        }
        schema.check_tensors(own, expected, str(folder / modeldir.WEIGHTS))
        network.load_state_dict(own, strict=False)
        words = VocabCodec.read(folder / WORDS)
        return cls(
            network.eval(),
            settings,
            words,
            tags,
            scheme=about.scheme,
            layout=about.layout,
            config=config,
        )
