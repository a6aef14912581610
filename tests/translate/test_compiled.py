"""The compiled step of a decoder against torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_translators import read, small_model

from nlpkit.generate.beam import BeamSettings, Hypothesis, beam_search
from nlpkit.kernels.decoder import best_ids
from nlpkit.kernels.matmul import multiply, pack
from nlpkit.kernels.matvec import NONE, Stack
from nlpkit.models.seq2seq import EncoderDecoder
from nlpkit.models.seq2seq_cpu import CompiledDecoder

ROWS = ([5, 6, 7, 2], [4, 2], [8, 9, 10, 11, 5, 2])
MARIAN = {
    "norm": "post",
    "norm_gains": True,
    "bias": True,
    "qk_norm": False,
    "positions": "sinusoidal",
    "activation": "silu",
    "output_bias": True,
}
VARIANTS: list[dict[str, Any]] = [
    {},
    MARIAN,
    {"positions": "learned", "activation": "gelu", "outputs": 9, "tied": False},
]


def search(model: EncoderDecoder, beams: int, **more: Any) -> list[list[Hypothesis]]:
    how = BeamSettings(beams=beams, no_repeat_ngram=more.get("no_repeat_ngram", 0))
    prefix = more.get("prefix", ())
    with torch.inference_mode():
        return beam_search(model, read(model, *ROWS), how, [12, 3, 7], prefix=prefix)


def assert_same(expected: list[list[Hypothesis]], found: list[list[Hypothesis]]) -> None:
    for one, other in zip(expected, found, strict=True):
        assert [h.ids for h in one] == [h.ids for h in other]
        for h, g in zip(one, other, strict=True):
            assert h.log_probability == pytest.approx(g.log_probability, abs=1e-3)
            assert h.score == pytest.approx(g.score, abs=1e-3)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("more", [{}, {"prefix": [5, 4]}, {"no_repeat_ngram": 2}])
def test_a_compiled_search_finds_what_torch_finds(
    variant: dict[str, Any], more: dict[str, Any]
) -> None:
    """At once, or step by step where n-grams are watched."""
    model = small_model("transformer", **variant)
    for beams in (1, 3):
        model.compiled = None
        expected = search(model, beams, **more)
        model.compiled = CompiledDecoder(model)  # type: ignore[arg-type]
        assert_same(expected, search(model, beams, **more))


@settings(deadline=None)  # the first one compiles
@given(st.integers(1, 18), st.integers(1, 70), st.integers(1, 40), st.booleans())
def test_packed_products_are_products(rows: int, outputs: int, inputs: int, small: bool) -> None:
    random = np.random.default_rng(rows * outputs + inputs)
    x = random.normal(size=(rows, inputs)).astype(np.float32)
    weight = random.integers(-127, 128, (2, outputs, inputs)).astype(np.int8)
    scale = np.full((2, outputs), 0.01, np.float32)
    if not small:
        weight, scale = weight * np.float32(0.01), np.ones_like(scale)
    bias = random.normal(size=(2, outputs)).astype(np.float32)
    out = np.empty((rows, outputs), np.float32)
    multiply(pack(Stack(weight, scale, bias)), 1, x, out, NONE, 1)
    expected = x @ (weight[1].astype(np.float32) * scale[1][:, None]).T + bias[1]
    np.testing.assert_allclose(out, expected, atol=1e-2 if small else 1e-4)


def test_eight_bits_are_those_of_the_model() -> None:
    model = small_model("transformer", dim=32, **MARIAN)
    model.quantize()
    with torch.inference_mode():
        memory = read(model, *ROWS)
        state = model.start(memory, 2, 5)
        ids = torch.tensor([[1, 1]] * 3)
        expected = model.logits(model.step(ids, state, memory)[0], model.make_head())
        model.compiled = CompiledDecoder(model)  # type: ignore[arg-type]
        state = model.start(memory, 2, 5)
        found = model.logits(model.step(ids, state, memory)[0], model.make_head())
    # torch rounds nothing that comes in, the compiled step to 16 bits
    assert float((found - expected).norm() / expected.norm()) < 1e-3


def test_ids_and_places_beyond_the_tables_are_refused() -> None:
    model = small_model("transformer")
    compiled = CompiledDecoder(model)  # type: ignore[arg-type]
    memory = read(model, [5, 2])
    with torch.inference_mode():
        state = model.start(memory, 1, 1)
        with pytest.raises(IndexError, match="vocabulary"):
            compiled.step(torch.tensor([99]), state.cache, memory)
        state.cache.length = 1
        with pytest.raises(IndexError, match="longest"):
            compiled.step(torch.tensor([1]), state.cache, memory)


SCORES = st.lists(st.integers(-50, 50), min_size=1, max_size=200, unique=True)


@given(SCORES, st.integers(1, 12), st.integers(0, 3))
def test_the_best_are_the_best(scores: list[int], count: int, ruled_out: int) -> None:
    row = torch.tensor([scores], dtype=torch.float32)
    row[0, :ruled_out] = -torch.inf
    count = min(count, len(scores))
    values, ids = best_ids(row.numpy(), count)
    expected, places = row.topk(count)
    assert values.tolist() == expected.tolist()
    finite = expected[0] > -torch.inf
    assert ids[0][finite.numpy()].tolist() == places[0][finite].tolist()
