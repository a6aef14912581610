"""The weights of an encoder-decoder in its folder.

In a joint vocabulary both sides have one table, which is kept once.
"""

from __future__ import annotations

from pathlib import Path

import torch

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.build import NoRandomNumbers
from nlpkit.models.seq2seq import EncoderDecoder, empty_seq2seq
from nlpkit.models.seq2seq_settings import Seq2SeqArchitecture


def write_seq2seq(folder: Path, model: EncoderDecoder) -> None:
    """Write the weights of a model into a folder that is being made."""
    tensors = dict(model.state_dict())
    if model.settings.joint:
        tensors = {name: part for name, part in tensors.items() if not _is_shared(name)}
    modeldir.write_weights(folder, tensors)


def read_seq2seq(folder: Path, shape: Seq2SeqArchitecture) -> EncoderDecoder:
    """The weights of a folder in a model of this shape, checked before memory is asked for."""
    tensors = modeldir.read_weights(folder)
    where = str(folder / modeldir.WEIGHTS)
    if max(shape.layers, shape.depth, shape.members) > len(tensors):
        raise NlpkitError(f"{where} has too few tensors for its layers", hint=schema.AGAIN)
    with torch.device("meta"), NoRandomNumbers():
        state = empty_seq2seq(shape).state_dict()
    expected: dict[str, schema.Shape] = {name: tuple(part.shape) for name, part in state.items()}
    if shape.joint:
        expected = {name: size for name, size in expected.items() if not _is_shared(name)}
    whole = [name for name, part in state.items() if not part.is_floating_point()]
    schema.check_tensors(tensors, expected, where, whole=whole)
    for ids in (part for name, part in tensors.items() if name.endswith("written_ids")):
        if ids.min() < 0 or ids.max() >= shape.target_vocab or len(ids.unique()) < len(ids):
            raise NlpkitError(f"{where}: written_ids are not ids of the target", hint=schema.AGAIN)
    if shape.joint:
        tables = {name: name.replace("source_", "target_") for name in state if _is_shared(name)}
        tensors = {**tensors, **{name: tensors[other] for name, other in tables.items()}}
    model = empty_seq2seq(shape)
    model.load_state_dict(tensors, assign=True)
    if shape.joint:
        for member in model.each():
            member.source_table.weight = member.target_table.weight
    return model.requires_grad_(False).eval()


def _is_shared(name: str) -> bool:
    """Whether a tensor is the table of the target once more, in a joint vocabulary."""
    return name.endswith("source_table.weight")
