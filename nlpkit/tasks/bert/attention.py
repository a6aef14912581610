"""What a BERT looks at: the weights of its attention, as records."""

from __future__ import annotations

from typing import Any

import torch

from nlpkit.errors import NlpkitError
from nlpkit.models.bert_model import BertModel
from nlpkit.nn.block import Block


@torch.no_grad()
def attention_records(
    bert: BertModel, text: str, layer: int | None = None, head: int | None = None
) -> list[dict[str, Any]]:
    """A record for each layer and head, or for those asked for (from 1)."""
    settings = bert.model.settings
    for name, asked, there in (("layer", layer, settings.layers), ("head", head, settings.heads)):
        if asked is not None and asked > there:
            raise NlpkitError(f"`{name}` {asked}: the model has {there}")
    ids = bert.codec.wrap(bert.codec.encode(text))
    if len(ids) > settings.block_size:
        raise NlpkitError(
            f"{len(ids)} tokens; the model reads {settings.block_size}", hint="a shorter text"
        )
    tokens = bert.codec.tokens(ids)
    x = bert.model.embed(torch.tensor([ids], device=bert.device))
    records = []
    for number, (block, mask) in enumerate(
        zip(bert.model.blocks, bert.model.masks(x), strict=True)
    ):
        assert isinstance(block, Block)
        weights = block.attention_weights(x, mask=mask)[0]  # (H, T, T)
        x = block(x, mask=mask)
        for place in range(settings.heads):
            if layer in (None, number + 1) and head in (None, place + 1):
                rows = [[round(value, 5) for value in row] for row in weights[place].tolist()]
                records.append(
                    {"layer": number + 1, "head": place + 1, "tokens": tokens, "weights": rows}
                )
    return records
