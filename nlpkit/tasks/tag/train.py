"""Training a tagger: sentences in, progress records out, a model folder in the end."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from nlpkit import modeldir
from nlpkit.device import check_training_memory, seeded
from nlpkit.errors import NlpkitError, UsageError, plural, with_article
from nlpkit.metrics.spans import score_tags
from nlpkit.models.finetune import PretrainedEncoder
from nlpkit.models.finetune_rates import layer_rates, parse_freeze
from nlpkit.models.finetune_words import WordColumns, WordStates
from nlpkit.nn.optimizers import AdamW
from nlpkit.nn.sparse import SparseAdagrad
from nlpkit.registry import TAGGER
from nlpkit.tasks.tag.batches import TaggedData, cut_long, cut_tagged
from nlpkit.tasks.tag.check import find_illegal
from nlpkit.tasks.tag.features import MIX, FeatureExtractor
from nlpkit.tasks.tag.hashed_features import Ids
from nlpkit.tasks.tag.model import TaggerModel
from nlpkit.tasks.tag.predictor import INNER_SCHEME, Tagger
from nlpkit.tasks.tag.pretrained import StatesTagger, fitting
from nlpkit.tasks.tag.settings import TaggerSettings
from nlpkit.text.conll import Layout, Sentence
from nlpkit.text.schemes import Scheme, convert, detect_scheme, legal_transitions, tag_parts
from nlpkit.text.vocab import Vocab
from nlpkit.training.batches import Batches
from nlpkit.training.loop import Trainer
from nlpkit.training.run import Run
from nlpkit.vectors import formats
from nlpkit.vectors.store import Vectors

LINEAR_LR = 0.1
# Scores of features are kept small, as in a linear CRF with a penalty beside the sum of all losses:
# it weighs most against what is rare. A row pays its share whenever a batch looks at it.
LINEAR_PENALTY = 0.2
TABLE_RATE = 10.0  # how much faster embeddings are learned, to begin with: Adagrad slows down


@dataclass(frozen=True)
class TrainingData:
    """Tagged sentences and how their file is laid out."""

    sentences: Sequence[Sentence]
    layout: Layout
    scheme: Scheme | None

    @classmethod
    def of(cls, sentences: Sequence[Sentence], layout: Layout) -> TrainingData:
        """Look at the tags: at least one sentence, a tag for every token, one scheme."""
        filled = [sentence for sentence in sentences if sentence.tokens]
        if not filled:
            raise NlpkitError("no tagged sentence to train on", hint="a file with tokens in it")
        for sentence in filled:
            if len(sentence.tags) != len(sentence.tokens):
                raise NlpkitError(
                    f"{sentence.where(0)}: tokens without tags", hint="`tag_column`, or other data"
                )
        names = {tag for sentence in filled for tag in sentence.tags}
        if names == {"_"}:
            raise NlpkitError(
                f"{filled[0].source} has no tags: the column holds _ everywhere",
                hint="another `column` or `tag_column`",
            )
        return cls(filled, layout, detect_scheme(sentence.tags for sentence in filled))

    def warnings(self, shown: int = 5) -> list[str]:
        """What is odd about the tags: the first illegal sequences, or one tag everywhere."""
        found = find_illegal(self.sentences, self.scheme)
        rest = len(found) - shown
        lines = found[:shown]
        if rest > 0:
            lines.append(f"and {rest:,} more like these: nlpkit tag check")
        if len({tag for sentence in self.sentences for tag in sentence.tags}) == 1:
            lines.append("the data has one tag only: every word will get it")
        return lines


class AnyTaggerRun(Run):
    """What trainings of taggers have in common, from scratch or on an encoder."""

    trainer: Trainer
    data: TrainingData
    dev: Sequence[Sentence]
    settings: Any
    tags: Vocab

    def tagger(self) -> Any:
        """The model as it is now, ready to predict."""
        raise NotImplementedError

    def _inner(self, tags: Sequence[str]) -> list[str]:
        return list(tags) if self.data.scheme is None else convert(tags, INNER_SCHEME)

    def _error(self) -> float:
        """What is wrong on the held-out sentences: 1 - F1 of entities, 1 - accuracy of tags."""
        predicted = self.tagger().tag_sentences([sentence.tokens for sentence in self.dev])
        scores = score_tags([sentence.tags for sentence in self.dev], predicted)
        return 1 - (scores.accuracy if scores.entities is None else scores.entities.f1)

    def result(self) -> Any:
        """The trained model, with the best weights when there were held-out sentences."""
        tagger = self.tagger()
        metrics: dict[str, float] = {"tags": len(self.tags), "words": len(tagger.codec)}
        best = self.trainer.counters.best_loss
        if best is not None:
            metrics["dev_f1" if self.data.scheme else "dev_accuracy"] = 1 - best
        tagger.config = self.model_config(TAGGER, tagger.describe(), metrics)
        return tagger

    def data_hash(self) -> str:
        """A fingerprint of the training sentences."""
        return hash_sentences(self.data.sentences)

    def common_settings(self) -> dict[str, Any]:
        """What a run that goes on with this one's checkpoint must have in common with it."""
        layout = {f"layout {name}": value for name, value in asdict(self.data.layout).items()}
        return {**asdict(self.settings), **layout, "held-out data": hash_sentences(self.dev)}


