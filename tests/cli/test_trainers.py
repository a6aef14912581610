"""What all five commands that train have in common: checkpoints, resuming, limits."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nlpkit import memory, modeldir
from nlpkit.cli.main import app
from nlpkit.errors import NlpkitError
from nlpkit.tasks.lm.stream import tokenize_stream
from nlpkit.textio import TextBlock
from nlpkit.training import loop as training
from nlpkit.word2vec import train as word2vec_train

NAMES = "".join(f"{a}{b}\n" for a in ("Mar", "Al", "Be", "Con") for b in ("ia", "ina", "o", "t"))
TEXT = "to be or not to be that is the question\nwhether it is nobler in the mind\n" * 30
TAGS = "the\tDET\ncat\tNOUN\nsat\tVERB\n\na\tDET\ndog\tNOUN\nran\tVERB\n\n" * 4
REVIEWS = "".join(f"{good}\t{good} {word}\n" for word in "abcdef" for good in ("good", "bad"))
ONE = ["--threads", "1"]
TRAINERS = {
    "names": (NAMES, ["--dim", "16", "--layers", "1", "--heads", "2", "--epochs", "30", *ONE]),
    "gpt": (
        TEXT,
        "--layers 1 --dim 16 --heads 2 --block-size 16 --batch-size 2 --max-iters 12".split() + ONE,
    ),
    "tag": (TAGS, ["--hidden", "8", "--word-dim", "8", "--epochs", "6", *ONE]),
    "classify": (
        REVIEWS,
        ["--model", "lstm", "--hidden", "8", "--dim", "8", "--epochs", "6", *ONE],
    ),
    "word2vec": (TEXT, ["--dim", "8", "--min-count", "1", "--epochs", "6", *ONE]),
}
every_trainer = pytest.mark.parametrize("name", TRAINERS)


class Run:
    """A trainer in a folder of its own; ``-o`` is m."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.data, self.flags = TRAINERS[name]
        self.model, self.checkpoint = folder / "m", folder / "m.checkpoint"
        (folder / "data.tsv").write_text(self.data, encoding="utf-8")

    def __call__(self, *flags: str, code: int = 0) -> str:
        """What a run says on stderr."""
        train = [self.name, "train", str(self.folder / "data.tsv"), "-o", str(self.model)]
        result = CliRunner().invoke(app, [*train, *self.flags, *flags])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.stderr
        return result.stderr

    def fails(self, *flags: str, code: int = 1) -> str:
        """The one line of a run that was refused before its first step, and left nothing."""
        before = sorted(self.folder.rglob("*"))
        line = self("--quiet", *flags, code=code)
        assert line.count("\n") == 1, line
        assert sorted(self.folder.rglob("*")) == before
        return line

    def weights(self) -> dict[str, bytes]:
        """The files that training fills; nothing is left beside them."""
        assert not self.checkpoint.exists()
        names = [path.name for path in self.folder.iterdir()]
        assert sorted(names) == ["data.tsv", "m"]
        files = [*self.model.glob("*.safetensors"), *self.model.glob("*.npy")]
        assert files
        return {file.name: file.read_bytes() for file in files}


