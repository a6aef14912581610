"""How an ELMo is trained: every option, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass

from nlpkit.settings import DATA, DEEPEST, LONGEST, MANY, TRAINING, WIDEST, changed, option
from nlpkit.training.settings import DType, TrainerSettings


@dataclass(frozen=True)
class ElmoSettings(TrainerSettings):
    """Options of ``nlpkit elmo train``."""

    dim: int = option(128, "Width of a direction; a vector has twice that.", low=1, high=WIDEST)
    hidden: int = option(512, "Cells of each LSTM, projected to --dim.", low=1, high=WIDEST)
    layers: int = option(2, "LSTMs of a direction, one on the other.", low=1, high=DEEPEST)
    char_dim: int = option(16, "Numbers in the vector of a byte.", low=1, high=WIDEST)
    filters: int = option(
        512,
        "Filters over the bytes of a word, of widths 1 to 5, most of them wide.",
        low=16,
        high=WIDEST,
    )
    highways: int = option(1, "Highway layers behind the filters.", low=0, high=DEEPEST)
    longest_word: int = option(
        24, "Bytes of a word that are read, with two marks.", low=8, high=WIDEST
    )
    min_count: int = option(
        3, "Words seen fewer times are not predicted by name.", low=1, high=MANY, group=DATA
    )
    max_vocab: int = option(
        100_000, "The N most frequent words are predicted by name.", low=4, high=MANY, group=DATA
    )
    val_fraction: float = option(
        0.02, "Last part of the lines to hold out; 0 is none.", low=0.0, high=0.9, group=DATA
    )
    batch_tokens: int = option(2048, "Words to a step.", low=1, high=LONGEST, group=TRAINING)
    lr: float = changed(
        TrainerSettings,
        "lr",
        0.005,
        help="Highest learning rate of AdamW; the matrices of LSTMs are trained by Muon.",
    )
    dtype: DType = changed(TrainerSettings, "dtype", "auto")
    weight_decay: float = changed(TrainerSettings, "weight_decay", 0.01)
    dropout: float = changed(
        TrainerSettings, "dropout", 0.1, help="Share of what goes into each LSTM set to 0."
    )
    epochs: float = option(
        5.0,
        "Times over the text, when there is no --max-time.",
        low=0.001,
        high=1e6,
        group=TRAINING,
    )


def split_filters(total: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Widths and numbers of so many filters: half are five characters wide, a quarter four.

    >>> split_filters(512)
    ((1, 2, 3, 4, 5), (32, 32, 64, 128, 256))
    """
    numbers = [max(1, total // share) for share in (16, 16, 8, 4)]
    return (1, 2, 3, 4, 5), (*numbers, total - sum(numbers))
