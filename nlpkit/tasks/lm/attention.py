"""What a GPT looks at: the weights of its attention, as records and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nlpkit.errors import NlpkitError
from nlpkit.models.base import LanguageModel
from nlpkit.models.gpt import GPT
from nlpkit.nn.block import Block
from nlpkit.tasks.lm.model import GptModel


@torch.no_grad()
def attention_weights(model: GPT, idx: Tensor) -> list[Tensor]:
    """The weights (B, H, T, T) of every layer."""
    found = []
    x = model.embed(idx)
    for block in model.blocks:
        assert isinstance(block, Block)
        found.append(block.attention_weights(x, model.rotary))
        x = block(x, model.rotary)
    return found


def attention_records(
    gpt: GptModel, text: str, layer: int | None = None, head: int | None = None
) -> list[dict[str, Any]]:
    """A record for each layer and head, or for those asked for (from 1)."""
    ids = gpt.codec.encode(text)
    tokens = [gpt.codec.decode([index]) for index in ids]
    return records_of_ids(gpt.model, ids, tokens, layer, head)


def records_of_ids(
    model: LanguageModel,
    ids: Sequence[int],
    tokens: Sequence[str],
    layer: int | None = None,
    head: int | None = None,
) -> list[dict[str, Any]]:
    """The same for ids and the text of each."""
    if not isinstance(model, GPT):
        raise NlpkitError(f"a {model.settings.model} has no attention", hint="a gpt")
    settings = model.settings
    for name, asked, there in (
        ("layer", layer, settings.layers),
        ("head", head, settings.heads),
    ):
        if asked is not None and asked > there:
            raise NlpkitError(f"`{name}` {asked}: the model has {there}")
    if not 1 <= len(ids) <= settings.block_size:
        raise NlpkitError(
            f"{len(ids)} tokens; the model reads from 1 to {settings.block_size}",
            hint="a shorter text" if ids else "a text that is not empty",
        )
    device = next(model.parameters()).device
    weights = attention_weights(model, torch.tensor([list(ids)], device=device))
    return [
        {
            "layer": number + 1,
            "head": place + 1,
            "tokens": list(tokens),
            "weights": [
                [round(value, 5) for value in row[: index + 1]]
                for index, row in enumerate(weights[number][0, place].tolist())
            ],
        }
        for number in range(settings.layers)
        for place in range(settings.heads)
        if layer in (None, number + 1) and head in (None, place + 1)
    ]


def draw_attention(records: list[dict[str, Any]], path: str) -> None:
    """A grid of heat maps: a row for each layer, a column for each head."""
    from matplotlib.figure import Figure

    from nlpkit.plots import hover_cells, label, save_figure

    layers = sorted({record["layer"] for record in records})
    heads = sorted({record["head"] for record in records})
    drawn = Figure(figsize=(3 * len(heads) + 1, 3 * len(layers) + 1), layout="constrained")
    grid = drawn.subplots(len(layers), len(heads), squeeze=False)
    for record in records:
        axes = grid[layers.index(record["layer"])][heads.index(record["head"])]
        width = len(record["tokens"])
        weights = [row + [0.0] * (width - len(row)) for row in record["weights"]]
        axes.imshow(weights, vmin=0, cmap="Blues")
        axes.set_title(f"layer {record['layer']}, head {record['head']}", fontsize=8)
        labels = [label(token).replace(" ", "␣") for token in record["tokens"]]
        axes.set_xticks(range(width), labels, rotation=90, fontsize=6)
        axes.set_yticks(range(width), labels, fontsize=6)
        hover_cells(axes, record["tokens"], record["tokens"], weights)
    save_figure(drawn, path)
