"""The encoders of ``encoder`` in numpy, for prediction: no torch, so a command starts at once.

The first matrix product is made once for each distinct input: ``first``, which may be kept. An
encoder is given those rows and ``ids`` (B, T) that say which of them stands where. Sequences come
longest first. A recurrent step works on the sequences that are still going, the other encoders
hide what is padding, so a batch gives what each sequence gives alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.nn.encoder_config import HEAD_SIZE, EncoderConfig
from nlpkit.npy import check_finite

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
        arrays: dict[str, Floats] = load_file(file)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise NlpkitError(f"{file} is damaged: {error}", hint="copy the model again") from None
    for name, array in arrays.items():
        check_finite(array, f"{file}: the tensor {schema.plain(name)}")
    return dict(_renamed(arrays))


# the tensors of a transformer's block as 0.1.0 named them
_OLD_NAME = re.compile(
    r"(?P<block>.*blocks\.[0-9]+\.)(?P<old>norm1|norm2|qkv|out|mlp_in|mlp_out|decay)"
    r"(?P<end>\.weight|\.bias|)"
)
_NEW_NAMES = {
    "norm1": "norm_1",
    "norm2": "norm_2",
    "out": "attention.output",
    "mlp_in": "up",
    "mlp_out": "down",
    "decay": "attention.decay.log_rates",
}


def _renamed(arrays: Mapping[str, Floats]) -> Iterator[tuple[str, Floats]]:
    """Tensors by the names of today: 0.1.0 kept queries, keys and values in one."""
    for name, array in arrays.items():
        found = _OLD_NAME.fullmatch(name)
        if found is None:
            yield name, array
        elif found["old"] == "qkv" and array.ndim > 0:
            both = len(array) // 3 * 2
            yield f"{found['block']}attention.qk{found['end']}", array[:both]
            yield f"{found['block']}attention.v{found['end']}", array[both:]
        else:
            new = _NEW_NAMES.get(found["old"], found["old"])
            yield f"{found['block']}{new}{found['end']}", array


def write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """The opposite, into a folder that ``modeldir.create`` gave."""
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    modeldir.write_weights(folder, tensors)


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
    >>> encoder = NumpyEncoder(EncoderConfig("lstm", 2, 1, causal=True), weights)
    >>> rows = encoder.first(np.eye(2, dtype=np.float32))
    >>> encoder(rows, np.array([[0, 1], [1, 0]]), np.array([2, 1])).shape
    (2, 2, 1)
    """

    def __init__(self, settings: EncoderConfig, weights: Weights) -> None:
        self.settings, self.kind, self.weights = settings, settings.kind, weights
        self.layers = _recurrent_layers(settings.kind, under("rnn.", weights))
        # what each layer did with the last batch, for whoever wants to look: its attention
        # (B, H, T, T), or the gates and states of the first sequence by name, each (T, D H)
        self.watched: list[Any] | None = None

    def first(self, table: Floats) -> Floats:
        """What the first layer makes of each distinct input by itself, (U, C) -> (U, width)."""
        return self.layers[0].enter(table) if self.layers else _linear(table, self.weights, "first")

    def __call__(self, first: Floats, ids: Ids, lengths: Ids) -> Floats:
        if self.layers:
            return _recurrent(self.settings.kind, self.layers, first, ids, lengths, self.watched)
        inside = np.arange(ids.shape[1]) < lengths[:, None]  # (B, T)
        states = first[ids] * inside[:, :, None]
        if self.settings.kind == "cnn":
            states = _convolutions(self.weights, states, inside, self.settings.causal)
        else:
            states = self._transformer(states, inside)
        encoded: Floats = states * inside[:, :, None]
        return encoded

    def _transformer(self, states: Floats, inside: NDArray[np.bool_]) -> Floats:
        width = states.shape[2]
        if self.settings.positions == "sinusoidal":
            table = _sinusoidal(states.shape[1], width)
            states = states * np.float32(np.sqrt(width)) + table
        depth, post = 0, self.settings.norm == "post"
        while f"blocks.{depth}.up.weight" in self.weights:
            block = under(f"blocks.{depth}.", self.weights)
            asking = states if post else layer_norm(states, block, "norm_1")
            seen = _attend(block, asking, inside, self.settings.causal, self.watched)
            states = states + seen
            if post:
                states = layer_norm(states, block, "norm_1")
            wide = _linear(states if post else layer_norm(states, block, "norm_2"), block, "up")
            states = states + _linear(np.maximum(wide, 0), block, "down")
            if post:
                states = layer_norm(states, block, "norm_2")
            depth += 1
        return states if post else layer_norm(states, self.weights, "norm")


# --- recurrent ----------------------------------------------------------------------------------


