"""Training an encoder-decoder: averages of weights, several processes, sizes that are picked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch
from small_translators import KINDS, digit_pairs, small_model
from warm import Warm

from nlpkit.errors import NlpkitError
from nlpkit.models.seq2seq_settings import AttentionName
from nlpkit.tasks.translate import pick, train
from nlpkit.tasks.translate.data import Pair
from nlpkit.tasks.translate.model import Translator
from nlpkit.tasks.translate.settings import PredictSettings, TranslateSettings
from nlpkit.tasks.translate.train import TranslateRun, heldout_loss

TINY = {"tokenizer": "whitespace", "dim": 16, "batch_tokens": 200, "dtype": "float32"}


def test_the_mean_of_the_last_weights_is_taken_if_it_is_better_on_dev() -> None:
    pairs, dev = digit_pairs(200), digit_pairs(40, seed=2)
    settings = TranslateSettings(**TINY, epochs=6, average=0.5)  # type: ignore[arg-type]
    run = TranslateRun(pairs, settings, dev=dev)
    measured = [progress.heldout for progress in run.steps() if progress.heldout is not None]
    translator = run.finish()
    told = translator.config.metrics["heldout_loss"]
    assert told == pytest.approx(heldout_loss(translator, dev), abs=1e-5)
    assert told <= min(measured) + 1e-5
    assert run.averaged is not None
    assert float(run.averaged.count) > 3


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
@pytest.mark.parametrize("attention", get_args(AttentionName))
def test_every_attention_learns(attention: str, optimizer: str) -> None:
    settings = TranslateSettings(**TINY, attention=attention, optimizer=optimizer, epochs=3)  # type: ignore[arg-type]
    run = TranslateRun(digit_pairs(100), settings)
    losses = [progress.loss for progress in run.steps()]
    assert losses[-1] < losses[0]
    assert all(parameter.grad is not None for parameter in run.model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_r_drop_adds_how_far_two_answers_are_apart(kind: str) -> None:
    model = small_model(kind, dropout=0.3).train()
    source, target = torch.tensor([[5, 6, 7], [8, 5, 0]]), torch.tensor([[1, 4, 5], [1, 6, 0]])
    labels = torch.tensor([[4, 5, 2], [6, 2, 0]])
    given = source, source != 0, target, labels
    places = model.label_table()
    torch.manual_seed(4)
    loss = model(*given, places, 0.1, 2.0)
    torch.manual_seed(4)
    twice = [torch.cat([part, part]) for part in given]
    kept = twice[3] != 0
    logits = model.logits(model.hidden(twice[2], model.encode(*twice[:2]))[kept])
    wanted = places[twice[3][kept]]
    entropy = torch.nn.functional.cross_entropy(logits, wanted, label_smoothing=0.1)
    p, q = logits.log_softmax(dim=-1).chunk(2)
    apart = [
        torch.nn.functional.kl_div(one, other, log_target=True, reduction="sum") / len(p)
        for one, other in ((p, q), (q, p))
    ]
    assert all(distance > 0.01 for distance in apart)
    assert loss.item() == pytest.approx((entropy + sum(apart)).item(), rel=1e-5)


def test_r_drop_learns_and_needs_dropout() -> None:
    settings = TranslateSettings(**TINY, r_drop=1.0, epochs=4)  # type: ignore[arg-type]
    run = TranslateRun(digit_pairs(100), settings)
    losses = [progress.loss for progress in run.steps()]
    assert losses[-1] < losses[0]
    with pytest.raises(NlpkitError, match="dropout"):
        TranslateRun(digit_pairs(100), replace(settings, dropout=0.0))


_WORKER = """
import sys, torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from small_translators import KINDS, digit_pairs
from nlpkit.tasks.translate import pick, train
from nlpkit.tasks.translate.data import Pair
from nlpkit.tasks.translate.model import Translator
from nlpkit.tasks.translate.settings import PredictSettings, TranslateSettings
from nlpkit.tasks.translate.train import TranslateRun, heldout_loss
from nlpkit.training.distributed import Processes
processes = Processes.from_environment()
processes.join(torch.device("cpu"))
settings = TranslateSettings(tokenizer="whitespace", dim=16, batch_tokens=60, dtype="float32",
                             dropout=0.0, max_iters=8, grad_accum=int(sys.argv[2]))
run = TranslateRun(digit_pairs(64), settings, processes=processes)
list(run.steps())
translator = run.finish()
if processes.is_first:
    print("loss", heldout_loss(translator, digit_pairs(20, seed=2)))
