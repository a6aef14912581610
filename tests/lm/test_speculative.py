"""Speculative decoding changes the speed of a model and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from expected_draws import expected_shares
from scipy.stats import chisquare

from nlpkit.generate import speculative as drafts
from nlpkit.generate.loop import generate
from nlpkit.generate.sampling import SamplingSettings, draw_keys
from nlpkit.generate.speculative import Keys, SpeculativeDecoder
from nlpkit.models import gpt_cpu as compiled
from nlpkit.models.build import build_model
from nlpkit.models.gpt import GPT
from nlpkit.models.gpt_cpu import compile_step
from nlpkit.models.settings import ModelSettings
from nlpkit.nn.cache import KeyValueCache

SMALL = {"vocab_size": 40, "block_size": 24, "layers": 2, "heads": 2, "dim": 32}
STYLES = {"today": ModelSettings(**SMALL, previous=2), "gpt2": ModelSettings.gpt2(**SMALL)}


@pytest.fixture(params=sorted(STYLES))
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> GPT:
    """A small model that is taken for a large one."""
    monkeypatch.setattr(compiled, "_LARGE_BLOCKS", 1)
    monkeypatch.setattr(compiled, "_LARGE_HEAD", 1)
    made = build_model(STYLES[request.param], seed=3).eval()
    assert isinstance(made, GPT)
    generator = torch.Generator().manual_seed(3)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    compile_step(made)
    assert made.step is not None
    assert made.step.draft is not None
    return made


def write(model: GPT, tokens: int, settings: SamplingSettings) -> tuple[list[int], torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    steps = list(generate(model, [[1, 2, 3]], tokens, settings, generator, every_logit=False))
    return [int(drawn) for drawn, _ in steps], torch.cat([logits for _, logits in steps])


def write_alone(model: GPT, tokens: int, settings: SamplingSettings) -> list[int]:
    assert model.step is not None
    draft, model.step.draft = model.step.draft, None
    text = write(model, tokens, settings)[0]
    model.step.draft = draft
    return text


@pytest.mark.parametrize(
    "settings",
    [
        SamplingSettings(),
        SamplingSettings(top_k=5, temperature=0.8),
        SamplingSettings(top_p=0.9),
        SamplingSettings(temperature=0),
    ],
)
@pytest.mark.parametrize("tokens", [1, 2, 8, 70])  # the last is longer than the block
def test_the_text_is_the_one_the_model_writes_alone(
    model: GPT, settings: SamplingSettings, tokens: int
) -> None:
    text, logits = write(model, tokens, settings)
    assert text == write_alone(model, tokens, settings)
    assert logits.shape == (tokens, 40)


@pytest.mark.parametrize(
    "settings",
    [
        SamplingSettings(temperature=3),
        SamplingSettings(top_k=8, temperature=4),
        SamplingSettings(top_p=0.9, temperature=4),
        SamplingSettings(min_p=0.05, temperature=4),
    ],
)
def test_drafted_text_has_the_distribution_of_the_model(
    model: GPT, settings: SamplingSettings
) -> None:
    text, logits = write(model, 500, settings)
    shares = torch.stack([expected_shares(row, settings) for row in logits])  # (N, V)
    drawn = torch.tensor(text)[:, None]
    assert (shares.gather(1, drawn) > 0).all()
    # how often the likeliest id was drawn, the next, ... against how often that was to be expected
    ranks = (shares > shares.gather(1, drawn)).sum(1)
    expected = shares.sort(descending=True).values.sum(0)
    few = int((expected >= 10).sum()) - 1  # the rest together
    observed = torch.bincount(ranks.clamp_max(few), minlength=few + 1)
    expected = torch.cat([expected[:few], expected[few:].sum(0, keepdim=True)])
    assert chisquare(observed.numpy(), expected.numpy()).pvalue > 1e-3


def test_drafts_are_mostly_right(model: GPT, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    advance = SpeculativeDecoder.advance

    def counted(
        self: SpeculativeDecoder, last: torch.Tensor, cache: KeyValueCache, room: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        found = advance(self, last, cache, room)
        kept.append(len(found[0]))
        return found

    monkeypatch.setattr(SpeculativeDecoder, "advance", counted)
    write(model, 20, SamplingSettings(top_k=10))
    assert np.mean(kept) > 3


def test_bad_drafts_do_no_harm(model: GPT) -> None:
    assert model.step is not None
    assert model.step.draft is not None
    model.step.draft.up.weight[:] = -model.step.draft.up.weight  # of the 8-bit copy alone
    settings = SamplingSettings(top_k=10)
    assert write(model, 60, settings)[0] == write_alone(model, 60, settings)


def test_with_few_good_drafts_fewer_are_made(model: GPT) -> None:
    assert model.step is not None
    assert model.step.draft is not None
    model.step.draft.head.weight[:] = -model.step.draft.head.weight  # the least likely are drafted
    keys = Keys(torch.Generator(), 1)
    made = SpeculativeDecoder(model.step, SamplingSettings(temperature=0), keys, 40)
    cache = model.new_cache(1)
    with torch.inference_mode():
        model(torch.tensor([[1, 2, 3]]), cache=cache)
        drawn, _ = made.advance(torch.tensor([4]), cache, room=20)
    assert len(drawn) == 1
    assert cache.length == 4
    assert made.draft_tokens == 1 < drafts.MOST_DRAFT_TOKENS


def test_logits_of_tokens_read_together_are_those_of_the_modules(model: GPT) -> None:
    ids = torch.tensor([1, 5, 2, 9, 30, 7])
    assert model.step is not None
    with torch.inference_mode():
        exact = model(ids[None])[0][0]
        cache = model.new_cache(1)
        model(ids[None, :2], cache=cache)
        together = model.step.follow(ids[2:], cache)
        assert torch.allclose(together, exact[2:], atol=1e-4)
        later = model.step.follow(ids[2:], cache, since=2)
        assert torch.allclose(later, exact[4:], atol=1e-4)
        cache.keep(ids[2:5])
        assert torch.allclose(model(ids[None, 5:], cache=cache)[0][0], exact[5:], atol=1e-4)


def test_keys_come_in_the_order_of_the_generator_and_are_kept_until_used() -> None:
    plain = torch.Generator().manual_seed(1)
    expected = [draw_keys(plain, 2) for _ in range(4)]
    keys = Keys(torch.Generator().manual_seed(1), 2)
    assert torch.equal(keys.of(2), expected[2])
    assert torch.equal(keys.of(0), expected[0])
    assert torch.equal(keys.take(2), torch.cat(expected[:2]))
    assert torch.equal(keys.of(0), expected[2])
    assert torch.equal(keys.take(2), torch.cat(expected[2:]))