class _Layer(NamedTuple):
    """Weights of one layer, for D directions, G gate values and H hidden ones."""

    into: Floats  # (C, D G)
    recur: Floats  # (D, H, G)
    bias_in: Floats  # (D G)
    bias_recur: Floats  # (D, 1, G)

    def enter(self, inputs: Floats) -> Floats:
        """The share of the inputs in the gates, (N, C) -> (N, D G)."""
        shares = inputs @ self.into
        shares += self.bias_in
        return shares


def _recurrent_layers(kind: str, weights: Weights) -> list[_Layer]:
    layers: list[_Layer] = []
    while f"weight_ih_l{len(layers)}" in weights:
        names = [f"l{len(layers)}", f"l{len(layers)}_reverse"]
        names = [name for name in names if f"weight_ih_{name}" in weights]
        into, recur, bias_in, bias_recur = (
            [_in_order(kind, weights[f"{part}_{name}"]) for name in names]
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        if kind == "lstm":  # both biases are added at one place
            bias_in = [a + b for a, b in zip(bias_in, bias_recur, strict=True)]
        layers.append(
            _Layer(
                np.ascontiguousarray(np.concatenate(into).T),
                np.stack([np.ascontiguousarray(one.T) for one in recur]),
                np.concatenate(bias_in),
                np.stack(bias_recur)[:, None],
            )
        )
    return layers


def _in_order(kind: str, gates: Floats) -> Floats:
    """The weights of an LSTM's gates (4 H, ...) in the order input, forget, output, candidate.

    The three sigmoid gates are halved, since sigmoid(x) = tanh(x / 2) / 2 + 1 / 2: all four then
    take one pass of tanh.
    """
    if kind != "lstm":
        return gates
    enter, forget, candidate, out = np.split(gates, 4)
    return np.concatenate([0.5 * enter, 0.5 * forget, 0.5 * out, candidate]).astype(np.float32)


def _recurrent(
    kind: str,
    layers: list[_Layer],
    first: Floats,
    ids: Ids,
    lengths: Ids,
    watched: list[Any] | None,
) -> Floats:
    encoded = _read(kind, layers[0], first, ids, lengths, watched)
    for layer in layers[1:]:
        inputs = encoded.reshape(ids.size, -1)
        each = np.arange(ids.size).reshape(ids.shape)
        encoded = _read(kind, layer, layer.enter(inputs), each, lengths, watched)
    return encoded


def _read(
    kind: str,
    layer: _Layer,
    entered: Floats,
    ids: Ids,
    lengths: Ids,
    watched: list[Any] | None = None,
) -> Floats:
    """One layer over sequences, both ways at once: states (B, T, D H)."""
    n_rows, n_steps = ids.shape
    n_ways, hidden, width = layer.recur.shape
    advance = _lstm_step if kind == "lstm" else _gru_step
    steps, rows, last = np.arange(n_steps), np.arange(n_rows), lengths - 1
    # the place of each token when its own sequence is read from its end
    backwards = np.where(steps < lengths[:, None], last[:, None] - steps, steps)  # (B, T)
    active = (steps[:, None] < lengths).sum(axis=1).tolist()  # how many reach each step
    by_way = entered.reshape(-1, width)  # (U D, G)
    orders = [ids, np.take_along_axis(ids, backwards, axis=1)][:n_ways]
    places = np.stack([n_ways * order + way for way, order in enumerate(orders)])  # (D, B, T)
    by_step = np.ascontiguousarray(places.transpose(2, 0, 1))  # (T, D, B)
    state = np.zeros((n_ways, n_rows, hidden), np.float32)
    cell = np.zeros_like(state)
    buffers = np.empty((2, n_ways * n_rows * width), np.float32)
    encoded: Floats = np.zeros((n_rows, n_steps, n_ways * hidden), np.float32)
    seen: list[dict[str, Floats]] = []
    for step, n in enumerate(active):
        gates, scratch = buffers[:, : n_ways * n * width].reshape(2, n_ways, n, width)
        # clipping nothing: this mode lets numpy write straight into the buffer
        np.take(by_way, by_step[step, :, :n], 0, gates, mode="clip")
        advance(gates, scratch, state[:, :n], cell[:, :n], layer)
        if watched is not None:
            seen.append(_watch(kind, gates[:, 0], cell[:, 0], state[:, 0]))
        encoded[:n, step, :hidden] = state[0, :n]
        if n_ways == 2:
            encoded[rows[:n], last[:n] - step, hidden:] = state[1, :n]
    if watched is not None:
        watched.append({name: _in_time([one[name] for one in seen]) for name in seen[0]})
    return encoded


def _watch(kind: str, gates: Floats, cell: Floats, state: Floats) -> dict[str, Floats]:
    """Gates and states of one sequence after a step, each (D, H), by name."""
    names = ("input", "forget", "output") if kind == "lstm" else ("reset", "update")
    parts = np.split(gates, gates.shape[1] // state.shape[1], axis=1)
    found = dict(zip(names, parts, strict=False)) | ({"cell": cell} if kind == "lstm" else {})
    return {name: part.copy() for name, part in [*found.items(), ("state", state)]}


def _in_time(steps: list[Floats]) -> Floats:
    """T steps of D directions, each (D, H), by token: (T, D H); the second began at the end."""
    ways = np.stack(steps, axis=1)  # (D, T, H)
    return np.concatenate([ways[0], *(way[::-1] for way in ways[1:])], axis=1)


def _lstm_step(gates: Floats, scratch: Floats, state: Floats, cell: Floats, layer: _Layer) -> None:
    """A new state and cell, (D, n, H), from the inputs' share in the gates, (D, n, 4 H)."""
    hidden = state.shape[2]
    gates += np.matmul(state, layer.recur, out=scratch)
    np.tanh(gates, out=gates)
    sigmoids = gates[..., : 3 * hidden]
    sigmoids *= 0.5
    sigmoids += 0.5
    enter, forget, out, candidate = (
        gates[..., part * hidden : (part + 1) * hidden] for part in range(4)
    )
    cell *= forget
    candidate *= enter
    cell += candidate
    np.tanh(cell, out=state)
    state *= out


def _gru_step(gates: Floats, scratch: Floats, state: Floats, cell: Floats, layer: _Layer) -> None:
    """A new state (D, n, H) from the inputs' share in the gates, (D, n, 3 H)."""
    hidden = state.shape[2]
    recurrent = np.matmul(state, layer.recur, out=scratch)
    recurrent += layer.bias_recur
    both = gates[..., : 2 * hidden]
    both += recurrent[..., : 2 * hidden]
    both *= 0.5
    np.tanh(both, out=both)
    both *= 0.5
    both += 0.5
    reset, update = both[..., :hidden], both[..., hidden:]
    candidate = gates[..., 2 * hidden :]
    candidate += reset * recurrent[..., 2 * hidden :]
    np.tanh(candidate, out=candidate)
    state -= candidate
    state *= update
    state += candidate


# --- convolutions and attention -----------------------------------------------------------------


def layer_norm(states: Floats, weights: Weights, name: str) -> Floats:
    """Each vector with mean 0 and variance 1, then scaled and shifted as was learned."""
    centred = states - states.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-5)
    normal: Floats = centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return normal


def _convolutions(
    weights: Weights, states: Floats, inside: NDArray[np.bool_], causal: bool
) -> Floats:
    depth = 0
    while f"convolutions.{depth}.weight" in weights:
        reach = 2**depth
        left = 2 * reach if causal else reach
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


def _sinusoidal(length: int, dim: int) -> Floats:
    """``positions.sinusoidal``, (T, C)."""
    rates = 10_000.0 ** -(np.arange(0, dim, 2) / dim)
    angles = np.outer(np.arange(length), rates)
    table: Floats = np.stack([np.sin(angles), np.cos(angles)], axis=-1).astype(np.float32)
    return table.reshape(length, dim)


def _linear(states: Floats, weights: Weights, name: str) -> Floats:
    result: Floats = states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return result


def _attend(
    weights: Weights,
    states: Floats,
    inside: NDArray[np.bool_],
    causal: bool,
    watched: list[Floats] | None = None,
) -> Floats:
    n_rows, n_steps, hidden = states.shape
    heads = max(1, hidden // HEAD_SIZE)
    shape = (n_rows, n_steps, -1, hidden // heads)
    qk = _linear(states, weights, "attention.qk").reshape(shape).swapaxes(1, 2)
    q, k = qk[:, :heads], qk[:, heads:]  # each (B, H, T, C/H)
    v = _linear(states, weights, "attention.v").reshape(shape).swapaxes(1, 2)
    scores = q @ k.swapaxes(2, 3) / np.float32(np.sqrt(hidden / heads))
    steps = np.arange(n_steps)
    distance = (steps[None, :] - steps[:, None]).astype(np.float32)
    if "attention.decay.log_rates" in weights:
        before, after = np.exp(weights["attention.decay.log_rates"])[:, :, None, None]
        scores += np.where(distance < 0, distance * before, -distance * after)  # (H, T, T)
    seen = inside[:, None, None, :]
    if causal:
        seen = seen & (distance <= 0)
    scores = np.where(seen, scores, -np.inf)
    scores = np.exp(scores - scores.max(axis=3, keepdims=True))
    scores /= scores.sum(axis=3, keepdims=True)
    if watched is not None:
        watched.append(scores.astype(np.float32))
    mixed = (scores.astype(np.float32) @ v).swapaxes(1, 2).reshape(n_rows, n_steps, hidden)
    return _linear(mixed, weights, "attention.output")
