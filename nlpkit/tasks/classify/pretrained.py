"""A classifier on a pre-trained encoder: one or two texts in, probabilities of labels out.

The states of a text's tokens become one vector (their mean, the highest, the first one's, the last
one's, or a mean weighted by attention), and a linear layer scores the labels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.finetune import PretrainedEncoder, Reading, read_tuned
from nlpkit.models.finetune_states import padded_batches
from nlpkit.nn.layer_mix import LayerMix
from nlpkit.nn.quantized import Quantize, pack, quantize
from nlpkit.registry import CLASSIFIER
from nlpkit.tasks.classify.data import Text, two_texts
from nlpkit.tasks.classify.features import BagMaker
from nlpkit.tasks.classify.predictor import LABELS, Classifier
from nlpkit.tasks.classify.settings import Pooling, TextTuning
from nlpkit.text.vocab import Vocab

TEXTS_AT_ONCE = 2048  # that are sorted by length: little time goes into padding
Floats = NDArray[np.float32]


class TextNetwork(nn.Module):
    """Encoder, mix of its layers, pooling, and a linear layer."""

    def __init__(
        self, encoder: PretrainedEncoder, pooling: Pooling, labels: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.encoder, self.pooling = encoder, pooling
        self.head = TextHead(encoder.layers, encoder.size, pooling, labels, dropout)

    def forward(self, idx: Tensor, segments: Tensor, mask: Tensor) -> Tensor:
        layers = self.encoder(idx, segments, mask)  # (L, B, T, C)
        scores: Tensor = self.head(layers, mask)
        return scores.float()


class TextHead(nn.Module):
    """What is learned from scratch: layers of states (L, B, T, C) -> scores (B, K)."""

    def __init__(
        self, layers: int, size: int, pooling: Pooling, labels: int, dropout: float
    ) -> None:
        super().__init__()
        self.mix = LayerMix(layers) if layers > 1 else None
        self.pooling = pooling
        self.query = nn.Parameter(torch.zeros(size)) if pooling == "attention" else None
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(size, labels)

    def forward(self, layers: Tensor, mask: Tensor) -> Tensor:
        states = layers[0] if self.mix is None else self.mix(layers)  # (B, T, C)
        scores: Tensor = self.output(self.dropout(self.pool(states, mask)))
        return scores

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """One vector (B, C) of the states (B, T, C) of each text."""
        if self.pooling == "first":
            return states[:, 0]
        if self.pooling == "last":
            last = mask.sum(dim=1) - 1
            return states[torch.arange(len(states), device=states.device), last]
        if self.pooling == "max":
            return states.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)
        if self.query is None:
            shares = mask / mask.sum(dim=1, keepdim=True)
        else:
            shares = (states @ self.query).masked_fill(~mask, -torch.inf).softmax(dim=1)
        return torch.einsum("bt,btc->bc", shares.to(states.dtype), states)


class PretrainedClassifier(Classifier):
    """A ``Classifier`` whose probabilities come from a network on an encoder.

    >>> PretrainedClassifier.load("reviews.model").predict(["I did."])  # doctest: +SKIP
    ['positive']
    """

    settings: TextTuning  # type: ignore[assignment]

    def __init__(
        self,
        network: TextNetwork,
        settings: TextTuning,
        labels: Vocab,
        config: modeldir.ModelConfig | None = None,
    ) -> None:
        self.network, self.settings, self.labels = network, settings, labels
        self.bags = BagMaker("word", lower=False, ngrams=1)  # words that ``explain`` leaves out
        self.cut = 0  # texts that were longer than what can be read
        self.config = config or modeldir.ModelConfig(kind=CLASSIFIER, settings=self.describe())

    def __repr__(self) -> str:
        return f"<PretrainedClassifier: {self.network.encoder.kind}, {len(self.labels)} labels>"

    def describe(self) -> dict[str, Any]:
        """What ``config.json`` must say of the model."""
        given = {name: value for name, value in asdict(self.settings).items() if value is not None}
        mix = self.network.head.mix
        shown = {} if mix is None else {"mix": {"layers": mix.shares, "gamma": mix.gamma.item()}}
        return {**given, **shown, "encoder": self.network.encoder.describe()}

    def quantize(self, kind: Quantize) -> None:
        """Smaller numbers; the model can then be used, not saved."""
        quantize(self.network, kind)

    def pack(self) -> None:
        """The same numbers in a quicker order; the model can then be used, not saved."""
        pack(self.network)

    def probabilities_of(self, rows: Sequence[Sequence[str]]) -> Floats:
        """The same for texts that are tokens already."""
        return self.probabilities([" ".join(row) for row in rows])

    def probabilities(self, texts: Sequence[Text]) -> Floats:
        """The probability of each label, (B, K); the rows add up to 1 unless multi-label."""
        if isinstance(texts, str):
            raise TypeError("texts are a list of texts, not one text")
        found = np.zeros((len(texts), len(self.labels)), np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            self.network.encoder.forget()
            readings, cut = read_texts(self.network.encoder, texts[start : start + TEXTS_AT_ONCE])
            self.cut += cut
            for rows, scores in self._scores(readings):
                found[start + rows] = scores
        return found

    @torch.inference_mode()
    def _scores(self, readings: Sequence[Reading]) -> Iterator[tuple[NDArray[np.int64], Floats]]:
        self.network.eval()
        device = next(self.network.head.parameters()).device
        for rows, idx, segments, mask in padded_batches(self.network.encoder, readings, device):
            scores = self.network(idx, segments, mask).float()
            shares = scores.sigmoid() if self.settings.multi_label else scores.softmax(dim=1)
            yield rows, shares.cpu().numpy()

    # --- files ----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Everything but config.json into a folder that ``modeldir.create`` gave."""
        self.network.encoder.write(folder)
        self.labels.save(str(folder / LABELS))
        modeldir.write_weights(folder, self.network.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PretrainedClassifier:
        """A classifier from its folder."""
        config, settings, encoder, head = read_tuned(path, CLASSIFIER, TextTuning)
        folder = Path(path)
        labels = Vocab.load(str(folder / LABELS))
        network = TextNetwork(encoder, settings.pooling or "average", len(labels))
        expected = {
            f"head.{name}": tuple(part.shape) for name, part in network.head.state_dict().items()
        }
        schema.check_tensors(head, expected, str(folder / modeldir.WEIGHTS))
        network.load_state_dict(head, strict=False)
        return cls(network.eval(), settings, labels, config)


def read_texts(encoder: PretrainedEncoder, texts: Sequence[Text]) -> tuple[list[Reading], int]:
    """Texts as the encoder reads them, and how many had to be cut."""
    pairs = [two_texts(text) for text in texts]
    firsts = encoder.encode_many([first for first, _ in pairs])
    seconds = encoder.encode_many([second or "" for _, second in pairs])
    found = [
        encoder.fit_room(first, None if text is None else second)
        for first, second, (_, text) in zip(firsts, seconds, pairs, strict=True)
    ]
    return [reading for reading, _ in found], sum(cut for _, cut in found)


def pick_pooling(given: Pooling | None, encoder: PretrainedEncoder) -> Pooling:
    """The pooling, given or what suits the encoder."""
    if given == "first" and encoder.pools_last:
        raise NlpkitError(
            "`pooling` first: the first token of a causal model has seen no other",
            hint="`pooling` last or average",
        )
    return given or ("last" if encoder.pools_last else "average")
