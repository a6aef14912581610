"""Encoders: padding changes nothing, and the twins in numpy do what the torch modules do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nlpkit.nn.encoder import Encoder, make_encoder
from nlpkit.nn.encoder_config import EncoderConfig
from nlpkit.nn.inference import NumpyEncoder

KINDS = [
    ("lstm", {}),
    ("gru", {}),
    ("cnn", {}),
    ("transformer", {}),
    ("transformer", {"norm": "post"}),
    ("transformer", {"positions": "sinusoidal"}),
    ("transformer", {"positions": "sinusoidal", "norm": "post"}),
]
LENGTHS = np.array([9, 6, 6, 1])


def settings(kind: str, changes: dict[str, str], causal: bool) -> EncoderConfig:
    return EncoderConfig(kind, 6, 20, 2, causal, **changes)  # type: ignore[arg-type]


def encoder(kind: str, changes: dict[str, str], causal: bool) -> Encoder:
    torch.manual_seed(1)
    made = make_encoder(settings(kind, changes, causal), 0.2)
    with torch.no_grad():
        for parameter in made.parameters():  # gains and biases, too
            parameter.add_(0.1 * torch.randn(parameter.shape))
    return made.eval()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_padding_changes_nothing(kind: str, changes: dict[str, str], causal: bool) -> None:
    made = encoder(kind, changes, causal)
    texts = [torch.randn(int(length), 6, requires_grad=True) for length in LENGTHS]
    padded = torch.full((len(texts), int(LENGTHS.max()), 6), 7.0)
    for row, text in enumerate(texts):
        padded[row, : len(text)] = text.detach()
    padded.requires_grad_()
    mask = torch.arange(padded.size(1)) < torch.from_numpy(LENGTHS)[:, None]
    together = made(padded, mask)
    together[mask].square().sum().backward()
    assert padded.grad is not None
    assert padded.grad[~mask].abs().max() == 0, "no token depends on padding"
    for row, text in enumerate(texts):
        alone = made(text[None])[0]
        torch.testing.assert_close(together[row, : len(text)], alone, atol=1e-5, rtol=1e-5)
        alone.square().sum().backward()
        torch.testing.assert_close(padded.grad[row, : len(text)], text.grad, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_the_twin_in_numpy_gives_the_same(kind: str, changes: dict[str, str], causal: bool) -> None:
    made = encoder(kind, changes, causal)
    weights = {name: value.numpy() for name, value in made.state_dict().items()}
    twin = NumpyEncoder(settings(kind, changes, causal), weights)
    inputs = torch.randn(11, 6)
    ids = np.random.default_rng(1).integers(11, size=(len(LENGTHS), LENGTHS.max()))
    mask = np.arange(LENGTHS.max()) < LENGTHS[:, None]
    with torch.no_grad():
        expected = made(inputs[torch.from_numpy(ids)], torch.from_numpy(mask)).numpy()
    found = twin(twin.first(inputs.numpy()), ids, LENGTHS)
    np.testing.assert_allclose(found[mask], expected[mask], atol=1e-5)


@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_causal_sees_nothing_of_what_comes(kind: str, changes: dict[str, str]) -> None:
    made = encoder(kind, changes, causal=True)
    inputs = torch.randn(1, 8, 6)
    other = inputs.clone()
    other[:, 5:] += 1
    torch.testing.assert_close(made(inputs)[:, :5], made(other)[:, :5])
    assert not torch.allclose(made(inputs)[:, 5:], made(other)[:, 5:])


@pytest.mark.parametrize("changes", [changes for kind, changes in KINDS if kind == "transformer"])
def test_a_transformer_knows_the_order_of_words(changes: dict[str, str]) -> None:
    made = encoder("transformer", changes, causal=False)
    inputs = torch.randn(1, 4, 6)
    swapped = inputs[:, [1, 0, 2, 3]]
    assert not torch.allclose(made(inputs)[:, 2:], made(swapped)[:, 2:], atol=1e-3)
