"""An ELMo with its vocabulary: sentences of words in, the vectors of all layers out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nlpkit import modeldir, registry, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.elmo import Elmo, ElmoArchitecture, SentenceBatch
from nlpkit.nn.projected_lstm import LstmState
from nlpkit.openmp import sharing_cores
from nlpkit.text.vocab import UNK, Vocab
from nlpkit.text.word_bytes import boundary_rows, word_rows
from nlpkit.training.batches import plan

BEGIN, END = "<s>", "</s>"
SPECIALS = (UNK, BEGIN, END)
VOCAB = "vocab.tsv"
BATCH_TOKENS = 4096  # words that are looked at together
SENTENCES_AT_ONCE = 1024  # that are sorted by length: little time goes into padding

Floats = NDArray[np.float32]


class ElmoModel(modeldir.Model):
    """The network and the words of its softmax, of which an imported model has none.

    >>> ElmoModel.load("elmo.model").embed([["Time", "flies"]])[0].shape  # doctest: +SKIP
    (3, 2, 256)
    """

    def __init__(
        self, model: Elmo, words: Vocab | None, config: modeldir.ModelConfig | None = None
    ) -> None:
        self.model, self.words = model, words
        self.config = config or modeldir.ModelConfig(
            kind=registry.ELMO, settings={"architecture": model.settings.to_dict()}
        )

    def __repr__(self) -> str:
        sizes = self.model.settings
        return f"<ElmoModel: {sizes.layers} layers, {self.model.width} numbers in a vector>"

    def write(self, folder: Path) -> None:
        """Write everything but ``config.json`` into a folder that ``modeldir.create`` gave."""
        if self.words is not None:
            modeldir.write_text(folder / VOCAB, self.words.dumps())
        modeldir.write_weights(folder, self.model.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: torch.device | str = "cpu") -> ElmoModel:
        """Read a model folder."""
        path = modeldir.find_model(path)
        config = modeldir.load_config(path, kind=registry.ELMO)
        where = f"{Path(path) / modeldir.CONFIG}: settings.architecture"
        settings = read_architecture(config.settings.get("architecture"), where)
        words = None
        if settings.words:
            words = Vocab.load(str(Path(path) / VOCAB)).having(END, Path(path) / VOCAB, first=UNK)
            if len(words) != settings.words:
                raise NlpkitError(
                    f"{path}: {len(words)} words, not the {settings.words} of its softmax",
                    hint=schema.AGAIN,
                )
        tensors = modeldir.read_weights(path)
        return cls(build(settings, tensors, str(path)).to(device).eval(), words, config)

    @property
    def layers(self) -> int:
        """Layers of a vector, the words by themselves being the first."""
        return 1 + self.model.settings.layers

    def batch(self, sentences: Sequence[Sequence[str]]) -> SentenceBatch:
        """Sentences as the network takes them: between marks, distinct words once."""
        if self.model.settings.lower:
            sentences = [[word.lower() for word in words] for words in sentences]
        return make_batch(sentences, self.model.settings.longest_word, self._device)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    @torch.no_grad()
    def embed(
        self, sentences: Iterable[Sequence[str]], *, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[Floats]:
        """For each sentence its vectors, (layers, words, width), whatever it is batched with.

        Nothing is remembered from one sentence to the next.
        """
        waiting: list[Sequence[str]] = []
        for sentence in sentences:
            waiting.append(sentence)
            if len(waiting) == SENTENCES_AT_ONCE:
                yield from self._embed(waiting, batch_tokens)
                waiting = []
        yield from self._embed(waiting, batch_tokens)

    def _embed(self, sentences: list[Sequence[str]], batch_tokens: int) -> list[Floats]:
        found: dict[int, Floats] = {}
        lengths = [len(sentence) + 2 for sentence in sentences]
        for rows in sharing_cores(plan(lengths, batch_tokens)):
            layers, _ = self.model(self.batch([sentences[row] for row in rows]))
            for place, row in enumerate(rows.tolist()):
                found[row] = layers[:, place, 1 : 1 + len(sentences[row])].cpu().numpy()
        return [found[place] for place in range(len(sentences))]

    @torch.no_grad()
    def embed_statefully(
        self, batches: Iterable[Sequence[Sequence[str]]]
    ) -> Iterator[list[Floats]]:
        """As AllenNLP does it: each row goes on from where the row of the batch before ended.

        All batches have as many sentences. The vectors of a sentence depend on what came before,
        which is seldom wanted; this is here to compare.
        """
        states: list[LstmState] | None = None
        for sentences in batches:
            layers, states = self.model(self.batch(sentences), states)
            yield [
                layers[:, row, 1 : 1 + len(words)].cpu().numpy()
                for row, words in enumerate(sentences)
            ]


def make_batch(
    sentences: Sequence[Sequence[str]], longest_word: int, device: torch.device | str = "cpu"
) -> SentenceBatch:
    """Sentences between marks; the rows of the marks are the first two.

    >>> make_batch([["a", "b", "a"], []], 5).places.tolist()
    [[0, 2, 3, 2, 1], [0, 1, 1, 1, 1]]
    """
    distinct: dict[str, int] = {}
    lengths = torch.tensor([len(words) + 2 for words in sentences], dtype=torch.long)
    places = torch.ones(len(sentences), int(lengths.max()) if len(lengths) else 2).long()
    places[:, 0] = 0
    for row, words in enumerate(sentences):
        numbers = [distinct.setdefault(word, len(distinct) + 2) for word in words]
        places[row, 1 : 1 + len(words)] = torch.tensor(numbers, dtype=torch.long)
    rows = np.concatenate([boundary_rows(longest_word), word_rows(list(distinct), longest_word)])
    characters = torch.from_numpy(rows.astype(np.int64))
    return SentenceBatch(characters.to(device), places.to(device), lengths.to(device))


def read_architecture(value: Any, where: str) -> ElmoArchitecture:
    """The architecture that a ``config.json`` has, checked."""
    return schema.read(_Lists, value, where)


class _Lists(ElmoArchitecture):
    """The architecture as JSON has it."""

    widths: list[int]
    filters: list[int]


def build(settings: ElmoArchitecture, tensors: dict[str, Tensor], where: str) -> Elmo:
    """The network with these weights, which are checked before memory is asked for."""
    with torch.device("meta"):
        model = Elmo(settings)
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    schema.check_tensors(tensors, expected, where)
    model.load_state_dict(tensors, assign=True)
    return model.requires_grad_(False)


def mix_layers(layers: Floats, layer: str, shares: Sequence[float] | None = None) -> Floats:
    """One array (words, width) of (layers, words, width): the ``mean``, the ``top`` or a mix.

    >>> mix_layers(np.array([[[1.0]], [[3.0]]], np.float32), "mean").tolist()
    [[2.0]]
    """
    if shares is not None:
        if len(shares) != len(layers):
            raise NlpkitError(
                f"{len(shares)} shares for {len(layers)} layers", hint="a number for each layer"
            )
        mixed: Floats = np.tensordot(np.array(shares, np.float32), layers, axes=1)
        return mixed
    if layer == "mean":
        mean: Floats = layers.mean(axis=0)
        return mean
    if layer == "top":
        return layers[-1]
    number = -1
    with contextlib.suppress(ValueError):
        number = int(layer)
    if not 0 <= number < len(layers):
        hint = f"all, mean, top, or a layer from 0 to {len(layers) - 1}"
        raise NlpkitError(f"no layer {layer}", hint=hint)
    return layers[number]
