"""ELMo (Peters et al., 2018): a forward and a backward language model over words of characters.

Both directions read the same word vectors (a character CNN), have LSTMs of their own, a layer's
input is added to its output from the second layer on, and both predict their next word by the same
softmax. What the layers say of a word is its embedding in context: the CNN's vector (twice, for
both directions), then the states of each layer, forward and backward side by side.

A sentence is read between a begin and an end mark. Shorter sentences of a batch are padded at their
end; each is turned round by its own length for the backward model, so padding never comes before a
word and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.errors import NlpkitError
from nlpkit.models.softmax import adaptive_softmax
from nlpkit.nn.char_cnn import CharacterCnn
from nlpkit.nn.optimizers import Stacks
from nlpkit.nn.projected_lstm import LstmState, ProjectedLstm
from nlpkit.schema import Ranges
from nlpkit.settings import DEEPEST, WIDEST
from nlpkit.text.word_bytes import N_CHARACTERS

DIRECTIONS = 2


@dataclass(frozen=True)
class ElmoArchitecture:
    """What an ELMo is made of; ``dim`` is the width of one direction, a vector has twice that."""

    dim: int = 128
    hidden: int = 512
    layers: int = 2
    char_dim: int = 16
    widths: tuple[int, ...] | list[int] = (1, 2, 3, 4, 5)
    filters: tuple[int, ...] | list[int] = (32, 32, 64, 128, 256)
    highways: int = 1
    longest_word: int = 24  # bytes, with the marks at its begin and end
    lower: bool = False  # words are read in lower case: it has seen no other
    activation: Literal["relu", "tanh"] = "relu"
    residual: bool = True
    cell_clip: float = 3.0
    projection_clip: float = 3.0
    words: int = 0  # in the softmax; 0 for a model that predicts none

    RANGES: ClassVar[Ranges] = {
        "dim": (1, WIDEST),
        "hidden": (1, WIDEST),
        "layers": (1, DEEPEST),
        "char_dim": (1, WIDEST),
        "widths": (1, WIDEST),
        "filters": (1, WIDEST),
        "highways": (0, DEEPEST),
        "longest_word": (3, WIDEST),
        "cell_clip": (0, 1e6),
        "projection_clip": (0, 1e6),
        "words": (0, 100_000_000),
    }

    def __post_init__(self) -> None:
        if not self.widths or len(self.widths) != len(self.filters):
            raise NlpkitError("`widths` and `filters` must be of one length, and not empty")
        if max(self.widths) > self.longest_word:
            raise NlpkitError(f"a filter over {max(self.widths)} characters sees no word of ours")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "widths": list(self.widths), "filters": list(self.filters)}


class SentenceBatch(NamedTuple):
    """Sentences between their marks: rows of the distinct words, and which word stands where."""

    characters: Tensor  # (U, longest_word)
    places: Tensor  # (B, T): row of each word, any for padding
    lengths: Tensor  # (B,)


class Elmo(nn.Module):
    """The network. ``forward`` gives all layers; ``loss`` trains it."""

    def __init__(self, settings: ElmoArchitecture) -> None:
        super().__init__()
        self.settings = settings
        self.dropout = 0.0  # of what goes into each LSTM, in training
        self.words = CharacterCnn(
            N_CHARACTERS,
            settings.char_dim,
            list(zip(settings.widths, settings.filters, strict=True)),
            highways=settings.highways,
            dim=settings.dim,
            activation=settings.activation,
        )
        self.lstms = nn.ModuleList(
            ProjectedLstm(
                DIRECTIONS,
                settings.dim,
                settings.hidden,
                settings.dim,
                cell_clip=settings.cell_clip,
                projection_clip=settings.projection_clip,
            )
            for _ in range(settings.layers)
        )
        self.softmax: nn.AdaptiveLogSoftmaxWithLoss | None = None
        if settings.words:
            self.softmax = adaptive_softmax(settings.dim, settings.words, cutoffs(settings.words))

    @property
    def width(self) -> int:
        """Numbers in a vector of a layer."""
        return DIRECTIONS * self.settings.dim

    def initialize(self, generator: torch.Generator) -> None:
        """Random weights."""
        self.words.initialize(generator)
        for lstm in self.lstms:
            assert isinstance(lstm, ProjectedLstm)
            lstm.initialize(generator)
        for parameter in self.softmax.parameters() if self.softmax is not None else ():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=parameter.size(1) ** -0.5, generator=generator)

    def matrices(self) -> Stacks:
        """What Muon trains: the matrices of the LSTMs."""
        lstms: Any = self.lstms
        return [
            (matrix, DIRECTIONS)
            for lstm in lstms
            for matrix in (lstm.of_input, lstm.of_state, lstm.projection)
        ]

    def forward(
        self, batch: SentenceBatch, states: Sequence[LstmState] | None = None
    ) -> tuple[Tensor, list[LstmState]]:
        """All layers (1 + layers, B, T, 2 dim), and the states behind each sentence's end."""
        both, finals = self._read(batch, states)
        back = _turned(batch)
        layers = [torch.cat([ahead, _take(behind, back)], dim=-1) for ahead, behind in both]
        return torch.stack(layers), finals

    def _read(
        self, batch: SentenceBatch, states: Sequence[LstmState] | None
    ) -> tuple[list[Tensor], list[LstmState]]:
        """Each layer as (D, B, T, dim): read forwards, and read from the end."""
        vectors = self.words(batch.characters)  # (U, dim)
        ahead = vectors[batch.places]  # (B, T, dim)
        inputs = torch.stack([ahead, _take(ahead, _turned(batch))])
        layers, finals = [inputs], []
        for depth, lstm in enumerate(self.lstms):
            inputs = F.dropout(layers[-1], self.dropout, self.training)
            outputs, cells = lstm(inputs, None if states is None else states[depth])
            finals.append(LstmState(_last(outputs, batch), _last(cells, batch)))
            if depth and self.settings.residual:
                outputs = outputs + layers[-1]
            layers.append(outputs)
        return layers, finals

    def loss(self, batch: SentenceBatch, targets: Tensor) -> Tensor:
        """Mean negative log-likelihood of words (B, T), which include the marks, both ways.

        Every word but the first is predicted from those before it, every one but the last from
        those behind it.
        """
        assert self.softmax is not None
        top = self._read(batch, None)[0][-1][:, :, :-1]  # (D, B, T - 1, dim)
        behind = targets.gather(1, _turned(batch))
        wanted = torch.stack([targets[:, 1:], behind[:, 1:]])  # (D, B, T - 1)
        steps = torch.arange(1, targets.size(1), device=targets.device)
        real = (steps < batch.lengths[:, None]).expand_as(wanted)
        loss: Tensor = self.softmax(top[real], wanted[real]).loss
        return loss


def cutoffs(words: int) -> list[int]:
    """Where the adaptive softmax (Grave et al., 2017) parts frequent words from rarer ones.

    >>> cutoffs(100), cutoffs(50_000)
    ([50], [2000, 10000])
    """
    given = [cut for cut in (2_000, 10_000) if cut < words]
    return given or [max(1, words // 2)]


def _turned(batch: SentenceBatch) -> Tensor:
    """The places of a batch with each sentence turned round by its own length, (B, T)."""
    steps = torch.arange(batch.places.size(1), device=batch.lengths.device)
    back = batch.lengths[:, None] - 1 - steps
    return torch.where(back >= 0, back, steps)


def _take(states: Tensor, places: Tensor) -> Tensor:
    """Rows (B, T, C) of states at places (B, T)."""
    return states.gather(1, places[:, :, None].expand_as(states))


def _last(steps: Tensor, batch: SentenceBatch) -> Tensor:
    """What (D, B, T, C) has at each sentence's last step, (D, B, C)."""
    rows = torch.arange(steps.size(1), device=steps.device)
    return steps[:, rows, batch.lengths - 1].detach()
