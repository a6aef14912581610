"""What an encoder of tokens is made of, as options, without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nlpkit.settings import DEEPEST, WIDEST, option


@dataclass(frozen=True)
class EncoderSettings:
    """Options that taggers and classifiers share."""

    layers: int = option(1, "Layers of the encoder, one on the other.", low=1, high=DEEPEST)
    hidden: int = option(128, "Width of each direction of the encoder.", low=1, high=WIDEST)
    positions: Literal["decay", "sinusoidal"] = option(
        "decay",
        "transformer: how it knows the order: attention falls with distance, as is learned, "
        "or waves are added to the words.",
    )
    norm: Literal["pre", "post"] = option(
        "pre", "transformer: LayerNorm before attention and network, or after each sum."
    )
    fine_tune: bool = option(False, "Let training correct the vectors of words it sees.")
