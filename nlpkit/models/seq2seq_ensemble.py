"""Several encoder-decoders of one shape as one: what one has learned by heart the others have not.

The members start from other weights and drop other units, and each is trained on its own. What is
written has the geometric mean of their probabilities: the mean of logits, so hidden states side by
side and the heads side by side, divided by their number, are one head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from nlpkit.models.seq2seq import DecoderState, EncoderDecoder, Head, Memory
from nlpkit.models.seq2seq_settings import Seq2SeqArchitecture
from nlpkit.nn.optimizers import Stacks


class EnsembleState(DecoderState):
    """The state of each member."""

    def __init__(self, states: list[DecoderState]) -> None:
        self.states = states

    def select(self, rows: Tensor) -> None:
        for state in self.states:
            state.select(rows)


class EnsembleSeq2Seq(EncoderDecoder):
    """All members have the same settings."""

    def __init__(self, settings: Seq2SeqArchitecture) -> None:
        from nlpkit.models.seq2seq import empty_seq2seq

        nn.Module.__init__(self)  # tables and heads are the members' own
        self.settings = settings
        one = replace(settings, members=1)
        self.members = nn.ModuleList(empty_seq2seq(one) for _ in range(settings.members))
        self.int8_head: Head | None = None
        self.compiled = None

    def each(self) -> Iterator[Any]:
        yield from self.members

    @property
    def written_ids(self) -> Tensor | None:  # type: ignore[override]
        return next(self.each()).written_ids

    def initialize(self, generator: torch.Generator) -> None:
        for member in self.each():
            member.initialize(generator)

    def matrices(self) -> Stacks:
        return [stack for member in self.each() for stack in member.matrices()]

    def _apart(self, memory: Memory) -> list[Memory]:
        """The memory of each member."""
        return [
            Memory(
                memory.inside,
                {
                    name.removeprefix(f"{number}."): part
                    for name, part in memory.parts.items()
                    if name.startswith(f"{number}.")
                },
            )
            for number in range(len(self.members))
        ]

    @staticmethod
    def _together(memories: list[Memory]) -> dict[str, Tensor]:
        return {
            f"{number}.{name}": part
            for number, memory in enumerate(memories)
            for name, part in memory.parts.items()
        }

    def encode(self, source: Tensor, inside: Tensor) -> Memory:
        memories = [member.encode(source, inside) for member in self.each()]
        return Memory(inside, self._together(memories))

    def hidden(self, target: Tensor, memory: Memory) -> Tensor:
        both = zip(self.each(), self._apart(memory), strict=True)
        return torch.cat([member.hidden(target, one) for member, one in both], dim=-1)

    def alignment(self, target: Tensor, memory: Memory) -> Tensor:
        both = zip(self.each(), self._apart(memory), strict=True)
        return torch.stack([member.alignment(target, one) for member, one in both]).mean(dim=0)

    def start(self, memory: Memory, beams: int, longest: int) -> EnsembleState:
        memories = self._apart(memory)
        both = zip(self.each(), memories, strict=True)
        state = EnsembleState([member.start(one, beams, longest) for member, one in both])
        memory.parts = self._together(memories)  # a Transformer has added to it
        return state

    def step(
        self, ids: Tensor, state: EnsembleState, memory: Memory, look: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        every = zip(self.each(), state.states, self._apart(memory), strict=True)
        steps = [member.step(ids, its, one, look) for member, its, one in every]
        weights = [found for _, found in steps if found is not None]
        return (
            torch.cat([hidden for hidden, _ in steps], dim=-1),
            torch.stack(weights).mean(dim=0) if weights else None,
        )

    def head_weights(self) -> Tensor:
        return torch.cat([m.head_weights() for m in self.each()], dim=1) / len(self.members)

    @property
    def head_bias(self) -> Tensor | None:  # type: ignore[override]
        biases = [member.head_bias for member in self.each()]
        return None if biases[0] is None else torch.stack(biases).mean(dim=0)

    def quantize(self) -> None:
        from nlpkit.nn.quantized import Int8Rows

        head = Int8Rows(self.head_weights(), self.head_bias)
        for member in self.each():
            member.quantize()
        self.int8_head = head

    def forward(self, *args: Any) -> Tensor:
        """The mean of what the members' losses are."""
        return torch.stack([member(*args) for member in self.each()]).mean()
