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

import torch
from torch import Tensor, nn

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.finetune import PretrainedEncoder, read_tuned
from nlpkit.models.finetune_words import WordStates
from nlpkit.nn.encoder_config import within
from nlpkit.nn.inference import Floats, Ids
from nlpkit.registry import TAGGER
from nlpkit.tasks.tag.head import TagHead
from nlpkit.tasks.tag.predictor import (
    LAYOUT,
    TAGS,
    About,
    Tagger,
)
from nlpkit.tasks.tag.settings import TagTuning
from nlpkit.text.codec import save_codec
from nlpkit.text.conll import Layout
from nlpkit.text.schemes import Scheme
from nlpkit.text.vocab import Vocab
from nlpkit.text.vocab_codec import WORDS, VocabCodec


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
        mix = self.network.words.mix
        shown = {} if mix is None else {"mix": {"layers": mix.shares, "gamma": mix.gamma.item()}}
        return {**given, **shown, "encoder": self.network.words.encoder.describe()}

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
