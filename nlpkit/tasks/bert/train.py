"""Training a BERT: masked words and, if wanted, next sentences; alone or as one of several."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit import modeldir, registry
from nlpkit.device import check_training_memory
from nlpkit.models.bert import Bert
from nlpkit.models.bert_model import BertModel
from nlpkit.models.build import make_optimizers
from nlpkit.tasks.bert.baselines import measure_baselines
from nlpkit.tasks.bert.data import (
    Lines,
    SentencePairs,
    Sequences,
    StreamSequences,
    split_lines,
    stream,
)
from nlpkit.tasks.bert.masking import IGNORED, Masked, Masking
from nlpkit.tasks.bert.settings import EVAL_MASK, ResolvedBert
from nlpkit.tasks.bert.start import start_from_counts, start_from_vectors, start_output
from nlpkit.text.wordpiece import WordPiece
from nlpkit.training.distributed import Processes, Synchronized
from nlpkit.training.loop import Trainer
from nlpkit.training.run import Progress, Run

if TYPE_CHECKING:
    from nlpkit.vectors.store import Vectors

_EVAL_ROWS = 128  # sequences of an evaluation on the way
_MOST_ROWS = 4096  # of the last one
_BATCH = 64


class BertRun(Run):
    """The training of a BERT."""

    trainer: Trainer

    def __init__(
        self,
        lines: Lines,
        codec: WordPiece,
        settings: ResolvedBert,
        device: torch.device | str = "cpu",
        *,
        vectors: Vectors | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.codec, self.settings = codec, settings
        self.processes: Processes = processes or Processes()
        self.device = torch.device(device)
        training, heldout = split_lines(lines, settings.val_fraction, settings.next_sentence)
        self.tokens, self.heldout_tokens = len(training.ids), len(heldout.ids)
        self._hash = modeldir.data_hash(
            [lines.ids.tobytes(), lines.starts.tobytes(), _bytes(vectors)]
        )
        self.model = self._new_model(training, vectors).to(self.device)
        self._masking = Masking.of(
            codec,
            rate=settings.mask,
            masked=1.0 if settings.recipe == "modern" else 0.8,
            random=0.0 if settings.recipe == "modern" else 0.1,
            whole_words=settings.whole_words,
        )
        kind = SentencePairs if settings.next_sentence else StreamSequences
        length = min(settings.length, 1 + len(stream(heldout, codec.sep_id)))
        self._batches = kind(training, codec, settings.length, settings.batch_size, settings.seed)
        self._heldout = kind(heldout, codec, length, _BATCH, 1).all(_MOST_ROWS)
        hide = Masking.of(codec, rate=EVAL_MASK, masked=1.0, random=0.0)
        self._questions = hide.apply(self._heldout.idx, np.random.default_rng(1))
        self.baselines = measure_baselines(
            stream(training, codec.sep_id),
            hide.ordinary,
            self._questions,
        )
        self.scores: dict[str, float] = {}  # of the last evaluation
        self.trainer = self._new_trainer()
        self.summary = (
            f"{self.tokens:,} tokens to learn from, {self.heldout_tokens:,} held out, "
            f"{len(codec):,} kinds; {self.model.count_parameters():,} parameters\n"
            f"{self.baselines.describe()}"
        )

    def steps(self) -> Generator[Progress, None, None]:
        """One record after each step; the curve has shares of right answers, too."""
        for progress in super().steps():
            if progress.heldout is not None:
                self.trainer.counters.records[-1].update(self.scores)
            yield progress

    def data_hash(self) -> str:
        """A fingerprint of the text and of the vectors to start from."""
        return self._hash

    def _new_model(self, training: Lines, vectors: Vectors | None) -> Bert:
        settings = self.settings
        size = len(self.codec.vocabulary())
        architecture = settings.architecture(size)
        with torch.device("meta"):
            count = Bert(architecture).count_parameters()
        tokens = settings.batch_size * settings.length
        kept = 12 * settings.layers * settings.dim + round(2 * settings.mask * size)
        check_training_memory(count, self.device, activations=tokens * kept)
        model = Bert(architecture)
        model.initialize(torch.Generator().manual_seed(settings.seed))
        start_output(model, np.bincount(training.ids, minlength=size))
        self.known_vectors: int | None = None
        if vectors is not None:
            self.known_vectors = start_from_vectors(model, self.codec, vectors)
        elif settings.recipe == "modern":
            start_from_counts(model, training, settings.seed)
        return model

    def _new_trainer(self) -> Trainer:
        settings, processes = self.settings, self.processes
        optimizers = make_optimizers(
            self.model,
            optimizer=settings.optimizer,
            lr=settings.lr,
            muon_lr=settings.muon_lr,
            weight_decay=settings.weight_decay,
            fast=list(self.model.relative.parameters()),  # or heads stay with their neighbours
        )
        losses = _Losses(self.model)
        self._losses: Any = processes.wrap(losses)
        trained: nn.Module = self.model
        if processes.count > 1:
            trained = Synchronized(self.model, self._losses)
        return Trainer(
            trained,
            optimizers,
            self._loss,
            settings.loop(),
            evaluate=lambda: self.evaluate(_EVAL_ROWS),
            clock=processes.clock(self.device),
        )

    def _loss(self, number: int) -> tuple[Tensor, int]:
        number = number * self.processes.count + self.processes.rank
        batch = self._batches[number]
        random = np.random.default_rng([self.settings.seed, number, 2])
        # many questions teach faster at first; later it sees texts as whole as it will be asked
        first, last = self.settings.mask, self.settings.mask_end
        rate = first + (last - first) * self.trainer.fraction
        masked = replace(self._masking, rate=rate).apply(batch.idx, random)
        return self._losses(*self._tensors(batch, masked)), batch.idx.size * self.processes.count

    def _tensors(
        self, batch: Sequences, masked: Masked, rows: slice = slice(None)
    ) -> list[Tensor | None]:
        arrays = (*masked, batch.segments, batch.inside, batch.follows)
        return [
            None if array is None else torch.from_numpy(array[rows]).to(self.device)
            for array in arrays
        ]

    @torch.no_grad()
    def evaluate(self, most: int | None = None) -> float:
        """The held-out loss of masked tokens; ``scores`` has shares of right answers, too."""
        count = len(self._heldout.idx)
        rows = min(count, most or count)
        nats = right = told = tokens = 0.0
        for start in range(0, rows, _BATCH):
            chosen = slice(start, min(rows, start + _BATCH))
            idx, places, targets, segments, inside, follows = self._tensors(
                self._heldout, self._questions, chosen
            )
            assert idx is not None
            assert targets is not None
            states, pairs = _outputs(self.model, idx, places, segments, inside)
            counted = targets != IGNORED
            logits, wanted = self.model.predict(states[counted]), targets[counted]
            nats += float(F.cross_entropy(logits, wanted, reduction="sum"))
            right += float((logits.argmax(dim=-1) == wanted).sum())
            tokens += len(wanted)
            if follows is not None and pairs is not None:
                told += float((pairs.argmax(dim=-1) == follows).sum())
        self.scores = {"heldout_accuracy": right / max(1.0, tokens)}
        if self.settings.next_sentence:
            self.scores["next_sentence_accuracy"] = told / rows
        return nats / max(1.0, tokens)

    def common_settings(self) -> dict[str, Any]:
        """What a run that goes on with this one's checkpoint must have in common with it."""
        return {**asdict(self.settings), "processes": self.processes.count}

    def describe(self, loss: float) -> str:
        """The last evaluation in words."""
        right = 100 * self.scores["heldout_accuracy"]
        text = f"held-out loss {loss:.4f}, {right:.1f} % of masked right"
        if "next_sentence_accuracy" in self.scores:
            text += f", {100 * self.scores['next_sentence_accuracy']:.1f} % of next sentences"
        return text

    def result(self) -> BertModel:
        """The trained model, and how it came about."""
        loss = self.evaluate()
        self.outcome = f"{self.describe(loss)}; {self.baselines.describe()}; "
        base = asdict(self.baselines)
        return self._described(
            {
                "heldout_loss": loss,
                **self.scores,
                **{f"baseline_{name}": value for name, value in base.items()},
            }
        )

    def unfinished(self) -> BertModel:
        """The model as it is, its held-out loss not measured."""
        return self._described({})

    def _described(self, metrics: dict[str, float]) -> BertModel:
        bert = BertModel(self.model.eval(), self.codec)
        recorded = {n: v for n, v in asdict(self.settings).items() if v is not None}
        recorded.pop("muon_lr")
        bert.config = self.model_config(registry.BERT, {**recorded, **bert.describe()}, metrics)
        return bert


