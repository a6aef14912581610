"""Training an ELMo: sentences as arrays, batches of like length, the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlpkit import modeldir, registry
from nlpkit.device import check_training_memory, seeded
from nlpkit.errors import NlpkitError, plural
from nlpkit.models.build import make_optimizers
from nlpkit.models.elmo import Elmo, ElmoArchitecture, SentenceBatch
from nlpkit.models.elmo_model import BEGIN, END, SPECIALS, ElmoModel
from nlpkit.tasks.elmo.settings import ElmoSettings, split_filters
from nlpkit.text.vocab import UNK, Vocab
from nlpkit.text.word_bytes import MARKS, boundary_rows, word_rows
from nlpkit.training.batches import Batches, Padded, Ragged
from nlpkit.training.loop import Trainer
from nlpkit.training.run import Run

LONGEST = 400  # words that are read in a row; a longer line is cut
EVAL_BATCHES = 16  # of the held-out lines


class Sentences:
    """Lines of words as numbers: distinct words, and which of them stands where, between marks.

    Words are counted from 2 on; 0 and 1 are the begin and the end of a line.

    >>> lines = Sentences.read([["a", "b"], [], ["a"]])
    >>> lines.words, lines.lines.ids.tolist()
    (['a', 'b'], [0, 2, 3, 1, 0, 2, 1])
    """

    def __init__(self, words: list[str], lines: Ragged) -> None:
        self.words, self.lines = words, lines

    @classmethod
    def read(cls, lines: Iterable[Sequence[str]]) -> Sentences:
        """Lines without words are passed over, long ones are cut."""
        distinct: dict[str, int] = {}
        rows = []
        for words in lines:
            ids = [distinct.setdefault(word, len(distinct) + MARKS) for word in words]
            for start in range(0, len(ids), LONGEST):
                rows.append([0, *ids[start : start + LONGEST], 1])
        if not rows:
            raise NlpkitError("no words to learn from", hint="text, one sentence per line")
        return cls(list(distinct), Ragged(rows))

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def tokens(self) -> int:
        """Words in all."""
        return len(self.lines.ids) - MARKS * len(self)

    def vocabulary(self, upto: int, min_count: int, max_size: int) -> Vocab:
        """The words that the first ``upto`` lines have, by count; marks first."""
        end = int(self.lines.lengths[:upto].sum())
        numbers = np.bincount(self.lines.ids[:end], minlength=len(self.words) + MARKS)
        counts = Counter(dict(zip(self.words, numbers[MARKS:].tolist(), strict=True)))
        return Vocab.from_counts(counts, specials=SPECIALS, min_count=min_count, max_size=max_size)

    def data_hash(self) -> str:
        """A fingerprint of the text."""
        words = "\n".join(self.words).encode("utf-8", "surrogatepass")
        return modeldir.data_hash([words, self.lines.ids.tobytes()])


class ElmoRun(Run):
    """A training under way: ``train()`` gives the model."""

    trainer: Trainer
    unit = "words"

    def __init__(
        self,
        sentences: Sentences,
        settings: ElmoSettings,
        device: torch.device | str = "cpu",
    ) -> None:
        self.sentences, self.settings = sentences, settings
        self.device = torch.device(device)
        held_out = min(len(sentences) - 1, round(settings.val_fraction * len(sentences)))
        self.n_train = len(sentences) - held_out
        self.vocab = sentences.vocabulary(self.n_train, settings.min_count, settings.max_vocab)
        widths, filters = split_filters(settings.filters)
        self.architecture = ElmoArchitecture(
            dim=settings.dim,
            hidden=settings.hidden,
            layers=settings.layers,
            char_dim=settings.char_dim,
            widths=widths,
            filters=filters,
            highways=settings.highways,
            lower=all(word == word.lower() for word in sentences.words),
            longest_word=settings.longest_word,
            words=len(self.vocab),
        )
        with torch.device("meta"):
            count = sum(p.numel() for p in Elmo(self.architecture).parameters())
        steps = settings.batch_tokens * (10 * settings.hidden + 4 * settings.dim)
        check_training_memory(
            count, self.device, activations=2 * settings.layers * steps, batch="batch_tokens"
        )
        with seeded(settings.seed, 0, torch.device("cpu")):
            model = Elmo(replace(self.architecture))
        model.initialize(torch.Generator().manual_seed(settings.seed))
        model.dropout = settings.dropout
        self.model = model.to(self.device)
        self._rows = np.concatenate(
            [
                boundary_rows(settings.longest_word),
                word_rows(sentences.words, settings.longest_word),
            ]
        )
        marks = [self.vocab.ids[BEGIN], self.vocab.ids[END]]
        self._targets = np.array([*marks, *self.vocab.encode(sentences.words)])
        self._batches, self._heldout = (
            Batches(part, tokens=settings.batch_tokens, seed=settings.seed, fill=1)
            for part in (
                _between(sentences.lines, 0, self.n_train),
                _between(sentences.lines, self.n_train, len(sentences)),
            )
        )
        self.trainer = Trainer(
            self.model,
            make_optimizers(
                self.model, optimizer="muon", lr=settings.lr, weight_decay=settings.weight_decay
            ),
            self._loss,
            settings.loop(max(1, round(settings.epochs * self._batches.per_epoch))),
            evaluate=self._heldout_loss if held_out else None,
        )
        self.summary = (
            f"{plural(sentences.tokens, 'word')} in {plural(len(sentences), 'line')}, "
            f"{len(self.vocab):,} are predicted by name; {count:,} parameters"
        )

    def batch(self, lines: Padded) -> tuple[SentenceBatch, Tensor]:
        """Lines between marks, distinct words once, and the words to predict, (B, T)."""
        distinct, where = np.unique(lines.ids, return_inverse=True)
        batch = SentenceBatch(
            torch.from_numpy(self._rows[distinct].astype(np.int64)).to(self.device),
            torch.from_numpy(where.reshape(lines.ids.shape)).to(self.device),
            torch.from_numpy(lines.lengths).to(self.device),
        )
        return batch, torch.from_numpy(self._targets[lines.ids]).to(self.device)

    def _loss(self, number: int) -> tuple[Tensor, int]:
        lines = self._batches[number].columns[0]
        batch, targets = self.batch(lines)
        return self.model.loss(batch, targets), int(lines.mask.sum()) - MARKS * len(lines.ids)

    def _heldout_loss(self) -> float:
        """Of as many batches as are soon done, the same every time."""
        total = count = 0.0
        for number in range(min(EVAL_BATCHES, self._heldout.per_epoch)):
            lines = self._heldout[number].columns[0]
            predicted = int(lines.mask.sum()) - len(lines.ids)
            total += self.model.loss(*self.batch(lines)).item() * predicted
            count += predicted
        return total / count

    def data_hash(self) -> str:
        """A fingerprint of the text."""
        return self.sentences.data_hash()

    def common_settings(self) -> dict[str, Any]:
        """What a run that goes on with this one's checkpoint must have in common with it."""
        return asdict(self.settings)

    def result(self) -> ElmoModel:
        """The trained model, with the best weights when there were held-out lines."""
        best = self.trainer.counters.best_loss
        unknown = self.vocab.ids[UNK]
        shares = self._targets[self.sentences.lines.ids] == unknown
        elmo = ElmoModel(self.model.eval(), self.vocab)
        elmo.config = self.model_config(
            registry.ELMO,
            {
                **{n: v for n, v in asdict(self.settings).items() if v is not None},
                "architecture": self.architecture.to_dict(),
            },
            {
                **({} if best is None else {"heldout_loss": best}),
                "unknown_words": float(shares.mean()),
            },
        )
        return elmo


def _between(lines: Ragged, start: int, end: int) -> Ragged:
    """Some of the lines, without a copy of them."""
    part = Ragged([])
    part.lengths, part.starts = lines.lengths[start:end], lines.starts[start:end]
    part.ids = lines.ids
    return part
