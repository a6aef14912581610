"""The encoders of ``encoders`` in numpy, for prediction: no torch, so a command starts at once.

An encoder is given a table (U, C) of distinct inputs and ``ids`` (B, T) that say which of them
stands where: the first matrix product is made once for each distinct input. Sequences come longest
first. A recurrent step works on the sequences that are still going, the other encoders hide what
is padding, so a batch gives what each sequence gives alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit import modeldir
from nlpkit.errors import NlpkitError

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Weights = Mapping[str, Floats]


def read_arrays(path: str | Path) -> dict[str, Floats]:
    """The tensors of a model's ``weights.safetensors`` as numpy arrays."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    file = Path(path) / modeldir.WEIGHTS
    if not file.is_file():
        raise NlpkitError(f"{path} has no {modeldir.WEIGHTS}", hint="train or copy the model again")
    try:
        return load_file(file)
    except (SafetensorError, ValueError, KeyError) as error:
        raise NlpkitError(f"{file} is damaged: {error}", hint="copy the model again") from None


def under(prefix: str, weights: Weights) -> dict[str, Floats]:
    """The weights of a part, by their names within it.

    >>> sorted(under("a.", {"a.x": np.zeros(1), "b.x": np.zeros(1)}))
    ['x']
    """
    return {name[len(prefix) :]: w for name, w in weights.items() if name.startswith(prefix)}


class NumpyEncoder:
    """An encoder ready to run: what it gives for each token, (B, T, C), with 0 for padding.

    >>> weights = {f"rnn.{name}_l0": np.ones(shape, np.float32) for name, shape in
    ...            [("weight_ih", (4, 2)), ("weight_hh", (4, 1)), ("bias_ih", 4), ("bias_hh", 4)]}
    >>> encoder = NumpyEncoder("lstm", weights, one_way=True)
    >>> encoder(np.eye(2, dtype=np.float32), np.array([[0, 1], [1, 0]]), np.array([2, 1])).shape
    (2, 2, 1)
    """

    def __init__(self, kind: str, weights: Weights, *, one_way: bool) -> None:
        self.kind, self.weights, self.one_way = kind, weights, one_way
        self.layers = _recurrent_layers(kind, under("rnn.", weights))

    def __call__(self, table: Floats, ids: Ids, lengths: Ids) -> Floats:
        if self.layers:
            return _recurrent(self.kind, self.layers, table, ids, lengths)
        first = _linear(table, self.weights, "first")
        inside = np.arange(ids.shape[1]) < lengths[:, None]  # (B, T)
        states = first[ids] * inside[:, :, None]
        run = _convolutions if self.kind == "cnn" else _transformer
        encoded: Floats = run(self.weights, states, inside, self.one_way) * inside[:, :, None]
        return encoded


# --- recurrent ----------------------------------------------------------------------------------


class _Layer(NamedTuple):
    """Weights of one layer, for D directions, G gate values and H hidden ones."""

    into: Floats  # (D, C, G)
    recur: Floats  # (D, H, G)
    bias_in: Floats  # (D, 1, G)
    bias_recur: Floats  # (D, 1, G)


def _recurrent_layers(kind: str, weights: Weights) -> list[_Layer]:
    layers: list[_Layer] = []
    while f"weight_ih_l{len(layers)}" in weights:
        names = [f"l{len(layers)}", f"l{len(layers)}_reverse"]
        names = [name for name in names if f"weight_ih_{name}" in weights]
        layer = _Layer(
            np.stack([weights[f"weight_ih_{name}"].T for name in names]),
            np.stack([weights[f"weight_hh_{name}"].T for name in names]),
            np.stack([weights[f"bias_ih_{name}"][None] for name in names]),
            np.stack([weights[f"bias_hh_{name}"][None] for name in names]),
        )
        layers.append(_as_tanh(layer) if kind == "lstm" else layer)
    return layers


def _recurrent(kind: str, layers: list[_Layer], table: Floats, ids: Ids, lengths: Ids) -> Floats:
    n_rows, n_steps = ids.shape
    advance = _lstm_step if kind == "lstm" else _gru_step
    steps = np.arange(n_steps)
    # the place of each token when its own sequence is read from its end
    backwards = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)  # (B, T)
    active = (steps[:, None] < lengths).sum(axis=1)  # how many sequences reach each step
    for layer in layers:
        n_directions, hidden, _ = layer.recur.shape
        projected = table @ layer.into + layer.bias_in  # (D, U, G)
        orders = [ids, np.take_along_axis(ids, backwards, axis=1)][:n_directions]
        by_step = np.ascontiguousarray(np.stack(orders).transpose(2, 0, 1))  # (T, D, B)
        state = np.zeros((n_directions, n_rows, hidden), np.float32)
        cell = np.zeros_like(state)
        gates = np.empty((n_directions, n_rows, layer.recur.shape[2]), np.float32)
        outputs = np.zeros((n_steps, n_directions, n_rows, hidden), np.float32)
        for step in range(n_steps):
            n = active[step]
            for way in range(n_directions):
                # clipping nothing: this mode lets numpy write straight into the buffer
                np.take(projected[way], by_step[step, way, :n], 0, gates[way, :n], mode="clip")
            new = advance(gates[:, :n], state[:, :n], cell[:, :n], layer)
            state[:, :n] = new
            outputs[step, :, :n] = new
        rows = np.arange(n_rows)[:, None]
        places = (steps, backwards)[:n_directions]
        ways = [outputs[places[way], way, rows] for way in range(n_directions)]  # (B, T, H)
        encoded = np.concatenate(ways, axis=2)  # (B, T, D H)
        table = encoded.reshape(n_rows * n_steps, -1)
        ids = np.arange(n_rows * n_steps).reshape(n_rows, n_steps)
    return encoded


