"""A reader of questions: an encoder with a start and an end vector (Devlin et al., 2019).

The score of a span is the product of its first token's state with the start vector plus that of its
last token's with the end vector; the span of [CLS] alone stands for no answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nlpkit import modeldir, registry, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.finetune import BertEncoder, PretrainedEncoder, read_encoder
from nlpkit.openmp import sharing_cores
from nlpkit.tasks.qa.settings import QaSettings
from nlpkit.tasks.qa.windows import Window, make_windows
from nlpkit.text.wordpiece import WordPiece
from nlpkit.training.batches import Ragged, plan

BATCH_TOKENS = 1024


class AnswerSpan(NamedTuple):
    """An answer: characters ``start`` to ``end`` of text number ``text``."""

    answer: str
    start: int
    end: int
    score: float
    probability: float  # among the spans that are given, and no answer
    text: int = 0


class Answers(NamedTuple):
    """The best spans of a question, and whether none of them is one."""

    spans: list[AnswerSpan]
    nothing: float  # the score of no answer less that of the best span
    probability: float  # of no answer, among the spans that are given and it

    def best(self, threshold: float | None) -> AnswerSpan | None:
        """The answer, unless no answer scores more than ``threshold`` above it."""
        if not self.spans or (threshold is not None and self.nothing > threshold):
            return None
        return self.spans[0]


class QaNetwork(nn.Module):
    """Logits of where the answer starts and where it ends, (B, T) each."""

    def __init__(self, encoder: BertEncoder, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(dropout)
        self.ends = nn.Linear(encoder.size, 2)

    def forward(self, idx: Tensor, segments: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        states = self.encoder(idx, segments, mask)[0]  # (B, T, C)
        logits = self.ends(self.dropout(states)).masked_fill(~mask[:, :, None], -1e4)
        start, end = logits.unbind(dim=2)
        return start, end


class QaModel(modeldir.Model):
    """The network, its tokenizer, and the threshold of no answer.

    >>> QaModel.load("qa.model").answer("Who wrote it?", ["Anna wrote it."])  # doctest: +SKIP
    """

    def __init__(
        self,
        network: QaNetwork,
        settings: QaSettings,
        threshold: float | None,
        config: modeldir.ModelConfig | None = None,
    ) -> None:
        self.network, self.settings, self.threshold = network, settings, threshold
        self.config = config or modeldir.ModelConfig(kind=registry.QA, settings=self.describe())

    def __repr__(self) -> str:
        return f"<QaModel: {self.network.encoder.kind}, windows of {self.room} tokens>"

    def describe(self) -> dict[str, Any]:
        """What ``config.json`` must say of the model."""
        return {
            **{name: value for name, value in asdict(self.settings).items() if value is not None},
            "no_answer": {"threshold": self.threshold},
            "encoder": self.network.encoder.describe(),
        }

    @property
    def codec(self) -> WordPiece:
        """The tokenizer."""
        return self.network.encoder.codec

    def windows(self, question: str, context: str) -> list[Window]:
        """What is read for a question on a text."""
        return make_windows(
            self.codec, question, context, room=self.room, overlap=self.settings.overlap
        )

    @property
    def room(self) -> int:
        """Tokens of a window."""
        return min(self.settings.max_length, self.network.encoder.settings.block_size)

    def answer(self, question: str, texts: Sequence[str], *, count: int = 5) -> Answers:
        """The best spans over all texts."""
        return self.answer_all([(question, texts)], count=count)[0]

    @torch.no_grad()
    def answer_all(
        self, asked: Sequence[tuple[str, Sequence[str]]], *, count: int = 5
    ) -> list[Answers]:
        """The same for many questions, each on texts of its own; all are read together."""
        self.network.eval()
        windows: list[Window] = []
        owners: list[tuple[int, int]] = []  # question and text of each window
        for number, (question, texts) in enumerate(asked):
            for place, text in enumerate(texts):
                made = self.windows(question, text)
                windows += made
                owners += [(number, place)] * len(made)
        found: list[list[AnswerSpan]] = [[] for _ in asked]
        nothing = np.full(len(asked), np.inf)
        for row, start, end in self._read(windows):
            number, place = owners[row]
            text = asked[number][1][place]
            found[number] += best_spans(
                windows[row], start, end, text, place, count, self.settings.longest_answer
            )
            # no answer must be the best in every window: an answer in one is enough
            nothing[number] = min(nothing[number], float(start[0] + end[0]))
        return [
            _rank(spans, float(none), count) for spans, none in zip(found, nothing, strict=True)
        ]

    def _read(
        self, windows: Sequence[Window]
    ) -> Iterator[tuple[int, NDArray[np.float32], NDArray[np.float32]]]:
        """The number of each window and its logits."""
        ids = Ragged([window.ids for window in windows])
        segments = Ragged([window.segments for window in windows])
        device = self.network.ends.weight.device
        for rows in sharing_cores(plan(ids.lengths, BATCH_TOKENS)):
            idx, mask = ids.pad(rows, self.codec.pad_id).tensors(device)
            kinds, _ = segments.pad(rows).tensors(device)
            starts, ends = self.network(idx, kinds, mask)
            logits = starts.cpu().numpy(), ends.cpu().numpy()
            yield from zip(rows.tolist(), *logits, strict=True)

    # --- files ----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write everything but ``config.json`` into a folder that ``modeldir.create`` gave."""
        self.network.encoder.write(folder)
        modeldir.write_weights(folder, self.network.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: torch.device | str = "cpu") -> QaModel:
        """Read a model folder."""
        path = modeldir.find_model(path)
        config = modeldir.load_config(path, kind=registry.QA)
        where = f"{Path(path) / modeldir.CONFIG}: settings"
        values = dict(config.settings)
        described, none = values.pop("encoder", None), values.pop("no_answer", None)
        threshold = none.get("threshold") if isinstance(none, dict) else none
        settings = schema.read(QaSettings, values, where)
        if threshold is not None and not isinstance(threshold, int | float):
            schema.refuse(f"{where}.no_answer", none, "a threshold")
        tensors = modeldir.read_weights(path)
        own = {name: tensors.pop(name, torch.empty(0)) for name in ("ends.weight", "ends.bias")}
        encoder = read_encoder(
            Path(path),
            described,
            {name.removeprefix("encoder."): tensor for name, tensor in tensors.items()},
        )
        network = QaNetwork(need_bert(encoder, path))
        schema.check_tensors(own, {"ends.weight": (2, encoder.size), "ends.bias": (2,)}, str(path))
        network.load_state_dict(own, strict=False)
        return cls(network.to(device).eval(), settings, threshold, config)


