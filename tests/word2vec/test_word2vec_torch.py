"""The torch engine: its steps are the gradients, and it learns what the CPU kernels learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nlpkit.samples import sample_folder
from nlpkit.word2vec import engines, torch_engine
from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig
from nlpkit.word2vec.huffman import build_tree
from nlpkit.word2vec.store import build_store
from nlpkit.word2vec.torch_engine import TorchEngine
from nlpkit.word2vec.train import Word2VecTrainer

TEXT = b"a b c d a c\nb e a d e b f\n"


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> TorchEngine:
    config = Word2VecConfig(dim=4, min_count=1, sample=0, **request.param)
    made = TorchEngine(build_store([TEXT], config), config, 100, "cpu")
    random = np.random.default_rng(1)
    shape = made.input.shape
    inputs, outputs = random.normal(size=(2, *shape)).astype(np.float32)
    made.set_rows(slice(None), inputs)
    made.set_outputs(slice(None), outputs)
    return made


def log_probability(engine: TorchEngine, hidden: torch.Tensor, target: int) -> torch.Tensor:
    """Written out from the formulas, for autograd to differentiate."""
    if engine.config.loss is Loss.SOFTMAX:
        return (engine.output @ hidden).log_softmax(0)[target]
    counts = np.array([3, 3, 2, 2, 2, 1])  # of a b c d e f
    tree = build_tree(counts)
    path = slice(tree.starts[target], tree.starts[target + 1])
    total = torch.zeros(())
    for node, code in zip(tree.nodes[path], tree.codes[path], strict=True):
        score = engine.output[node] @ hidden
        total = total + torch.nn.functional.logsigmoid(score if code == 0 else -score)
    return total


def check_step(found: Any, outputs: torch.Tensor, hidden: torch.Tensor) -> None:
    """Changes are the gradients; parts are what a small step closes of the second derivative."""
    _, change, parts, by_row = found
    assert hidden.grad is not None
    assert outputs.grad is not None
    assert torch.allclose(change, 0.1 * hidden.grad, atol=1e-5)
    total = torch.zeros_like(outputs)
    for each in by_row:
        total.index_add_(0, each.rows, each.change)
        assert (each.parts >= 0).all()
    assert torch.allclose(total, 0.1 * outputs.grad, atol=1e-5)
    assert (parts > 0).all()


@pytest.mark.parametrize(
    "engine", [{"loss": "softmax"}, {"loss": "hs"}], indirect=True, ids=["softmax", "hs"]
)
def test_a_step_is_the_gradient_of_the_log_probability(engine: TorchEngine) -> None:
    hidden = torch.randn(3, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    target = torch.tensor([0, 2, 5])
    engine.output.requires_grad_()
    total = sum(log_probability(engine, hidden[i], int(target[i])) for i in range(3))
    assert isinstance(total, torch.Tensor)
    total.backward()
    found = engine._gradients(hidden.detach(), target, 0.1, torch.Generator())
    check_step(found, engine.output, hidden)
    loss = found[0]
    assert float(loss.detach()) == pytest.approx(-float(total.detach()), rel=1e-4)


@pytest.mark.parametrize("engine", [{"negative": 5}], indirect=True, ids=["ns"])
def test_a_step_of_negative_sampling_is_the_gradient_too(engine: TorchEngine) -> None:
    hidden = torch.randn(3, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    target = torch.tensor([0, 2, 5])
    engine.output.requires_grad_()
    draws = torch.rand(64, generator=torch.Generator().manual_seed(7))
    noise = torch.searchsorted(engine.noise_sum, draws)
    total = torch.zeros(())
    sigmoid = torch.nn.functional.logsigmoid
    for i, word in enumerate(target):
        total = total + sigmoid(engine.output[word] @ hidden[i])
        for other in noise:
            if other != word:
                total = total + 5 / 64 * sigmoid(-(engine.output[other] @ hidden[i]))
    total.backward()
    generator = torch.Generator().manual_seed(7)
    found = engine._gradients(hidden.detach(), target, 0.1, generator)
    check_step(found, engine.output, hidden)
    loss = found[0]
    assert float(loss.detach()) == pytest.approx(-float(total.detach()), rel=1e-4)


@pytest.mark.parametrize("arch", list(Arch))
def test_both_engines_learn_alike(arch: Arch) -> None:
    lines = (sample_folder() / "world.txt").read_bytes().splitlines(keepends=True)[:2000]
    config = Word2VecConfig(arch=arch, dim=32, epochs=2, threads=1)
    losses = {}
    for engine in ("numba", "torch"):
        trainer = Word2VecTrainer(build_store([b"".join(lines)], config), config, engine=engine)
        records = list(trainer.train())
        losses[engine] = [record.loss for record in records if record.due]
    assert losses["torch"][1] < 0.95 * losses["torch"][0]
    assert losses["torch"][1] == pytest.approx(losses["numba"][1], rel=0.1)


@pytest.mark.parametrize("arch", list(Arch))
def test_thousands_of_examples_in_a_step_learn_nearly_as_well(
    arch: Arch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so few words that each has hundreds of pairs in a step: simply added up, they diverge."""
    random = np.random.default_rng(1)
    topics = random.integers(0, 4, 2500)
    lines = [" ".join(f"w{10 * t + n}" for n in random.integers(0, 10, 12)) for t in topics]
    config = Word2VecConfig(arch=arch, dim=16, epochs=2, threads=1, sample=0)
    store = build_store(["\n".join(lines).encode()], config)
    monkeypatch.setattr(engines, "LEAST_WORDS_PER_CHUNK", 2_000)
    losses = {}
    for examples in (256, 24_000):
        monkeypatch.setitem(torch_engine.EXAMPLES, arch, examples)
        trainer = Word2VecTrainer(store, config, engine="torch")
        losses[examples] = [record.loss for record in trainer.train() if record.due]
    assert losses[256][1] < 0.9 * losses[256][0]
    assert losses[24_000][1] < 1.1 * losses[256][1]


def test_a_resumed_run_gives_the_same_bits() -> None:
    config = Word2VecConfig(dim=8, min_count=1, epochs=3, threads=1)
    store = build_store([TEXT * 200], config)
    whole = Word2VecTrainer(store, config, engine="torch")
    for _ in whole.train():
        pass
    first = Word2VecTrainer(store, config, engine="torch")
    next(iter(first.train()))
    second = Word2VecTrainer(store, config, engine="torch", resume=first.state())
    for _ in second.train():
        pass
    assert np.array_equal(whole.state().input, second.state().input)
