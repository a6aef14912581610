"""Recurrent models: a state that is updated with each token. Vanilla (tanh), LSTM and GRU.

The equations of the cells, for input x and state h (and c), with W the input, U the state weights:

    rnn   h' = tanh(Wx + Uh + b)
    gru   r, z = sigmoid(Wx + Uh + b);  n = tanh(Wx + b + r (Uh + b'));  h' = (1 - z) n + z h
    lstm  i, f, o = sigmoid(Wx + Uh + b);  g = tanh(Wx + Uh + b);
          c' = f c + i g;  h' = o tanh(c')

torch runs a whole row through them in one call. A cache carries the state on from one piece of text
to the next; training does the same and lets gradients flow within a piece only (truncated
back-propagation through time, see ``tasks/lm/lanes.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from nlpkit.models.base import LanguageModel, token_cross_entropy
from nlpkit.models.settings import ModelSettings
from nlpkit.models.softmax import OutputLayer
from nlpkit.nn.optimizers import Stacks

_CELLS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
_GATES = {"rnn": 1, "gru": 3, "lstm": 4}
State = Tensor | tuple[Tensor, Tensor]


@dataclass
class StateCache:
    """The state after the last token of each row; nothing before the first."""

    state: State | None = None

    def clear(self) -> None:
        """Forget everything."""
        self.state = None

    def select(self, rows: Tensor) -> None:
        """Go on with these rows (R,), some of them perhaps several times."""
        if isinstance(self.state, tuple):
            self.state = (self.state[0][:, rows], self.state[1][:, rows])
        elif self.state is not None:
            self.state = self.state[:, rows]  # (L, R, C)


class Recurrent(LanguageModel):
    """Embedding, stacked cells, softmax. The first state is learned.

    >>> model = Recurrent(ModelSettings(model="gru", vocab_size=5, layers=1))
    >>> model(torch.tensor([[1, 2]]))[0].shape
    torch.Size([1, 2, 5])
    """

    carries_state = True

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
        self.head = OutputLayer(dim, settings.vocab_size, settings.softmax)
        if settings.tied:
            self.head.weight = self.embedding.weight  # type: ignore[assignment]

    def initialize(self, generator: torch.Generator) -> None:
        """An LSTM begins with open forget gates: what it has seen stays (Jozefowicz, 2015)."""
        if self.settings.model == "lstm":
            dim = self.settings.dim
            with torch.no_grad():
                for layer in range(self.settings.layers):
                    getattr(self.cells, f"bias_ih_l{layer}")[dim : 2 * dim] = 1.0
                    getattr(self.cells, f"bias_hh_l{layer}")[dim : 2 * dim] = 0.0

    def matrices(self) -> Stacks:
        """The weights of the cells, a matrix for each gate."""
        gates = _GATES[self.settings.model]
        return [
            (getattr(self.cells, f"weight_{kind}_l{layer}"), gates)
            for layer in range(self.settings.layers)
            for kind in ("ih", "hh")
        ]

    def layer_groups(self) -> dict[str, list[nn.Parameter]]:
        """The embedding, each layer of cells, the softmax."""
        groups = {"embedding": list(self.embedding.parameters())}
        for layer, names in enumerate(self.cells._all_weights, 1):
            groups[f"layer {layer}"] = [getattr(self.cells, name) for name in names]
        return {**groups, "head": list(self.head.parameters())}

    def new_cache(self, batch: int, length: int | None = None) -> StateCache:
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
        out = self.states(idx, cache, pads)
        if targets is not None and self.settings.softmax != "full" and self.training:
            return out.new_empty(0), self.head.loss(
                self.dropout(out).flatten(0, 1), targets.flatten()
            )
        if cache is not None and targets is None:
            out = out[:, -1:]
        out = self.dropout(out)
        logits = self.head.logits(out.flatten(0, 1)).unflatten(0, out.shape[:2])  # (B, T, V)
        if targets is None:
            return logits, None
        losses = token_cross_entropy(logits, targets)
        return logits, losses.sum() / (targets >= 0).sum().clamp_min(1)

    def token_losses(self, idx: Tensor, targets: Tensor, cache: Any = None) -> Tensor:
        """The negative log-likelihood of each target (B, T), from the state that is carried on."""
        out = self.states(idx, cache, None)
        logits = self.head.logits(out.flatten(0, 1)).unflatten(0, out.shape[:2])
        return token_cross_entropy(logits, targets)

    def states(self, idx: Tensor, cache: StateCache | None, pads: Tensor | None = None) -> Tensor:
        """What the last layer of cells gives for each token (B, T, C)."""
        x = self.embedding(idx)  # (B, T, C)
        state = None if cache is None else cache.state
        if state is None:
            out, state = self._run_padded(x, self.begin(idx.size(0)), pads)
        else:
            out, state = self._run(x, state)
        if cache is not None:
            cache.state = state
        return out

    def begin(self, rows: int) -> State:
        """The learned first state, for so many rows."""
        expanded = self.first_state.expand(-1, -1, rows, -1).contiguous()
        return (expanded[0], expanded[1]) if len(expanded) == 2 else expanded[0]

    def _run(self, x: Tensor | PackedSequence, state: State) -> Any:
        share = self.settings.recurrent_dropout
        if not (share and self.training):
            return self.cells(x, state)
        # torch has no dropout between the states of a layer: weights are left out instead, the
        # same for the whole row (Merity et al., 2018, weight-dropped LSTM)
        whole = self.cells._flat_weights
        names = [name for names in self.cells._all_weights for name in names]
        self.cells._flat_weights = [
            F.dropout(weight, share) if name.startswith("weight_hh") else weight
            for name, weight in zip(names, whole, strict=True)
        ]
        try:
            return self.cells(x, state)
        finally:
            self.cells._flat_weights = whole

    def _run_padded(self, x: Tensor, state: State, pads: Tensor | None) -> tuple[Tensor, State]:
        """Run the cells; pads on the left are moved to the right, where they change no state."""
        if pads is None:
            out, state = self._run(x, state)
            return out, state
        length = x.size(1)
        shift = torch.arange(length, device=x.device) + pads[:, None]  # (B, T)
        moved = x.gather(1, (shift % length).unsqueeze(-1).expand_as(x))
        packed = pack_padded_sequence(
            moved, (length - pads).cpu(), batch_first=True, enforce_sorted=False
        )
        packed_out, state = self._run(packed, state)
        out, _ = pad_packed_sequence(packed_out, batch_first=True, total_length=length)
        back = (torch.arange(length, device=x.device) - pads[:, None]) % length
        return out.gather(1, back.unsqueeze(-1).expand_as(out)), state
