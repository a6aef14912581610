"""Small encoder-decoders and pairs that they learn in a second."""

from __future__ import annotations

from random import Random

import torch

from nlpkit.models.seq2seq import EncoderDecoder, Memory, build_seq2seq
from nlpkit.models.seq2seq_settings import Seq2SeqArchitecture
from nlpkit.tasks.translate.data import Pair

DIGITS = "zero one two three four five six seven eight nine".split()
KINDS = ("lstm", "gru", "transformer")


def digit_pairs(count: int = 200, seed: int = 1) -> list[Pair]:
    """Digits and their names in English."""
    random = Random(seed)
    rows = [[random.randrange(10) for _ in range(random.randint(1, 4))] for _ in range(count)]
    return [Pair(" ".join(map(str, row)), " ".join(DIGITS[n] for n in row)) for row in rows]


def small_model(kind: str, **changes: object) -> EncoderDecoder:
    """Random weights, none of them zero."""
    settings: dict[str, object] = {"model": kind, "source_vocab": 12, "target_vocab": 11}
    settings |= {"dim": 16, "heads": 2, "layers": 2, "max_length": 30, **changes}
    model = build_seq2seq(Seq2SeqArchitecture(**settings)).eval()  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.4, generator=generator)
    return model


def read(model: EncoderDecoder, *rows: list[int]) -> Memory:
    """The memory of some sources, padded."""
    longest = max(map(len, rows))
    idx = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    inside = torch.tensor([[place < len(row) for place in range(longest)] for row in rows])
    return model.encode(idx, inside)
