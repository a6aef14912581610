"""Attention and the transformer block are those of the papers, and of torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nlpkit.models.gpt import GPT
from nlpkit.models.settings import ModelSettings
from nlpkit.nn.attention import MultiHeadAttention, attention, causal_mask, padding_mask
from nlpkit.nn.block import Block, BlockSettings
from nlpkit.nn.cache import KeyValueCache
from nlpkit.nn.positions import DistanceDecay, Rotary, sinusoidal
from nlpkit.tasks.lm.attention import attention_weights

B, T, S, C, H = 3, 5, 7, 16, 4


def randomized(module: nn.Module, seed: int = 1) -> nn.Module:
    """Random numbers in all parameters, gains and biases included."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.3, generator=generator)
    return module.eval()


def random(*shape: int, seed: int = 2) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def torch_attention(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """Torch's own, with the same weights."""
    theirs = nn.MultiheadAttention(C, H, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.qk.weight, ours.v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.qk.bias, ours.v.bias]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    return theirs.eval()


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return result


def test_the_equation_by_hand() -> None:
    q, k, v = random(B, H, T, 4), random(B, H, S, 4, seed=3), random(B, H, S, 4, seed=4)
    mixed, weights = attention(q, k, v)
    for row in range(B):
        for head in range(H):
            scores = q[row, head].double().numpy() @ k[row, head].double().numpy().T / 2  # sqrt 4
            expected = softmax(scores)
            np.testing.assert_allclose(weights[row, head], expected, atol=1e-6)
            np.testing.assert_allclose(mixed[row, head], expected @ v[row, head].numpy(), atol=1e-6)
    close(mixed, nn.functional.scaled_dot_product_attention(q, k, v))


def test_self_attention_by_hand() -> None:
    module = randomized(MultiHeadAttention(C, H))
    assert isinstance(module, MultiHeadAttention)
    x = random(T, C)
    weight = {name: value.double().numpy() for name, value in module.state_dict().items()}
    inputs = x.double().numpy()
    q = inputs @ weight["qk.weight"][:C].T + weight["qk.bias"][:C]
    k = inputs @ weight["qk.weight"][C:].T + weight["qk.bias"][C:]
    v = inputs @ weight["v.weight"].T + weight["v.bias"]
    size = C // H
    heads = [slice(head * size, (head + 1) * size) for head in range(H)]
    mixed = [softmax(q[:, one] @ k[:, one].T / np.sqrt(size)) @ v[:, one] for one in heads]
    expected = np.concatenate(mixed, axis=1) @ weight["output.weight"].T + weight["output.bias"]
    np.testing.assert_allclose(module(x[None])[0].detach(), expected, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_self_attention_is_that_of_torch(causal: bool, padded: bool) -> None:
    ours = MultiHeadAttention(C, H, causal=causal)
    randomized(ours)
    x = random(B, T, C)
    inside = torch.arange(T) < torch.tensor([5, 3, 1])[:, None]
    mask = padding_mask(inside, like=x) if padded else None
    if mask is not None and causal:
        mask = mask + causal_mask(T, like=x)
    expected, weights = torch_attention(ours)(
        x,
        x,
        x,
        key_padding_mask=~inside if padded else None,
        attn_mask=~torch.ones(T, T, dtype=torch.bool).tril() if causal else None,
        average_attn_weights=False,
    )
    close(ours(x, mask=mask), expected)
    close(ours.weights(x, mask=mask), weights)


@pytest.mark.parametrize("causal", [False, True])
def test_trained_in_bfloat16_it_is_the_same_to_what_that_can_tell(causal: bool) -> None:
    module = MultiHeadAttention(C, H, causal=causal)
    randomized(module)
    x = random(B, T, C)
    expected = module(x)
    (slope,) = torch.autograd.grad(expected.square().sum(), module.v.weight)
    with torch.autocast("cpu", torch.bfloat16):
        found = module(x)
        (rounded,) = torch.autograd.grad(found.float().square().sum(), module.v.weight)
    assert float(((found - expected).norm() / expected.norm()).detach()) < 0.03
    assert float((rounded - slope).norm() / slope.norm()) < 0.06


@pytest.mark.parametrize("padded", [False, True])
def test_cross_attention_is_that_of_torch(padded: bool) -> None:
    ours = MultiHeadAttention(C, H)
    randomized(ours)
    x, memory = random(B, T, C), random(B, S, C, seed=5)
    inside = torch.arange(S) < torch.tensor([7, 3, 1])[:, None]
    mask = padding_mask(inside, like=x) if padded else None
    expected, weights = torch_attention(ours)(
        x,
        memory,
        memory,
        key_padding_mask=~inside if padded else None,
        average_attn_weights=False,
    )
    close(ours(x, mask=mask, memory=memory), expected)
    close(ours.weights(x, mask=mask, memory=memory), weights)


@pytest.mark.parametrize("decay", [False, True])
def test_with_a_cache_positions_get_what_they_get_at_once(decay: bool) -> None:
    module = MultiHeadAttention(C, H, causal=True, qk_norm=True, decay=decay)
    randomized(module)
    rotary = Rotary(H, C // H, T)
    x = random(B, T, C)
    cache = KeyValueCache((1, B, H, T, C // H), like=x)
    found = []
    for step in range(T):
        found.append(module(x[:, step : step + 1], rotary, None, cache))
        cache.length += 1
    close(torch.cat(found, dim=1), module(x, rotary))
    close(module(x, rotary, last=True), module(x, rotary)[:, -1:])


@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_packed_texts_get_what_they_get_apart(positions: str) -> None:
    settings = ModelSettings(
        vocab_size=9, dim=C, heads=H, layers=2, block_size=12, starts=1, positions=positions
    )
    model = randomized(GPT(settings))
    first, second = torch.tensor([[0, 5, 6, 2]]), torch.tensor([[0, 7, 3]])
    with torch.no_grad():
        packed = model(torch.cat([first, second], dim=1))[0]
        close(packed[:, :4], model(first)[0])
        close(packed[:, 4:], model(second)[0])


def test_the_weights_that_are_shown_are_those_that_are_used() -> None:
    model = GPT(ModelSettings(vocab_size=9, dim=C, heads=H, layers=2, block_size=8))
    randomized(model)
    idx = torch.tensor([[1, 2, 3, 4]])
    shown = attention_weights(model, idx)
    assert [tuple(weights.shape) for weights in shown] == [(1, H, 4, 4)] * 2
    x = model.embed(idx)
    for weights, block in zip(shown, model.blocks, strict=True):
        assert isinstance(block, Block)
        assert weights.triu(1).abs().max() == 0, "nobody looks ahead"
        values = block.attention.project(block.norm_1(x), 0, model.rotary)[2]
        mixed = (weights @ values).transpose(1, 2).flatten(2)
        close(block.attention.output(mixed), block.attention(block.norm_1(x), model.rotary))
        x = block(x, model.rotary)


# --- positions ----------------------------------------------------------------------------------


def test_rotary_products_depend_on_distance_only() -> None:
    rotary = Rotary(1, 8, 20)
    q, k = random(8), random(8, seed=3)
    both = torch.stack([q, k]).expand(1, 20, 2, 8)  # the same query and key everywhere
    rotated = rotary(both, 0)[0]  # (T, 2, D)
    products = rotated[:, 0] @ rotated[:, 1].T  # (T, T)
    for distance in range(-10, 11):
        diagonal = products.diagonal(distance)
        close(diagonal, diagonal[:1].expand_as(diagonal))
    assert products[0, 0] != pytest.approx(products[0, 5].item(), abs=1e-3)
    close(rotary(both[:, :3], 7), rotary(both, 0)[:, 7:10])


def test_sinusoidal_positions_are_the_papers() -> None:
    table = sinusoidal(50, 8)
    for position in (0, 1, 49):
        for pair in range(4):
            angle = position / 10_000 ** (2 * pair / 8)
            expected = torch.tensor([np.sin(angle), np.cos(angle)], dtype=torch.float32)
            close(table[position, 2 * pair : 2 * pair + 2], expected)


def test_decay_falls_with_distance_on_both_sides_apart() -> None:
    bias = DistanceDecay(2)(4, 4).detach()  # (H, T, S)
    assert (bias.diagonal(dim1=1, dim2=2) == 0).all()
    close(bias[:, 3, 0], 3 * bias[:, 3, 2])
    close(bias[:, 0, 3], 3 * bias[:, 0, 1])
    assert (bias[:, 1, 0] != bias[:, 0, 1]).all(), "before is not after"
    close(DistanceDecay(2)(1, 4).detach(), bias[:, 3:])


# --- the block ----------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoders_block_is_that_of_torch(norm: str, activation: str) -> None:
    ours = Block(BlockSettings(dim=C, heads=H, hidden=24, norm=norm, activation=activation))  # type: ignore[arg-type]
    randomized(ours)
    theirs = nn.TransformerEncoderLayer(
        C, H, 24, 0.0, activation, batch_first=True, norm_first=norm == "pre"
    ).eval()
    theirs.self_attn = torch_attention(ours.attention)
    copy = ((theirs.norm1, ours.norm_1), (theirs.norm2, ours.norm_2))
    for to, of in (*copy, (theirs.linear1, ours.up), (theirs.linear2, ours.down)):
        to.load_state_dict(of.state_dict())
    x = random(B, T, C)
    inside = torch.arange(T) < torch.tensor([5, 3, 1])[:, None]
    found = ours(x, mask=padding_mask(inside, like=x))
    close(found[inside], theirs(x, src_key_padding_mask=~inside)[inside])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoders_block_is_that_of_torch(norm: str) -> None:
    settings = BlockSettings(dim=C, heads=H, hidden=24, causal=True, cross=True, norm=norm)  # type: ignore[arg-type]
    ours = Block(settings)
    randomized(ours)
    assert ours.cross is not None
    assert ours.norm_cross is not None
    theirs = nn.TransformerDecoderLayer(
        C, H, 24, 0.0, batch_first=True, norm_first=norm == "pre"
    ).eval()
    theirs.self_attn = torch_attention(ours.attention)
    theirs.multihead_attn = torch_attention(ours.cross)
    for to, of in (
        (theirs.norm1, ours.norm_1),
        (theirs.norm2, ours.norm_cross),
        (theirs.norm3, ours.norm_2),
        (theirs.linear1, ours.up),
        (theirs.linear2, ours.down),
    ):
        to.load_state_dict(of.state_dict())
    x, memory = random(B, T, C), random(B, S, C, seed=5)
    inside = torch.arange(S) < torch.tensor([7, 3, 1])[:, None]
    expected = theirs(
        x,
        memory,
        tgt_mask=~torch.ones(T, T, dtype=torch.bool).tril(),
        memory_key_padding_mask=~inside,
    )
    close(ours(x, memory=memory, memory_mask=padding_mask(inside, like=x)), expected)
