"""Every model keeps the contract; fused kernels equal the equations; caches change nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlpkit.errors import NlpkitError
from nlpkit.generate.contexts import pad_left
from nlpkit.generate.loop import generate
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.models import gpt_cpu as compiled
from nlpkit.models.build import build_model, make_optimizers
from nlpkit.models.gpt import GPT
from nlpkit.models.gpt_cpu import compile_step
from nlpkit.models.ngram import NGram
from nlpkit.models.recurrent import Recurrent
from nlpkit.models.settings import MODEL_NAMES, ModelSettings
from nlpkit.nn.fused import relu_squared
from nlpkit.tasks.lm.attention import attention_weights

VOCAB = 11
SMALL = {"vocab_size": VOCAB, "block_size": 16, "layers": 2, "heads": 2, "dim": 8, "order": 3}
STYLES = {
    "today": ModelSettings(**SMALL, previous=2),
    "names": ModelSettings(**SMALL, starts=2, previous=1),
    "gpt2": ModelSettings.gpt2(**SMALL),
    "shallow": ModelSettings(**{**SMALL, "layers": 1}),
}


def random_model(settings: ModelSettings) -> torch.nn.Module:
    """A model whose every weight is random, also those that start at zero."""
    model = build_model(settings, seed=3)
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4, generator=generator)
    if isinstance(model, NGram):
        idx = torch.randint(0, VOCAB, (20, 12), generator=generator)
        model.count([(idx[:, :-1], idx[:, 1:])])
    return model.eval()


def all_settings() -> list[ModelSettings]:
    others = [ModelSettings(model=name, **SMALL) for name in MODEL_NAMES if name != "gpt"]
    return [*others, *STYLES.values()]


def ids(rows: int, length: int, low: int = 2) -> Tensor:
    return torch.randint(low, VOCAB, (rows, length), generator=torch.Generator().manual_seed(1))


def describe(settings: ModelSettings) -> str:
    return f"{settings.model}-{settings.positions}-{settings.starts}"


@pytest.mark.parametrize("settings", all_settings(), ids=describe)
def test_forward_gives_logits_and_the_loss_of_counted_targets(settings: ModelSettings) -> None:
    model = random_model(settings)
    idx = ids(3, 7)
    targets = ids(3, 7)
    targets[:, -2:] = -1
    logits, loss = model(idx, targets)
    assert logits.shape == (3, 7, VOCAB)
    by_hand = logits.log_softmax(-1)[:, :5].gather(2, targets[:, :5, None])
    assert loss.item() == pytest.approx(-by_hand.mean().item(), rel=1e-4)
    assert model(idx)[1] is None


@pytest.mark.parametrize("settings", all_settings(), ids=describe)
def test_logits_do_not_depend_on_what_comes_later(settings: ModelSettings) -> None:
    model = random_model(settings)
    idx = ids(2, 8)
    changed = idx.clone()
    changed[:, 5:] = 2
    assert torch.allclose(model(idx)[0][:, :5], model(changed)[0][:, :5], atol=1e-5)


def check_cache(model: torch.nn.Module) -> None:
    """At every step, in a batch with padding: the logits of a cache are those of the whole row.

    Half-way the cache goes on with some of its rows, as beams do.
    """
    prompts = [[2, 3, 4, 5], [6], [7, 8]]
    idx, pads = pad_left(prompts)
    cache = model.new_cache(len(prompts))
    new = idx
    with torch.inference_mode():
        for step in range(8):
            cached = model(new, cache=cache, pads=pads)[0][:, -1]
            for row, prompt in enumerate(prompts):
                alone, _ = model(idx[row : row + 1, idx.size(1) - len(prompt) - step :])
                assert torch.allclose(cached[row], alone[0, -1], atol=1e-4)
            if step == 3:
                rows = torch.tensor([2, 0, 0])
                prompts = [prompts[row] for row in rows]
                idx, pads = idx[rows], pads[rows]
                cache.select(rows)
            new = ids(3, 8)[:, step : step + 1]
            idx = torch.cat([idx, new], dim=1)


@pytest.mark.parametrize("settings", all_settings(), ids=describe)
def test_cached_logits_equal_uncached_with_batch_and_padding(settings: ModelSettings) -> None:
    check_cache(random_model(settings))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("activation", ["relu2", "gelu", "gelu_tanh"])
def test_compiled_logits_equal_those_of_the_modules(style: str, activation: str) -> None:
    model = random_model(replace(STYLES[style], activation=activation))
    assert isinstance(model, GPT)
    compile_step(model)
    check_cache(model)


def test_what_several_threads_share_is_equal_too() -> None:
    size = {"vocab_size": VOCAB, "layers": 1, "heads": 4, "dim": 256, "block_size": 300}
    model = random_model(ModelSettings.gpt2(**size))
    assert isinstance(model, GPT)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 0.2
    idx = ids(4, 290)
    exact = model(idx)[0][:, -1]
    compile_step(model)
    assert model.step is not None
    for threads in (1, 2):
        model.step.threads = threads
        cache = model.new_cache(4)
        with torch.inference_mode():
            model(idx[:, :-1], cache=cache)
            assert torch.allclose(model(idx[:, -1:], cache=cache)[0][:, 0], exact, atol=1e-4)


@pytest.mark.parametrize("likeliest", [1, 5, 300])
def test_of_a_large_head_only_the_likeliest_are_exact(
    likeliest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_LARGE_HEAD", 1)
    settings = ModelSettings.gpt2(vocab_size=300, layers=1, heads=2, dim=64, block_size=32)
    model = random_model(settings)
    assert isinstance(model, GPT)
    with torch.no_grad():
        model.head.weight[:, 3] *= 20  # numbers that 8 bits do not render well
    idx = torch.cat([ids(3, 8), ids(3, 1)], dim=1)
    exact = model(idx)[0][:, -1]
    compile_step(model)
    cache = model.new_cache(3)
    cache.likeliest = likeliest
    with torch.inference_mode():
        model(idx[:, :-1], cache=cache)
        logits = model(idx[:, -1:], cache=cache)[0][:, 0]
    found, expected = logits.topk(likeliest), exact.topk(likeliest)
    assert torch.allclose(found.values, expected.values, atol=1e-4)
    assert torch.equal(found.indices[:, :5], expected.indices[:, :5])
    right = torch.isclose(logits, exact, atol=1e-4).float().mean()
    assert right == 1 if likeliest == 300 else right < 0.9


@pytest.mark.parametrize("prompt", [3, 30])
def test_int8_logits_are_close(prompt: int) -> None:
    settings = ModelSettings.gpt2(vocab_size=VOCAB, layers=2, heads=2, dim=64, block_size=32)
    model = build_model(settings, seed=3).eval()
    assert isinstance(model, GPT)
    nn.init.normal_(model.blocks[0].up.weight, generator=torch.Generator().manual_seed(1))
    idx = ids(2, prompt)
    exact = model(torch.cat([idx, idx[:, :1]], dim=1))[0][:, -1]
    compile_step(model, int8=True)
    cache = model.new_cache(2)
    model(idx, cache=cache)
    with torch.inference_mode():
        quantized = model(idx[:, :1], cache=cache)[0][:, 0]
    assert (quantized - exact).norm() / exact.norm() < 0.03


def test_packed_names_do_not_see_each_other() -> None:
    model = random_model(STYLES["names"])
    first, second = [0, 5, 6, 7], [1, 8, 9]
    together, _ = model(torch.tensor([first + second]))
    for part, start in ((first, 0), (second, len(first))):
        alone, _ = model(torch.tensor([part]))
        assert torch.allclose(together[0, start : start + len(part)], alone[0], atol=1e-5)


def test_attention_is_softmax_of_scaled_products() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 5, 4, generator=generator) for _ in range(3))
    scores = q @ k.transpose(-2, -1) / 4**0.5
    scores = scores.masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), float("-inf"))
    fused = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(fused, scores.softmax(-1) @ v, atol=1e-5)


def test_attention_weights_are_causal_and_add_up_to_one() -> None:
    model = random_model(STYLES["today"])
    assert isinstance(model, GPT)
    for weights in attention_weights(model, ids(2, 6)):
        assert torch.allclose(weights.sum(-1), torch.ones(2, 2, 6), atol=1e-5)
        assert (weights.triu(1) == 0).all()


def written_out(model: Recurrent, idx: Tensor) -> Tensor:
    """The equations of the three cells, a step and a layer at a time."""
    name, cells = model.settings.model, model.cells
    states = [model.first_state[:, layer, 0] for layer in range(model.settings.layers)]
    rows = []
    for x in model.embedding(idx):
        for layer, state in enumerate(states):
            weights = (getattr(cells, f"{kind}_l{layer}") for kind in ("weight_ih", "weight_hh"))
            w, u = weights
            b, c = (getattr(cells, f"{kind}_l{layer}") for kind in ("bias_ih", "bias_hh"))
            h = state[0]
            wx, uh = w @ x + b, u @ h + c
            if name == "rnn":
                h = torch.tanh(wx + uh)
            elif name == "gru":
                (wr, wz, wn), (ur, uz, un) = wx.chunk(3), uh.chunk(3)
                r, z = torch.sigmoid(wr + ur), torch.sigmoid(wz + uz)
                h = (1 - z) * torch.tanh(wn + r * un) + z * h
            else:
                i, f, g, o = (wx + uh).chunk(4)
                memory = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(memory)
                state = torch.stack([h, memory])
            states[layer] = state if name == "lstm" else h[None]
            x = h
        rows.append(model.head.logits(x))
    return torch.stack(rows)


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_recurrent_models_equal_their_equations(name: str) -> None:
    model = random_model(ModelSettings(model=name, **SMALL))  # type: ignore[arg-type]
    assert isinstance(model, Recurrent)
    idx = ids(1, 6)
    assert torch.allclose(model(idx)[0][0], written_out(model, idx[0]), atol=1e-5)


def test_squared_relu_has_the_gradient_autograd_finds() -> None:
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    (by_hand,) = torch.autograd.grad(relu_squared(x).sum(), x)
    (by_torch,) = torch.autograd.grad(F.relu(x).square().sum(), x)
    assert torch.allclose(by_hand, by_torch)


def test_ngram_probabilities_add_up_to_one_and_fit_the_data() -> None:
    model = random_model(ModelSettings(model="ngram", **SMALL))
    assert torch.allclose(model(ids(4, 5))[0].exp().sum(-1), torch.ones(4, 5), atol=1e-5)
    learned = NGram(ModelSettings(model="ngram", **SMALL))
    idx = torch.tensor([[3, 4, 5, 6, 7]] * 4)
    learned.count([(idx[:, :-1], idx[:, 1:])])
    assert learned(idx[:1, :-1])[0].argmax(-1).tolist() == [[4, 5, 6, 7]]


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_optimizers_hold_every_parameter_once(optimizer: str) -> None:
    model = build_model(STYLES["gpt2"])
    optimizers = make_optimizers(model, optimizer=optimizer, lr=0.01, weight_decay=0.1)
    held = [id(p) for o in optimizers for group in o.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters())


def test_generation_goes_on_beyond_the_block_size() -> None:
    model = random_model(STYLES["today"])
    steps = generate(model, [[2, 3], [4]], 50, SamplingSettings(), torch.Generator())
    drawn = torch.stack([step for step, _ in steps])
    assert drawn.shape == (50, 2)


def test_after_the_block_is_full_the_newer_half_is_read_again() -> None:
    model = random_model(STYLES["gpt2"])
    greedy = SamplingSettings(temperature=0)
    block = model.settings.block_size
    text = [2]
    for number, (drawn, logits) in enumerate(
        generate(model, [[2]], block + 3, greedy, torch.Generator()), 1
    ):
        if number == block + 1:
            expected, _ = model(torch.tensor([text[-block // 2 :]]))
            assert torch.allclose(logits[0], expected[0, -1], atol=1e-4)
        text.append(int(drawn))


def test_heads_must_divide_dim() -> None:
    with pytest.raises(NlpkitError, match=r"`heads` 3 does not divide `dim` 64 .*`heads` [24]"):
        ModelSettings(heads=3, dim=64)


@pytest.mark.parametrize(
    "broken", [{"dim": "wide"}, {"layers": -1}, {"nonsense": 1}, {"layers": 10**12}, {"bias": 3}]
)
def test_damaged_settings_are_one_line(broken: dict[str, object]) -> None:
    with pytest.raises(NlpkitError, match=r"config\.json"):
        ModelSettings.from_dict(broken)
