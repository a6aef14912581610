"""A language model with its codec: text in, text out. Continue prompts, and score text."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nlpkit import modeldir, registry, schema
from nlpkit.errors import NlpkitError
from nlpkit.generate.causal_beam import Beam, search_beams
from nlpkit.generate.loop import generate
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.models.base import LanguageModel
from nlpkit.models.build import read_architecture, read_model, write_model
from nlpkit.models.gpt import GPT
from nlpkit.models.kneser_ney import Trie
from nlpkit.models.ngram_text import NGramText
from nlpkit.tasks.lm.score import TextScore, stream_losses
from nlpkit.tasks.lm.settings import LmSettings, Unit, WritingSettings
from nlpkit.text.codec import Codec, TextStream, load_codec, save_codec
from nlpkit.text.word_codec import MARK, UNKNOWN, Words
from nlpkit.textio import TextBlock

_MUCH = 1 << 18  # tokens x layers x width from which on compiled code makes up for its loading


@dataclass(frozen=True)
class _Text:
    """What ``config.json`` says of the text that a model is for."""

    unit: Unit = "stream"
    words: str = "word"  # how words are cut, where tokens are words
    levels: list[int] = field(default_factory=list)  # of an n-gram model
    end: str | None = None  # the token that ends an answer, where it learned from examples


@dataclass
class Continuation:
    """What a model wrote after a prompt."""

    prompt: str
    text: str = ""
    ids: list[int] = field(default_factory=list)
    log_probabilities: list[float] = field(default_factory=list)
    stopped: bool = False  # whether a stop text or the end-of-text mark ended it


class TextModel(modeldir.Model):
    """A model of running text and its codec.

    >>> TextModel.load("lstm.model").score("It was a dark night.").bits_per_byte  # doctest: +SKIP
    1.73
    """

    kind = registry.LM

    def __init__(
        self,
        model: LanguageModel,
        codec: Codec,
        config: modeldir.ModelConfig | None = None,
        *,
        unit: Unit = "stream",
    ) -> None:
        self.model, self.codec, self.unit = model, codec, unit
        self.config = config or modeldir.ModelConfig(
            kind=self.kind, settings={"architecture": model.settings.to_dict()}
        )

    def __repr__(self) -> str:
        sizes = self.model.settings
        shape = f"order {sizes.order}"
        if sizes.model not in ("ngram", "mlp"):
            heads = f"{sizes.heads} heads, " if sizes.model == "gpt" else ""
            shape = f"{sizes.layers} layers, {heads}width {sizes.dim}"
        name = "" if sizes.model == "gpt" else f"{sizes.model}, "
        context = "" if self.model.carries_state else f"context {sizes.block_size}, "
        context += f"vocabulary {len(self.codec):,}"
        kind = type(self).__name__
        return f"<{kind}: {name}{self.model.count_parameters():,} parameters, {shape}, {context}>"

    def write(self, folder: Path) -> None:
        """Write everything but ``config.json`` into a folder that ``modeldir.create`` gave."""
        save_codec(self.codec, folder)
        if isinstance(self.model, NGramText):
            self.model.write(folder)
        else:
            write_model(folder, self.model)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: torch.device | str = "cpu") -> TextModel:
        """Read a model folder, a GPT's too."""
        path = modeldir.find_model(path)
        kind = modeldir.load_config(path, check_files=False).kind
        if cls is TextModel and kind == registry.GPT:
            return GptModel.load(path, device)
        config = modeldir.load_config(path, kind=cls.kind)
        where = f"{Path(path) / modeldir.CONFIG}: settings"
        named = schema.read(_Text, config.settings, where, others=True)
        settings = read_architecture(path, config, LmSettings)
        if (settings.model == "gpt") != (cls.kind == registry.GPT):
            other = "gpt" if cls.kind == registry.GPT else "a model other than gpt"
            schema.refuse(f"{where}.architecture.model", settings.model, other)
        codec = load_codec(Path(path), settings.vocab_size, named.words)
        if settings.model == "ngram":
            mark = MARK if named.unit != "stream" else -1
            if named.unit != "stream" and not isinstance(codec, Words):
                mark = codec.first_id or 0
            trie = Trie.read(Path(path), settings.vocab_size, mark, named.levels)
            return cls(NGramText(trie), codec, config, unit=named.unit)
        return cls(read_model(path, settings).to(device), codec, config, unit=named.unit)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(iter([*self.model.parameters(), *self.model.buffers()])).device

    @property
    def mark(self) -> int | None:
        """The id between independent texts, where the model was trained on such."""
        return None if self.unit == "stream" else self.codec.first_id

    @property
    def end(self) -> int | None:
        """The id at which writing ends: of an answer, between texts, or the end-of-text mark."""
        named = self.config.settings.get("end")
        if isinstance(named, str) and (ids := self.codec.encode(named)):
            return ids[0]
        return self.codec.end_id if self.mark is None else self.mark

    def work(self, tokens: int) -> int:
        """About how many multiply-adds it takes to read or write so many tokens."""
        return 0 if isinstance(self.model, NGramText) else tokens * self.model.count_parameters()

    def pays_to_compile(self, tokens: int) -> bool:
        """Whether writing so many tokens takes longer than to get ready for it."""
        return False

    def speed_up(self, tokens: int) -> None:
        """Make ready to write so many tokens, if that pays."""

    def quantize(self) -> None:
        """Turn weights into 8-bit integers, which only a GPT can."""
        raise NlpkitError("8-bit weights are for GPT models", hint="leave out `quantize`")

    def encode_prompt(self, text: str) -> list[int]:
        """Ids of a prompt; an empty one is whatever texts begin after."""
        ids = self.codec.encode(text)
        if self.mark is not None:
            return [self.mark, *ids]
        if ids:
            return ids
        first = self.codec.first_id
        if first is None:
            raise NlpkitError("this model needs a prompt that is not empty")
        return [first]

    def sample(
        self,
        prompt: str = "",
        max_tokens: int = 200,
        *,
        temperature: float = 0.8,
        stop: Sequence[str] = (),
        seed: int = 1,
        **wishes: Any,
    ) -> str:
        """What the model writes after a prompt, without the prompt.

        ``wishes`` are the fields of ``SamplingSettings``: top_k, min_p, typical_p...
        """
        sampling = SamplingSettings(temperature=temperature, **wishes)
        stop = [stop] if isinstance(stop, str) else stop
        steps = self.continue_prompts([prompt], max_tokens, sampling, seed, stop=stop)
        return "".join(new for step in steps for _, new in step)

    def continue_prompts(
        self,
        prompts: Sequence[str],
        max_tokens: int,
        sampling: SamplingSettings,
        seed: int,
        *,
        stop: Sequence[str] = (),
        log_probabilities: bool = False,
    ) -> Iterator[list[tuple[Continuation, str]]]:
        """Continue all prompts together; yield, a token at a time, each row and its new text.

        A row ends before the first stop text, or where the model draws the end-of-text mark. Text
        that may turn out to be the beginning of a stop text is held back until it is clear. Rows
        that have ended get no new text.
        """
        rows = [Continuation(prompt) for prompt in prompts]
        shown = [0] * len(rows)
        generator = torch.Generator().manual_seed(seed)
        ids = [self.encode_prompt(prompt) for prompt in prompts]
        streams = [
            TextStream(self.codec, () if text[-1:].isspace() else row)
            for text, row in zip(prompts, ids, strict=True)
        ]
        end = self.end
        steps = generate(
            self.model,
            ids,
            max_tokens,
            self._without_unknown(sampling),
            generator,
            vocab_size=self.codec.n_ids,
            every_logit=log_probabilities,
        )
        for number, (drawn, logits) in enumerate(steps, 1):
            scores: list[float] = []
            if log_probabilities:
                normal = logits.log_softmax(dim=-1).gather(1, drawn[:, None])
                scores = normal[:, 0].tolist()
            for place, index in enumerate(drawn.tolist()):
                row = rows[place]
                if row.stopped:
                    continue
                row.ids.append(index)
                row.log_probabilities += scores[place : place + 1]
                if index != end:
                    row.text += streams[place].add(index)
                if index == end or number == max_tokens:
                    row.text += streams[place].finish()
                _cut_at_stop(row, stop)
                row.stopped = row.stopped or index == end
            last = number == max_tokens or all(row.stopped for row in rows)
            news = []
            for place, row in enumerate(rows):
                ready = len(row.text) if last or row.stopped else _certain(row.text, stop)
                news.append((row, row.text[shown[place] : ready]))
                shown[place] = max(shown[place], ready)
            yield news
            if last:
                return

    def _without_unknown(self, sampling: SamplingSettings) -> SamplingSettings:
        """Nobody wants to read <unk>."""
        if not isinstance(self.codec, Words):
            return sampling
        return replace(sampling, logit_bias=(*sampling.logit_bias, (UNKNOWN, -1e4)))

    def losses(
        self, parts: Iterable[Sequence[int] | np.ndarray], stride: int | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Ids and their losses in nats, from parts of a text as they come; see ``stream_losses``.

        The first follows an end-of-text mark or a line end.
        """
        parts = iter(parts)
        begin = next((part for part in parts if len(part)), None)
        if begin is None:
            return
        first = self.codec.first_id
        before = int(begin[0]) if first is None else first
        everything = itertools.chain([begin], parts)
        yield from stream_losses(self.model, everything, before, mark=self.mark, stride=stride)

    def score(self, text: str, stride: int | None = None) -> TextScore:
        """Score a text; windows of a model that reads such are ``stride`` tokens apart."""
        return self.score_parts([text], stride)

    def score_parts(self, texts: Iterable[str], stride: int | None = None) -> TextScore:
        """Score a long text that comes in parts (of whole lines), in constant memory."""
        size = {"bytes": 0, "words": 0}

        def encoded() -> Iterator[Sequence[int] | np.ndarray]:
            for text in texts:
                size["bytes"] += len(text.encode("utf-8", "replace"))
                size["words"] += len(text.split())
                yield self.codec.encode(text)

        return self._add_up(encoded(), size, stride)

    def score_blocks(
        self, blocks: Iterable[TextBlock], errors: str = "strict", stride: int | None = None
    ) -> TextScore:
        """Score blocks of a file; words between white space never become strings."""
        codec = self.codec
        if not (isinstance(codec, Words) and codec.kind == "whitespace" and errors == "strict"):
            return self.score_parts((block.text(errors) for block in blocks), stride)
        size = {"bytes": 0, "words": 0}

        def encoded() -> Iterator[np.ndarray]:
            for block in blocks:
                block.text()  # refuses what is not UTF-8
                ids = codec.encode_block(block.data)
                size["bytes"] += len(block.data)
                size["words"] += int((ids != MARK).sum())
                yield ids

        return self._add_up(encoded(), size, stride)

    def _add_up(
        self, parts: Iterable[Sequence[int] | np.ndarray], size: dict[str, int], stride: int | None
    ) -> TextScore:
        nats, unknown_nats, tokens, unknown = 0.0, 0.0, 0, 0
        for ids, losses in self.losses(parts, stride):
            nats += float(losses.sum(dtype=np.float64))
            tokens += len(ids)
            if isinstance(self.codec, Words):
                strange = ids == UNKNOWN
                unknown += int(strange.sum())
                unknown_nats += float(losses[strange].sum(dtype=np.float64))
        return TextScore(nats, tokens, size["bytes"], size["words"], unknown, unknown_nats)

    def search(
        self,
        prompt: str,
        writing: WritingSettings,
        sampling: SamplingSettings | None = None,
        stop: Sequence[str] = (),
    ) -> list[tuple[str, Beam]]:
        """The likeliest continuations by beam search, the best first, each as text."""
        ids = self.encode_prompt(prompt)
        found = search_beams(
            self.model,
            ids,
            writing.max_tokens,
            beams=writing.beams,
            length_penalty=writing.length_penalty,
            end=self.end,
            settings=self._without_unknown(sampling or SamplingSettings()),
            vocab_size=self.codec.n_ids,
        )
        texts = []
        for beam in found:
            stream = TextStream(self.codec, ids)
            row = Continuation(prompt, "".join(map(stream.add, beam.ids)) + stream.finish())
            _cut_at_stop(row, stop)
            texts.append((row.text, beam))
        return texts


class GptModel(TextModel):
    """A GPT and its codec.

    >>> GptModel.load("tales.model").sample("Once upon a time", 20)  # doctest: +SKIP
    ' there was a miller.'
    """

    kind = registry.GPT

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: torch.device | str = "cpu") -> GptModel:
        """Read a model folder."""
        found = super().load(path, device)
        assert isinstance(found, GptModel)
        return found

    def quantize(self) -> None:
        """Turn weights into 8-bit integers; the model can then be used, not trained or saved."""
        if self.device.type != "cpu":
            raise NlpkitError("8-bit weights are for the CPU", hint="`device` cpu")
        self._compile(int8=True)

    def pays_to_compile(self, tokens: int) -> bool:
        """Whether writing so many tokens takes longer than to get ready for it."""
        settings = self.model.settings
        much = tokens * settings.layers * settings.dim >= _MUCH
        return self.device.type == "cpu" and much

    def speed_up(self, tokens: int) -> None:
        """Make ready to write so many tokens, if that pays."""
        if self.pays_to_compile(tokens):
            self._compile(int8=False)

    def _compile(self, *, int8: bool) -> None:
        from nlpkit.models.gpt_cpu import compile_step

        assert isinstance(self.model, GPT)
        compile_step(self.model, int8=int8)


def _cut_at_stop(row: Continuation, stop: Sequence[str]) -> None:
    places = [place for place in (row.text.find(text) for text in stop) if place >= 0]
    if places:
        row.text = row.text[: min(places)]
        row.stopped = True


def _certain(text: str, stop: Sequence[str]) -> int:
    """How much of a text cannot become part of a stop text."""
    for start in range(max(0, len(text) - max(map(len, stop), default=0)), len(text)):
        if any(end.startswith(text[start:]) for end in stop):
            return start
    return len(text)
