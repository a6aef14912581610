"""Training a tagger on a pre-trained encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from nlpkit.device import check_training_memory, seeded
from nlpkit.errors import UsageError, plural
from nlpkit.models.finetune import PretrainedEncoder, open_encoder
from nlpkit.models.finetune_rates import layer_rates, parse_freeze
from nlpkit.models.finetune_states import cache_states
from nlpkit.models.finetune_words import WordReading, WordStates
from nlpkit.nn.optimizers import AdamW
from nlpkit.tasks.tag.predictor import INNER_SCHEME
from nlpkit.tasks.tag.pretrained import PretrainedTagger, TagNetwork, fitting
from nlpkit.tasks.tag.settings import FEW_TAGS, TaggerSettings, TagTuning
from nlpkit.tasks.tag.train import AnyTaggerRun, TaggerRun, TrainingData, with_companions
from nlpkit.text.conll import Sentence
from nlpkit.text.schemes import legal_transitions
from nlpkit.text.vocab import UNK, Vocab
from nlpkit.text.vocab_codec import VocabCodec
from nlpkit.training.batches import Batches
from nlpkit.training.loop import Trainer


class PretrainedTaggerRun(AnyTaggerRun):
    """One training of a tagger on an encoder."""

    def __init__(
        self,
        data: TrainingData,
        encoder: PretrainedEncoder,
        settings: TagTuning,
        *,
        dev: Sequence[Sentence] = (),
        device: torch.device | None = None,
    ) -> None:
        self.data, self.dev = data, [s for s in dev if s.tokens]
        self.device = device or torch.device("cpu")
        words = Counter(word for sentence in data.sentences for word in sentence.tokens)
        self._frozen = parse_freeze(settings.freeze, encoder)
        if self._frozen == 0:
            encoder.learn_words(words.elements())
        chunks = [
            (sentence, chunk)
            for sentence in data.sentences
            for chunk in fitting(sentence, encoder, entities=data.scheme is not None)
        ]
        tag_rows = [self._inner(sentence.tags[chunk]) for sentence, chunk in chunks]
        counts = Counter(tag for row in tag_rows for tag in row)
        self.tags = Vocab.from_counts(with_companions(counts, data.scheme), specials=())
        chain = data.scheme is not None or len(self.tags) <= FEW_TAGS
        decided = ("yes" if chain else "no") if settings.crf == "auto" else settings.crf
        self.settings = replace(settings, crf=decided)
        self.words = VocabCodec(Vocab.from_counts(words, specials=(UNK,)))
        check_training_memory(sum(p.numel() for p in encoder.parameters()), self.device)
        legal = legal_transitions(self.tags.tokens, INNER_SCHEME) if data.scheme else None
        with seeded(settings.seed, 0, torch.device("cpu")):
            network = TagNetwork(encoder, self.settings, len(self.tags), legal)
        self.network = network.to(self.device)
        readings = [network.words.read(sentence.tokens[chunk]) for sentence, chunk in chunks]
        self._prepare(readings, [self.tags.encode(row) for row in tag_rows])
        scheme = f", {data.scheme} entities" if data.scheme else ""
        self.summary = (
            f"{plural(len(data.sentences), 'sentence')}, {plural(len(self.tags), 'tag')}{scheme}; "
            f"{encoder.kind}, {self._frozen} of {len(encoder.stages())} stages frozen"
        )

    def _prepare(self, readings: Sequence[WordReading], tags: Sequence[Sequence[int]]) -> None:
        settings, encoder = self.settings, self.network.words.encoder
        whole = self._frozen == len(encoder.stages())
        self._batches = Batches(
            [one.reading.ids for one in readings],
            [one.reading.segments for one in readings],
            [one.owners for one in readings],
            [one.places for one in readings],
            tags,
            tokens=settings.batch_tokens,
            seed=settings.seed,
            fill=(encoder.pad_id, 0, 0, 0, 0),
        )
        groups = layer_rates(
            encoder,
            self.network.learned,
            frozen=self._frozen,
            lr=settings.rate(encoder.size, frozen=whole),
            decay=settings.layer_decay,
            weight_decay=settings.weight_decay,
        )
        self._cache = None
        if whole:
            self._cache = cache_states(encoder, [one.reading for one in readings], self.device)
        trained: nn.Module = self.network.learned if whole else self.network
        per_epoch = self._batches.per_epoch
        self.trainer = Trainer(
            trained,
            [AdamW(groups, betas=(0.9, 0.99), fused=True)],
            self._loss,
            settings.loop(settings.passes(per_epoch) * per_epoch, eval_interval=per_epoch),
            evaluate=self._error if self.dev else None,
        )

    def _loss(self, number: int) -> tuple[Tensor, int]:
        batch = self._batches[number]
        idx, mask = batch.columns[0].tensors(self.device)
        segments, owners, places = (c.tensors(self.device)[0] for c in batch.columns[1:4])
        tags, inside = batch.columns[4].tensors(self.device)
        if self._cache is not None:
            layers = self._cache.pad(batch.rows, mask)
        else:
            layers = self.network.words.encoder(idx, segments, mask)
        head = self.network.head
        scores = head(self.network.words(layers, owners, places), inside)
        return head.loss(scores, tags, inside), int(inside.sum())

    def tagger(self) -> PretrainedTagger:
        """The model as it is now, ready to predict."""
        data = self.data
        return PretrainedTagger(
            self.network,
            self.settings,
            self.words,
            self.tags,
            scheme=data.scheme,
            layout=data.layout,
        )


def tagger_run(
    data: TrainingData,
    settings: TaggerSettings,
    *,
    dev: Sequence[Sentence] = (),
    vectors: Any = None,
    device: torch.device | None = None,
) -> TaggerRun | PretrainedTaggerRun:
    """The training that the settings ask for: on an encoder, or from scratch."""
    if settings.pretrained is None:
        return TaggerRun(data, settings, dev=dev, vectors=vectors, device=device)
    if settings.unit == "char" or settings.causal or data.layout.format == "pairs":
        raise UsageError("`pretrained` is for words that are seen from both sides")
    encoder = open_encoder(settings.pretrained)
    frozen = parse_freeze(settings.freeze, encoder) == len(encoder.stages())
    if settings.beside(encoder.size, frozen=frozen):
        states = WordStates(encoder.requires_grad_(not frozen), settings.pieces)
        return TaggerRun(data, settings, dev=dev, vectors=vectors, states=states, device=device)
    if vectors is not None:
        raise UsageError("`vectors` need `features` yes, with `pretrained`")
    tuning = settings.tuning()
    return PretrainedTaggerRun(data, encoder, tuning, dev=dev, device=device)
