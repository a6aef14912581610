"""Training a reader of questions: windows in, progress records out, a model folder in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nlpkit import modeldir, registry
from nlpkit.device import check_training_memory, seeded
from nlpkit.errors import NlpkitError, plural
from nlpkit.metrics.squad import best_threshold, score_answers
from nlpkit.models.finetune import BertEncoder
from nlpkit.models.finetune_rates import layer_rates, parse_freeze
from nlpkit.nn.optimizers import AdamW
from nlpkit.tasks.qa.data import Question
from nlpkit.tasks.qa.model import Answers, QaModel, QaNetwork
from nlpkit.tasks.qa.settings import QaSettings
from nlpkit.tasks.qa.windows import Window, find_tokens, make_windows
from nlpkit.training.batches import Batches
from nlpkit.training.loop import Trainer
from nlpkit.training.run import Run


class QaRun(Run):
    """One training of a reader of questions on an encoder."""

    trainer: Trainer
    unit = "windows"

    def __init__(
        self,
        questions: Sequence[Question],
        encoder: BertEncoder,
        settings: QaSettings,
        *,
        dev: Sequence[Question] = (),
        device: torch.device | str = "cpu",
        pretrained: str = "",
    ) -> None:
        if not any(question.answers for question in questions):
            raise NlpkitError("no question has an answer", hint="answers to learn from")
        self.questions, self.settings, self.dev = questions, settings, dev
        self.pretrained = pretrained
        without = sum(not question.answers for question in questions)
        self.summary = f"{plural(len(questions), 'question')}, {without:,} without an answer"
        self.device = torch.device(device)
        count = sum(parameter.numel() for parameter in encoder.parameters())
        check_training_memory(count, self.device)
        with seeded(settings.seed, 0, torch.device("cpu")):
            network = QaNetwork(encoder, settings.dropout)
        self.network = network.to(self.device)
        self.model = QaModel(self.network, settings, None)
        self._prepare()
        frozen = parse_freeze(settings.freeze, encoder)
        groups = layer_rates(
            encoder,
            self.network.ends,
            frozen=frozen,
            lr=settings.rate(encoder.size, frozen=frozen == len(encoder.stages())),
            decay=settings.layer_decay,
            weight_decay=settings.weight_decay,
        )
        per_epoch = self._batches.per_epoch
        self.trainer = Trainer(
            self.network,
            [AdamW(groups, betas=(0.9, 0.99), fused=True)],
            self._loss,
            settings.loop(settings.passes(per_epoch) * per_epoch),
            evaluate=self._error if dev else None,
        )

    def _prepare(self) -> None:
        windows: list[Window] = []
        self._targets: list[tuple[int, int]] = []
        for question in self.questions:
            made = make_windows(
                self.model.codec,
                question.question,
                question.context,
                room=self.model.room,
                overlap=self.settings.overlap,
            )
            windows += made
            self._targets += [_target(window, question) for window in made]
        self._batches = Batches(
            [window.ids for window in windows],
            [window.segments for window in windows],
            tokens=self.settings.batch_size * self.model.room,
            most_rows=self.settings.batch_size,
            seed=self.settings.seed,
            fill=(self.model.codec.pad_id, 0),
        )

    def _loss(self, number: int) -> tuple[Tensor, int]:
        batch = self._batches[number]
        idx, mask = batch.columns[0].tensors(self.device)
        segments, _ = batch.columns[1].tensors(self.device)
        targets = torch.tensor([self._targets[row] for row in batch.rows.tolist()])
        first, last = targets.to(self.device).unbind(dim=1)
        start, end = self.network(idx, segments, mask)
        loss = F.cross_entropy(start.float(), first) + F.cross_entropy(end.float(), last)
        return loss / 2, len(batch.rows)

    def _dev_answers(self) -> list[Answers]:
        asked = [(question.question, [question.context]) for question in self.dev]
        return self.model.answer_all(asked, count=1)

    def _error(self) -> float:
        """1 - F1 on the held-out questions, with the best threshold if some have no answer."""
        return 1 - self._measure(self._dev_answers())[1]

    def _measure(self, found: Sequence[Answers]) -> tuple[float | None, float]:
        """The threshold (none where all questions have answers) and the F1 that it gives."""
        texts = ["" if not one.spans else one.spans[0].answer for one in found]
        references = [question.references for question in self.dev]
        if all(references):
            return None, score_answers(texts, references).f1
        best = best_threshold(texts, references, [one.nothing for one in found])
        return best.value, best.f1

    def result(self) -> QaModel:
        """The trained model, with the best weights and a threshold when there was held-out data."""
        if not self.dev:
            return self.unfinished()
        threshold, f1 = self._measure(self._dev_answers())
        return self._described(threshold, {"dev_f1": f1})

    def unfinished(self) -> QaModel:
        """The model as it is: an answer is given if it scores more than none."""
        some_without = any(not question.answers for question in self.questions)
        return self._described(0.0 if some_without else None, {})

    def _described(self, threshold: float | None, metrics: dict[str, float]) -> QaModel:
        model = QaModel(self.network.eval(), self.settings, threshold)
        model.config = self.model_config(
            registry.QA, model.describe(), {"questions": len(self.questions), **metrics}
        )
        return model

    def data_hash(self) -> str:
        """A fingerprint of the training questions."""
        return _hash(self.questions)

    def common_settings(self) -> dict[str, Any]:
        """What a run that goes on with this one's checkpoint must have in common with it."""
        return {
            **asdict(self.settings),
            "held-out data": _hash(self.dev),
            "pretrained": self.pretrained,
        }


def _target(window: Window, question: Question) -> tuple[int, int]:
    """First and last token of the first answer; [CLS] where the window has no answer."""
    for answer in question.answers:
        found = find_tokens(window, answer.start, answer.start + len(answer.text))
        if found is not None:
            return found
    return 0, 0


def _hash(questions: Sequence[Question]) -> str:
    return modeldir.data_hash(
        repr((one.question, one.context, one.answers)).encode("utf-8", "replace")
        for one in questions
    )
