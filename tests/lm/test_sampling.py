"""The sampler keeps its promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from expected_draws import expected_shares
from scipy.stats import chisquare
from torch import Tensor

from nlpkit.errors import NlpkitError
from nlpkit.generate.sampling import (
    SamplingSettings,
    _chances,
    _hashes,
    _noise,
    draw_keys,
    sample_next,
)

LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0]])


def draw_many(settings: SamplingSettings, count: int = 4000) -> list[float]:
    generator = torch.Generator().manual_seed(1)
    drawn = sample_next(LOGITS.expand(count, -1), settings, draw_keys(generator, count))
    return (torch.bincount(drawn, minlength=4) / count).tolist()


def test_draws_follow_the_softmax() -> None:
    expected = LOGITS[0].softmax(0).tolist()
    assert draw_many(SamplingSettings()) == pytest.approx(expected, abs=0.03)
    colder = (LOGITS[0] / 0.5).softmax(0).tolist()
    assert draw_many(SamplingSettings(temperature=0.5)) == pytest.approx(colder, abs=0.03)


def test_temperature_zero_takes_the_likeliest() -> None:
    assert draw_many(SamplingSettings(temperature=0)) == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (SamplingSettings(top_k=2), 2),
        (SamplingSettings(top_p=0.7), 2),
        (SamplingSettings(top_p=0.1), 1),
        (SamplingSettings(min_p=0.3), 2),
        (SamplingSettings(min_p=1.0), 1),
        (SamplingSettings(top_k=3, top_p=0.7), 2),
    ],
)
def test_tails_are_cut(settings: SamplingSettings, kept: int) -> None:
    shares = draw_many(settings)
    assert all(share > 0 for share in shares[:kept])
    assert sum(shares[kept:]) == 0


def test_repetition_penalty_makes_seen_ids_rarer() -> None:
    settings = SamplingSettings(temperature=0, repetition_penalty=3)
    seen = torch.tensor([[0, 0]])
    assert sample_next(LOGITS, settings, draw_keys(torch.Generator(), 1), seen).item() == 1


def test_same_seed_same_draw() -> None:
    first, second = (
        sample_next(
            LOGITS.expand(50, -1),
            SamplingSettings(),
            draw_keys(torch.Generator().manual_seed(7), 50),
        )
        for _ in range(2)
    )
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": 2.0},
        {"repetition_penalty": 0.0},
        {"top_k": -1},
        {"temperature": float("nan")},
    ],
)
def test_senseless_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(NlpkitError, match="cannot be"):
        SamplingSettings(**wrong)  # type: ignore[arg-type]


def test_top_k_over_the_vocabulary_is_refused() -> None:
    with pytest.raises(NlpkitError, match="more than the 4 ids"):
        SamplingSettings(top_k=5).check_vocab(4)


def test_a_draw_hardly_depends_on_small_errors_of_logits() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(2000, 50, generator=generator)
    keys = draw_keys(generator, 2000)
    settings = SamplingSettings(top_k=10)
    wrong = logits + 0.01 * torch.randn(2000, 50, generator=generator)
    same = sample_next(logits, settings, keys) == sample_next(wrong, settings, keys)
    assert same.float().mean() > 0.97


def test_chances_of_ids_and_of_steps_have_nothing_to_do_with_each_other() -> None:
    keys = draw_keys(torch.Generator().manual_seed(1), 1000)
    chances = _chances(_hashes(keys, torch.arange(40)))
    counts = torch.histc(chances, 20, 0, 1)
    assert ((counts - 2000) ** 2 / 2000).sum() < 44  # chi-square, 19 degrees, one in a thousand
    together = torch.corrcoef(chances.T) - torch.eye(40)
    assert together.abs().max() < 0.15


# --- every draw is one from the softmax ---------------------------------------------------------

GPT2_VOCAB = 50_257
KINDS = {
    "plain": SamplingSettings(),
    "colder": SamplingSettings(temperature=0.7),
    "top-k": SamplingSettings(top_k=30),
    "top-p": SamplingSettings(top_p=0.8),
    "min-p": SamplingSettings(min_p=0.02, temperature=1.3),
    "all": SamplingSettings(top_k=200, top_p=0.9, min_p=0.001, temperature=0.9),
}


def check_draws(drawn: Tensor, shares: Tensor, groups: int) -> None:
    """Chi-square over groups of ids of about the same probability; what is ruled out never won."""
    counts = torch.bincount(drawn, minlength=len(shares)).double()
    assert counts[shares == 0].sum() == 0
    order = shares.argsort(descending=True)
    group = (shares[order].cumsum(0) * groups).ceil().clamp(1, groups).long() - 1
    observed = torch.zeros(groups, dtype=torch.double).index_add_(0, group, counts[order])
    wanted = torch.zeros(groups, dtype=torch.double).index_add_(0, group, shares[order])
    there = wanted > 0
    wanted = wanted[there] / wanted.sum() * len(drawn)
    assert wanted.min() > 5
    assert chisquare(observed[there].numpy(), wanted.numpy()).pvalue > 1e-3


def draw_in_batches(
    logits: Tensor, settings: SamplingSettings, batch: int, draws: int, seed: int = 3
) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    rows = logits.expand(batch, -1)
    steps = [
        sample_next(rows, settings, draw_keys(generator, batch)) for _ in range(draws // batch)
    ]
    return torch.stack(steps)  # (steps, B)


def thinned(first: int, end: int, whole: int = 1 << 16) -> Tensor:
    ends = torch.arange(first, first + whole), torch.arange(end - whole, end)
    return torch.cat([ends[0], torch.arange(first + whole, end - whole, 31), ends[1]])


def test_every_chance_is_inside_0_and_1_and_its_noise_finite() -> None:
    """All whole numbers up to 2**24, and above them float32s that a hash can be rounded to.

    Of these, by power of two, all near its ends and every 31st in between.
    """
    below = torch.arange(1 << 24)
    edges = []
    for hashes in (below, *(thinned(1 << 23, 1 << 24) << shift for shift in range(1, 9))):
        hashes = (1 << 32) - 1 - hashes  # the function counts from the largest hash
        chances = _chances(hashes)
        assert (chances.diff() >= 0).all()
        low, high = chances.min().item(), chances.max().item()
        assert 0 < low < high < 1
        noise = _noise(chances)
        assert torch.isfinite(noise).all()
        edges.append((low, high, noise.min().item(), noise.max().item()))
    assert edges == sorted(edges)  # nothing in between is left out
    near_0 = _chances((1 << 32) - 1 - torch.arange(1 << 18))
    assert (near_0.diff() > 0).all()  # no two of them tie
    largest = _chances(torch.zeros(1, dtype=torch.long))  # rounded to 2**32
    assert edges[-1][1] <= largest.item() < 1
    assert torch.isfinite(_noise(largest)).all()


def test_a_model_that_is_certain_writes_nothing_else() -> None:
    logits = torch.zeros(GPT2_VOCAB)
    logits[1234] = 60.0
    for settings in (SamplingSettings(), SamplingSettings(min_p=0.1), SamplingSettings(top_k=40)):
        draws = 100 if settings.min_p else 500
        assert (draw_in_batches(logits, settings, 20, draws) == 1234).all()


@pytest.mark.parametrize("batch", [1, 7, 500])
@pytest.mark.parametrize("kind", KINDS)
def test_draws_pass_a_chi_square_test(kind: str, batch: int) -> None:
    settings = KINDS[kind]
    logits = 2 * torch.randn(300, generator=torch.Generator().manual_seed(2))
    draws = {1: 1500, 7: 7000, 500: 100_000}[batch]
    drawn = draw_in_batches(logits, settings, batch, draws)
    check_draws(drawn.flatten(), expected_shares(logits, settings), groups=15)


@pytest.mark.parametrize("kind", ["plain", "top-k", "top-p"])
def test_draws_from_a_large_vocabulary_pass_it_too(kind: str) -> None:
    settings = KINDS[kind]
    logits = 2 * torch.randn(GPT2_VOCAB, generator=torch.Generator().manual_seed(2))
    draws = 200 if settings.top_p < 1 else 1000
    drawn = draw_in_batches(logits, settings, 20, draws)
    check_draws(drawn.flatten(), expected_shares(logits, settings), groups=15)


def test_rows_and_steps_are_drawn_independently() -> None:
    """Pairs of draws beside each other, in a batch and in time, have the product's distribution."""
    logits = torch.tensor([1.0, 0.5, 0.0, -0.5, -1.0])
    shares = logits.double().softmax(0)
    drawn = draw_in_batches(logits, SamplingSettings(), 40, 40_000)  # (steps, B)
    for first, second in (
        (drawn[:, 0::2], drawn[:, 1::2]),
        (drawn[0::2], drawn[1::2]),
        (drawn[0::2, :-1], drawn[1::2, 1:]),
    ):
        pairs = np.bincount((first * 5 + second).flatten().numpy(), minlength=25)
        expected = torch.outer(shares, shares).flatten().numpy()
        assert chisquare(pairs, expected / expected.sum() * pairs.sum()).pvalue > 1e-3
