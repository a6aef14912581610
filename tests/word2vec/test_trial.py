"""The faster engine is chosen, said and kept."""

from pathlib import Path

import pytest

from nlpkit.text.pipeline import TokenSettings
from nlpkit.word2vec import trial
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.model import Word2VecRun, begin
from nlpkit.word2vec.resume import load_checkpoint
from nlpkit.word2vec.store import build_store
from nlpkit.word2vec.trial import choose_engine

TEXT = b"a b c d a c\nb e a d e b f\n" * 30
DEVICE = "cpu:0"  # the only other name of a device that every machine has


def run_of(**changes: object) -> Word2VecRun:
    config = Word2VecConfig(**{"dim": 4, "min_count": 1, "epochs": 1, "threads": 1, **changes})  # type: ignore[arg-type]
    store = build_store([TEXT], config)
    return begin(store, "h", config, TokenSettings(), device=DEVICE, trial=True)


@pytest.mark.parametrize(("faster", "device"), [("numba", "cpu"), ("torch", DEVICE)])
def test_the_faster_engine_trains_and_is_named(
    faster: str, device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    speed = lambda store, config, name, device: 2e6 if name == faster else 1e6  # noqa: E731
    monkeypatch.setattr(trial, "_speed", speed)
    run = run_of()
    assert (run.words_trainer.engine, run.words_trainer.device) == (faster, device)
    assert f"torch on {DEVICE} {2 if faster == 'torch' else 1},000,000 words/s" in run.summary
    run.save_checkpoint(tmp_path / "c")
    again = load_checkpoint(
        tmp_path / "c", run.config, run.tokens, run.sources, device=DEVICE, trial=True
    )
    assert again.words_trainer.engine == faster, "no second trial that might end otherwise"
    again.fit()


def test_both_engines_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "TRIAL_SECONDS", 0.0)
    config = Word2VecConfig(dim=4, min_count=1, threads=1)
    found = choose_engine(build_store([TEXT], config), config, DEVICE)
    assert found.device == ("cpu" if found.engine == "numba" else DEVICE)
    assert found.why.startswith("trial: kernels on the CPU ")


@pytest.mark.parametrize("changes", [{"subwords": "3-4"}, {"documents": True}], ids=str)
def test_what_only_the_kernels_can_do_needs_no_trial(changes: dict[str, object]) -> None:
    run = run_of(**changes)
    assert (run.words_trainer.engine, run.words_trainer.device) == ("numba", "cpu")
    assert "trial" not in run.summary
