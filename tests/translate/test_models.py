"""Encoder-decoders: a token at a time gives what a whole target gives; padding changes nothing."""

from __future__ import annotations

import pytest
import torch
from small_translators import KINDS, read, small_model

from nlpkit.errors import NlpkitError
from nlpkit.models.seq2seq_settings import Seq2SeqArchitecture

TARGET = [1, 5, 6, 7, 5]
VARIANTS = [
    *[{"kind": kind} for kind in KINDS],
    {"kind": "lstm", "input_feeding": True},
    {"kind": "gru", "attention": "none"},
    {"kind": "gru", "attention": "location", "layers": 1},
    {"kind": "transformer", "norm": "post", "norm_gains": True, "positions": "sinusoidal"},
    {"kind": "transformer", "positions": "learned", "decoder_layers": 1, "tied": False},
    {"kind": "transformer", "joint": True, "source_vocab": 11, "outputs": 8, "halves": True},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_step_by_step_is_all_at_once(variant: dict[str, object]) -> None:
    model = small_model(**variant)  # type: ignore[arg-type]
    with torch.inference_mode():
        memory = read(model, [5, 6, 7, 2])
        whole = model.hidden(torch.tensor([TARGET]), memory)
        weights = model.alignment(torch.tensor([TARGET]), memory)
        state = model.start(memory, 1, 10)
        for place, index in enumerate(TARGET):
            hidden, looked = model.step(torch.tensor([[index]]), state, memory, True)
            torch.testing.assert_close(hidden[0, 0], whole[0, place], atol=1e-4, rtol=1e-4)
            if looked is not None:
                torch.testing.assert_close(looked[0, 0], weights[0, place], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, len(TARGET)))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_padding_changes_nothing(variant: dict[str, object]) -> None:
    model = small_model(**variant)  # type: ignore[arg-type]
    with torch.inference_mode():
        target = torch.tensor([TARGET])
        alone = model.hidden(target, read(model, [5, 6, 2]))
        padded = model.hidden(target.repeat(2, 1), read(model, [5, 6, 2], [7, 5, 6, 7, 8, 2]))
    torch.testing.assert_close(padded[:1], alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_beams_share_a_memory(kind: str) -> None:
    model = small_model(kind)
    with torch.inference_mode():
        memory = read(model, [5, 6, 2], [7, 8, 5, 6, 2])
        state = model.start(memory, 2, 10)
        model.step(torch.tensor([[1, 1], [1, 1]]), state, memory)
        state.select(torch.tensor([1, 0, 3, 3]))
        hidden, _ = model.step(torch.tensor([[5, 6], [7, 8]]), state, memory)
        for row, source in enumerate([[5, 6, 2], [7, 8, 5, 6, 2]]):
            for beam, index in enumerate([[5, 6], [7, 8]][row]):
                whole = model.hidden(torch.tensor([[1, index]]), read(model, source))
                torch.testing.assert_close(hidden[row, beam], whole[0, 1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_eight_bits_follow_the_model(kind: str) -> None:
    model = small_model(kind, dim=32)
    with torch.inference_mode():
        expected = model.logits(model.hidden(torch.tensor([TARGET[:1]]), read(model, [5, 6, 2])))
        model.quantize()
        memory = read(model, [5, 6, 2])
        hidden, _ = model.step(torch.tensor([TARGET[:1]]), model.start(memory, 1, 4), memory)
        found = model.logits(hidden, model.make_head())
    assert float((found - expected).norm() / expected.norm()) < 0.2


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(NlpkitError, match="heads"):
        Seq2SeqArchitecture(model="transformer", dim=10, heads=4)


def test_a_joint_vocabulary_has_one_size() -> None:
    with pytest.raises(NlpkitError, match="one size"):
        Seq2SeqArchitecture(joint=True, source_vocab=8, target_vocab=9)