def need_bert(encoder: PretrainedEncoder, path: Any) -> BertEncoder:
    """The encoder, if it can read a question and a text together."""
    if not isinstance(encoder, BertEncoder):
        raise NlpkitError(
            f"{path} is a model of kind {encoder.kind}: answers need one that reads a question and "
            "a text together, both ways",
            hint="a bert model",
        )
    return encoder


def best_spans(
    window: Window,
    start: NDArray[np.float32],
    end: NDArray[np.float32],
    text: str,
    place: int,
    count: int,
    longest: int,
) -> list[AnswerSpan]:
    """The spans of a window with the highest sums of start and end logits."""
    length = len(window.spans)
    if not length:
        return []
    starts = start[window.first : window.first + length]
    ends = end[window.first : window.first + length]
    sums = starts[:, None] + ends[None]  # (length, length)
    gap = np.arange(length)[None] - np.arange(length)[:, None]
    sums = np.where((gap >= 0) & (gap < longest), sums, -np.inf)
    kept = min(count, int(np.isfinite(sums).sum()))
    order = np.argpartition(-sums.ravel(), kept - 1)[:kept]
    found = []
    for index in order[np.argsort(-sums.ravel()[order], kind="stable")].tolist():
        first, last = divmod(index, length)
        begin, stop = window.spans[first][0], window.spans[last][1]
        found.append(
            AnswerSpan(text[begin:stop], begin, stop, float(sums[first, last]), 0.0, place)
        )
    return found


def _rank(spans: list[AnswerSpan], nothing: float, count: int) -> Answers:
    """The best of all windows, each once, with probabilities beside no answer's score."""
    distinct: dict[tuple[int, int, int], AnswerSpan] = {}
    for span in sorted(spans, key=lambda one: -one.score):
        distinct.setdefault((span.text, span.start, span.end), span)
    kept = list(distinct.values())[:count]
    if not kept:
        return Answers([], float("inf"), 1.0)
    scores = np.array([*(span.score for span in kept), nothing])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    ranked = [
        span._replace(probability=float(share))
        for span, share in zip(kept, shares[:-1], strict=True)
    ]
    return Answers(ranked, nothing - kept[0].score, float(shares[-1]))