class TaggerRun(AnyTaggerRun):
    """One training of a tagger.

    >>> run = TaggerRun(data, TaggerSettings())  # doctest: +SKIP
    >>> run.train("pos.model")  # doctest: +SKIP
    """

    def __init__(
        self,
        data: TrainingData,
        settings: TaggerSettings,
        *,
        dev: Sequence[Sentence] = (),
        vectors: Vectors | str | os.PathLike[str] | None = None,
        states: WordStates | None = None,
        device: torch.device | None = None,
    ) -> None:
        """``states`` of a pre-trained encoder, frozen or not, stand beside the features."""
        if settings.fine_tune and vectors is None:
            raise UsageError("`fine_tune` needs `vectors`")
        self.vectors = os.fspath(vectors) if isinstance(vectors, str | os.PathLike) else None
        self.data, self.dev = data, [s for s in dev if s.tokens]
        frozen = 0 if states is None else parse_freeze(settings.freeze, states.encoder)
        self._encoder_groups: list[dict[str, Any]] = []
        if states is not None and frozen < len(states.encoder.stages()):
            self._encoder_groups = self._tune(states.encoder, settings, frozen)
        self._tuned = bool(self._encoder_groups)
        self.settings = settings.resolve(
            entities=data.scheme is not None,
            tokens=sum(len(sentence.tokens) for sentence in data.sentences),
            tags=len({tag for sentence in data.sentences for tag in sentence.tags}),
            pairs=data.layout.format == "pairs",
            tuned=self._tuned,
        )
        self.device = device or torch.device("cpu")
        read_by = states.encoder if states is not None and self._tuned else None
        tokens, tag_rows = self._chunks(read_by)
        counts = Counter(tag for row in tag_rows for tag in row)
        self.tags = Vocab.from_counts(with_companions(counts, data.scheme), specials=())
        words, table = formats.given_table(vectors)
        self.extractor = FeatureExtractor.build(
            (word for row in tokens for word in row),
            words,
            affixes=self.settings.affixes == "yes",
        )
        self._arrays = TaggedData(
            tokens, [self.tags.encode(row) for row in tag_rows], self.extractor
        )
        self._batches = Batches(
            self._arrays.tokens, tokens=self.settings.batch_tokens, seed=settings.seed
        )
        self._check_memory()
        with seeded(settings.seed, 0, self.device):
            self.model = TaggerModel(
                self.settings,
                self.extractor,
                len(self.tags),
                self._arrays.features.hashes,
                self._arrays.counts,
                table,
                *self._structure(),
                0 if states is None else states.size,
                None if states is None else states.mix,
            ).to(self.device)
        self.states = None if states is None else states.to(self.device).eval()
        self._layers = self._readings = None
        if self.states is not None and self._tuned:
            self._readings = WordColumns([self.states.read(row) for row in tokens])
        elif self.states is not None:
            with torch.no_grad():
                self._layers = self.states.read_layers(tokens)
        self.summary = self._summary(frozen)
        self._arrays.features = self.model.prepared(self._arrays.features)
        trained: nn.Module = self.model
        if self.states is not None and self._tuned:
            trained = nn.ModuleList([self.model, self.states.encoder])
        self.trainer = Trainer(
            trained,
            self._optimizers(),
            self._loss,
            self.settings.loop(
                self._batches.per_epoch * self.settings.epochs,
                eval_interval=self._batches.per_epoch,
            ),
            evaluate=self._error if self.dev else None,
        )

    def _structure(self) -> tuple[Any, Any]:
        """Which tags may follow each other, and what they are made of: of entities only."""
        if self.data.scheme is None:
            return None, None
        return legal_transitions(self.tags.tokens, INNER_SCHEME), tag_parts(self.tags.tokens)

    def _summary(self, frozen: int) -> str:
        parts = [
            plural(len(self.data.sentences), "sentence"),
            plural(len(self.extractor.words), "word"),
            f"{len(self.tags):,} tags",
        ]
        if self.data.scheme is not None:
            parts[-1] += f", {self.data.scheme} entities"
        if self.states is not None:
            encoder = self.states.encoder
            stages = len(encoder.stages())
            parts[-1] += (
                f"; beside {with_article(encoder.kind)}, {frozen} of {stages} stages frozen"
            )
        return ", ".join(parts)

    def _optimizers(self) -> list[torch.optim.Optimizer]:
        """AdamW for all but tables, of which only the rows in a batch are looked at."""
        lr, batch = self.settings.lr, self.settings.batch_tokens
        tables = self.model.tokens.words.tables()
        linear = self.model.linear
        by_feature = [] if linear is None else [linear.near, linear.far]
        by_row = {id(table) for table in (*tables, *(part.table.weight for part in by_feature))}
        others = [p for p in self.model.parameters() if id(p) not in by_row]
        groups = [{"params": others}, *self._encoder_groups]
        return [
            AdamW(groups, lr=lr, weight_decay=self.settings.weight_decay, fused=True),
            SparseAdagrad(tables, lr * TABLE_RATE),
            *(
                SparseAdagrad([part.table.weight], LINEAR_LR, LINEAR_PENALTY / batch / part.counts)
                for part in by_feature
            ),
        ]

    def _tune(
        self, encoder: PretrainedEncoder, settings: TaggerSettings, frozen: int
    ) -> list[dict[str, Any]]:
        """Make an encoder ready to be trained: its groups of parameters, for AdamW."""
        if frozen == 0:
            encoder.learn_words(word for one in self.data.sentences for word in one.tokens)
        return layer_rates(
            encoder,
            None,
            frozen=frozen,
            lr=settings.encoder_rate(encoder.size),
            decay=settings.layer_decay,
            weight_decay=settings.weight_decay,
        )

    def _chunks(
        self, encoder: PretrainedEncoder | None
    ) -> tuple[list[Sequence[str]], list[list[str]]]:
        """Tokens and tags of sentences, long ones in chunks that the encoder can read."""
        # cut before conversion: half an entity is no legal sequence of the inner scheme
        chunks = [
            (sentence, chunk)
            for sentence in self.data.sentences
            for chunk in self._cut(sentence, encoder)
        ]
        tags = [self._inner(sentence.tags[chunk]) for sentence, chunk in chunks]
        return [sentence.tokens[chunk] for sentence, chunk in chunks], tags

    def _cut(self, sentence: Sentence, encoder: PretrainedEncoder | None) -> list[slice]:
        if encoder is not None:
            return fitting(sentence, encoder, entities=self.data.scheme is not None)
        tags = sentence.tags
        return cut_long(len(tags)) if self.data.scheme is None else cut_tagged(tags)

    def _check_memory(self) -> None:
        """Refuse what is too large by the sizes that can be set, whatever the data adds."""
        settings, words = self.settings, len(self.extractor.words)
        encoder = settings.encoder_config(MIX).count_parameters()
        for group in self._encoder_groups:
            encoder += sum(parameter.numel() for parameter in group["params"])
        check_training_memory(
            encoder + (words + MIX) * settings.word_dim,
            self.device,
            activations=int(self._arrays.tokens.lengths.max()) * settings.hidden * settings.layers,
            batch="batch_tokens",
        )

    def _loss(self, number: int) -> tuple[torch.Tensor, int]:
        rows = self._batches.rows(number)
        features, words, tags = self._arrays.batch(rows)
        positions, mask = words.tensors(self.device)
        right, _ = tags.tensors(self.device)
        layers = self._read_layers(rows, mask)
        # the encoder's alone are large enough to gain by bfloat16
        with torch.autocast(self.device.type, enabled=False):
            loss = self.model.loss(features, positions, right, mask, layers)
        return loss, int(words.mask.sum())

    def _read_layers(self, rows: Ids, mask: torch.Tensor) -> torch.Tensor | None:
        """What the encoder beside the features says of sentences (L, B, T, C), if there is one."""
        if self._layers is not None:
            return self._layers.pad(rows, mask)
        if self.states is None or self._readings is None:
            return None
        pad_id = self.states.encoder.pad_id
        return self.states.layers_of(*self._readings.tensors(rows, pad_id, self.device)).float()

    def tagger(self) -> Tagger:
        """The model as it is now, ready to predict."""
        weights = {name: value.cpu().numpy() for name, value in self.model.weights().items()}
        about: Any = {"scheme": self.data.scheme, "layout": self.data.layout}
        if self.states is None:
            return Tagger(self.settings, self.extractor, self.tags, weights, **about)
        return StatesTagger(
            self.settings, self.extractor, self.tags, weights, states=self.states, **about
        )

    def common_settings(self) -> dict[str, Any]:
        return {**super().common_settings(), "vectors": self.vectors}


def hash_sentences(sentences: Sequence[Sentence]) -> str:
    """A fingerprint of sentences."""
    return modeldir.data_hash(
        line.encode("utf-8", "surrogatepass") for sentence in sentences for line in sentence.lines
    )


def with_companions(counts: Counter[str], scheme: Scheme | None) -> dict[str, int]:
    """With every tag of each entity type, so that any span of a known type can be predicted."""
    if scheme is None:
        return counts
    kinds = {tag[1:] for tag in counts if tag != "O"}
    # a count of 1 keeps the table's order meaningful: specials alone have 0
    every = {prefix + kind: 1 for kind in kinds for prefix in INNER_SCHEME if prefix != "O"}
    return {**every, "O": 1, **counts}
