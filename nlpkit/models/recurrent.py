"""Recurrent models: a state that is updated with each character. Vanilla (tanh), LSTM and GRU.

The equations of the cells, for input x and state h (and c), with W the input, U the state weights:

    rnn   h' = tanh(Wx + Uh + b)
    gru   r, z = sigmoid(Wx + Uh + b);  n = tanh(Wx + b + r (Uh + b'));  h' = (1 - z) n + z h
    lstm  i, f, o = sigmoid(Wx + Uh + b);  g = tanh(Wx + Uh + b);
          c' = f c + i g;  h' = o tanh(c')

torch runs a whole row through them in one call.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nlpkit.models.base import LanguageModel, cross_entropy
from nlpkit.models.settings import ModelSettings

_CELLS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
State = Tensor | tuple[Tensor, Tensor]


@dataclass
class StateCache:
    """The state after the last character of each row; nothing before the first."""

    state: State | None = None

    def clear(self) -> None:
        """Forget everything."""
        self.state = None


class Recurrent(LanguageModel):
    """Embedding, stacked cells, softmax. The first state is learned.

    >>> model = Recurrent(ModelSettings(model="gru", vocab_size=5, layers=1))
    >>> model(torch.tensor([[1, 2]]))[0].shape
    torch.Size([1, 2, 5])
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        dim, layers = settings.dim, settings.layers
        self.embedding = nn.Embedding(settings.vocab_size, dim)
        self.cells = _CELLS[settings.model](
            dim, dim, layers, batch_first=True, dropout=settings.dropout if layers > 1 else 0.0
        )
        parts = 2 if settings.model == "lstm" else 1  # h, and c for an LSTM
        self.first_state = nn.Parameter(torch.zeros(parts, layers, 1, dim))
        self.dropout = nn.Dropout(settings.dropout)
        self.head = nn.Linear(dim, settings.vocab_size)

    def new_cache(self, batch: int) -> StateCache:
        """Room for a state."""
        return StateCache()

    def forward(
        self,
        idx: Tensor,
        targets: Tensor | None = None,
        *,
        cache: StateCache | None = None,
        pads: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        x = self.embedding(idx)  # (B, T, C)
        state = None if cache is None else cache.state
        if state is None:
            expanded = self.first_state.expand(-1, -1, idx.size(0), -1).contiguous()
            state = (expanded[0], expanded[1]) if len(expanded) == 2 else expanded[0]
            out, state = self._run_padded(x, state, pads)
        else:
            out, state = self.cells(x, state)
        if cache is not None:
            cache.state = state
            out = out[:, -1:]
        logits = self.head(self.dropout(out))  # (B, T, V)
        return logits, cross_entropy(logits, targets)

    def _run_padded(self, x: Tensor, state: State, pads: Tensor | None) -> tuple[Tensor, State]:
        """Run the cells; pads on the left are moved to the right, where they change no state."""
        if pads is None:
            out, state = self.cells(x, state)
            return out, state
        length = x.size(1)
        shift = torch.arange(length, device=x.device) + pads[:, None]  # (B, T)
        moved = x.gather(1, (shift % length).unsqueeze(-1).expand_as(x))
        packed = pack_padded_sequence(
            moved, (length - pads).cpu(), batch_first=True, enforce_sorted=False
        )
        packed_out, state = self.cells(packed, state)
        out, _ = pad_packed_sequence(packed_out, batch_first=True, total_length=length)
        back = (torch.arange(length, device=x.device) - pads[:, None]) % length
        return out.gather(1, back.unsqueeze(-1).expand_as(out)), state
