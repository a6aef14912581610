"""The sampler keeps its promises."""

from __future__ import annotations

import pytest
import torch

from nlpkit.errors import NlpkitError
from nlpkit.lm.sampling import SamplingSettings, sample_next

LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0]])


def draw_many(settings: SamplingSettings, count: int = 4000) -> list[float]:
    generator = torch.Generator().manual_seed(1)
    drawn = sample_next(LOGITS.expand(count, -1), settings, generator)
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
    assert sample_next(LOGITS, settings, torch.Generator(), seen).item() == 1


def test_same_seed_same_draw() -> None:
    first, second = (
        sample_next(LOGITS.expand(50, -1), SamplingSettings(), torch.Generator().manual_seed(7))
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
