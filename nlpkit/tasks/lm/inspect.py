"""Looking inside a language model: what it expects at each step, its gates, where its heads look.

All of it works on ids, so models of text and of names are looked into alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlpkit.errors import NlpkitError
from nlpkit.models.base import LanguageModel
from nlpkit.models.gpt import GPT
from nlpkit.models.recurrent import Recurrent

_CLOSED, _OPEN = 0.1, 0.9  # a gate beyond these is as good as shut or open


@torch.inference_mode()
def step_records(
    model: LanguageModel, ids: Sequence[int], name_of: Callable[[int], str], count: int = 5
) -> list[dict[str, Any]]:
    """For each token but the first: how likely it was, and the likeliest in its place."""
    if len(ids) < 2:
        raise NlpkitError("there is nothing to predict", hint="a text of two tokens or more")
    block = len(ids) if model.carries_state else model.settings.block_size
    if len(ids) - 1 > block:
        raise NlpkitError(f"{len(ids) - 1} tokens; the model reads {block}", hint="a shorter text")
    device = next(iter([*model.parameters(), *model.buffers()])).device
    logits, _ = model(torch.tensor([ids[:-1]], device=device))
    logs = logits[0].float().log_softmax(dim=-1)  # (T, V)
    records = []
    for place, index in enumerate(ids[1:]):
        best = logs[place].topk(min(count, logs.size(1)))
        pairs = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
        records.append(
            {
                "token": name_of(index),
                "probability": round(float(logs[place, index].exp()), 5),
                "expected": [[name_of(i), round(share, 5)] for i, share in pairs],
            }
        )
    return records


@torch.inference_mode()
def gate_arrays(model: LanguageModel, ids: Sequence[int]) -> dict[str, np.ndarray]:
    """States and gates of a recurrent model over a text, each (layers, T, units), by name.

    LSTM: input, forget, output, cell, state. GRU: reset, update, state. RNN: state.
    """
    if not isinstance(model, Recurrent):
        raise NlpkitError(f"a {model.settings.model} has no gates", hint="an rnn, lstm or gru")
    x = model.embedding(torch.tensor(ids, device=model.first_state.device))  # (T, C)
    layers: list[dict[str, Tensor]] = []
    for layer in range(model.settings.layers):
        weights = [getattr(model.cells, f"{name}_l{layer}") for name in _WEIGHTS]
        first = model.first_state[:, layer, 0]  # (parts, C)
        found = _STEPS[model.settings.model](x, first, *weights)
        layers.append(found)
        x = found["state"]
    return {
        name: torch.stack([layer[name] for layer in layers]).cpu().numpy() for name in layers[0]
    }


_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _lstm(
    x: Tensor, first: Tensor, w: Tensor, u: Tensor, b: Tensor, d: Tensor
) -> dict[str, Tensor]:
    h, c = first[0], first[1]
    found: dict[str, list[Tensor]] = {n: [] for n in ("input", "forget", "output", "cell", "state")}
    for entered in x @ w.T + b + d:
        i, f, g, o = (entered + u @ h).chunk(4)
        i, f, o = i.sigmoid(), f.sigmoid(), o.sigmoid()
        c = f * c + i * g.tanh()
        h = o * c.tanh()
        for name, value in zip(found, (i, f, o, c, h), strict=True):
            found[name].append(value)
    return {name: torch.stack(values) for name, values in found.items()}


def _gru(x: Tensor, first: Tensor, w: Tensor, u: Tensor, b: Tensor, d: Tensor) -> dict[str, Tensor]:
    h = first[0]
    found: dict[str, list[Tensor]] = {name: [] for name in ("reset", "update", "state")}
    for entered in x @ w.T + b:
        (r, z, n), (ur, uz, un) = entered.chunk(3), (u @ h + d).chunk(3)
        r, z = (r + ur).sigmoid(), (z + uz).sigmoid()
        h = (1 - z) * (n + r * un).tanh() + z * h
        for name, value in zip(found, (r, z, h), strict=True):
            found[name].append(value)
    return {name: torch.stack(values) for name, values in found.items()}


def _rnn(x: Tensor, first: Tensor, w: Tensor, u: Tensor, b: Tensor, d: Tensor) -> dict[str, Tensor]:
    h, states = first[0], []
    for entered in x @ w.T + b + d:
        h = (entered + u @ h).tanh()
        states.append(h)
    return {"state": torch.stack(states)}


_STEPS = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}


def gate_summary(gates: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """By gate and layer: its mean, and the share of time and units in which it is shut or open.

    >>> gate_summary({"forget": np.array([[[0.95, 0.5]]])})[0]["open"]
    0.5
    """
    return [
        {
            "gate": name,
            "layer": layer + 1,
            "mean": round(float(values.mean()), 4),
            "closed": round(float((np.abs(values) < _CLOSED).mean()), 4),
            "open": round(float((np.abs(values) > _OPEN).mean()), 4),
        }
        for name, array in gates.items()
        for layer, values in enumerate(array)
    ]


# --- attention ----------------------------------------------------------------------------------


def head_roles(weights: np.ndarray) -> dict[str, float]:
    """What a head (T, T) looks at on average: the token before, the token itself, the first.

    >>> head_roles(np.eye(3))["same"]
    1.0
    """
    rows = weights[1:] if len(weights) > 1 else weights
    places = np.arange(len(weights))[-len(rows) :]
    return {
        "previous": round(
            float(np.mean([rows[i, max(0, p - 1)] for i, p in enumerate(places)])), 4
        ),
        "same": round(float(np.mean([rows[i, p] for i, p in enumerate(places)])), 4),
        "start": round(float(rows[:, 0].mean()), 4),
    }


def sort_heads(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records of attention with what each head looks at most; those of a kind beside each other."""
    found = []
    for record in records:
        width = len(record["tokens"])
        square = np.array([row + [0.0] * (width - len(row)) for row in record["weights"]])
        roles = head_roles(square)
        looks_at = max(roles, key=lambda name: roles[name])
        found.append({**record, **roles, "looks_at": looks_at})
    order = ["previous", "same", "start"]
    return sorted(found, key=lambda one: (order.index(one["looks_at"]), -one[one["looks_at"]]))


def position_table(model: LanguageModel, length: int | None = None) -> tuple[str, np.ndarray]:
    """The positional encoding of a transformer (T, C) and what it is: learned, or sinusoids.

    Rotary positions turn queries and keys by angles; shown are the sines and cosines of those.
    """
    if not isinstance(model, GPT):
        raise NlpkitError(f"a {model.settings.model} has no positional encoding", hint="a gpt")
    size = min(length or 64, model.settings.block_size)
    if model.position is not None:
        return "learned", model.position.weight[:size].detach().cpu().numpy()
    return "rotary", sinusoids(size, model.settings.dim // model.settings.heads)


def sinusoids(length: int, dim: int) -> np.ndarray:
    """Sines and cosines of falling frequencies (T, C), as in Vaswani et al. (2017).

    >>> sinusoids(2, 2).round(2).tolist()
    [[0.0, 1.0], [0.84, 0.54]]
    """
    angles = np.arange(length)[:, None] / 10_000 ** (np.arange(0, dim, 2) / dim)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, -1)
