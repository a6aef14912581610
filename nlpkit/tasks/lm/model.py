"""A GPT with its codec: text in, text out. Continue prompts, and score text."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F

from nlpkit import modeldir, registry, schema
from nlpkit.errors import NlpkitError
from nlpkit.generate.loop import generate
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.models.base import LanguageModel
from nlpkit.models.build import read_architecture, read_model, write_model
from nlpkit.models.gpt import GPT
from nlpkit.tasks.lm.settings import GptSettings
from nlpkit.text.codec import Codec, TextStream, load_codec

_MUCH = 1 << 18  # tokens x layers x width from which on compiled code makes up for its loading


@dataclass
class Continuation:
    """What a model wrote after a prompt."""

    prompt: str
    text: str = ""
    ids: list[int] = field(default_factory=list)
    log_probabilities: list[float] = field(default_factory=list)
    stopped: bool = False  # whether a stop text or the end-of-text mark ended it


@dataclass(frozen=True)
class TextScore:
    """How well a model predicts a text."""

    nats: float
    tokens: int
    bytes: int

    @property
    def perplexity(self) -> float:
        """Of a token; that of a hopeless model is the largest number there is."""
        return math.exp(min(self.nats / max(1, self.tokens), math.log(sys.float_info.max)))

    @property
    def bits_per_token(self) -> float:
        """Mean information of a token."""
        return self.nats / math.log(2) / max(1, self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """Mean information of a byte of UTF-8: comparable between tokenisers."""
        return self.nats / math.log(2) / max(1, self.bytes)


class GptModel(modeldir.Model):
    """A model and its codec.

    >>> GptModel.load("tales.model").sample("Once upon a time", 20)  # doctest: +SKIP
    ' there was a miller.'
    """

    def __init__(
        self, model: LanguageModel, codec: Codec, config: modeldir.ModelConfig | None = None
    ) -> None:
        self.model, self.codec = model, codec
        self.config = config or modeldir.ModelConfig(
            kind=registry.GPT, settings={"architecture": model.settings.to_dict()}
        )

    def __repr__(self) -> str:
        sizes = self.model.settings
        shape = f"{sizes.layers} layers, {sizes.heads} heads, width {sizes.dim}"
        context = f"context {sizes.block_size}, vocabulary {len(self.codec):,}"
        return f"<GptModel: {self.model.count_parameters():,} parameters, {shape}, {context}>"

    def write(self, folder: Path) -> None:
        """Write everything but ``config.json`` into a folder that ``modeldir.create`` gave."""
        self.codec.write(folder)
        write_model(folder, self.model)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: torch.device | str = "cpu") -> GptModel:
        """Read a model folder."""
        config = modeldir.load_config(path, kind=registry.GPT)
        settings = read_architecture(path, config, GptSettings)
        if settings.model != "gpt":
            where = f"{Path(path) / modeldir.CONFIG}: settings.architecture.model"
            schema.refuse(where, settings.model, "gpt")
        codec = load_codec(Path(path), settings.vocab_size)
        return cls(read_model(path, settings).to(device), codec, config)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    def work(self, tokens: int) -> int:
        """About how many multiply-adds it takes to read or write so many tokens."""
        return tokens * self.model.count_parameters()

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

    def encode_prompt(self, text: str) -> list[int]:
        """Ids of a prompt; an empty one is whatever texts begin after."""
        ids = self.codec.encode(text)
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
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 1,
    ) -> str:
        """What the model writes after a prompt, without the prompt."""
        sampling = SamplingSettings(temperature, top_k, top_p, min_p, repetition_penalty)
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
        streams = [TextStream(self.codec) for _ in rows]
        shown = [0] * len(rows)
        generator = torch.Generator().manual_seed(seed)
        ids = [self.encode_prompt(prompt) for prompt in prompts]
        end = self.codec.end_id
        steps = generate(
            self.model,
            ids,
            max_tokens,
            sampling,
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

    @torch.no_grad()
    def score(self, text: str, stride: int | None = None) -> TextScore:
        """Score a text in windows of the block size, each ``stride`` after the one before.

        A token is scored once, in the first window that holds it, with what the window has before
        it as context. The first follows an end-of-text mark or a line end.
        """
        ids = self.codec.encode(text)
        if not ids:
            return TextScore(0.0, 0, 0)
        block = self.model.settings.block_size
        stride = min(stride or max(1, block // 2), block)
        first = self.codec.first_id
        everything = torch.tensor([ids[0] if first is None else first, *ids])
        nats, done = 0.0, 0  # targets scored so far
        for start in range(0, len(ids), stride):
            idx = everything[start : start + block][None].to(self.device)
            targets = everything[start + 1 : start + block + 1].to(self.device)
            logits, _ = self.model(idx[:, : len(targets)])
            new = start + len(targets) - done
            losses = F.cross_entropy(logits[0, -new:].float(), targets[-new:], reduction="sum")
            nats += float(losses)
            done += new
            if done == len(ids):
                break
        return TextScore(nats, len(ids), len(text.encode("utf-8", "replace")))


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
