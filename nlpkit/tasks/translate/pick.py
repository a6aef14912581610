"""Which model learns most in the time there is: ``--model auto``, and sizes that are not given.

A wide model learns more from each time through the data, a narrow one gets through it more often.
So the question is how often: from the time, the number of tokens, and how many tokens a second this
machine trains, which is measured on a batch. An LSTM has read the data several times before a
Transformer knows what order words come in; a Transformer needs a GPU, or patience.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import torch

from nlpkit.device import has_bfloat16
from nlpkit.models.seq2seq import build_seq2seq
from nlpkit.models.seq2seq_settings import Kind, Seq2SeqArchitecture


class Size(NamedTuple):
    """A width and a number of layers, how often the data must be read for it to be best, and the
    dropout that keeps it from learning the data by heart when it reads it so often."""

    dim: int
    layers: int
    epochs: float
    dropout: float = 0.15


RECURRENT = (
    Size(128, 1, 0),
    Size(192, 1, 1.5),
    Size(256, 1, 3),
    Size(320, 1, 7, 0.3),
    Size(384, 1, 16, 0.35),
    Size(512, 1, 32, 0.4),
)
SYMBOLS = (*RECURRENT[:2], Size(256, 1, 3, 0.3))
TRANSFORMER = (
    Size(128, 2, 0),
    Size(192, 2, 3, 0.2),
    Size(256, 3, 16, 0.2),
    Size(384, 4, 32, 0.3),
)
FEW, _SOME = 100_000, 1_000_000  # target tokens: with fewer, wide models learn them by heart
SYMBOLS_AT_MOST = 500  # ids of both sides: characters, phones and features, not words
_ENOUGH = 200_000  # target tokens: with fewer, German inflection was learned better by Muon
_EACH, _MEMBERS = 8, 4  # epochs from which on more models teach more, and how many at most
_PATIENT = 60  # epochs of a small Transformer from which on it is ahead of an LSTM
_OPTIMIZER = 0.85  # of the speed is left when weights are changed, too
_TRIALS = 6  # of a batch; the first one warms up, and on a busy machine some are slow


class Picked(NamedTuple):
    """What is trained."""

    model: Kind
    dim: int
    layers: int
    members: int = 1  # models that decide together
    dropout: float = 0.15
    epochs: float | None = None  # how often it will read the data, if that was estimated


def is_symbols(ids: int, tokens: int) -> bool:
    """Whether so many ids of both sides are characters, phones or features.

    With enough tokens a recurrent model is trained by small steps of AdamW, and with time
    there are several models that decide together instead of a wide one.
    """
    return ids <= SYMBOLS_AT_MOST and tokens >= _ENOUGH


def sizes(kind: Kind, tokens: int, symbols: bool = False) -> tuple[Size, ...]:
    """Those that so many target tokens are enough for.

    >>> [size.dim for size in sizes("lstm", 500_000)]
    [128, 192, 256, 320, 384]
    """
    every = TRANSFORMER if kind == "transformer" else RECURRENT
    if tokens < FEW:
        return every[:1]
    if symbols and kind != "transformer":
        return SYMBOLS
    return every[:-1] if tokens < _SOME else every


def work(kind: Kind, size: Size, vocab: int) -> int:
    """Multiply-adds for a target token and the source token beside it.

    >>> work("lstm", Size(256, 1, 0), 3000)
    2799616
    """
    square = size.dim**2
    inside = 28 * square * size.layers if kind == "transformer" else 31 * square * size.layers
    return inside + vocab * size.dim


def pick_size(
    kind: Kind,
    tokens: int,
    vocab: int,
    *,
    epochs: float | None,
    speed: float,
    seconds: float,
    symbols: bool = False,
) -> Picked:
    """The widest model that reads the data often enough.

    ``epochs`` are given, or follow from so many ``seconds`` at a ``speed`` in multiply-adds.

    >>> pick_size("lstm", 500_000, 3000, epochs=None, speed=15e9, seconds=360)
    Picked(model='lstm', dim=256, layers=1, members=1, dropout=0.15, epochs=3.857671909290417)
    >>> pick_size("lstm", 500_000, 3000, epochs=None, speed=15e9, seconds=1200).dim
    320
    >>> pick_size("lstm", 250_000, 60, epochs=None, speed=15e9, seconds=1200, symbols=True)[:5]
    ('lstm', 256, 1, 4, 0.3)
    """
    best = Picked(kind, 0, 0)
    for size in sizes(kind, tokens, symbols):
        often = epochs or seconds * speed / work(kind, size, vocab) / tokens
        if not best.dim or often >= size.epochs:
            members = max(1, min(_MEMBERS, int(often / _EACH))) if symbols and not epochs else 1
            each = None if epochs else often / members
            best = Picked(kind, size.dim, size.layers, members, size.dropout, each)
    return best


def pick_kind(tokens: int, device: str, small: Picked) -> Kind:
    """What architecture: ``small`` is the smallest Transformer that data and time allow.

    >>> pick_kind(500_000, "cpu", Picked("transformer", 192, 2, epochs=4.0))
    'lstm'
    """
    patient = (small.epochs or 0) >= _PATIENT and tokens >= FEW
    return "transformer" if device != "cpu" or patient else "lstm"


def candidates(tokens: int, symbols: bool = False) -> list[Picked]:
    """All that could be picked for so many target tokens.

    >>> [one[:4] for one in candidates(50_000)]
    [('lstm', 128, 1, 1), ('gru', 128, 1, 1), ('transformer', 128, 2, 1)]
    """
    kinds: tuple[Kind, ...] = ("lstm", "gru", "transformer")
    return [
        Picked(kind, size.dim, size.layers, members, size.dropout)
        for kind in kinds
        for size in sizes(kind, tokens, symbols)
        for members in range(1, (_MEMBERS if symbols else 1) + 1)
    ]


def measure_speed(
    vocab: int, rows: int, lengths: tuple[int, int], device: torch.device, *, float32: bool = False
) -> float:
    """Multiply-adds a second (by ``work``) of training: an LSTM's gradients for a batch are timed.

    ``lengths`` are those of a source and a target; ``float32`` is to be used in any case.
    """
    size = RECURRENT[2]
    shape = Seq2SeqArchitecture(
        model="lstm", source_vocab=vocab + 9, target_vocab=vocab + 9, joint=True, dim=size.dim
    )
    model = build_seq2seq(shape).to(device).train()
    source = torch.full((rows, lengths[0]), 5, device=device)
    target = torch.full((rows, lengths[1]), 5, device=device)
    places = model.label_table().to(device)
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    halves = has_bfloat16(device) and not float32
    best = float("inf")
    for _ in range(_TRIALS):
        started = clock()
        with torch.autocast(device.type, torch.bfloat16, enabled=halves):
            loss = model(source, torch.ones_like(source).bool(), target, target, places, 0.1)
        loss.backward()
        loss.item()  # a GPU has then done all of it
        best = min(best, clock() - started)
    return _OPTIMIZER * target.numel() * work("lstm", size, vocab) / best
