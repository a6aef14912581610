"""Training a classifier: labelled texts in, progress records out, a model folder in the end."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nlpkit import modeldir
from nlpkit.device import check_training_memory, seeded
from nlpkit.errors import NlpkitError, UsageError, plural
from nlpkit.memory import check_memory
from nlpkit.nn.lbfgs import KEPT, LBFGS
from nlpkit.nn.optimizers import AdamW
from nlpkit.registry import CLASSIFIER
from nlpkit.tasks.classify.bow import Bow, Rows, known_features, n_regressions
from nlpkit.tasks.classify.data import Example
from nlpkit.tasks.classify.features import FeatureIndex
from nlpkit.tasks.classify.model import SequenceModel, label_loss
from nlpkit.tasks.classify.predictor import Classifier, known_words, make_bags
from nlpkit.tasks.classify.settings import ClassifierSettings
from nlpkit.text.vocab import Vocab
from nlpkit.text.vocab_codec import VocabCodec
from nlpkit.training.batches import Batches, Ragged
from nlpkit.training.loop import Trainer
from nlpkit.training.run import Run
from nlpkit.vectors import formats
from nlpkit.vectors.store import Vectors

BOW_EVALUATIONS = 5  # epochs between two looks at the held-out texts
BOW_COPIES = KEPT + 3  # of its weights: they, their gradient, the best so far
BOW_SCORES = 3  # of each text, label and regression: they, their logarithms, their gradient
RARE = 2  # a sequence model has no embedding for a word seen fewer times


class AnyClassifierRun(Run):
    """What trainings of classifiers have in common, from scratch or on an encoder."""

    trainer: Trainer
    unit = "texts"
    examples: Sequence[Example]
    dev: Sequence[Example]
    settings: Any
    labels: Vocab

    def classifier(self) -> Any:
        """The model as it is now, ready to predict."""
        raise NotImplementedError

    def _error(self) -> float:
        """The share of held-out texts whose labels are not all right."""
        found = self.classifier().probabilities([example.texts for example in self.dev])
        right = label_targets(self.dev, self.labels)
        if self.settings.multi_label:
            return float(((found >= 0.5) != (right > 0)).any(axis=1).mean())
        return float((right[np.arange(len(right)), found.argmax(axis=1)] == 0).mean())

    def warnings(self) -> list[str]:
        """What the user should know before training: texts without a word."""
        empty = sum(not example.joined.strip() for example in self.examples)
        if not empty:
            return []
        return [f"{empty:,} of {plural(len(self.examples), 'text')} are empty: they teach nothing"]

    def dev_error(self) -> float | None:
        """The error of the model that is kept, if texts were held out."""
        return self.trainer.counters.best_loss

    def result(self) -> Any:
        """The trained model, with the best weights when there were held-out texts."""
        metrics: dict[str, float] = {"labels": len(self.labels), "texts": len(self.examples)}
        error = self.dev_error()
        if error is not None:
            metrics["dev_accuracy"] = 1 - error
        classifier = self.classifier()
        classifier.config = self.model_config(CLASSIFIER, classifier.describe(), metrics)
        return classifier

    def data_hash(self) -> str:
        """A fingerprint of the training texts."""
        return hash_examples(self.examples)

    def common_settings(self) -> dict[str, Any]:
        """What a run that goes on with this one's checkpoint must have in common with it."""
        return {**asdict(self.settings), "held-out data": hash_examples(self.dev)}