def _bytes(vectors: Vectors | None) -> bytes:
    return b"" if vectors is None else np.ascontiguousarray(vectors.matrix).tobytes()


class _Losses(nn.Module):
    """The model and what it is trained for, as one module: what several processes share."""

    def __init__(self, model: Bert) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        idx: Tensor,
        places: Tensor,
        targets: Tensor,
        segments: Tensor | None,
        inside: Tensor | None,
        follows: Tensor | None,
    ) -> Tensor:
        """The mean loss of masked tokens, and that of next sentences added."""
        states, pairs = _outputs(self.model, idx, places, segments, inside)
        counted = targets != IGNORED
        loss = self.model.masked_loss(states[counted], targets[counted])
        if pairs is not None and follows is not None:
            loss = loss + F.cross_entropy(pairs, follows)
        return loss


def _outputs(
    model: Bert,
    idx: Tensor,
    places: Tensor | None,
    segments: Tensor | None,
    inside: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """States of masked tokens (B, K, C), and logits of what follows (B, 2).

    Only states that are asked for are computed in the last layer: masked ones, and [CLS].
    """
    assert places is not None
    if model.next_sentence is None:
        return model(idx, segments, inside, places), None
    first = torch.zeros_like(places[:, :1])
    states = model(idx, segments, inside, torch.cat([first, places], dim=1))  # (B, 1 + K, C)
    return states[:, 1:], model.follows(states)
