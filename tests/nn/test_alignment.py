"""Each attention score is its formula."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from nlpkit.nn.alignment import Alignment, alignment_scores
from nlpkit.nn.smoothing import smoothed_cross_entropy

B, T, S, C = 2, 3, 4, 6


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


Q, K = random(B, T, C, seed=1), random(B, S, C, seed=2)
W, W2, PLACES, V = (random(*s, seed=n) for n, s in enumerate([(C, C), (C, 2 * C), (9, C), (C,)], 3))
FORMULAS = {
    "cosine": (lambda q, k, place: q @ k / (q.norm() * k.norm()), {}),
    "additive": (
        lambda q, k, place: V @ torch.tanh(W2 @ torch.cat([q, k])),
        {"weight": W2, "vector": V},
    ),
    "location": (lambda q, k, place: PLACES[place] @ q, {"weight": PLACES}),
    "general": (lambda q, k, place: q @ W @ k, {"weight": W}),
    "dot": (lambda q, k, place: q @ k, {}),
    "scaled-dot": (lambda q, k, place: q @ k / math.sqrt(C), {}),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_score_is_its_formula(name: str) -> None:
    formula, weights = FORMULAS[name]
    found = alignment_scores(name, Q, K, **weights)  # type: ignore[arg-type]
    for b in range(B):
        for t in range(T):
            for s in range(S):
                expected = formula(Q[b, t], K[b, s], s)
                assert found[b, t, s] == pytest.approx(float(expected), abs=1e-4)


@pytest.mark.parametrize("name", FORMULAS)
def test_weights_add_up_to_one_and_leave_out_padding(name: str) -> None:
    layer = Alignment(name, C, 9)  # type: ignore[arg-type]
    layer.initialize(torch.Generator().manual_seed(1))
    mask = torch.zeros(B, 1, S)
    mask[1, :, 2:] = -math.inf
    mixed, weights = layer(Q, K, K, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, T))
    assert bool((weights[1, :, 2:] == 0).all())
    torch.testing.assert_close(mixed, weights @ K)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_smoothed_cross_entropy_and_its_gradient_are_those_of_torch(smoothing: float) -> None:
    labels = torch.tensor([0, 3, 2])
    found, expected = (random(3, 5, seed=8).requires_grad_() for _ in range(2))
    loss = smoothed_cross_entropy(found, labels, smoothing)
    reference = torch.nn.functional.cross_entropy(expected, labels, label_smoothing=smoothing)
    torch.testing.assert_close(loss, reference)
    (3 * loss).backward()
    (3 * reference).backward()
    torch.testing.assert_close(found.grad, expected.grad)
