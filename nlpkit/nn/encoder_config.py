"""What an encoder is, and the tensors it has: known without torch, so that files can be checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from nlpkit import schema

EncoderKind = Literal["lstm", "gru", "cnn", "transformer"]
Positions = Literal["decay", "sinusoidal"]  # of a transformer
NormPlace = Literal["pre", "post"]
KERNEL = 3  # width of a convolution over tokens
HEAD_SIZE = 32  # numbers of a transformer's head


@dataclass(frozen=True)
class EncoderConfig:
    """An encoder by name; ``hidden`` is the width of each direction.

    >>> settings = EncoderConfig("lstm", n_in=8, hidden=16)
    >>> settings.size, settings.count_parameters()
    (32, 3328)
    """

    kind: EncoderKind
    n_in: int
    hidden: int
    layers: int = 1
    causal: bool = False  # whether a token sees only itself and what stands before it
    positions: Positions = "decay"
    norm: NormPlace = "pre"

    @property
    def size(self) -> int:
        """The width of a state."""
        width = self.hidden if self.causal else 2 * self.hidden
        return -(-width // HEAD_SIZE) * HEAD_SIZE if self.kind == "transformer" else width

    def count_parameters(self) -> int:
        """How many numbers it learns, without making it."""
        return sum(math.prod(map(int, shape)) for shape in self.shapes().values())

    def shapes(self) -> dict[str, schema.Shape]:
        """Its tensors by name.

        >>> EncoderConfig("cnn", n_in=8, hidden=16).shapes()["convolutions.0.weight"]
        (32, 32, 3)
        """
        if self.kind in ("lstm", "gru"):
            return self._recurrent_shapes()
        width = self.size
        shapes: dict[str, schema.Shape] = {
            "first.weight": (width, self.n_in),
            "first.bias": (width,),
        }
        for layer in range(self.layers):
            if self.kind == "cnn":
                shapes |= {
                    f"convolutions.{layer}.weight": (width, width, KERNEL),
                    f"convolutions.{layer}.bias": (width,),
                    f"norms.{layer}.weight": (width,),
                    f"norms.{layer}.bias": (width,),
                }
            else:
                shapes |= within(f"blocks.{layer}.", self._block_shapes())
        if self.kind == "transformer" and self.norm == "pre":
            shapes |= {"norm.weight": (width,), "norm.bias": (width,)}
        return shapes

    def _block_shapes(self) -> dict[str, schema.Shape]:
        width = self.size
        shapes: dict[str, schema.Shape] = {}
        if self.positions == "decay":
            shapes["attention.decay.log_rates"] = (2, max(1, width // HEAD_SIZE))
        linear = {
            "attention.qk": (2, 1),
            "attention.v": (1, 1),
            "attention.output": (1, 1),
            "up": (2, 1),
            "down": (1, 2),
        }
        for name, (out, into) in linear.items():
            shapes |= {
                f"{name}.weight": (out * width, into * width),
                f"{name}.bias": (out * width,),
            }
        for name in ("norm_1", "norm_2"):
            shapes |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
        return shapes

    def _recurrent_shapes(self) -> dict[str, schema.Shape]:
        gates = (4 if self.kind == "lstm" else 3) * self.hidden
        shapes: dict[str, schema.Shape] = {}
        for layer in range(self.layers):
            for way in ("",) if self.causal else ("", "_reverse"):
                end = f"l{layer}{way}"
                shapes |= {
                    f"rnn.weight_ih_{end}": (gates, self.n_in if layer == 0 else self.size),
                    f"rnn.weight_hh_{end}": (gates, self.hidden),
                    f"rnn.bias_ih_{end}": (gates,),
                    f"rnn.bias_hh_{end}": (gates,),
                }
        return shapes


def within(prefix: str, shapes: dict[str, schema.Shape]) -> dict[str, schema.Shape]:
    """The tensors of a part by their names in the whole.

    >>> within("encoder.", {"first.bias": (4,)})
    {'encoder.first.bias': (4,)}
    """
    return {prefix + name: shape for name, shape in shapes.items()}
