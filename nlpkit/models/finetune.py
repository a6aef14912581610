"""Pre-trained encoders behind one interface: ids of tokens in, states of tokens out.

A classifier, a tagger or a reader of questions stands on a BERT, an ELMo or a GPT and does not know
which. Each gives its layers as (L, B, T, C): a BERT and a GPT the last one (L = 1), an ELMo all of
its own, which the task mixes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nlpkit import modeldir, registry, schema
from nlpkit.errors import NlpkitError, with_article
from nlpkit.models.bert_model import BertModel, adopt_tensors, check_vocabulary
from nlpkit.models.bert_settings import BertSettings
from nlpkit.models.build import adopt_weights, empty_model
from nlpkit.models.elmo import SentenceBatch
from nlpkit.models.elmo_model import ElmoModel, build, read_architecture
from nlpkit.models.gpt import GPT
from nlpkit.models.settings import ModelSettings
from nlpkit.text.codec import Codec, load_codec, save_codec
from nlpkit.text.tokenizers import get_tokenizer
from nlpkit.text.word_bytes import boundary_rows, word_rows
from nlpkit.text.wordpiece import TOKENIZER, WordPiece

REMEMBERED = 200_000  # words that an ELMo keeps as rows of bytes between batches


class Reading(NamedTuple):
    """What an encoder reads at once: marks, a text, perhaps a second one."""

    ids: list[int]
    segments: list[int]  # 0 in the first text, 1 in the second


class PretrainedEncoder(nn.Module):
    """What all of them have; ``room`` is the most ids of a reading, marks included."""

    kind: str
    size: int  # C
    layers = 1  # that forward gives
    room: int | None = None
    before = 1  # marks before the first text
    behind = 1  # marks behind each text
    pad_id = 0
    pools_last = False  # whether only the last token has seen the whole text

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts, without marks."""
        raise NotImplementedError

    def encode_words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Ids of words, and how many each word has: at least one."""
        raise NotImplementedError

    def wrap(self, first: Sequence[int], second: Sequence[int] | None = None) -> Reading:
        """One or two texts between marks."""
        raise NotImplementedError

    def stages(self) -> list[list[nn.Parameter]]:
        """Weights from the lowest to the highest: the embeddings, then layer by layer."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """What ``config.json`` must say of it."""
        raise NotImplementedError

    def write(self, folder: Path) -> None:
        """The files that its tokens need; weights are written by the task."""
        raise NotImplementedError

    def learn_words(self, texts: Iterable[str]) -> None:
        """Before training: tell apart what the vocabulary lacks, if there is one."""

    def forget(self) -> None:
        """Between batches: what is kept of texts that are done."""

    def fit_room(
        self, first: Sequence[int], second: Sequence[int] | None = None
    ) -> tuple[Reading, bool]:
        """One or two texts between marks, cut to what can be read; and whether they were cut.

        Of two texts the longer one is cut.
        """
        room = self.room
        marks = self.before + self.behind * (1 if second is None else 2)
        if room is None or len(first) + len(second or ()) + marks <= room:
            return self.wrap(first, second), False
        left = room - marks
        if second is None:
            return self.wrap(first[:left]), True
        a, b = len(first), len(second)
        while a + b > left:
            a, b = (a - 1, b) if a > b else (a, b - 1)
        return self.wrap(first[:a], second[:b]), True


class BertEncoder(PretrainedEncoder):
    """A BERT without its heads."""

    kind = registry.BERT

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        settings = bert.model.settings
        self.settings = replace(settings, head="none", pooler=False, next_sentence=False)
        kept = {
            name: tensor
            for name, tensor in bert.model.state_dict().items()
            if not name.startswith(("head.", "pooler.", "next_sentence."))
        }
        self.model = adopt_tensors(self.settings, kept, "the model")
        self.codec = bert.codec
        self.size, self.room, self.pad_id = settings.dim, settings.block_size, bert.codec.pad_id

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        return self.codec.encode_many(texts)

    def encode_words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        return self.codec.encode_words(words)

    def learn_words(self, texts: Iterable[str]) -> None:
        """Give what is [UNK] in texts more than once an embedding, the mean of all, of its own.

        A vocabulary of text without punctuation has no comma, which says much about its neighbours.
        """
        table = self.model.embedding
        words = self.codec.unknown_words(texts)
        if not words:
            return
        self.codec = self.codec.extended(words, table.num_embeddings)
        added = table.weight.detach().mean(dim=0).expand(len(words), -1)
        table.weight = nn.Parameter(torch.cat([table.weight.detach(), added]))
        table.num_embeddings += len(words)
        self.settings = replace(self.settings, vocab_size=table.num_embeddings)
        self.model.settings = self.settings

    def wrap(self, first: Sequence[int], second: Sequence[int] | None = None) -> Reading:
        ids = self.codec.wrap(first, second)
        start = len(first) + 2
        return Reading(ids, [0] * start + [1] * (len(ids) - start))

    def forward(self, idx: Tensor, segments: Tensor, mask: Tensor) -> Tensor:
        inside = None if bool(mask.all()) else mask
        kinds = segments if self.settings.segments else None
        return self.model(idx, kinds, inside)[None]

    def stages(self) -> list[list[nn.Parameter]]:
        model = self.model
        parts = (model.embedding, model.position, model.segment, model.embedding_norm)
        lowest = [p for part in parts if part is not None for p in part.parameters()]
        blocks = [list(block.parameters()) for block in model.blocks]
        for block, relative in zip(blocks, model.relative, strict=False):
            block += relative.parameters()
        if model.norm is not None:
            blocks[-1] += model.norm.parameters()
        return [lowest, *blocks]

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "architecture": self.settings.to_dict()}

    def write(self, folder: Path) -> None:
        save_codec(self.codec, folder)

    @classmethod
    def read(cls, folder: Path, value: Any, tensors: dict[str, Tensor], where: str) -> BertEncoder:
        """From the folder of a task."""
        settings = BertSettings.from_dict(value, f"{where}.architecture")
        codec = WordPiece.read(folder / TOKENIZER)
        check_vocabulary(codec, settings, folder)
        under = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
        model = adopt_tensors(settings, under, str(folder / modeldir.WEIGHTS))
        return cls(BertModel(model, codec))


class GptEncoder(PretrainedEncoder):
    """A GPT without its head: a token has seen what stands before it, the last one all."""

    kind = registry.GPT
    before = behind = 0
    pools_last = True

    def __init__(self, model: GPT, codec: Codec) -> None:
        super().__init__()
        self.settings = replace(model.settings, tied=True)
        model.head = nn.Identity()  # type: ignore[assignment]  # logits are not asked for
        self.model, self.codec = model, codec
        self.size, self.room = self.settings.dim, self.settings.block_size
        self._between = codec.encode("\n") if _knows(codec, "\n") else codec.encode(" ")

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        start = self.codec.first_id or 0
        return [self.codec.encode(text) or [start] for text in texts]

    def encode_words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        rows = [
            self.codec.encode(f" {word}" if place else word) for place, word in enumerate(words)
        ]
        rows = [row or [self.codec.first_id or 0] for row in rows]
        return [index for row in rows for index in row], [len(row) for row in rows]

    def wrap(self, first: Sequence[int], second: Sequence[int] | None = None) -> Reading:
        ids = [*first] if second is None else [*first, *self._between, *second]
        return Reading(ids[: self.room], [0] * min(len(ids), self.room or len(ids)))

    def forward(self, idx: Tensor, segments: Tensor, mask: Tensor) -> Tensor:
        x = self.model.embed(idx)  # padding stands behind: nothing looks at it
        for block in self.model.blocks:
            x = block(x, self.model.rotary)
        states: Tensor = self.model.norm(x)
        return states[None]

    def stages(self) -> list[list[nn.Parameter]]:
        model: Any = self.model
        parts = (model.embedding, *model.previous, model.position)
        lowest = [p for part in parts if part is not None for p in part.parameters()]
        blocks = [list(block.parameters()) for block in model.blocks]
        blocks[-1] += model.norm.parameters()
        return [lowest, *blocks]

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "architecture": self.settings.to_dict()}

    def write(self, folder: Path) -> None:
        save_codec(self.codec, folder)

    @classmethod
    def read(cls, folder: Path, value: Any, tensors: dict[str, Tensor], where: str) -> GptEncoder:
        """From the folder of a task."""
        settings = ModelSettings.from_dict(value, f"{where}.architecture")
        if settings.model != "gpt" or settings.layers > len(tensors):
            schema.refuse(f"{where}.architecture.model", settings.model, "gpt")
        under = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
        under.pop("head.weight", None)
        model = adopt_weights(empty_model(settings), under, folder)
        assert isinstance(model, GPT)
        return cls(model, load_codec(folder, settings.vocab_size))


class ElmoEncoder(PretrainedEncoder):
    """An ELMo without its softmax. The ids of words are their places in a table of bytes."""

    kind = registry.ELMO

    def __init__(self, elmo: ElmoModel) -> None:
        super().__init__()
        self.settings = replace(elmo.model.settings, words=0)
        kept = {n: t for n, t in elmo.model.state_dict().items() if not n.startswith("softmax.")}
        self.model = build(self.settings, kept, "the model")
        self.size, self.layers = self.model.width, elmo.layers
        self._tokenizer = get_tokenizer("word")
        self.forget()

    def forget(self) -> None:
        """The words met so far, once they are many."""
        known: dict[str, int] = getattr(self, "_known", {})
        if not known or len(known) > REMEMBERED:
            self._known: dict[str, int] = {}
            self._rows = [boundary_rows(self.settings.longest_word)]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode_words(self._tokenizer.tokens(text))[0] for text in texts]

    def encode_words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        if self.settings.lower:
            words = [word.lower() for word in words]
        known = self._known
        new = [word for word in dict.fromkeys(words) if word not in known]
        if new:
            known.update({word: len(known) + 2 + place for place, word in enumerate(new)})
            self._rows.append(word_rows(new, self.settings.longest_word))
        return [known[word] for word in words], [1] * len(words)

    def wrap(self, first: Sequence[int], second: Sequence[int] | None = None) -> Reading:
        ids = [0, *first, 1] if second is None else [0, *first, 1, *second, 1]
        start = len(first) + 2
        return Reading(ids, [0] * start + [1] * (len(ids) - start))

    def forward(self, idx: Tensor, segments: Tensor, mask: Tensor) -> Tensor:
        import numpy as np

        if len(self._rows) > 1:
            self._rows = [np.concatenate(self._rows)]
        distinct, places = torch.unique(idx, return_inverse=True)
        rows = torch.from_numpy(self._rows[0][distinct.cpu().numpy()].astype(np.int64))
        batch = SentenceBatch(rows.to(idx.device), places, mask.sum(dim=1))
        layers: Tensor = self.model(batch)[0]
        return layers

    def stages(self) -> list[list[nn.Parameter]]:
        lowest = list(self.model.words.parameters())
        return [lowest, *(list(lstm.parameters()) for lstm in self.model.lstms)]

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "architecture": self.settings.to_dict()}

    def write(self, folder: Path) -> None:
        """Nothing: bytes need no table."""

    @classmethod
    def read(cls, folder: Path, value: Any, tensors: dict[str, Tensor], where: str) -> ElmoEncoder:
        """From the folder of a task."""
        settings = read_architecture(value, f"{where}.architecture")
        under = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
        if settings.words or settings.layers > len(under):
            schema.refuse(f"{where}.architecture.words", settings.words, "0")
        return cls(ElmoModel(build(settings, under, str(folder / modeldir.WEIGHTS)), None))


KINDS: dict[str, Any] = {one.kind: one for one in (BertEncoder, GptEncoder, ElmoEncoder)}


def open_encoder(path: str | os.PathLike[str]) -> PretrainedEncoder:
    """The encoder of a model folder of nlpkit: of a BERT, an ELMo or a GPT."""
    path = modeldir.find_model(path)
    file = Path(path) / modeldir.CONFIG
    if file.is_file() and "kind" not in (modeldir.read_json(file) or {}):
        hint = "nlpkit bert import, or gpt import, makes a model of a folder from elsewhere"
        raise NlpkitError(f"{path} is not a model of nlpkit", hint=hint)
    model: Any = registry.load(path) if os.path.isdir(path) else modeldir.load_config(path)
    if isinstance(model, BertModel):
        return BertEncoder(model)
    if isinstance(model, ElmoModel):
        return ElmoEncoder(model)
    if isinstance(getattr(model, "model", None), GPT) and hasattr(model, "codec"):
        return GptEncoder(model.model, model.codec)
    kind = modeldir.load_config(path, check_files=False).kind
    raise NlpkitError(
        f"{path} is {with_article(kind)} model, which gives no states of tokens",
        hint="a bert, elmo or gpt model",
    )


def read_encoder(folder: Path, value: Any, tensors: dict[str, Tensor]) -> PretrainedEncoder:
    """The encoder that a task's folder holds; ``tensors`` are its own, without a prefix."""
    where = f"{folder / modeldir.CONFIG}: settings.encoder"
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind not in KINDS:
        schema.refuse(f"{where}.kind", kind, " or ".join(KINDS))
    encoder: PretrainedEncoder = KINDS[kind].read(folder, value.get("architecture"), tensors, where)
    return encoder.eval()


class Tuned(NamedTuple):
    """A model on an encoder, as its folder has it."""

    config: modeldir.ModelConfig
    settings: Any
    encoder: PretrainedEncoder
    head: dict[str, Tensor]  # what is not the encoder's


def read_tuned(path: str | os.PathLike[str], kind: str, tuning: type[Any]) -> Tuned:
    """What every model folder with an encoder in it holds; settings are of the type ``tuning``."""
    path = modeldir.find_model(path)
    config = modeldir.load_config(path, kind=kind)
    folder = Path(path)
    values = dict(config.settings)
    described = values.pop("encoder", None)
    values.pop("mix", None)  # shown by ``info``, and among the weights
    settings = schema.read(tuning, values, f"{folder / modeldir.CONFIG}: settings")
    tensors = modeldir.read_weights(path)
    head = {name: tensors.pop(name) for name in list(tensors) if name.startswith("head.")}
    inner = {name.removeprefix("encoder."): tensor for name, tensor in tensors.items()}
    return Tuned(config, settings, read_encoder(folder, described, inner), head)


def _knows(codec: Codec, text: str) -> bool:
    try:
        return bool(codec.encode(text))
    except NlpkitError:
        return False