def _as_tanh(layer: _Layer) -> _Layer:
    """Halve the weights of the three sigmoid gates: sigmoid(x) = tanh(x / 2) / 2 + 1 / 2.

    All four gates of an LSTM then take one pass of tanh.
    """
    hidden = layer.recur.shape[1]
    scale = np.full(4 * hidden, 0.5, np.float32)
    scale[2 * hidden : 3 * hidden] = 1.0  # the candidate is a tanh already
    bias = layer.bias_in + layer.bias_recur
    return _Layer(layer.into * scale, layer.recur * scale, bias * scale, np.zeros_like(bias))


def _lstm_step(inputs: Floats, state: Floats, cell: Floats, layer: _Layer) -> Floats:
    hidden = state.shape[2]
    gates = inputs
    gates += state @ layer.recur
    np.tanh(gates, out=gates)
    opening = gates[..., : 2 * hidden]  # input and forget gate
    opening *= 0.5
    opening += 0.5
    out_gate = gates[..., 3 * hidden :]
    out_gate *= 0.5
    out_gate += 0.5
    cell *= gates[..., hidden : 2 * hidden]
    cell += gates[..., :hidden] * gates[..., 2 * hidden : 3 * hidden]
    new: Floats = np.tanh(cell)
    new *= out_gate
    return new


def _gru_step(inputs: Floats, state: Floats, cell: Floats, layer: _Layer) -> Floats:
    hidden = state.shape[2]
    recurrent = state @ layer.recur + layer.bias_recur
    both = inputs[..., : 2 * hidden] + recurrent[..., : 2 * hidden]
    both *= 0.5
    np.tanh(both, out=both)
    both *= 0.5
    both += 0.5
    reset, update = both[..., :hidden], both[..., hidden:]
    candidate: Floats = inputs[..., 2 * hidden :] + reset * recurrent[..., 2 * hidden :]
    np.tanh(candidate, out=candidate)
    return candidate + update * (state - candidate)


# --- convolutions and attention -----------------------------------------------------------------


def layer_norm(states: Floats, weights: Weights, name: str) -> Floats:
    """Each vector with mean 0 and variance 1, then scaled and shifted as was learned."""
    centred = states - states.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-5)
    normal: Floats = centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return normal


def _convolutions(
    weights: Weights, states: Floats, inside: NDArray[np.bool_], one_way: bool
) -> Floats:
    depth = 0
    while f"convolutions.{depth}.weight" in weights:
        reach = 2**depth
        left = 2 * reach if one_way else reach
        normal = layer_norm(states, weights, f"norms.{depth}") * inside[:, :, None]
        kernel = weights[f"convolutions.{depth}.weight"]  # (out, in, 3)
        padded = np.pad(normal, ((0, 0), (left, 2 * reach - left), (0, 0)))
        n_steps = states.shape[1]
        moved = np.zeros_like(states) + weights[f"convolutions.{depth}.bias"]
        for tap in range(kernel.shape[2]):
            moved += padded[:, tap * reach : tap * reach + n_steps] @ kernel[:, :, tap].T
        states = states + np.maximum(moved, 0)
        depth += 1
    return states


def _transformer(
    weights: Weights, states: Floats, inside: NDArray[np.bool_], one_way: bool
) -> Floats:
    depth = 0
    while f"blocks.{depth}.qkv.weight" in weights:
        block = under(f"blocks.{depth}.", weights)
        states = states + _attend(block, layer_norm(states, block, "norm1"), inside, one_way)
        wide = _linear(layer_norm(states, block, "norm2"), block, "mlp_in")
        states = states + _linear(np.maximum(wide, 0), block, "mlp_out")
        depth += 1
    return layer_norm(states, weights, "norm")


def _linear(states: Floats, weights: Weights, name: str) -> Floats:
    result: Floats = states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return result


def _attend(weights: Weights, states: Floats, inside: NDArray[np.bool_], one_way: bool) -> Floats:
    n_rows, n_steps, hidden = states.shape
    heads = weights["decay"].shape[1]
    qkv = _linear(states, weights, "qkv").reshape(n_rows, n_steps, 3, heads, -1)
    q, k, v = qkv.transpose(2, 0, 3, 1, 4)  # each (B, H, T, C/H)
    steps = np.arange(n_steps)
    distance = (steps[None, :] - steps[:, None]).astype(np.float32)
    before, after = np.exp(weights["decay"])[:, :, None, None]
    bias = np.where(distance < 0, distance * before, -distance * after)  # (H, T, T)
    if one_way:
        bias = np.where(distance > 0, -np.inf, bias)
    scores = q @ k.swapaxes(2, 3) / np.float32(np.sqrt(hidden / heads)) + bias
    scores = np.where(inside[:, None, None, :], scores, -np.inf)
    scores = np.exp(scores - scores.max(axis=3, keepdims=True))
    scores /= scores.sum(axis=3, keepdims=True)
    mixed = (scores.astype(np.float32) @ v).swapaxes(1, 2).reshape(n_rows, n_steps, hidden)
    return _linear(mixed, weights, "out")
