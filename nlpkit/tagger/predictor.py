"""A trained tagger at work, in numpy alone: words in, tags out, in the order they came.

Sentences are put into batches by length, distinct words are worked out once and remembered, and
nothing a batch holds changes what a sentence gets. A sentence longer than ``LONGEST`` tokens is cut
into pieces that are tagged apart, so that memory stays bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nlpkit import modeldir
from nlpkit.conll import Layout
from nlpkit.errors import NlpkitError
from nlpkit.nn.decoding import PathProbabilities, best_paths, left_to_right_paths
from nlpkit.nn.inference import Floats, Ids, NumpyEncoder, Weights, read_arrays, under
from nlpkit.tagger.batches import cut_long
from nlpkit.tagger.clues import CluePlaces
from nlpkit.tagger.features import Lexicon
from nlpkit.tagger.schemes import Scheme, Span, convert, legal_transitions, read_spans
from nlpkit.tagger.settings import TaggerSettings
from nlpkit.tagger.words import NumpyWords
from nlpkit.vocab import Vocab

KIND = "tagger"
VERSION = 3  # of what weights mean: how words are hashed into clues, what is done with features
INNER_SCHEME: Scheme = "BIOES"  # what the model learns, whatever scheme the data has
FORBIDDEN = -1e4  # finite: where no legal path exists, the least bad one is found
WORDS, CHARACTERS, TAGS, VECTOR_WORDS, LAYOUT = (
    "words.tsv",
    "characters.tsv",
    "tags.tsv",
    "vector-words.txt",
    "layout.json",
)
BATCH_TOKENS = 8192
BATCH_ROWS = 128
ATTENTION_CELLS = 1 << 21  # of a transformer's (B, T, T)


class Entity(NamedTuple):
    """An entity that was found, with the probability the model gives to just this span."""

    span: Span
    probability: float


class Tagger:
    """Vocabularies, weights and what is needed to read and write the tags of the data."""

    def __init__(
        self,
        settings: TaggerSettings,
        lexicon: Lexicon,
        tags: Vocab,
        weights: Weights,
        *,
        scheme: Scheme | None,
        layout: Layout,
    ) -> None:
        self.settings, self.lexicon, self.tags = settings, lexicon, tags
        self.scheme, self.layout = scheme, layout
        self.encoder = NumpyEncoder(
            settings.encoder, under("encoder.", weights), one_way=settings.one_way
        )
        self.words = NumpyWords(
            settings,
            lexicon,
            under("words.", weights),
            under("clues.", weights),
            self.encoder.first,
        )
        self.output, self.bias = weights["output.weight"].T, weights["output.bias"]
        sizes = {"words": (len(lexicon.words), len(weights["words.word.weight"]))}
        sizes["tags"] = (len(tags), len(self.bias))
        self.places = CluePlaces.of(settings.one_way).in_order if settings.clues == "yes" else ()
        sizes["clues"] = (len(self.places) * len(tags), self.words.clue_width)
        if "words.vectors" in weights:
            sizes["vectors"] = (len(lexicon.vector_words) + 1, len(weights["words.vectors"]))
        for name, (listed, trained) in sizes.items():
            if listed != trained:
                raise ValueError(f"{listed} {name} are listed and {trained} have weights")
        size = len(tags) + 1
        pairs = weights["crf.scores"] if "crf.scores" in weights else np.zeros((size, size))
        if scheme is not None:
            legal = np.array(legal_transitions(tags.tokens, INNER_SCHEME))
            pairs = np.where(legal, pairs, FORBIDDEN)
        self.pairs: Floats = pairs.astype(np.float32)
        self.is_chain = scheme is not None or "crf.scores" in weights

    # --- tagging --------------------------------------------------------------------------------

    def scores(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """The scores (T, K) of the tags of each sentence, before tags are chosen."""
        found: list[list[Floats]] = [[] for _ in sentences]
        for places, scores, lengths in self._batches(sentences):
            for place, row, length in zip(places, scores, lengths, strict=True):
                found[place].append(row[:length])
        empty = np.zeros((0, len(self.tags)), np.float32)
        return [np.concatenate(pieces) if pieces else empty for pieces in found]

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of each sentence, in the scheme of the training data."""
        names = self.tags.tokens
        found: list[list[str]] = [[] for _ in sentences]
        for places, scores, lengths in self._batches(sentences):
            paths = self._paths(scores, lengths)
            for place, path, length in zip(places, paths.tolist(), lengths, strict=True):
                found[place] += [names[index] for index in path[:length]]
        return [self.outer(tags) for tags in found]

    def outer(self, tags: list[str]) -> list[str]:
        """Tags as the data writes them."""
        return tags if self.scheme is None else convert(tags, self.scheme)

    def probabilities(self, scores: Floats) -> tuple[list[str], list[float], list[Entity]]:
        """From one sentence's scores (T, K): tags, the probability of each, and the entities."""
        names = self.tags.tokens
        tags: list[str] = []
        each: list[float] = []
        entities: list[Entity] = []
        for piece in cut_long(len(scores)):
            part = scores[piece]
            # each token by itself when nothing behind it may be looked at
            pairs = np.zeros_like(self.pairs) if self.settings.one_way else self.pairs
            chain = PathProbabilities(part, pairs)
            path = self._paths(part[None], np.array([len(part)]))[0].tolist()
            inner = [names[index] for index in path]
            if self.scheme is not None:
                for span in read_spans(inner):
                    probability = chain.of(span.start, path[span.start : span.end])
                    moved = Span(span.start + len(tags), span.end + len(tags), span.type)
                    entities.append(Entity(moved, probability))
            each += [chain.of(index, [tag]) for index, tag in enumerate(path)]
            tags += inner
        return self.outer(tags), each, entities

    def _paths(self, scores: Floats, lengths: Ids) -> Ids:
        if not self.is_chain:
            return scores.argmax(axis=2)
        if self.settings.one_way:
            return left_to_right_paths(scores, self.pairs)
        return best_paths(scores, self.pairs, lengths)

    def _batches(
        self, sentences: Sequence[Sequence[str]]
    ) -> Iterator[tuple[list[int], Floats, Ids]]:
        """Batches longest first: sentence numbers, scores (B, T, K), lengths."""
        pieces = [
            (place, piece)
            for place, sentence in enumerate(sentences)
            for piece in cut_long(len(sentence))
        ]
        # stable, and pieces of one sentence are no shorter at the front: their order stays
        pieces.sort(key=lambda item: item[1].start - item[1].stop)
        start = 0
        while start < len(pieces):
            longest = pieces[start][1].stop - pieces[start][1].start
            size = min(BATCH_ROWS, max(1, BATCH_TOKENS // longest))
            if self.settings.encoder == "transformer":
                size = min(size, max(1, ATTENTION_CELLS // longest**2))
            batch = pieces[start : start + size]
            start += size
            lengths = np.array([piece.stop - piece.start for _, piece in batch])
            rows = [sentences[place][piece] for place, piece in batch]
            yield [place for place, _ in batch], self._score(rows, lengths), lengths

    def _score(self, rows: Sequence[Sequence[str]], lengths: Ids) -> Floats:
        ids = self.words.look_up([word for row in rows for word in row])
        inside = np.arange(lengths[0]) < lengths[:, None]
        positions = np.zeros(inside.shape, np.int64)
        positions[inside] = ids
        encoded = self.encoder(self.words.first, positions, lengths)
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

    # --- files ----------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str) -> Tagger:
        """A tagger from its folder."""
        config = modeldir.load_config(path, kind=KIND)
        folder = Path(path)
        weights = read_arrays(folder)
        try:
            settings = TaggerSettings(**config.settings)
            about = json.loads((folder / LAYOUT).read_text(encoding="utf-8"))
            if about.get("version") != VERSION:
                raise NlpkitError(
                    f"{path} looks at words in the way of another version of nlpkit",
                    hint="train it again",
                )
            vector_words = folder / VECTOR_WORDS
            known = (
                vector_words.read_text(encoding="utf-8").split("\n")[:-1]
                if (vector_words.exists())
                else []
            )
            lexicon = Lexicon(
                Vocab.load(str(folder / WORDS)),
                Vocab.load(str(folder / CHARACTERS)),
                known,
                affixes=settings.affixes == "yes",
            )
            return cls(
                settings,
                lexicon,
                Vocab.load(str(folder / TAGS)),
                weights,
                scheme=about["scheme"],
                layout=Layout(**about["layout"]),
            )
        except (KeyError, TypeError, ValueError, IndexError, OSError) as error:
            raise NlpkitError(
                f"{path} is damaged: {error!r}", hint="train or copy the model again"
            ) from None

    def write(self, folder: Path, tensors: Mapping[str, Any]) -> None:
        """Everything but config.json into a folder that ``modeldir.create`` gave."""
        self.lexicon.words.save(str(folder / WORDS))
        self.lexicon.characters.save(str(folder / CHARACTERS))
        self.tags.save(str(folder / TAGS))
        if self.lexicon.vector_words:
            lines = "".join(word + "\n" for word in self.lexicon.vector_words)
            (folder / VECTOR_WORDS).write_text(lines, encoding="utf-8", newline="\n")
        layout = asdict(self.layout)
        about = {"scheme": self.scheme, "layout": layout, "version": VERSION}
        (folder / LAYOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        modeldir.write_weights(folder, tensors)
