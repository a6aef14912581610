"""How well a model predicts text: the loss of every token, in constant memory however long it is.

Three ways lead to the same numbers. A model that carries its state (recurrent, n-gram) reads on and
on. One that sees a window (GPT, MLP) reads windows that overlap, and a token counts in the first
one that holds it. Where texts are independent lines, each is read from its beginning.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nlpkit.models.base import IGNORED, LanguageModel

_STEP = 2048  # tokens that a state is carried over at once
_LINES = 64  # independent texts at once
_WINDOWS = 8  # windows at once


@dataclass(frozen=True)
class TextScore:
    """How well a model predicts a text."""

    nats: float
    tokens: int
    bytes: int
    words: int = 0  # between white space
    unknown: int = 0  # tokens that are not in the model's vocabulary
    unknown_nats: float = 0.0  # of the nats, theirs

    @property
    def perplexity(self) -> float:
        """Of a token; that of a hopeless model is the largest number there is."""
        return _perplexity(self.nats, self.tokens)

    @property
    def perplexity_per_word(self) -> float:
        """Of a word between white space: comparable between tokenisers."""
        return _perplexity(self.nats, self.words)

    @property
    def perplexity_of_known(self) -> float:
        """Of a token that is in the vocabulary."""
        return _perplexity(self.nats - self.unknown_nats, self.tokens - self.unknown)

    @property
    def bits_per_token(self) -> float:
        """Mean information of a token."""
        return self.nats / math.log(2) / max(1, self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """Mean information of a byte of UTF-8: comparable between tokenisers."""
        return self.nats / math.log(2) / max(1, self.bytes)


def _perplexity(nats: float, count: int) -> float:
    return math.exp(min(nats / max(1, count), math.log(sys.float_info.max)))


def stream_losses(
    model: LanguageModel,
    parts: Iterable[Sequence[int] | np.ndarray],
    first: int,
    *,
    mark: int | None = None,
    stride: int | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ids and their losses in nats, some at a time, from parts of a long text as they come.

    The first token is predicted behind the id ``first``. With a ``mark`` each text ends there and
    the next one begins anew.
    """
    if mark is not None and not getattr(model, "trie", None):
        yield from _of_lines(model, parts, mark)
    elif model.carries_state:
        yield from _carried(model, parts, first)
    else:
        yield from _windowed(model, parts, first, stride)


def _pieces(parts: Iterable[Sequence[int] | np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The same ids in pieces of one size; the last may be shorter."""
    held = np.zeros(0, np.int64)
    for part in parts:
        held = np.concatenate([held, np.asarray(part, np.int64)])
        while len(held) >= size:
            yield held[:size]
            held = held[size:]
    if len(held):
        yield held


@torch.inference_mode()
def _carried(
    model: LanguageModel, parts: Iterable[Sequence[int] | np.ndarray], first: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    device = _device(model)
    cache, last = model.new_cache(1), first
    size = _STEP * 64 if hasattr(model, "trie") else _STEP
    for ids in _pieces(parts, size):
        idx = torch.from_numpy(np.concatenate([[last], ids[:-1]]))[None].to(device)
        targets = torch.from_numpy(ids)[None].to(device)
        yield ids, model.token_losses(idx, targets, cache)[0].cpu().numpy()
        last = int(ids[-1])


@torch.inference_mode()
def _windowed(
    model: LanguageModel,
    parts: Iterable[Sequence[int] | np.ndarray],
    first: int,
    stride: int | None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Windows of the block size, each ``stride`` after the one before.

    A token is scored once, in the first window that holds it, with what the window has before it as
    context: half a block where there is so much, unless ``stride`` says otherwise.
    """
    block = model.settings.block_size
    stride = min(stride or max(1, block // 2), block)
    held = np.array([first], np.int64)  # the context, then what is not scored yet
    scored = 1  # of `held`: the context
    pieces = _pieces(parts, stride * _WINDOWS)
    last = False
    while not last:
        piece = next(pieces, None)
        last = piece is None
        held = held if piece is None else np.concatenate([held, piece])
        ready: list[tuple[int, int]] = []
        done = scored
        while done < len(held):
            begin = 0 if done == 1 else max(0, done + stride - 1 - block)
            end = min(begin + block, len(held) - 1)
            if end < begin + block and not last:
                break  # more of this window is to come
            ready.append((begin, end))
            done = end + 1
        for rows in _of_one_length(ready):
            windows = np.stack([held[begin : end + 1] for begin, end in rows])
            batch = torch.from_numpy(windows).to(_device(model))
            losses = model.token_losses(batch[:, :-1], batch[:, 1:]).cpu().numpy()
            for row, (_, end) in enumerate(rows):
                yield held[scored : end + 1], losses[row, scored - end - 1 :]
                scored = end + 1
        drop = max(0, scored - block)
        held, scored = held[drop:], scored - drop


def _of_one_length(windows: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Windows that follow each other and are equally long, a few at a time."""
    some: list[tuple[int, int]] = []
    for window in windows:
        if some and (len(some) == _WINDOWS or window[1] - window[0] != some[0][1] - some[0][0]):
            yield some
            some = []
        some.append(window)
    if some:
        yield some


@torch.inference_mode()
def _of_lines(
    model: LanguageModel, parts: Iterable[Sequence[int] | np.ndarray], mark: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each text from a mark to the next; what is longer than a block is read in blocks."""
    device = _device(model)
    waiting: list[np.ndarray] = []
    for line in _split_lines(parts, mark):
        block = len(line) if model.carries_state else model.settings.block_size
        begun = np.concatenate([[mark], line])
        waiting += [begun[i : i + block + 1] for i in range(0, len(line), max(1, block))]
        if len(waiting) >= _LINES:
            yield from _padded(model, waiting, device)
            waiting = []
    if waiting:
        yield from _padded(model, waiting, device)


def _split_lines(parts: Iterable[Sequence[int] | np.ndarray], mark: int) -> Iterator[np.ndarray]:
    """Texts with the mark that ends each; the last may have none."""
    held = np.zeros(0, np.int64)
    for part in parts:
        held = np.concatenate([held, np.asarray(part, np.int64)])
        ends = np.flatnonzero(held == mark) + 1
        start = 0
        for end in ends.tolist():
            yield held[start:end]
            start = end
        held = held[start:]
    if len(held):
        yield held


def _padded(
    model: LanguageModel, rows: list[np.ndarray], device: torch.device
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    longest = max(map(len, rows))
    idx = torch.zeros(len(rows), longest - 1, dtype=torch.int64)
    targets = torch.full_like(idx, IGNORED)
    for place, row in enumerate(rows):
        idx[place, : len(row) - 1] = torch.from_numpy(row[:-1])
        targets[place, : len(row) - 1] = torch.from_numpy(row[1:])
    losses = model.token_losses(idx.to(device), targets.to(device)).cpu().numpy()
    for place, row in enumerate(rows):
        yield row[1:], losses[place, : len(row) - 1]


def _device(model: LanguageModel) -> torch.device:
    return next(iter([*model.parameters(), *model.buffers()])).device
