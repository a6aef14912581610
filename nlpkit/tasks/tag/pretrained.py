"""A tagger on a pre-trained encoder: states of words, perhaps an encoder over them, tags.

How words get states is in ``models/finetune_words.py``; what makes tags of states is the head that
every tagger has.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError, with_article
from nlpkit.models.finetune import PretrainedEncoder, read_encoder, read_tuned
from nlpkit.models.finetune_words import WordStates
from nlpkit.nn.encoder_config import within
from nlpkit.nn.inference import Floats, Ids
from nlpkit.registry import TAGGER
from nlpkit.tasks.tag.batches import cut_long, cut_tagged
from nlpkit.tasks.tag.head import TagHead
from nlpkit.tasks.tag.predictor import (
    LAYOUT,
    TAGS,
    About,
    Tagger,
)
from nlpkit.tasks.tag.settings import TagTuning
from nlpkit.text.codec import save_codec
from nlpkit.text.conll import Layout, Sentence
from nlpkit.text.schemes import Scheme
from nlpkit.text.vocab import Vocab
from nlpkit.text.vocab_codec import WORDS, VocabCodec

PRETRAINED = "pretrained."  # how tensors of an encoder beside features begin in files


class TagNetwork(nn.Module):
    """Any encoder of words, and a head on their states."""

    def __init__(
        self,
        encoder: PretrainedEncoder,
        settings: TagTuning,
        n_tags: int,
        legal: list[list[bool]] | None,
    ) -> None:
        super().__init__()
        self.words = WordStates(encoder, settings.pieces)
        self.head = TagHead(
            encoder.size,
            n_tags,
            nn.Dropout(settings.dropout),
            crf=settings.crf == "yes",
            legal=legal,
            context=settings.context_config(encoder.size),
        )

    @property
    def learned(self) -> nn.ModuleList:
        """What is learned from scratch: the mix of layers and the head."""
        return nn.ModuleList(part for part in (self.words.mix, self.head) if part is not None)

    def forward(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Scores (B, T, K) of the tags of sentences."""
        scores: Tensor = self.head(*self.words.encode(sentences))
        return scores

    def tensors(self) -> dict[str, Tensor]:
        """Weights by their names in a file."""
        names = {"words.encoder.": "encoder.", "words.mix.": "head.mix."}
        found = dict(self.state_dict())
        for ours, theirs in names.items():
            for name in [name for name in found if name.startswith(ours)]:
                found[theirs + name.removeprefix(ours)] = found.pop(name)
        return found

    def load_head(self, tensors: dict[str, Tensor]) -> None:
        """Take all but the encoder's weights from a file."""
        mine = self.tensors()
        for name, tensor in tensors.items():
            mine[name].copy_(tensor)


def head_shapes(
    encoder: PretrainedEncoder, settings: TagTuning, n_tags: int
) -> dict[str, schema.Shape]:
    """The tensors of a head by their names in a file."""
    context = settings.context_config(encoder.size)
    size = encoder.size if context is None else context.size
    shapes: dict[str, schema.Shape] = {"output.weight": (n_tags, size), "output.bias": (n_tags,)}
    if context is not None:
        shapes |= within("context.", context.shapes())
    if settings.crf == "yes":
        shapes["crf.scores"] = (n_tags + 1, n_tags + 1)
    if encoder.layers > 1:
        shapes |= {"mix.scores": (encoder.layers,), "mix.gamma": ()}
    return within("head.", shapes)


def _shown_mix(words: WordStates) -> dict[str, Any]:
    """How much each layer counts, for ``info``."""
    mix = words.mix
    return {} if mix is None else {"mix": {"layers": mix.shares, "gamma": mix.gamma.item()}}


