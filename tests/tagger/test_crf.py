"""The CRF against brute force over all paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from nlpkit.nn.crf import CRF, FORBIDDEN
from nlpkit.nn.decoding import PathProbabilities, best_paths
from nlpkit.text.schemes import legal_transitions, violations

LENGTHS = [4, 1, 3, 2]


def example(n_tags: int = 3, seed: int = 0) -> tuple[CRF, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    crf = CRF(n_tags)
    with torch.no_grad():
        crf.scores.copy_(torch.randn(n_tags + 1, n_tags + 1, generator=generator))
    emissions = torch.randn(len(LENGTHS), max(LENGTHS), n_tags, generator=generator)
    return crf, emissions, torch.tensor(LENGTHS)


def score(crf: CRF, emissions: torch.Tensor, path: tuple[int, ...]) -> float:
    pairs = crf.pair_scores().detach()
    total = pairs[-1, path[0]] + pairs[path[-1], -1]
    total += sum(emissions[step, tag] for step, tag in enumerate(path))
    total += sum(pairs[a, b] for a, b in itertools.pairwise(path))
    return float(total)


def all_paths(length: int, n_tags: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(n_tags), repeat=length))


def test_partition_and_best_path_equal_brute_force_with_padding() -> None:
    crf, emissions, lengths = example()
    partition = crf.log_partition(emissions, lengths).tolist()
    best = best_paths(emissions.numpy(), crf.scores.detach().numpy(), lengths.numpy())
    for row, length in enumerate(LENGTHS):
        paths = all_paths(length, 3)
        scores = torch.tensor([score(crf, emissions[row], path) for path in paths])
        assert partition[row] == pytest.approx(float(torch.logsumexp(scores, 0)), abs=1e-4)
        assert tuple(best[row, :length]) == paths[int(scores.argmax())]
        assert (best[row, length:] == 0).all()


def test_padding_changes_nothing() -> None:
    crf, emissions, lengths = example()
    tags = torch.randint(0, 3, emissions.shape[:2], generator=torch.Generator().manual_seed(1))
    noisy = emissions.clone()
    for row, length in enumerate(LENGTHS):
        noisy[row, length:] = 1e3
        tags[row, length:] = 0
    assert torch.equal(crf.log_partition(emissions, lengths), crf.log_partition(noisy, lengths))
    assert torch.equal(
        crf.path_score(emissions, tags, lengths), crf.path_score(noisy, tags, lengths)
    )
    for row, length in enumerate(LENGTHS):
        path = tuple(tags[row, :length].tolist())
        alone = score(crf, emissions[row], path)
        found = crf.path_score(noisy, tags, lengths)[row].item()
        assert found == pytest.approx(alone, abs=1e-4)


def test_gradient() -> None:
    crf, emissions, lengths = example()
    crf = crf.double()
    tags = torch.zeros(emissions.shape[:2], dtype=torch.long)
    weights = crf.scores.detach().clone().requires_grad_()

    def loss(scores: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(crf, {"scores": scores}, (given,))

    crf.forward = lambda given: crf.loss(given, tags, lengths)  # type: ignore[method-assign]
    assert torch.autograd.gradcheck(loss, (weights, emissions.double().requires_grad_()))


def test_gradient_of_emissions_is_the_marginal_minus_the_truth() -> None:
    crf, emissions, _ = example()
    row = emissions[:1].clone().requires_grad_()
    crf.log_partition(row, torch.tensor([4])).sum().backward()
    assert row.grad is not None
    chain = PathProbabilities(emissions[0].numpy(), crf.scores.detach().numpy())
    marginals = [[chain.of(step, [tag]) for tag in range(3)] for step in range(4)]
    assert np.allclose(row.grad[0].numpy(), marginals, atol=1e-5)


def test_probability_of_a_span_equals_brute_force() -> None:
    crf, emissions, _ = example()
    chain = PathProbabilities(emissions[0].numpy(), crf.scores.detach().numpy())
    paths = all_paths(4, 3)
    weights = torch.tensor([score(crf, emissions[0], path) for path in paths]).exp()
    wanted = [path[1:3] == (2, 0) for path in paths]
    expected = float(weights[torch.tensor(wanted)].sum() / weights.sum())
    assert chain.of(1, [2, 0]) == pytest.approx(expected, abs=1e-6)


def test_illegal_sequences_are_never_decoded() -> None:
    tags = ["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y", "E-Y", "S-Y"]
    legal = legal_transitions(tags, "BIOES")
    generator = np.random.default_rng(0)
    emissions = generator.normal(size=(50, 7, len(tags))).astype(np.float32) * 5
    pairs = np.where(np.array(legal), 0, FORBIDDEN).astype(np.float32)
    lengths = generator.integers(1, 8, 50)
    for path, length in zip(best_paths(emissions, pairs, lengths), lengths, strict=True):
        assert violations([tags[index] for index in path[:length]], "BIOES") == []


def test_training_with_forbidden_pairs_has_finite_gradients() -> None:
    legal = legal_transitions(["O", "B-X", "I-X", "E-X", "S-X"], "BIOES")
    crf = CRF(5, legal)
    emissions = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(0))
    loss = crf.loss(emissions, torch.zeros(2, 6, dtype=torch.long), torch.tensor([6, 2]))
    loss.backward()
    assert crf.scores.grad is not None
    assert torch.isfinite(crf.scores.grad).all()