processes.leave()
"""


def test_two_processes_learn_what_one_learns_that_does_their_work(
    warm: Warm, tmp_path: Path
) -> None:
    script = tmp_path / "worker.py"
    script.write_text(_WORKER)
    here = str(Path(__file__).parent)
    single = warm.run(tmp_path, here, "2", script=script)
    double = warm.ranks(tmp_path, [[here, "1"]] * 2, script)
    for done in (single, *double):
        assert done.code == 0, done.err
    losses = [float(done.out.split("loss")[1]) for done in (single, double[0])]
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)


def test_a_faster_machine_gets_a_wider_model_and_a_resumed_run_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "FEW", 10)
    monkeypatch.setattr(pick, "FEW", 10)
    monkeypatch.setattr(pick, "SYMBOLS_AT_MOST", 0)
    small = {"tokenizer": "whitespace", "batch_tokens": 60, "dtype": "float32"}
    settings = TranslateSettings(max_time=1e4, max_iters=1, **small)  # type: ignore[arg-type]
    tokens = sum(len(pair.target.split()) + 1 for pair in digit_pairs(20))

    def make(epochs: float) -> TranslateRun:
        def speed(vocab: int, *_: object, **__: object) -> float:
            return epochs * tokens * pick.work("lstm", pick.RECURRENT[1], vocab) / 1e4

        monkeypatch.setattr(train, "measure_speed", speed)
        return TranslateRun(digit_pairs(20), settings)

    assert [make(often).picked.dim for often in (0.5, 2.0, 40.0)] == [128, 192, 320]
    first = make(2.0)
    assert first.picked.epochs == pytest.approx(2.0)
    next(first.steps())
    first.save_checkpoint(tmp_path / "checkpoint")
    again = make(20.0)
    again.load_checkpoint(tmp_path / "checkpoint")
    assert again.model.settings == first.model.settings
    for one, other in zip(first.model.parameters(), again.model.parameters(), strict=True):
        assert one.equal(other)


def test_characters_get_small_steps_and_several_models_that_a_resumed_run_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "FEW", 10)
    monkeypatch.setattr(pick, "FEW", 10)
    monkeypatch.setattr(pick, "_ENOUGH", 10)
    settings = TranslateSettings(
        tokenizer="char", max_time=1e4, max_iters=1, batch_tokens=60, dtype="float32"
    )
    tokens = sum(len(pair.target) + 1 for pair in digit_pairs(20))

    def make(epochs: float) -> TranslateRun:
        def speed(vocab: int, *_: object, **__: object) -> float:
            return epochs * tokens * pick.work("lstm", pick.SYMBOLS[-1], vocab) / 1e4

        monkeypatch.setattr(train, "measure_speed", speed)
        return TranslateRun(digit_pairs(20), settings)

    assert [make(often).picked.members for often in (5, 17, 80)] == [1, 2, 4]
    first = make(17)
    assert first.picked.epochs == pytest.approx(8.5)
    assert [type(one).__name__ for one in first.trainer.optimizers] == ["AdamW"]
    next(first.steps())
    first.save_checkpoint(tmp_path / "checkpoint")
    again = make(80)
    again.load_checkpoint(tmp_path / "checkpoint")
    assert again.model.settings == first.model.settings
    for one, other in zip(first.model.parameters(), again.model.parameters(), strict=True):
        assert one.equal(other)


@pytest.mark.parametrize("kind", KINDS)
def test_models_that_decide_together_are_kept_and_read(tmp_path: Path, kind: str) -> None:
    settings = TranslateSettings(model=kind, members=2, max_iters=30, **TINY)  # type: ignore[arg-type]
    run = TranslateRun(digit_pairs(), settings)
    losses = [progress.loss for progress in run.steps()]
    assert losses[-1] < losses[0]
    translator = run.finish()
    one, other = (dict(member.named_parameters()) for member in run.model.each())
    assert all(not one[name].equal(other[name]) for name in one if one[name].dim() > 1)
    translator.save(tmp_path / "model")
    again = Translator.load(tmp_path / "model")
    texts = ["1 2", "3"]
    chosen = PredictSettings(beams=2)
    found, same = translator.predict(texts, chosen), again.predict(texts, chosen)
    assert [answers[0].text for answers in found] == [answers[0].text for answers in same]
    # what a search finds has the score that the whole target has
    pairs = [Pair(text, answers[0].text) for text, answers in zip(texts, same, strict=True)]
    scores = [score.log_probability for score in again.score(pairs)]
    assert scores == pytest.approx([answers[0].log_probability for answers in same], abs=1e-4)
    again.quantize()
    assert len(again.predict(texts, chosen)) == 2


def test_the_speed_of_a_machine_is_measured() -> None:
    speed = pick.measure_speed(20, 2, (3, 4), torch.device("cpu"), float32=True)
    assert 1e6 < speed < 1e15
