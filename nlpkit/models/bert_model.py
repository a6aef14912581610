"""A BERT with its tokenizer, as a model folder: texts in, states or one vector for each text out.

Texts are sorted by length and go through the model in batches of nearly one length, so that hardly
any padding is computed; results come in the order of the texts, and are the same in any batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from nlpkit import modeldir, registry, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.bert import Bert
from nlpkit.models.bert_settings import BertSettings, Pooling
from nlpkit.openmp import sharing_cores
from nlpkit.text.codec import save_codec
from nlpkit.text.wordpiece import TOKENIZER, WordPiece
from nlpkit.training.batches import Ragged, plan

BATCH_TOKENS = 2048  # of one pass through the model, padding included
Segments = Sequence[Sequence[int]]


@dataclass(frozen=True)
class TextVectors:
    """How the states of a text become one vector; sentence encoders come with their own."""

    pooling: Pooling = "mean"  # of all states, [CLS] and [SEP] included; cls: that of [CLS]
    normalize: bool = False  # whether vectors have length 1
    max_length: int | None = None  # tokens that it was trained on, if fewer than it can read

    RANGES: ClassVar[schema.Ranges] = {"max_length": (3, 2**31 - 1)}


class BertModel(modeldir.Model):
    """A model and its tokenizer.

    >>> BertModel.load("small.bert").vectors(["to be or not to be"]).shape  # doctest: +SKIP
    torch.Size([1, 256])
    """

    def __init__(
        self,
        model: Bert,
        codec: WordPiece,
        config: modeldir.ModelConfig | None = None,
        text_vectors: TextVectors | None = None,
    ) -> None:
        self.model, self.codec = model, codec
        self.text_vectors = text_vectors or TextVectors()
        self.config = config or modeldir.ModelConfig(kind=registry.BERT, settings=self.describe())

    def describe(self) -> dict[str, object]:
        """What ``config.json`` must say of the model."""
        return {
            "architecture": self.model.settings.to_dict(),
            "text_vectors": asdict(self.text_vectors),
        }

    def __repr__(self) -> str:
        sizes = self.model.settings
        shape = f"{sizes.layers} layers, {sizes.heads} heads, width {sizes.dim}"
        context = f"context {sizes.block_size}, vocabulary {len(self.codec):,}"
        return f"<BertModel: {self.model.count_parameters():,} parameters, {shape}, {context}>"

    def write(self, folder: Path) -> None:
        """Write everything but ``config.json`` into a folder that ``modeldir.create`` gave."""
        save_codec(self.codec, folder)
        modeldir.write_weights(folder, self.model.state_dict())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        device: torch.device | str = "cpu",
        *,
        kind: str = registry.BERT,
    ) -> BertModel:
        """Read a model folder, or another ``kind`` of folder that has a BERT in it."""
        path = modeldir.find_model(path)
        config = modeldir.load_config(path, kind=kind)
        where = f"{Path(path) / modeldir.CONFIG}: settings"
        values = config.settings
        settings = BertSettings.from_dict(values.get("architecture"), f"{where}.architecture")
        text_vectors = schema.read(
            TextVectors, values.get("text_vectors", {}), f"{where}.text_vectors"
        )
        codec = WordPiece.read(Path(path) / TOKENIZER)
        tensors = modeldir.read_weights(path)
        model = adopt_tensors(settings, tensors, str(Path(path) / modeldir.WEIGHTS))
        check_vocabulary(codec, settings, path)
        return cls(model.to(device), codec, config, text_vectors)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.embedding.weight.device

    @property
    def max_length(self) -> int:
        """Most tokens of one reading, [CLS] and [SEP] included."""
        most = self.model.settings.block_size
        return min(most, self.text_vectors.max_length or most)

    # --- states and vectors ---------------------------------------------------------------------

    @torch.no_grad()
    def states(
        self,
        rows: Sequence[Sequence[int]],
        segments: Segments | None = None,
        layer: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
    ) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Batches: the numbers of their rows, states (B, T, C), and which are tokens (B, T).

        ``rows`` are ids with [CLS] and [SEP], none longer than the model reads. ``layer`` 0 is the
        embeddings, None the last.
        """
        self.model.eval()
        ids = Ragged(rows)
        kinds_of_ids = None if segments is None or self.model.segment is None else Ragged(segments)
        for batch in sharing_cores(plan(ids.lengths, batch_tokens)):
            idx, inside = ids.pad(batch, self.codec.pad_id).tensors(self.device)
            kinds = None
            if kinds_of_ids is not None:
                kinds = kinds_of_ids.pad(batch).tensors(self.device)[0]
            padding = None if bool(inside.all()) else inside
            if layer is None:
                states = self.model(idx, kinds, padding)
            else:
                states = self.model.layers(idx, kinds, padding)[layer]
            yield batch.tolist(), states, inside

    def vectors(
        self,
        texts: Sequence[str],
        pooling: Pooling | None = None,
        *,
        normalize: bool | None = None,
        layer: int | None = None,
    ) -> Tensor:
        """A vector for each text (N, C). A text that is too long is read in parts.

        Its vector is then the mean of those of its parts, by their tokens (max: their maximum).
        """
        pooling = pooling or self.text_vectors.pooling
        owners, rows = self.parts(texts)
        parts = self._part_vectors(rows, pooling, layer)
        found = parts if len(rows) == len(texts) else _join(parts, owners, rows, pooling)
        if self.text_vectors.normalize if normalize is None else normalize:
            found = torch.nn.functional.normalize(found, dim=-1)
        return found

    def part_vectors(self, texts: Sequence[str]) -> tuple[list[int], Tensor]:
        """A vector for each part of each text (P, C), and the number of its text."""
        owners, rows = self.parts(texts)
        return owners, self._part_vectors(rows, self.text_vectors.pooling, None)

    def parts(self, texts: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Texts as rows of ids that fit into one reading, and the number of each one's text."""
        room = self.max_length - 2
        owners: list[int] = []
        rows: list[list[int]] = []
        for number, ids in enumerate(self.codec.encode_many(texts)):
            for start in range(0, max(1, len(ids)), room):
                owners.append(number)
                rows.append(self.codec.wrap(ids[start : start + room]))
        return owners, rows

    def _part_vectors(
        self, rows: Sequence[Sequence[int]], pooling: Pooling, layer: int | None
    ) -> Tensor:
        found = torch.empty(len(rows), self.model.settings.dim)
        for batch, states, inside in self.states(rows, layer=layer):
            found[batch] = pool(states, inside, pooling).float().cpu()
        return found

    def count_long(self, texts: Sequence[str]) -> int:
        """How many texts do not fit into one reading."""
        return sum(len(row) > self.max_length - 2 for row in self.codec.encode_many(texts))


def _join(parts: Tensor, owners: list[int], rows: list[list[int]], pooling: Pooling) -> Tensor:
    """The vectors of texts from those of their parts (P, C)."""
    index = torch.tensor(owners)
    if pooling == "max":
        count = owners[-1] + 1
        found = torch.full((count, parts.size(1)), -torch.inf)
        return found.scatter_reduce_(0, index[:, None].expand_as(parts), parts, "amax")
    weights = torch.tensor([float(len(row)) for row in rows])[:, None]
    found = torch.zeros(owners[-1] + 1, parts.size(1)).index_add_(0, index, parts * weights)
    return found / torch.zeros(len(found), 1).index_add_(0, index, weights)


def pool(states: Tensor, inside: Tensor, pooling: Pooling) -> Tensor:
    """One vector (B, C) of the states (B, T, C) of each text.

    >>> states = torch.tensor([[[1.0], [5.0], [9.0]]])
    >>> pool(states, torch.tensor([[True, True, False]]), "mean").item()
    3.0
    """
    if pooling == "cls":
        return states[:, 0]
    kept = inside[:, :, None]  # (B, T, 1)
    if pooling == "max":
        return states.masked_fill(~kept, -torch.inf).amax(dim=1)
    return (states * kept).sum(dim=1) / kept.sum(dim=1)


def adopt_tensors(settings: BertSettings, tensors: dict[str, Tensor], where: str) -> Bert:
    """A model whose weights are these tensors, checked before memory is asked for."""
    if settings.layers > len(tensors):  # or building them takes for ever, even without memory
        raise NlpkitError(
            f"{where} has too few tensors for layers {settings.layers}", hint=schema.AGAIN
        )
    with torch.device("meta"):
        model = Bert(settings)
    expected: dict[str, schema.Shape] = {
        name: tuple(part.shape) for name, part in model.state_dict().items()
    }
    schema.check_tensors(tensors, expected, where)
    model.load_state_dict(tensors, assign=True)
    model.requires_grad_(False)
    return model.eval()


def check_vocabulary(
    codec: WordPiece, settings: BertSettings, source: str | os.PathLike[str]
) -> None:
    """Refuse a tokenizer with ids that the model does not have."""
    largest = len(codec.vocabulary()) - 1
    if largest >= settings.vocab_size:
        raise NlpkitError(
            f"{source}: the tokenizer has ids up to {largest}, the model {settings.vocab_size}",
            hint="the tokenizer the model was trained with",
        )