class StatesTagger(Tagger):
    """A ``Tagger`` with the states of a pre-trained encoder beside its own features of words."""

    batch_tokens = 2048

    def __init__(self, *args: Any, states: WordStates, **kwargs: Any) -> None:
        self.states, self.state_size = states, states.size
        super().__init__(*args, **kwargs)
        size = self.state_size + self.weights["words.mix.bias"].size
        self._nothing = self.encoder.first(np.zeros((1, size), np.float32))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, beside {with_article(self.states.encoder.kind)}>"

    def describe(self) -> dict[str, Any]:
        """What ``config.json`` must say of the model."""
        described = {"states": self.states.encoder.describe()}
        return {**super().describe(), **_shown_mix(self.states), **described}

    @torch.inference_mode()
    def _inputs(self, rows: Sequence[Sequence[str]], positions: Ids) -> tuple[Floats, Ids]:
        self.states.encoder.forget()
        states = self.states.eval().encode(rows).states.float().cpu().numpy()
        ids = np.arange(positions.size).reshape(positions.shape)
        flat: Floats = states.reshape(len(ids.ravel()), -1)
        before = self.weights["words.mix.bias"].size
        first = self.encoder.first(np.pad(flat, ((0, 0), (before, 0)))) - self._nothing
        return first + self.words.first[positions.ravel()], ids

    def write(self, folder: Path) -> None:
        """Everything but config.json into a folder that ``modeldir.create`` gave."""
        self.extractor.write(folder)
        self.states.encoder.write(folder)
        self._write_tags(folder)
        tensors = {name: torch.from_numpy(array) for name, array in self.weights.items()}
        given = self.states.encoder.state_dict().items()
        modeldir.write_weights(folder, tensors | {PRETRAINED + name: t for name, t in given})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StatesTagger:
        """A tagger from its folder."""
        folder = Path(path)
        config = modeldir.load_config(path, kind=TAGGER)
        values = dict(config.settings)
        described = values.pop("states")
        values.pop("mix", None)
        tensors = modeldir.read_weights(path)
        theirs = {n: tensors.pop(n) for n in list(tensors) if n.startswith(PRETRAINED)}
        inner = {name.removeprefix(PRETRAINED): tensor for name, tensor in theirs.items()}
        encoder = read_encoder(folder, described, inner)
        states = WordStates(encoder, "mean" if values.get("pieces") == "mean" else "first")
        weights = {name: tensor.numpy() for name, tensor in tensors.items()}
        tagger = cls._read(folder, config, values, weights, states=states)
        if states.mix is not None:
            under = {name: tensors[f"mix.{name}"] for name in ("scores", "gamma")}
            states.mix.load_state_dict(under)
        states.requires_grad_(False)
        return tagger


class PretrainedTagger(Tagger):
    """A ``Tagger`` whose scores come from an encoder."""

    settings: TagTuning  # type: ignore[assignment]
    longest = 10_000  # an encoder has its own way with long sentences
    batch_tokens = 2048

    def __init__(
        self,
        network: TagNetwork,
        settings: TagTuning,
        words: VocabCodec,
        tags: Vocab,
        *,
        scheme: Scheme | None,
        layout: Layout,
        config: modeldir.ModelConfig | None = None,
    ) -> None:
        self.network, self.settings, self.tags = network, settings, tags
        self.codec = words  # to know which words training had
        self.scheme, self.layout = scheme, layout
        self.config = config or modeldir.ModelConfig(kind=TAGGER, settings=self.describe())
        crf = network.head.crf
        self._set_pairs(None if crf is None else crf.scores.detach().cpu().numpy())

    def __repr__(self) -> str:
        return f"<PretrainedTagger: {self.network.words.encoder.kind}, {len(self.tags)} tags>"

    def describe(self) -> dict[str, Any]:
        """What ``config.json`` must say of the model."""
        given = {name: value for name, value in asdict(self.settings).items() if value is not None}
        words = self.network.words
        return {**given, **_shown_mix(words), "encoder": words.encoder.describe()}

    @torch.inference_mode()
    def _score(self, rows: Sequence[Sequence[str]], lengths: Ids) -> Floats:
        network = self.network.eval()
        network.words.encoder.forget()
        scores: Floats = network(rows).float().cpu().numpy()
        return scores

    # --- files ----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Everything but config.json into a folder that ``modeldir.create`` gave."""
        self.network.words.encoder.write(folder)
        save_codec(self.codec, folder)
        self._write_tags(folder)
        modeldir.write_weights(folder, self.network.tensors())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PretrainedTagger:
        """A tagger from its folder."""
        config, settings, encoder, head = read_tuned(path, TAGGER, TagTuning)
        folder = Path(path)
        about = schema.read(About, modeldir.read_json(folder / LAYOUT), str(folder / LAYOUT))
        tags = Vocab.load(str(folder / TAGS))
        where = str(folder / modeldir.WEIGHTS)
        if settings.layers > len(head):
            raise NlpkitError(f"{where} has too few tensors for its layers", hint=schema.AGAIN)
        schema.check_tensors(head, head_shapes(encoder, settings, len(tags)), where)
        network = TagNetwork(encoder, settings, len(tags), None).requires_grad_(False)
        network.load_head(head)
        words = VocabCodec.read(folder / WORDS)
        return cls(
            network.eval(),
            settings,
            words,
            tags,
            scheme=about.scheme,
            layout=about.layout,
            config=config,
        )


def fitting(sentence: Sentence, encoder: PretrainedEncoder, *, entities: bool) -> list[slice]:
    """Chunks of a sentence that the encoder can read, cut between entities."""
    longest = len(sentence.tokens)
    room = encoder.room
    while True:
        chunks = (
            cut_tagged(sentence.tags, longest)
            if entities
            else cut_long(len(sentence.tags), longest)
        )
        if room is None or longest == 1:
            return chunks
        left = room - encoder.before - encoder.behind
        if all(sum(encoder.encode_words(sentence.tokens[p])[1]) <= left for p in chunks):
            return chunks
        longest = max(1, longest // 2)
