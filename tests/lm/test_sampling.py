"""The sampler keeps its promises."""

from __future__ import annotations

import pytest
import torch

from nlpkit.errors import NlpkitError
from nlpkit.lm.sampling import SamplingSettings, _chances, draw_keys, sample_next

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
    chances = _chances(keys, torch.arange(40))
    assert chances.min() > 0
    assert chances.max() < 1
    counts = torch.histc(chances, 20, 0, 1)
    assert ((counts - 2000) ** 2 / 2000).sum() < 44  # chi-square, 19 degrees, one in a thousand
    together = torch.corrcoef(chances.T) - torch.eye(40)
    assert together.abs().max() < 0.15
