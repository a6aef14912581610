"""Training an ELMo: sentences as arrays, batches of like length, the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nlpkit import modeldir, registry
from nlpkit.device import check_training_memory
from nlpkit.errors import NlpkitError
from nlpkit.models.elmo import Elmo, ElmoArchitecture, SentenceBatch
from nlpkit.nn.optimizers import adamw
from nlpkit.tasks.elmo.model import BEGIN, END, SPECIALS, ElmoModel
from nlpkit.tasks.elmo.settings import ElmoSettings, split_filters
from nlpkit.text.vocab import UNK, Vocab
from nlpkit.text.word_bytes import boundary_rows, word_rows
from nlpkit.training.batches import LengthBatches
from nlpkit.training.loop import Trainer

LONGEST = 400  # words that are read in a row; a longer line is cut
STEP = 4  # lengths are rounded up to this: more sentences fit together
EVAL_BATCHES = 16

Ids = NDArray[np.int64]


class Sentences:
    """Lines of words as numbers: which distinct word stands where, and where lines begin.

    >>> lines = Sentences.read([["a", "b"], [], ["a"]])
    >>> lines.words, lines.places.tolist(), lines.starts.tolist()
    (['a', 'b'], [0, 1, 0], [0, 2, 3])
    """

    def __init__(self, words: list[str], places: NDArray[np.int32], starts: Ids) -> None:
        self.words, self.places, self.starts = words, places, starts

    @classmethod
    def read(cls, lines: Iterable[Sequence[str]]) -> Sentences:
        """Lines without words are passed over, long ones are cut."""
        distinct: dict[str, int] = {}
        parts: list[NDArray[np.int32]] = []
        starts = [0]
        for words in lines:
            ids = [distinct.setdefault(word, len(distinct)) for word in words]
            for start in range(0, len(ids), LONGEST):
                parts.append(np.array(ids[start : start + LONGEST], np.int32))
                starts.append(starts[-1] + len(parts[-1]))
        if not parts:
            raise NlpkitError("no words to learn from", hint="text, a sentence a line")
        return cls(list(distinct), np.concatenate(parts), np.array(starts))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def vocabulary(self, upto: int, min_count: int, max_size: int) -> Vocab:
        """The words that the first ``upto`` lines have, by count; marks first."""
        numbers = np.bincount(self.places[: self.starts[upto]], minlength=len(self.words))
        counts = Counter(dict(zip(self.words, numbers.tolist(), strict=True)))
        return Vocab.from_counts(counts, specials=SPECIALS, min_count=min_count, max_size=max_size)

    def data_hash(self) -> str:
        """A fingerprint of the text."""
        words = "\n".join(self.words).encode("utf-8", "surrogatepass")
        return modeldir.data_hash([words, self.places.tobytes(), self.starts.tobytes()])


class ElmoRun:
    """A training under way: ``trainer`` does the steps, ``finished()`` is the model."""

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
            longest_word=settings.longest_word,
            words=len(self.vocab),
        )
        with torch.device("meta"):
            count = sum(p.numel() for p in Elmo(self.architecture).parameters())
        steps = settings.batch_tokens * (10 * settings.hidden + 4 * settings.dim)
        check_training_memory(
            count, self.device, activations=2 * settings.layers * steps, batch="batch_tokens"
        )
        model = Elmo(replace(self.architecture))
        model.initialize(torch.Generator().manual_seed(settings.seed))
        model.dropout = settings.dropout
        self.model = model.to(self.device)
        self.parameters = count
        self._rows = np.concatenate(
            [
                boundary_rows(settings.longest_word),
                word_rows(sentences.words, settings.longest_word),
            ]
        )
        marks = [self.vocab.ids[BEGIN], self.vocab.ids[END]]
        self._targets = np.array([*marks, *self.vocab.encode(sentences.words)])
        lengths = np.diff(sentences.starts)
        rounded = -(-lengths // STEP) * STEP
        self._batches = LengthBatches(rounded[: self.n_train], settings.batch_tokens, settings.seed)
        self._heldout = LengthBatches(rounded[self.n_train :], settings.batch_tokens, settings.seed)
        self.trainer = Trainer(
            self.model,
            [adamw(self.model.parameters(), lr=settings.lr, betas=(0.9, 0.98))],
            self._loss,
            settings.training(self._batches.per_epoch),
            evaluate=self._heldout_loss if held_out else None,
        )

    def batch(self, rows: Ids) -> tuple[SentenceBatch, Tensor]:
        """Some lines between marks, and the words to predict, (B, T)."""
        starts = self.sentences.starts
        lengths = (starts[rows + 1] - starts[rows]) + 2
        places = np.ones((len(rows), int(lengths.max())), np.int64)  # end marks
        places[:, 0] = 0
        for place, row in enumerate(rows):
            words = self.sentences.places[starts[row] : starts[row + 1]]
            places[place, 1 : 1 + len(words)] = words + 2
        distinct, where = np.unique(places, return_inverse=True)
        batch = SentenceBatch(
            torch.from_numpy(self._rows[distinct].astype(np.int64)).to(self.device),
            torch.from_numpy(where.reshape(places.shape)).to(self.device),
            torch.from_numpy(lengths).to(self.device),
        )
        return batch, torch.from_numpy(self._targets[places]).to(self.device)

    def _loss(self, number: int) -> tuple[Tensor, int]:
        batch, targets = self.batch(self._batches.rows(number))
        return self.model.loss(batch, targets), int(batch.lengths.sum()) - 2 * len(batch.lengths)

    def _heldout_loss(self) -> float:
        """Of as many batches as are soon done, the same every time."""
        total = count = 0.0
        for number in range(min(EVAL_BATCHES, self._heldout.per_epoch)):
            batch, targets = self.batch(self._heldout.rows(number) + self.n_train)
            predicted = int(batch.lengths.sum())
            total += self.model.loss(batch, targets).item() * predicted
            count += predicted
        return total / count

    def data_hash(self) -> str:
        """A fingerprint of the text."""
        return self.sentences.data_hash()

    def common_settings(self) -> dict[str, Any]:
        """What a run that goes on with this one's checkpoint must have in common with it."""
        return asdict(self.settings)

    def finished(self) -> ElmoModel:
        """The trained model, with the best weights when there were held-out lines."""
        self.trainer.keep_best()
        best = self.trainer.counters.best_loss
        unknown = self.vocab.ids[UNK]
        shares = self._targets[self.sentences.places + 2] == unknown
        elmo = ElmoModel(self.model.eval(), self.vocab)
        elmo.config = modeldir.ModelConfig(
            kind=registry.ELMO,
            settings={
                **{n: v for n, v in asdict(self.settings).items() if v is not None},
                "architecture": self.architecture.to_dict(),
            },
            seed=self.settings.seed,
            data_hash=self.data_hash(),
            metrics={
                **({} if best is None else {"heldout_loss": best}),
                "unknown_words": float(shares.mean()),
            },
        )
        elmo.curve = self.trainer.counters.records
        return elmo

    def save(self, path: str, *, force: bool = False) -> None:
        """Write the model folder."""
        self.finished().save(path, force=force)
