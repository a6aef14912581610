"""Initialisation, groups of parameters for the optimizers, and the two recipes of the GPT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import nn

from nlpkit.errors import NlpkitError
from nlpkit.models.build import build_model, empty_model, make_optimizers
from nlpkit.models.gpt import GPT
from nlpkit.models.settings import ModelSettings, Recipe
from nlpkit.nn.optimizers import Muon, adamw
from nlpkit.tasks.lm.settings import GptSettings
from nlpkit.tasks.lm.train import new_model, prepare_training, recipe_of, stream_loss

SMALL: dict[str, Any] = {"vocab_size": 20, "dim": 16, "layers": 2, "heads": 2, "block_size": 12}
MODERN = {
    "characters": ModelSettings(**SMALL, previous=2),
    "subwords": ModelSettings(**SMALL, tied=True),
    "names": ModelSettings(**SMALL, starts=2),
}
GPT2 = ModelSettings.gpt2(**SMALL)


@torch.no_grad()
def initialize_as_in_0_1_0(model: nn.Module, tied: bool, seed: int) -> None:
    """The modern recipe's first weights, as 0.1.0 chose them by the names of parameters."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            nn.init.ones_(parameter)
        elif "embedding" in name or "previous" in name:
            nn.init.normal_(parameter, std=0.02 if tied else 1.0, generator=generator)
        elif name.endswith(("output.weight", "down.weight", "head.weight")):
            nn.init.zeros_(parameter)
        else:
            bound = (3 / parameter.size(1)) ** 0.5
            nn.init.uniform_(parameter, -bound, bound, generator=generator)


def optimizers_as_in_0_1_0(model: nn.Module) -> list[torch.optim.Optimizer]:
    """The modern recipe's optimizers, as 0.1.0 chose them by the names of parameters."""
    matrices = [
        (parameter, 2 if name.endswith("qk.weight") else 1)
        for name, parameter in model.named_parameters()
        if "blocks." in name and parameter.dim() == 2
    ]
    inside = {id(parameter) for parameter, _ in matrices}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in inside]
    return [Muon(matrices, lr=0.03, weight_decay=0.1), adamw(rest, lr=0.006, weight_decay=0.1)]


def batches(count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        ids = torch.randint(2, SMALL["vocab_size"], (4, 13), generator=generator)
        yield ids[:, :-1], ids[:, 1:]


def train(model: nn.Module, optimizers: list[torch.optim.Optimizer], steps: int = 5) -> float:
    loss = torch.zeros(())
    for idx, targets in batches(steps):
        _, loss = model(idx, targets)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return loss.item()


@pytest.mark.parametrize("settings", MODERN.values(), ids=MODERN)
def test_the_modern_recipe_trains_to_the_bits_of_0_1_0(settings: ModelSettings) -> None:
    model, before = build_model(settings, seed=3), empty_model(settings)
    initialize_as_in_0_1_0(before, settings.tied, seed=3)
    for name, value in before.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    train(before, optimizers_as_in_0_1_0(before))
    muon = make_optimizers(model, optimizer="muon", lr=0.006, muon_lr=0.03, weight_decay=0.1)
    train(model, muon)
    for name, value in before.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name


@pytest.mark.parametrize("settings", [*MODERN.values(), GPT2], ids=[*MODERN, "gpt2"])
def test_initialisation_reaches_every_parameter(settings: ModelSettings) -> None:
    model = empty_model(settings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))
    model.initialize(torch.Generator().manual_seed(1))
    assert not any(parameter.isnan().any() for parameter in model.parameters())


def test_gpt2_starts_as_gpt2_did() -> None:
    sizes = {"vocab_size": 500, "dim": 96, "layers": 8, "heads": 2, "block_size": 100}
    model = build_model(ModelSettings.gpt2(**sizes))
    assert isinstance(model, GPT)
    assert model.head.weight is model.embedding.weight
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            assert (parameter == float(name.endswith("weight"))).all(), name
        else:
            residual = name.endswith(("output.weight", "down.weight"))
            expected = 0.02 / 4 if residual else 0.02  # 4 is the root of 2 x 8 layers
            assert parameter.std().item() == pytest.approx(expected, rel=0.1), name
            assert abs(parameter.mean().item()) < expected / 10, name


@pytest.mark.parametrize("settings", [MODERN["characters"], GPT2], ids=["modern", "gpt2"])
def test_muon_gets_the_matrices_of_blocks_and_adamw_the_rest(settings: ModelSettings) -> None:
    model = build_model(settings)
    muon, rest = make_optimizers(model, optimizer="muon", lr=0.01, weight_decay=0.1)
    held = {id(p) for group in muon.param_groups for p in group["params"]}
    for name, parameter in model.named_parameters():
        assert (id(parameter) in held) == (name.startswith("blocks.") and parameter.dim() == 2)
    others = sum(len(group["params"]) for group in rest.param_groups)
    assert len(held) + others == len([*model.parameters()])


@pytest.mark.parametrize("tokens", [65, 2000])
def test_a_recipe_is_apart_from_the_size(tokens: int) -> None:
    size: dict[str, Any] = {"layers": 12, "heads": 12, "dim": 768, "block_size": 1024}
    modern = GptSettings(size="gpt2").resolve().architecture(tokens)
    assert modern == ModelSettings(
        vocab_size=tokens, previous=3 if tokens < 1000 else 0, tied=tokens > 1000, **size
    )
    assert modern.recipe == "modern"
    small = GptSettings(recipe="gpt2", size="nano").resolve().architecture(tokens)
    nano = {"layers": 4, "heads": 2, "dim": 128, "block_size": 64}
    assert small == ModelSettings.gpt2(vocab_size=tokens, **nano)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
@pytest.mark.parametrize("recipe", ["modern", "gpt2"])
def test_both_recipes_learn(recipe: Recipe, optimizer: Literal["muon", "adamw"]) -> None:
    ids = np.arange(1200) % 7  # what follows is certain
    sizes: dict[str, Any] = {"layers": 1, "heads": 2, "dim": 16, "block_size": 8, "batch_size": 8}
    settings = GptSettings(recipe=recipe, optimizer=optimizer, max_iters=60, **sizes).resolve()
    model = new_model(settings, 7)
    assert model.settings.recipe == recipe
    for _ in prepare_training(model, ids[:1000], ids[1000:], settings).fit():
        pass
    assert stream_loss(model, ids[1000:]) < 1.0  # of log 7 = 1.95


def test_a_model_to_train_further_brings_its_recipe() -> None:
    modern, gpt2 = build_model(MODERN["names"]), build_model(GPT2)
    assert [recipe_of(modern, None), recipe_of(gpt2, None)] == ["modern", "gpt2"]
    assert recipe_of(gpt2, "gpt2") == "gpt2"
    with pytest.raises(NlpkitError, match=r"a model of recipe gpt2 .* with recipe modern"):
        recipe_of(gpt2, "modern")
