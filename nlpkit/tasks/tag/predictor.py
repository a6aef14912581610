"""A trained tagger at work, in numpy alone: words in, tags out, in the order they came.

Sentences are put into batches by length, distinct words are worked out once and remembered, and
nothing a batch holds changes what a sentence gets. A sentence longer than ``LONGEST`` tokens is cut
into chunks that are tagged apart, so that memory stays bounded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.nn.decoding import PathProbabilities, best_paths, left_to_right_paths
from nlpkit.nn.inference import (
    Floats,
    Ids,
    NumpyEncoder,
    Weights,
    read_arrays,
    under,
    write_arrays,
)
from nlpkit.registry import TAGGER
from nlpkit.tasks.tag.batches import LONGEST, cut_long
from nlpkit.tasks.tag.features import LINEAR, FeatureExtractor
from nlpkit.tasks.tag.hashed_features import FeaturePlaces
from nlpkit.tasks.tag.settings import ResolvedTagger
from nlpkit.tasks.tag.weights import check_weights
from nlpkit.tasks.tag.words import NumpyWords
from nlpkit.text.conll import Layout
from nlpkit.text.schemes import (
    EntitySpan,
    Scheme,
    convert,
    is_entity_tag,
    legal_transitions,
    read_spans,
)
from nlpkit.text.vocab import Vocab

VERSION = 3  # of what weights mean: how words are hashed into features, what is done with features
INNER_SCHEME: Scheme = "BIOES"  # what the model learns, whatever scheme the data has
FORBIDDEN = -1e4  # finite: where no legal path exists, the least bad one is found
TAGS, LAYOUT = "tags.tsv", "layout.json"
BATCH_ROWS = 128
ATTENTION_CELLS = 1 << 21  # of a transformer's (B, T, T)

AnyTagger = TypeVar("AnyTagger", bound="Tagger")


class Entity(NamedTuple):
    """An entity that was found, with the probability the model gives to just this span."""

    span: EntitySpan
    probability: float


@dataclass(frozen=True)
class About:
    """What ``layout.json`` holds."""

    scheme: Scheme | None
    layout: Layout
    version: int


class Tagger(modeldir.Model):
    """Vocabularies, weights and what is needed to read and write the tags of the data.

    >>> tagger = Tagger.load("pos.model")  # doctest: +SKIP
    >>> tagger.tag(["Time", "flies"])  # doctest: +SKIP
    ['NOUN', 'VERB']
    """

    longest = LONGEST  # tokens that are looked at together
    batch_tokens = 8192
    is_quadratic = False  # whether memory grows with the square of a sentence's length
    state_size = 0  # of states that stand beside the features of words

    def __init__(
        self,
        settings: ResolvedTagger,
        extractor: FeatureExtractor,
        tags: Vocab,
        weights: Weights,
        *,
        scheme: Scheme | None,
        layout: Layout,
        config: modeldir.ModelConfig | None = None,
    ) -> None:
        self.settings, self.extractor, self.tags = settings, extractor, tags
        self.codec = extractor.words
        self.config = config or modeldir.ModelConfig(kind=TAGGER, settings=self.describe())
        self.weights = weights
        self.scheme, self.layout = scheme, layout
        self.is_quadratic = settings.encoder == "transformer"
        encoder = settings.encoder_config(weights["words.mix.bias"].size + self.state_size)
        self.encoder = NumpyEncoder(encoder, under("encoder.", weights))
        self.words = NumpyWords(
            settings,
            extractor,
            under("words.", weights),
            under(LINEAR, weights),
            self._enter,
        )
        self.output, self.bias = weights["output.weight"].T, weights["output.bias"]
        self.places = (
            FeaturePlaces.of(settings.causal).in_order if settings.linear_features == "yes" else ()
        )
        self._set_pairs(weights.get("crf.scores"))

    def __repr__(self) -> str:
        tags = f"{len(self.tags)} tags" + (f", {self.scheme} entities" if self.scheme else "")
        return f"<Tagger: {self.settings.encoder}, {tags}, {len(self.codec):,} words>"

    def describe(self) -> dict[str, Any]:
        """What ``config.json`` must say of the model."""
        return asdict(self.settings)

    def _set_pairs(self, scores: Floats | None) -> None:
        """Scores of tag pairs, those of a CRF or none, without the pairs that a scheme forbids."""
        size = len(self.tags) + 1
        pairs = np.zeros((size, size)) if scores is None else scores
        if self.scheme is not None:
            legal = np.array(legal_transitions(self.tags.tokens, INNER_SCHEME))
            pairs = np.where(legal, pairs, FORBIDDEN)
        self.pairs: Floats = pairs.astype(np.float32)
        self.is_chain = self.scheme is not None or scores is not None

    # --- tagging --------------------------------------------------------------------------------

    def scores(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """The scores (T, K) of the tags of each sentence, before tags are chosen."""
        found: list[list[Floats]] = [[] for _ in sentences]
        for places, scores, lengths in self._batches(sentences):
            for place, row, length in zip(places, scores, lengths, strict=True):
                found[place].append(row[:length])
        empty = np.zeros((0, len(self.tags)), np.float32)
        return [np.concatenate(chunks) if chunks else empty for chunks in found]

    def tag(self, tokens: Sequence[str]) -> list[str]:
        """The tags of one sentence, in the scheme of the training data."""
        if isinstance(tokens, str):
            raise TypeError("tokens are a list of words, not text: tokenize it first")
        if not all(isinstance(token, str) for token in tokens):
            raise TypeError("tokens are words: tag_sentences takes a list of sentences")
        return self.tag_sentences([tokens])[0]

    def tag_sentences(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of each sentence; many together are tagged faster than one by one."""
        if isinstance(sentences, str) or any(isinstance(one, str) for one in sentences):
            raise TypeError("each sentence is a list of words, not text: tokenize it first")
        names = self.tags.tokens
        found: list[list[str]] = [[] for _ in sentences]
        for places, scores, lengths in self._batches(sentences):
            paths = self._paths(scores, lengths)
            for place, path, length in zip(places, paths.tolist(), lengths, strict=True):
                found[place] += [names[index] for index in path[:length]]
        return [self.outer(tags) for tags in found]

    def analyse(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """For each raw text a record: tokens, tags, probabilities, and entities with their places.

        A text is one sentence, as a line of the command line's input is.
        """
        from nlpkit.tasks.tag.raw import analyse, tokenize_text

        if isinstance(texts, str):
            raise TypeError("texts are a list of texts, not one text")
        return list(analyse(self, tokenize_text(texts, self.settings.unit)))

    def outer(self, tags: list[str]) -> list[str]:
        """Tags as the data writes them."""
        return tags if self.scheme is None else convert(tags, self.scheme)

    def probabilities(self, scores: Floats) -> tuple[list[str], list[float], list[Entity]]:
        """From one sentence's scores (T, K): tags, the probability of each, and the entities."""
        names = self.tags.tokens
        tags: list[str] = []
        each: list[float] = []
        entities: list[Entity] = []
        for chunk in cut_long(len(scores)):
            part = scores[chunk]
            # each token by itself when nothing behind it may be looked at
            pairs = np.zeros_like(self.pairs) if self.settings.causal else self.pairs
            chain = PathProbabilities(part, pairs)
            path = self._paths(part[None], np.array([len(part)]))[0].tolist()
            inner = [names[index] for index in path]
            if self.scheme is not None:
                for span in read_spans(inner):
                    probability = chain.of(span.start, path[span.start : span.end])
                    moved = EntitySpan(span.start + len(tags), span.end + len(tags), span.type)
                    entities.append(Entity(moved, probability))
            each += [chain.of(index, [tag]) for index, tag in enumerate(path)]
            tags += inner
        return self.outer(tags), each, entities

    def _paths(self, scores: Floats, lengths: Ids) -> Ids:
        if not self.is_chain:
            return scores.argmax(axis=2)
        if self.settings.causal:
            return left_to_right_paths(scores, self.pairs)
        return best_paths(scores, self.pairs, lengths)

    def _batches(
        self, sentences: Sequence[Sequence[str]]
    ) -> Iterator[tuple[list[int], Floats, Ids]]:
        """Batches longest first: sentence numbers, scores (B, T, K), lengths."""
        chunks = [
            (place, chunk)
            for place, sentence in enumerate(sentences)
            for chunk in cut_long(len(sentence), self.longest)
        ]
        # stable, and chunks of one sentence are no shorter at the front: their order stays
        chunks.sort(key=lambda item: item[1].start - item[1].stop)
        start = 0
        while start < len(chunks):
            longest = chunks[start][1].stop - chunks[start][1].start
            size = min(BATCH_ROWS, max(1, self.batch_tokens // longest))
            if self.is_quadratic:
                size = min(size, max(1, ATTENTION_CELLS // longest**2))
            batch = chunks[start : start + size]
            start += size
            lengths = np.array([chunk.stop - chunk.start for _, chunk in batch])
            rows = [sentences[place][chunk] for place, chunk in batch]
            yield [place for place, _ in batch], self._score(rows, lengths), lengths

    def _score(self, rows: Sequence[Sequence[str]], lengths: Ids) -> Floats:
        ids = self.words.look_up([word for row in rows for word in row])
        inside = np.arange(lengths[0]) < lengths[:, None]
        positions = np.zeros(inside.shape, np.int64)
        positions[inside] = ids
        encoded = self.encoder(*self._inputs(rows, positions), lengths)
        flat = encoded.reshape(positions.size, -1) @ self.output + self.bias
        scores: Floats = flat.reshape(*positions.shape, -1)
        if self.places:
            said = self.words.said[positions].reshape(*positions.shape, len(self.places), -1)
        for index, place in enumerate(self.places):
            # what the words at this distance say, moved to where they say it of
            if place < 0:
                scores[:, -place:] += said[:, :place, index]
            else:
                scores[:, : scores.shape[1] - place] += said[:, place:, index]
        return scores

    def _enter(self, words: Floats) -> Floats:
        """What the first layer of the encoder makes of words (U, C) by themselves."""
        return self.encoder.first(np.pad(words, ((0, 0), (0, self.state_size))))

    def _inputs(self, rows: Sequence[Sequence[str]], positions: Ids) -> tuple[Floats, Ids]:
        """Rows for the encoder, and which of them stands where (B, T)."""
        return self.words.first, positions

    # --- files ----------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tagger:
        """A tagger from its folder."""
        path = modeldir.find_model(path)
        config = modeldir.load_config(path, kind=TAGGER)
        if "encoder" in config.settings and isinstance(config.settings["encoder"], dict):
            from nlpkit.tasks.tag.pretrained import PretrainedTagger

            return PretrainedTagger.load(path)
        if "states" in config.settings:
            from nlpkit.tasks.tag.pretrained import StatesTagger

            return StatesTagger.load(path)
        return cls._read(Path(path), config, config.settings, read_arrays(Path(path)))

    @classmethod
    def _read(
        cls: type[AnyTagger],
        folder: Path,
        config: modeldir.ModelConfig,
        values: dict[str, Any],
        weights: Weights,
        **given: Any,
    ) -> AnyTagger:
        """A tagger of these settings and weights, with what else its folder has."""
        where = f"{folder / modeldir.CONFIG}: settings"
        settings = schema.read(ResolvedTagger, values, where)
        raw = modeldir.read_json(folder / LAYOUT)
        if not isinstance(raw, dict) or raw.get("version") != VERSION:
            raise NlpkitError(
                f"{folder} looks at words in the way of another version of nlpkit",
                hint="train it again",
            )
        about = schema.read(About, raw, str(folder / LAYOUT))
        extractor = FeatureExtractor.read(folder, affixes=settings.affixes == "yes")
        tags = Vocab.load(str(folder / TAGS))
        if about.scheme is not None and not all(map(is_entity_tag, tags)):
            schema.refuse(f"{folder / LAYOUT}: scheme", about.scheme, f"null, by {TAGS}")
        states: Any = given.get("states")
        check_weights(
            weights,
            settings,
            extractor,
            len(tags),
            str(folder / modeldir.WEIGHTS),
            *(() if states is None else (states.size, states.encoder.layers)),
        )
        return cls(
            settings,
            extractor,
            tags,
            weights,
            scheme=about.scheme,
            layout=about.layout,
            config=config,
            **given,
        )

    def write(self, folder: Path) -> None:
        """Everything but config.json into a folder that ``modeldir.create`` gave."""
        self.extractor.write(folder)
        self._write_tags(folder)
        write_arrays(folder, self.weights)

    def _write_tags(self, folder: Path) -> None:
        self.tags.save(str(folder / TAGS))
        about = {"scheme": self.scheme, "layout": asdict(self.layout), "version": VERSION}
        modeldir.write_text(folder / LAYOUT, json.dumps(about, indent=2) + "\n")
