"""Gradients that are written by hand are those of autograd."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nlpkit.device import check_bfloat16
from nlpkit.errors import NlpkitError
from nlpkit.nn import fused
from nlpkit.nn.attention import MultiHeadAttention
from nlpkit.nn.fused import biased_attention, linear_cross_entropy, relu_squared


def leaves(*shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


def gradients(loss: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, inputs)


def assert_same(found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_squared_relu() -> None:
    inputs = leaves((5, 7))
    expected = gradients(F.relu(inputs[0]).square().sin().sum(), inputs)
    assert_same(gradients(relu_squared(inputs[0]).sin().sum(), inputs), expected)


@pytest.mark.parametrize("rows", [1, 2])
def test_attention_with_a_learned_bias(rows: int) -> None:
    inputs = leaves((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 4), (rows, 3, 5, 6))
    q, k, v, bias = inputs
    plain = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    found = biased_attention(q, k, v, bias)
    torch.testing.assert_close(found, plain)
    assert_same(gradients(found.sin().sum(), inputs), gradients(plain.sin().sum(), inputs))


def test_a_learned_bias_may_hide_padding() -> None:
    q, k, v, bias = leaves((1, 1, 2, 4), (1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 2, 3))
    hidden = torch.tensor([0.0, 0.0, -torch.inf])
    found = biased_attention(q, k, v, bias + hidden)
    assert torch.allclose(found, biased_attention(q, k[:, :, :2], v[:, :, :2], bias[..., :2]))
    (gradient,) = gradients(found.sum(), [bias])
    assert gradient.isfinite().all()
    assert (gradient[..., 2] == 0).all()


def test_attention_that_learns_distances_is_the_same_with_and_without_gradients() -> None:
    layer = MultiHeadAttention(8, 2, decay=True)
    layer.initialize(torch.Generator().manual_seed(1), None, 0.1)
    (x,) = leaves((2, 5, 8))
    with torch.no_grad():
        plain = layer(x)
    torch.testing.assert_close(layer(x), plain)


@pytest.mark.parametrize("at_once", [1 << 24, 64])
def test_cross_entropy_of_a_linear_layer(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "LOGIT_BYTES", at_once)
    inputs = leaves((9, 4), (7, 4), (7,))
    states, weight, bias = inputs
    labels = torch.arange(9) % 7
    plain = F.cross_entropy(F.linear(states, weight, bias), labels)
    found = linear_cross_entropy(states, weight, bias, labels)
    torch.testing.assert_close(found, plain)
    assert_same(gradients(3 * found, inputs), gradients(3 * plain, inputs))


def test_cross_entropy_in_half_the_bits() -> None:
    try:
        check_bfloat16()
    except NlpkitError as error:
        pytest.skip(str(error))
    inputs = leaves((9, 16), (7, 16), (7,))
    states, weight, bias = inputs
    labels = torch.arange(9) % 7
    plain = F.cross_entropy(F.linear(states, weight, bias), labels)
    with torch.autocast("cpu", torch.bfloat16):
        found = linear_cross_entropy(states, weight, bias, labels)
    assert found.item() == pytest.approx(plain.item(), rel=0.02)
    expected = gradients(plain, inputs)
    for one, other in zip(gradients(found, inputs), expected, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.03 * other.norm()


def test_nothing_to_predict_is_no_loss() -> None:
    states, weight, bias = leaves((0, 4), (7, 4), (7,))
    loss = linear_cross_entropy(states, weight, bias, torch.empty(0, dtype=torch.long))
    assert loss.item() == 0
