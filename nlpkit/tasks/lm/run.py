"""One training of a language model on running text: text in, a model of any kind out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

import torch

from nlpkit import modeldir
from nlpkit.device import memory_advice
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.tasks.lm.model import GptModel, TextModel
from nlpkit.tasks.lm.settings import GptSettings, LmSettings, ResolvedLm
from nlpkit.tasks.lm.stream import split_stream, tokenize_stream
from nlpkit.tasks.lm.train import (
    count_ngrams,
    heldout_loss,
    new_model,
    prepare_training,
    recipe_of,
)
from nlpkit.tasks.lm.words import join_documents
from nlpkit.text.codec import Codec, check_same_codec
from nlpkit.textio import TextBlock
from nlpkit.training.distributed import Processes
from nlpkit.training.run import Run

_INTERNAL = ("muon_lr", "freeze")
_SIZES = ("layers", "heads", "dim", "block_size")


class LmRun(Run):
    """One training: text in, a ``TextModel`` out, or a ``GptModel``.

    >>> text = [TextBlock(b"to be or not to be\\n" * 50, "-", 1)]
    >>> LmRun(text, LmSettings(model="ngram", order=3), tokenizer="word").train()
    <TextModel: ngram, 36 parameters, order 3, vocabulary 6>
    """

    processes: Processes

    def __init__(
        self,
        blocks: Iterable[TextBlock],
        settings: LmSettings,
        *,
        tokenizer: str | Codec | None = None,  # char, byte, word, a tokenizer.json, or what encodes
        init: str | os.PathLike[str] | None = None,
        device: torch.device | None = None,
        processes: Processes | None = None,
        folder: str | None = None,  # for a file of ids that has no name
        errors: str = "strict",
    ) -> None:
        self.init = None if init is None else os.fspath(init)
        self.processes = processes or Processes()
        device, self._folder = device or torch.device("cpu"), folder or tempfile.gettempdir()
        start = None if init is None else open_start(init, settings, tokenizer)
        self.settings = resolve(settings, start, tokenizer)
        if self.settings.unit == "documents":
            blocks = join_documents(blocks)
        named = isinstance(tokenizer, str)
        codec, self.ids = tokenize_stream(
            blocks,
            tokenizer if named else "char",  # type: ignore[arg-type]
            self._folder,
            errors,
            start.codec if start else None if named else tokenizer,  # type: ignore[arg-type]
            vocab_size=self.settings.vocab_size,
            min_count=self.settings.min_count,
        )
        block = start.model.settings.block_size if start else self.settings.block_size
        counted = self.settings.model == "ngram"
        window = (self.settings.order, "order") if counted else (block, "block_size")
        share = self.settings.val_fraction
        self.train_ids, self.validation = split_stream(self.ids, window[0], share, window[1])
        if counted:
            self._prepare_counting(codec)
        else:
            self._prepare(codec, start, device)

    def _prepare_counting(self, codec: Codec) -> None:
        self.codec = codec
        if self.settings.unit != "stream" and codec.first_id is None:
            raise NlpkitError("these subwords have no end-of-text mark", hint="`unit` stream")
        self.summary = (
            f"{len(self.train_ids):,} tokens to count, {len(self.validation):,} held out, "
            f"vocabulary of {len(codec):,}"
        )

    def _make_model(self, codec: Codec, start: TextModel | None, device: torch.device) -> None:
        if start is not None:
            model = start.model.requires_grad_(True)
        else:
            with memory_advice():
                model = new_model(self.settings, len(codec), device)
        kind = GptModel if self.settings.model == "gpt" else TextModel
        self.model = kind(model.to(device), codec, unit=self.settings.unit)

    def _prepare(self, codec: Codec, start: TextModel | None, device: torch.device) -> None:
        self._make_model(codec, start, device)
        model = self.model.model
        self.summary = (
            f"{len(self.train_ids):,} tokens to learn from, {len(self.validation):,} held out, "
            f"vocabulary of {len(codec):,}; {model.count_parameters():,} parameters"
        )
        self.trainer = prepare_training(
            model,
            self.train_ids,
            self.validation,
            self.settings,
            self.processes,
            mark=self.model.mark,
        )

    def common_settings(self) -> dict[str, Any]:
        """All settings, the number of processes, and the model it began with."""
        return {**vars(self.settings), "processes": self.processes.count, "init": self.init}

    def data_hash(self) -> str:
        """A fingerprint of the ids, which stay on disk."""
        return modeldir.data_hash([self.ids.data.cast("B")])

    def result(self) -> TextModel:
        """The model, its loss on all of the held-out part, and how it came about."""
        more: dict[str, Any] = {}
        if self.settings.model == "ngram":
            counted = count_ngrams(
                self.train_ids, self.validation, self.codec, self.settings, self._folder
            )
            self.model = TextModel(counted, self.codec, unit=self.settings.unit)
            more = {**counted.trie.details, "levels": counted.trie.levels}
        loss = None
        if len(self.validation):
            loss = heldout_loss(self.model.model, self.validation, mark=self.model.mark)
        self._describe(loss, more)
        if "levels" in more:
            self.outcome = f"{more['levels'][-1] - 1:,} n-grams; {self.outcome}"
        self.model.model.requires_grad_(False)
        return self.model

    def unfinished(self) -> TextModel:
        """The model as it is, its held-out loss not measured."""
        self._describe(None, {})
        return self.model

    def _describe(self, loss: float | None, more: dict[str, Any]) -> None:
        """How the model came about, for ``config.json`` and in words."""
        self.model.config = self.model_config(
            self.model.kind,
            {
                **recorded_settings(self.settings),
                **more,
                "architecture": self.model.model.settings.to_dict(),
            },
            {} if loss is None else {"heldout_loss": loss},
        )
        self.outcome = "" if loss is None else f"held-out loss {loss:.4f} nats per token; "


class GptRun(LmRun):
    """One training of a GPT: text in, a ``GptModel`` out.

    >>> text = [TextBlock(b"to be or not to be\\n" * 50, "-", 1)]
    >>> settings = GptSettings(layers=1, dim=16, block_size=8, max_iters=3)
    >>> GptRun(text, settings).train()
    <GptModel: 3,720 parameters, 1 layers, 2 heads, width 16, context 8, vocabulary 8>
    """

    def __init__(self, blocks: Iterable[TextBlock], settings: GptSettings, **more: Any) -> None:
        super().__init__(blocks, LmSettings(**vars(settings)), **more)


def recorded_settings(settings: ResolvedLm) -> dict[str, Any]:
    """What ``config.json`` says of a training: the options that the model has."""
    kind = GptSettings if settings.model == "gpt" else LmSettings
    names = [field.name for field in fields(kind) if field.name not in _INTERNAL]
    found = {name: getattr(settings, name) for name in [*names, "unit", "words"]}
    return {name: value for name, value in found.items() if value is not None}


def open_start(init: Any, settings: LmSettings, tokenizer: str | Codec | None) -> TextModel:
    """The model to train further, if nothing that was asked for contradicts it."""
    sizes = [name for name in _SIZES if getattr(settings, name)]
    if sizes:
        raise UsageError(f"`init` brings its own `{sizes[0]}`")
    if settings.model == "ngram":
        raise UsageError("n-grams are counted at once: `init` has no place there")
    start = (GptModel if settings.model == "gpt" else TextModel).load(init)
    if start.model.settings.model != settings.model:
        raise NlpkitError(
            f"{init} holds a model of kind {start.model.settings.model}, not {settings.model}",
            hint=f"`model` {start.model.settings.model}",
        )
    recipe_of(start.model, settings.recipe)
    if settings.unit not in (None, start.unit):
        raise UsageError(f"`init` was trained with `unit` {start.unit}")
    if isinstance(tokenizer, str):
        check_same_codec(start.codec, tokenizer)
    elif tokenizer is not None:
        raise UsageError("`init` brings its own `tokenizer`")
    return start


def resolve(
    settings: LmSettings, start: TextModel | None, tokenizer: str | Codec | None
) -> ResolvedLm:
    """Settings with what a model to go on from brings along."""
    if start is None:
        if settings.freeze:
            raise UsageError("`freeze` needs `init`")
        return settings.resolve_lm(tokenizer if isinstance(tokenizer, str) else "char")
    wanted = settings.resolve_lm(getattr(start.codec, "kind", "char"))
    sizes = {name: getattr(start.model.settings, name) for name in _SIZES}
    return replace(wanted, recipe=start.model.settings.recipe, unit=start.unit, **sizes)
