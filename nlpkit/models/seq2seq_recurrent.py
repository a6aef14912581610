"""The recurrent encoder-decoder: LSTM or GRU, with attention or with none.

    encoder   a bidirectional layer, or several; what is remembered of a source token is
              m = [state forwards; state backwards; its embedding]
    decoder   begins with what the encoder's last states say, and reads the target so far: state h
    attention weights a of the source tokens by the score of h and their keys (``nn.alignment``)
    readout   tanh(W h + sum a_i V m_i), which the head scores

The readout of a step is no input of the next step (no input feeding), so the decoder reads a whole
target in one call. Without attention all it knows of the source is its first state, the bottleneck
of Sutskever et al. (2014).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from nlpkit.models.seq2seq import DecoderState, EncoderDecoder, Memory
from nlpkit.models.seq2seq_settings import Seq2SeqArchitecture
from nlpkit.nn.alignment import Alignment
from nlpkit.nn.layers import Embedding, Linear
from nlpkit.nn.optimizers import Stacks

_CELLS: dict[str, Any] = {"lstm": nn.LSTM, "gru": nn.GRU}
_GATES = {"lstm": 4, "gru": 3}


class RecurrentState(DecoderState):
    """States of the cells, (layers, N K, C) each, and the last readout for input feeding."""

    def __init__(self, cells: tuple[Tensor, ...], readout: Tensor | None) -> None:
        self.cells, self.readout = cells, readout

    def select(self, rows: Tensor) -> None:
        self.cells = tuple(part[:, rows] for part in self.cells)
        self.readout = None if self.readout is None else self.readout[rows]


class RecurrentSeq2Seq(EncoderDecoder):
    """LSTM or GRU."""

    def __init__(self, settings: Seq2SeqArchitecture) -> None:
        super().__init__(settings)
        dim, cell = settings.dim, _CELLS[settings.model]
        widths = [dim] + [2 * dim] * (settings.layers - 1)  # what goes into each layer
        self.forwards = nn.ModuleList(cell(width, dim, batch_first=True) for width in widths)
        self.backwards = nn.ModuleList(cell(width, dim, batch_first=True) for width in widths)
        self.parts = 2 if settings.model == "lstm" else 1  # h, and c of an LSTM
        self.bridge = Linear(2 * dim, self.parts * settings.depth * dim)
        self.decoder = cell(
            dim * (2 if settings.input_feeding else 1),
            dim,
            settings.depth,
            batch_first=True,
            dropout=settings.dropout if settings.depth > 1 else 0.0,
        )
        self.gates: Any = None  # of each layer of the decoder, in 8 bits
        self.readout = Linear(dim, dim)
        looks = settings.attention != "none"
        # a score of places alone has no use for keys
        keys = looks and settings.attention != "location"
        self.key = Linear(3 * dim, dim, bias=False) if keys else None
        self.value = Linear(3 * dim, dim, bias=False) if looks else None
        self.look = (
            None
            if settings.attention == "none"
            else Alignment(settings.attention, dim, settings.max_length)
        )

    def initialize(self, generator: torch.Generator) -> None:
        """Each gate keeps the variance of what goes in; what is forgotten is little at first."""
        super().initialize(generator)
        for cells in (*self.forwards, *self.backwards, self.decoder):
            for name, parameter in cells.named_parameters():
                if parameter.dim() == 2:
                    bound = parameter.size(1) ** -0.5
                    nn.init.uniform_(parameter, -bound, bound, generator=generator)
                else:
                    nn.init.zeros_(parameter)
                if self.settings.model == "lstm" and name.startswith("bias_ih"):
                    parameter.data.chunk(4)[1].fill_(1.0)  # gates: input, forget, cell, output
        for layer in (self.bridge, self.readout, self.key, self.value):
            if layer is not None:
                layer.initialize(generator)
        if self.look is not None:
            self.look.initialize(generator)
        if self.value is not None:
            # a word that is looked at is written as it is, until more is known: embeddings of
            # words that translate each other can be alike from the start
            self.value.weight.data[:, 2 * self.settings.dim :] = torch.eye(self.settings.dim)

    def matrices(self) -> Stacks:
        """Each gate is a matrix of its own."""
        found = []
        for cells in (*self.forwards, *self.backwards, self.decoder):
            found += [(p, _GATES[self.settings.model]) for p in cells.parameters() if p.dim() == 2]
        pieces = self.parts * self.settings.depth
        layers = [(self.bridge, pieces), (self.readout, 1), (self.key, 1), (self.value, 1)]
        found += [(layer.weight, count) for layer, count in layers if layer is not None]
        return [*found, *(() if self.look is None else self.look.matrices())]

    def _embed(self, table: Embedding, ids: Tensor) -> Tensor:
        scale = self.settings.dim**0.5 if self.settings.scale_embedding else 1.0
        dropped: Tensor = self.dropout(table(ids) * scale)
        return dropped

    # --- the encoder ----------------------------------------------------------------------------

    def encode(self, source: Tensor, inside: Tensor) -> Memory:
        """States of both directions; padding stands at the end of both, where it does no harm."""
        embedded = self._embed(self.source_table, source)  # (N, S, C)
        lengths = inside.sum(dim=1)
        turn = _turned(lengths, source.size(1))  # (N, S)
        last = (lengths - 1).clamp_min(0)
        rows = torch.arange(len(source), device=source.device)
        x, ends = embedded, []
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            if x is not embedded:
                x = self.dropout(x)
            there, _ = forwards(x)
            back, _ = backwards(_take(x, turn))
            ends = [there[rows, last], back[rows, last]]
            x = torch.cat([there, _take(back, turn)], dim=-1)  # (N, S, 2C)
        first = torch.tanh(self.bridge(torch.cat(ends, dim=-1)))  # (N, parts x layers x C)
        parts = {"first": first}
        if self.value is not None:
            known = torch.cat([x, embedded.to(x.dtype)], dim=-1)  # (N, S, 3C)
            values = self.value(known)
            parts |= {"keys": values if self.key is None else self.key(known), "values": values}
        return Memory(inside, parts)

    # --- the decoder ----------------------------------------------------------------------------

    def start(self, memory: Memory, beams: int, longest: int) -> RecurrentState:
        first = memory.parts["first"].repeat_interleave(beams, dim=0)  # (N K, ...)
        shaped = first.unflatten(-1, (self.parts, self.settings.depth, -1))
        cells = tuple(shaped[:, part].transpose(0, 1).contiguous() for part in range(self.parts))
        readout = first.new_zeros(len(first), self.settings.dim)
        return RecurrentState(cells, readout if self.settings.input_feeding else None)

    def _run(self, x: Tensor, state: RecurrentState) -> Tensor:
        """The cells over x (R, T, C); the state goes along."""
        cells = state.cells if len(state.cells) == 2 else state.cells[0]
        out: Tensor
        out, after = self.decoder(x, cells)
        state.cells = after if isinstance(after, tuple) else (after,)
        return out

    def _run_once(self, x: Tensor, state: RecurrentState) -> Tensor:
        """The cells over one token x (R, C); several times as fast as a sequence of one."""
        after: list[tuple[Tensor, ...]] = []
        for layer in range(self.settings.depth):
            before = tuple(part[layer] for part in state.cells)
            if self.gates is None:
                names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                weights = [getattr(self.decoder, f"{name}_l{layer}") for name in names]
                if len(before) == 2:
                    after.append(torch.lstm_cell(x, before, *weights))
                else:
                    after.append((torch.gru_cell(x, before[0], *weights),))
            else:
                inputs, recurrent = self.gates[layer]
                after.append(_cell(inputs(x), recurrent(before[0]), before))
            x = after[-1][0]
        state.cells = tuple(torch.stack(parts) for parts in zip(*after, strict=True))
        return x

    def quantize(self) -> None:
        from nlpkit.nn.quantized import Int8Rows, quantize_rows

        self.gates = [
            tuple(
                Int8Rows(
                    getattr(self.decoder, f"weight_{part}"), getattr(self.decoder, f"bias_{part}")
                )
                for part in (f"ih_l{layer}", f"hh_l{layer}")
            )
            for layer in range(self.settings.depth)
        ]
        self.int8_head = Int8Rows(self.head_weights(), self.head_bias)
        quantize_rows(self)

    def _read_out(self, h: Tensor, memory: Memory) -> tuple[Tensor, Tensor | None]:
        """What the head scores (N, T, C) for states h, and the weights (N, T, S)."""
        mixed: Tensor = self.readout(h)
        weights = None
        if self.look is not None:
            hidden = torch.zeros_like(memory.inside, dtype=torch.float32)
            mask = hidden.masked_fill_(~memory.inside, -math.inf)[:, None]  # (N, 1, S)
            found, weights = self.look(h, memory.parts["keys"], memory.parts["values"], mask)
            mixed = mixed + found
        return torch.tanh(mixed), weights

    def _over(self, target: Tensor, memory: Memory) -> tuple[Tensor, Tensor | None]:
        """Readouts (B, T, C) and weights (B, T, S) of whole targets."""
        x = self._embed(self.target_table, target)  # (B, T, C)
        state = self.start(memory, 1, target.size(1))
        if not self.settings.input_feeding:
            return self._read_out(self._run(x, state), memory)
        steps = [self._feed(x[:, place], state, memory) for place in range(x.size(1))]
        weights = [w for _, w in steps if w is not None]
        return (
            torch.cat([readout for readout, _ in steps], dim=1),
            torch.cat(weights, dim=1) if weights else None,
        )

    def _feed(
        self, x: Tensor, state: RecurrentState, memory: Memory
    ) -> tuple[Tensor, Tensor | None]:
        """One step with input feeding: x (N K, C) goes in beside the last readout."""
        assert state.readout is not None
        both = torch.cat([x, state.readout.to(x.dtype)], dim=-1)
        run = self._run(both[:, None], state) if self.training else self._run_once(both, state)
        h = run.view(len(memory), -1, self.settings.dim)
        readout, weights = self._read_out(h, memory)
        state.readout = readout.flatten(0, 1)
        return readout, weights

    def hidden(self, target: Tensor, memory: Memory) -> Tensor:
        return self.dropout(self._over(target, memory)[0])

    def alignment(self, target: Tensor, memory: Memory) -> Tensor:
        weights = self._over(target, memory)[1]
        if weights is None:  # the bottleneck sees no token more than another
            even = memory.inside / memory.inside.sum(dim=1, keepdim=True).clamp_min(1)
            return even[:, None].expand(-1, target.size(1), -1)
        return weights

    def step(
        self, ids: Tensor, state: RecurrentState, memory: Memory, look: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        x = self._embed(self.target_table, ids.flatten())  # (N K, C)
        if self.settings.input_feeding:
            return self._feed(x, state, memory)
        h = self._run_once(x, state).view(*ids.shape, -1)  # (N, K, C)
        return self._read_out(h, memory)


def _cell(x: Tensor, h: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """One step of an LSTM or a GRU, from what its matrices made of the input and the state."""
    if len(before) == 2:
        enter, forget, new, leave = (x + h).chunk(4, dim=-1)
        cell = forget.sigmoid() * before[1] + enter.sigmoid() * new.tanh()
        return leave.sigmoid() * cell.tanh(), cell
    (reset, update, new), (h_reset, h_update, h_new) = x.chunk(3, dim=-1), h.chunk(3, dim=-1)
    candidate = torch.tanh(new + (reset + h_reset).sigmoid() * h_new)
    update = (update + h_update).sigmoid()
    return ((1 - update) * candidate + update * before[0],)


def _turned(lengths: Tensor, size: int) -> Tensor:
    """Where each place of a row comes from when its tokens are turned round, padding left alone.

    >>> _turned(torch.tensor([3, 1]), 3).tolist()
    [[2, 1, 0], [0, 1, 2]]
    """
    here = torch.arange(size, device=lengths.device)
    back = lengths[:, None] - 1 - here  # (N, S)
    return torch.where(back >= 0, back, here)


def _take(x: Tensor, places: Tensor) -> Tensor:
    """x (N, S, C) in the order of places (N, S)."""
    return x.gather(1, places[:, :, None].expand(-1, -1, x.size(2)))
