"""Training an encoder-decoder: averages of weights, several processes, sizes that are picked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_translators import digit_pairs

from nlpkit.tasks.translate.settings import TranslateSettings
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


_WORKER = """
import sys, torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from small_translators import digit_pairs
from nlpkit.tasks.translate.settings import TranslateSettings
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


def test_two_processes_learn_what_one_learns_that_does_their_work(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(_WORKER)
    here = str(Path(__file__).parent)
    single = [sys.executable, str(script), here, "2"]
    double = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node=2", str(script), here, "1"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    losses = []
    for command in (single, double):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
        assert done.returncode == 0, done.stderr
        losses.append(float(done.stdout.split("loss")[1]))
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)
