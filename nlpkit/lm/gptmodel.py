"""A GPT with its codec: text in, text out. Continue prompts, and score text."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.lm.base import LanguageModel
from nlpkit.lm.codec import Codec, TextStream, first_id, load_codec, save_codec
from nlpkit.lm.generate import generate
from nlpkit.lm.gpt import GPT
from nlpkit.lm.models import read_model, write_model
from nlpkit.lm.sampling import SamplingSettings
from nlpkit.lm.settings import ModelSettings

KIND = "gpt"
_MUCH = 1 << 18  # tokens x layers x width from which on compiled code makes up for its loading


@dataclass
class Continuation:
    """What a model wrote after a prompt."""

    prompt: str
    text: str = ""
    ids: list[int] = field(default_factory=list)
    log_probabilities: list[float] = field(default_factory=list)
    stopped: bool = False  # whether a stop text ended it


@dataclass(frozen=True)
class TextScore:
    """How well a model predicts a text."""

    nats: float
    tokens: int
    bytes: int

    @property
    def perplexity(self) -> float:
        """Of a token."""
        return math.exp(self.nats / max(1, self.tokens))

    @property
    def bits_per_token(self) -> float:
        """Mean information of a token."""
        return self.nats / math.log(2) / max(1, self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """Mean information of a byte of UTF-8: comparable between tokenisers."""
        return self.nats / math.log(2) / max(1, self.bytes)


class GptModel:
    """A model and its codec."""

    def __init__(self, model: LanguageModel, codec: Codec) -> None:
        self.model, self.codec = model, codec

    def save(self, folder: Path) -> None:
        """Write everything but ``config.json`` into a folder that ``modeldir.create`` gave."""
        save_codec(self.codec, folder)
        write_model(folder, self.model)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: torch.device | str = "cpu") -> GptModel:
        """Read a model folder."""
        config = modeldir.load_config(path, kind=KIND)
        settings = ModelSettings.from_dict(config.settings.get("architecture", {}))
        codec = load_codec(Path(path), settings.vocab_size)
        return cls(read_model(path, settings).to(device), codec)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    def quantize(self) -> None:
        """Turn weights into 8-bit integers; the model can then be used, not trained or saved."""
        if self.device.type != "cpu":
            raise NlpkitError("8-bit weights are for the CPU", hint="--device cpu")
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
        from nlpkit.lm.compiled import compile_step

        assert isinstance(self.model, GPT)
        compile_step(self.model, int8=int8)

    def encode_prompt(self, text: str) -> list[int]:
        """Ids of a prompt; an empty one is whatever texts begin after."""
        ids = self.codec.encode(text)
        if ids:
            return ids
        first = first_id(self.codec)
        if first is None:
            raise NlpkitError("this model needs a prompt that is not empty")
        return [first]

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

        A row ends before the first stop text. Text that may turn out to be the beginning of one is
        held back until it is clear. Rows that have ended get no new text.
        """
        rows = [Continuation(prompt) for prompt in prompts]
        streams = [TextStream(self.codec) for _ in rows]
        shown = [0] * len(rows)
        generator = torch.Generator(self.device).manual_seed(seed)
        ids = [self.encode_prompt(prompt) for prompt in prompts]
        steps = generate(
            self.model, ids, max_tokens, sampling, generator, every_logit=log_probabilities
        )
        for number, (drawn, logits) in enumerate(steps, 1):
            scores: list[float] = []
            if log_probabilities:
                normal = logits.log_softmax(dim=-1).gather(1, drawn[:, None])
                scores = normal[:, 0].tolist()
            for place, index in enumerate(drawn.tolist()):
                row = rows[place]
                if row.stopped or index >= len(self.codec):
                    continue
                row.ids.append(index)
                row.log_probabilities += scores[place : place + 1]
                row.text += streams[place].add(index)
                if number == max_tokens:
                    row.text += streams[place].finish()
                _cut_at_stop(row, stop)
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
        first = first_id(self.codec)
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
        return TextScore(nats, len(ids), len(text.encode("utf-8")))


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