@pytest.fixture
def whole(name: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an undisturbed run writes."""
    run = Run(name, tmp_path_factory.mktemp("whole"))
    run()
    return run.weights()


@pytest.fixture
def run(name: str, tmp_path: Path) -> Run:
    return Run(name, tmp_path)


@every_trainer
def test_a_model_that_cannot_be_written_is_not_lost(
    run: Run, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    create = modeldir.create

    @contextmanager
    def full_disk(path: Any, *arguments: Any, **options: Any) -> Iterator[Path]:
        with create(path, *arguments, **options) as folder:
            yield folder
            if not str(path).endswith(".checkpoint"):
                raise NlpkitError(f"cannot write {path}: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(modeldir, "create", full_disk)
        last = run(code=1).splitlines()[-1]
    assert "No space left on device; all that was learned is in" in last
    assert "--resume" in last
    assert run.checkpoint.exists()
    assert not run.model.exists()
    run("--resume")
    assert run.weights() == whole


@every_trainer
def test_a_run_that_is_stopped_resumes_to_the_same_bits(
    run: Run, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_at_two(records: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        def stopping(trainer: Any) -> Iterator[Any]:
            for number, record in enumerate(records(trainer), 1):
                if number == 2:
                    os.kill(os.getpid(), signal.SIGHUP)
                yield record

        return stopping

    with monkeypatch.context() as patch:
        patch.setattr(training.Trainer, "fit", stop_at_two(training.Trainer.fit))
        trainer = word2vec_train.Word2VecTrainer
        patch.setattr(trainer, "train", stop_at_two(trainer.train))
        patch.setattr(word2vec_train, "SECONDS_PER_ROUND", 0.0)
        assert "resume with: nlpkit" in run(code=130)
    assert run.checkpoint.exists()
    run("--resume")
    assert run.weights() == whole


OTHER_SETTINGS = [
    ("names", ["--dim", "8"], "was made with dim 16, not 8"),
    ("names", ["--test-size", "5"], "was made with names held out 2, not 5"),
    ("gpt", ["--lr", "0.1"], "was made with lr 0.006, not 0.1"),
    ("gpt", ["--recipe", "gpt2"], "was made with recipe modern, not gpt2"),
    ("tag", ["--hidden", "4"], "was made with hidden 8, not 4"),
    ("tag", ["--tag-column", "1"], "was made with layout tag_column"),
    ("tag", ["--dev", "data.tsv"], "was made with held-out data"),
    ("classify", ["--seed", "2"], "was made with seed 1, not 2"),
    ("classify", ["--dev", "data.tsv"], "was made with held-out data"),
]


@pytest.mark.parametrize(("name", "flags", "message"), OTHER_SETTINGS)
def test_resuming_with_other_settings_is_refused(
    run: Run, flags: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_at_once(trainer: Any) -> Iterator[Any]:
        for record in fit(trainer):
            os.kill(os.getpid(), signal.SIGINT)
            yield record

    fit = training.Trainer.fit
    monkeypatch.chdir(run.folder)
    with monkeypatch.context() as patch:
        patch.setattr(training.Trainer, "fit", stop_at_once)
        run("--quiet", code=130)
    line = run.fails("--resume", *flags)
    assert message in line
    assert "(try: the flags of the first run, or start again without --resume)" in line


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("names", ["--dim", "65536", "--layers", "1000"]),
        ("names", ["--model", "lstm", "--dim", "65536", "--layers", "1000"]),
        ("names", ["--batch-size", "1048576", "--dim", "4096"]),
        ("gpt", ["--dim", "65536", "--layers", "1000"]),
        ("gpt", ["--batch-size", "1048576", "--dim", "4096"]),
        ("tag", ["--hidden", "65536", "--layers", "1000"]),
        ("classify", ["--hidden", "65536", "--layers", "1000"]),
    ],
)
def test_a_model_that_does_not_fit_is_refused_with_its_size(run: Run, flags: list[str]) -> None:
    line = run.fails(*flags)
    assert "error: training a model of " in line
    assert re.search(r"needs [\d.]+ [TP]B of memory, and [\d.]+ .B is free", line)
    assert re.search(r"\(try: lower --batch-(size|tokens) first", line)


@pytest.mark.parametrize("name", ["word2vec"])
def test_word_vectors_that_do_not_fit_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    line = run.fails("--dim", "60000")
    assert "training 13 vectors of 60,000 dimensions needs 6.0 MB of memory" in line


@every_trainer
@pytest.mark.parametrize(
    "flags",
    [
        ["--seed", "-1"],
        ["--seed", str(2**32)],
        ["--seed", str(2**63)],
        ["--lr", "1e308"],
        ["--lr", "nan"],
        ["--lr", "inf"],
        ["--epochs", "10000000000"],
        ["--threads", "1000000000"],
    ],
    ids=" ".join,
)
def test_a_number_out_of_range_is_wrong_usage(run: Run, flags: list[str]) -> None:
    if run.name == "gpt" and flags[0] == "--epochs":
        flags = ["--max-iters", *flags[1:]]
    last = run(*flags, code=2).splitlines()[-1]
    assert f"Invalid value for '{flags[0]}'" in last
    assert not run.model.exists()


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        (name, [flag, value])
        for name, given in {
            "names": ["--dim", "--layers", "--heads", "--batch-size"],
            "gpt": ["--dim", "--layers", "--heads", "--block-size", "--grad-accum"],
            "tag": ["--hidden", "--layers", "--word-dim", "--batch-tokens"],
            "classify": ["--hidden", "--layers", "--dim", "--ngrams", "--batch-size"],
            "word2vec": ["--dim", "--window", "--negative", "--phrases"],
        }.items()
        for flag in given
        for value in ("1000000001", "-1")
    ]
    + [("gpt", ["--grad-clip", value]) for value in ("inf", "nan", "-1")],
    ids=str,
)
def test_an_absurd_size_is_wrong_usage(run: Run, flags: list[str]) -> None:
    assert f"Invalid value for '{flags[0]}'" in run(*flags, code=2).splitlines()[-1]


@every_trainer
def test_the_largest_seed_works(run: Run) -> None:
    run("--seed", str(2**32 - 1))
    assert run.weights()


@pytest.mark.parametrize("name", ["gpt"])
def test_gpt_without_a_held_out_part_keeps_the_last_weights(run: Run) -> None:
    said = run("--val-fraction", "0", "--sample", "1", "--eval-interval", "6")
    assert " 0 held out" in said
    assert said.count("--- step") == 2
    assert "held-out loss" not in said
    config = json.loads((run.model / "config.json").read_text())
    assert config["metrics"] == {}
    assert config["settings"]["val_fraction"] == 0
    records = [json.loads(line) for line in (run.model / "metrics.jsonl").open()]
    assert records[-1]["step"] == 12
    assert all("heldout_loss" not in record for record in records)
    assert CliRunner().invoke(app, ["gpt", "sample", str(run.model), "to", "-n", "2"]).stdout


@pytest.mark.parametrize("name", ["names", "gpt"])
def test_max_time_counts_from_the_first_step(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes to get ready, there are steps; too few of them are a warning."""
    started = []
    fit = training.Trainer.fit

    def slow_start(trainer: training.Trainer) -> Iterator[Any]:
        started.append(trainer.counters.seconds)
        return fit(trainer)

    monkeypatch.setattr(training.Trainer, "fit", slow_start)
    said = run("--max-time", "0.001")
    assert started == [0]
    assert re.search(r"\d steps? only, too few to learn much \(try: a longer --max-time", said)
    assert run.weights()


@pytest.mark.parametrize("name", ["gpt"])
def test_the_recorded_learning_rate_is_that_of_adamw(run: Run) -> None:
    run("--warmup", "0", "--lr", "0.005", "--schedule", "constant")
    records = [json.loads(line) for line in (run.model / "metrics.jsonl").open()]
    assert {record["learning_rate"] for record in records} == {0.005}


def test_a_place_for_ids_that_is_missing_or_full_is_one_line(tmp_path: Path) -> None:
    blocks = [TextBlock(TEXT.encode(), "text", 1)]
    with pytest.raises(NlpkitError, match=r"cannot write the ids .*/none: No such file"):
        tokenize_stream(blocks, "char", str(tmp_path / "none"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(NlpkitError, match=r"cannot write the ids .*: File too large \(try: "):
            tokenize_stream(blocks, "char", str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