class ClassifierRun(AnyClassifierRun):
    """One training of a classifier.

    >>> run = ClassifierRun(examples, ClassifierSettings())  # doctest: +SKIP
    >>> run.train("reviews.model")  # doctest: +SKIP
    """

    def __init__(
        self,
        examples: Sequence[Example],
        settings: ClassifierSettings,
        *,
        dev: Sequence[Example] = (),
        vectors: Vectors | str | os.PathLike[str] | None = None,
        device: torch.device | None = None,
    ) -> None:
        if settings.fine_tune and vectors is None:
            raise UsageError("`fine_tune` needs `vectors`")
        self.vectors = os.fspath(vectors) if isinstance(vectors, str | os.PathLike) else None
        self.examples, self.dev = examples, dev
        several = any(len(example.labels) != 1 for example in examples)
        self.settings = replace(
            settings.resolve(texts=len(examples)),
            multi_label=settings.multi_label or several,
            pairs=has_pairs(examples, settings.pairs),
            tokenizer=_full_path(settings.tokenizer),
        )
        # sparse products of a bow are scipy's
        self.device = torch.device("cpu")
        if device is not None and settings.model != "bow":
            self.device = device
        counts = Counter(label for example in examples for label in example.labels)
        if not counts:
            raise NlpkitError("no labels to learn", hint="labelled texts")
        self.labels = Vocab.from_counts(counts, specials=())
        self.targets = label_targets(examples, self.labels)
        self._maker = make_bags(self.settings)
        self._words: VocabCodec | None = None
        with seeded(settings.seed, 0, self.device):
            if self.settings.model == "bow":
                if vectors is not None:
                    raise NlpkitError(
                        "the bow model takes no vectors", hint="`model` cnn, lstm or gru"
                    )
                self._prepare_bags()
            else:
                self._prepare_sequences(vectors)
        self.model.to(self.device)
        kind = "multi-label" if self.settings.multi_label else "one label each"
        texts, labels = plural(len(examples), "text"), plural(len(self.labels), "label")
        self.summary = f"{texts}, {labels}, {kind}"
        bow = self.settings.model == "bow"
        steps = self._per_epoch * self.settings.epochs
        every = BOW_EVALUATIONS if bow else self._per_epoch
        self.trainer = Trainer(
            self.model,
            self._optimizers(),
            self._loss,
            self.settings.loop(steps, eval_interval=every),
            evaluate=self._heldout if dev or bow else None,
        )

    # --- the two kinds of model -----------------------------------------------------------------

    def _prepare_bags(self) -> None:
        bags = self._maker.bags([example.joined for example in self.examples])
        # a text whose label is new says nothing of how much to believe in the others
        dev = [
            example
            for example in self.dev
            if self.settings.multi_label or any(label in self.labels for label in example.labels)
        ]
        numbers = n_regressions(len(self.examples), dev=bool(dev)) * len(self.labels)
        self.features = known_features(bags, numbers)
        index = FeatureIndex(self.features)
        sublinear = self.settings.counts == "sublinear"
        self._rows = Rows.of(bags, index, sublinear=sublinear)
        weights = (len(self.features) + 1) * numbers
        check_memory(
            4 * (BOW_COPIES * weights + BOW_SCORES * len(self.examples) * numbers),
            f"training {numbers // len(self.labels)} regressions of {weights:,} weights in all",
            hint="fewer texts or labels, or `ngrams` 1",
        )
        held = None
        if dev:
            found = self._maker.bags([example.joined for example in dev])
            held = Rows.of(found, index, sublinear=sublinear), label_targets(dev, self.labels)
        self.model: torch.nn.Module = Bow(
            self._rows, self.targets, len(self.features), self.settings, held
        )
        self._per_epoch = 1

    def _prepare_sequences(self, vectors: Vectors | str | os.PathLike[str] | None) -> None:
        tokens = [self._maker.tokens(example.joined) for example in self.examples]
        counts = Counter(token for row in tokens for token in row)
        names, given = formats.given_table(vectors)
        rare = RARE if len(counts) > 1000 else 1
        vocab = Vocab.from_counts(counts, min_count=rare)
        words = self._words = VocabCodec(vocab, vector_words=names, cut=self._maker.tokens)
        looked_up = [known_words(words, row) for row in tokens]
        self._ids = Ragged([ids for ids, _ in looked_up])
        rows = Ragged([rows for _, rows in looked_up])
        mean = max(1, int(self._ids.lengths.mean()))
        self._batches = Batches(
            self._ids, rows, tokens=self.settings.batch_size * mean, seed=self.settings.seed
        )
        self._per_epoch = self._batches.per_epoch
        settings = self.settings
        width = settings.dim + (0 if given is None else given.shape[1])
        encoder = settings.encoder_config(width).count_parameters()
        check_training_memory(encoder + len(words) * settings.dim, self.device)
        self.model = SequenceModel(self.settings, len(words), len(self.labels), given)

    def _optimizers(self) -> list[torch.optim.Optimizer]:
        lr, decay = self.settings.lr, self.settings.weight_decay
        if isinstance(self.model, Bow):
            return [LBFGS(self.model.weights)]
        return [AdamW(self.model.parameters(), lr=lr, weight_decay=decay, fused=True)]

    def _loss(self, number: int) -> tuple[torch.Tensor, int]:
        if isinstance(self.model, Bow):
            return self.model(), len(self.examples)
        chosen, (words, rows) = self._batches[number]
        inputs = (
            torch.from_numpy(part).to(self.device) for part in (words.ids, rows.ids, words.mask)
        )
        scores = self.model(*inputs)
        targets = torch.from_numpy(self.targets[chosen]).to(self.device)
        return label_loss(scores, targets, multi_label=self.settings.multi_label), len(chosen)

    def _heldout(self) -> float:
        return self.model.heldout() if isinstance(self.model, Bow) else self._error()

    def dev_error(self) -> float | None:
        if isinstance(self.model, Bow):  # which is chosen by another loss
            return self._error() if self.dev else None
        return super().dev_error()

    def warnings(self) -> list[str]:
        """What stands in the way of learning: one label, or texts without words in common."""
        found = super().warnings()
        if len(self.labels) == 1:
            found.append("the data has one label only: every text will get it")
        share = self.unfamiliar()
        if share > 0.5 and self.settings.tokenizer != "char":
            what = "held-out texts have no token that training knows"
            if not self.dev:
                what = "texts have no token in common with any other"
            ngrams = " --ngrams 4" if self.settings.model == "bow" else ""
            found.append(f"{share:.0%} of the {what}: try -t char{ngrams}")
        return found

    def unfamiliar(self) -> float:
        """The share of held-out texts in which there is no token that training knows.

        Without held-out texts each training text is held against all the others.
        """
        held_out = [example.joined for example in self.dev]
        if self._words is None:
            known = FeatureIndex(self.features)
            rows, starts, _ = self._rows
            in_all = known.rows(self._maker.bags([""]))[0]  # the edges of a text
            if held_out:
                rows, starts = known.rows(self._maker.bags(held_out))
        elif self._words.vector_words:
            return 0.0  # they know words that no text has
        else:
            ids = [np.unique(row) for row in self._ids]
            in_all = np.array(known_words(self._words, [])[0])  # the unknown word
            if held_out:
                tokens = map(self._maker.tokens, held_out)
                found = [known_words(self._words, row)[0] for row in tokens]
                ids = [np.unique(row) for row in found]
            rows, starts = np.concatenate(ids), np.cumsum([0, *map(len, ids)])
        shared = ~np.isin(rows, in_all)
        if not held_out:
            shared &= np.bincount(rows)[rows] > 1
        total = np.append(0, np.cumsum(shared))[starts]
        return float((np.diff(total) == 0).mean())

    # --- the result -----------------------------------------------------------------------------

    def _tensors(self) -> dict[str, torch.Tensor]:
        if isinstance(self.model, Bow):
            features = torch.from_numpy(self.features.view(np.int64))
            return {"features": features, **self.model.tensors()}
        return {name: value.cpu() for name, value in self.model.state_dict().items()}

    def classifier(self) -> Classifier:
        """The model as it is now, ready to predict."""
        weights = {name: value.numpy() for name, value in self._tensors().items()}
        return Classifier(self.settings, self.labels, weights, self._words, self._maker)

    def common_settings(self) -> dict[str, Any]:
        return {**super().common_settings(), "vectors": self.vectors}


def _full_path(tokenizer: str) -> str:
    """A subword model is found again when a run is resumed from elsewhere."""
    return os.path.abspath(tokenizer) if os.path.exists(tokenizer) else tokenizer


def has_pairs(examples: Sequence[Example], wanted: bool) -> bool:
    """Whether there are two texts; where they are ``wanted`` there must be."""
    found = any(example.second is not None for example in examples)
    if wanted and not found:
        raise NlpkitError("no second text", hint="a column or key text2")
    return found


def hash_examples(examples: Sequence[Example]) -> str:
    """A fingerprint of labelled texts."""
    return modeldir.data_hash(
        f"{','.join(example.labels)}\t{example.joined}\n".encode("utf-8", "replace")
        for example in examples
    )


def label_targets(examples: Sequence[Example], labels: Vocab) -> NDArray[np.float32]:
    """Which labels each text has, (N, K) of 0 and 1."""
    targets = np.zeros((len(examples), len(labels)), np.float32)
    for row, example in enumerate(examples):
        for label in example.labels:
            if label in labels:
                targets[row, labels.ids[label]] = 1
    return targets
