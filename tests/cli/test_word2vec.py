"""``nlpkit word2vec`` as it is used: through pipes, stopped, killed and resumed."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from command_runner import NLPKIT, Runner
from warm import Fault, Warm

from nlpkit import modeldir
from nlpkit.samples import sample_folder

WORLD = str(sample_folder() / "world.txt")
SMALL = ["--dim", "16", "--threads", "1", "--epochs", "2"]


@pytest.fixture(scope="module")
def corpus() -> bytes:
    return b"".join(Path(WORLD).read_bytes().splitlines(keepends=True)[:3000])


def matrices(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "vectors.npy").read_bytes(), (folder / "context.npy").read_bytes()


def test_the_sample_corpus_teaches_kings_and_capitals(run: Runner) -> None:
    run.ok("word2vec", "train", WORLD, "-o", "m", "--threads", "1", "-q")
    answers = run.ok(
        "vectors", "analogy", "-m", "m", "-n", "1", input="man king woman\nfrance paris italy\n"
    )
    assert [line.split("\t")[1] for line in answers.splitlines()] == ["queen", "rome"]
    config = modeldir.load_config(run.folder / "m", kind="word2vec")
    assert config.settings["arch"] == "skipgram"
    assert config.data_hash
    assert "loss over training" in run.ok("info", "m")


def test_one_thread_gives_the_same_bytes_from_a_file_and_from_a_pipe(
    run: Runner, corpus: bytes
) -> None:
    run.write("text.txt", corpus)
    run.ok("word2vec", "train", "text.txt", "-o", "a", *SMALL)
    run.ok("w2v", "train", "-o", "b", *SMALL, input=corpus)
    assert matrices(run.folder / "a") == matrices(run.folder / "b")
    run.ok("word2vec", "train", "text.txt", "-o", "c", *SMALL, "--seed", "2")
    assert matrices(run.folder / "a") != matrices(run.folder / "c")


ENDLESS = ["word2vec", "train", "text.txt", "-o", "m", "--dim", "16", "--threads", "1"]
ENDLESS += ["--epochs", "100000"]


def test_ctrl_c_saves_a_checkpoint_and_says_how_to_go_on(
    run: Runner, corpus: bytes, warm: Warm
) -> None:
    run.write("text.txt", corpus)
    done = warm.run(run.folder, *ENDLESS, fault=Fault(signal=signal.SIGINT, after_steps=1))
    assert done.code == 130, done.err
    assert "--resume" in done.err
    assert "Traceback" not in done.err
    assert modeldir.is_model(run.folder / "m.checkpoint")
    assert not (run.folder / "m").exists()


def test_a_killed_run_leaves_its_last_checkpoint_and_no_half_model(
    run: Runner, corpus: bytes
) -> None:
    run.write("text.txt", corpus)
    command = [*NLPKIT, *ENDLESS, "--checkpoint-every", "0.5s"]
    with subprocess.Popen(command, cwd=run.folder, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not modeldir.is_model(run.folder / "m.checkpoint"):
            time.sleep(0.1)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not (run.folder / "m").exists()
    config = modeldir.load_config(run.folder / "m.checkpoint", kind="word2vec-checkpoint")
    assert config.settings["position"]["pieces_done"] > 0
    vectors = np.load(run.folder / "m.checkpoint" / "vectors.npy")
    assert np.isfinite(vectors).all()


def test_interrupted_and_resumed_is_uninterrupted(
    run: Runner, corpus: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nlpkit.word2vec.config import Word2VecConfig
    from nlpkit.word2vec.model import Word2VecRun
    from nlpkit.word2vec.resume import load_checkpoint
    from nlpkit.word2vec.store import build_store
    from nlpkit.word2vec.train import Word2VecTrainer

    config = Word2VecConfig(dim=16, epochs=2, threads=1)
    how = {"tokenizer": "whitespace", "pattern": None, "lower": False}

    def begin() -> Word2VecRun:
        store = build_store([corpus], config)
        return Word2VecRun(store, config, Word2VecTrainer(store, config), "hash", how, [])

    whole = begin()
    for _ in whole.words_trainer.train():
        pass
    half = begin()
    for _ in half.words_trainer.train():
        half.save_checkpoint(run.folder / "m.checkpoint")
        break
    resumed = load_checkpoint(run.folder / "m.checkpoint", config, how, {}, device="cpu")
    assert 0 < resumed.words_trainer.state().chunks_done < whole.words_trainer.state().chunks_done
    for _ in resumed.words_trainer.train():
        pass
    assert np.array_equal(whole.words_trainer.state().input, resumed.words_trainer.state().input)
    assert np.array_equal(whole.words_trainer.state().output, resumed.words_trainer.state().output)


def test_training_goes_on_from_a_model_with_both_its_matrices(run: Runner, corpus: bytes) -> None:
    run.write("text.txt", corpus)
    run.ok("word2vec", "train", "text.txt", "-o", "a", *SMALL)
    tiny = ["--lr", "0.0000001", "--min-lr", "0.0000001", "--epochs", "1"]
    more = ["--dim", "16", "--threads", "1", "--init", "a", *tiny]
    run.ok("word2vec", "train", "text.txt", "-o", "b", *more)
    for name in ("vectors.npy", "context.npy"):
        before, after = (np.load(run.folder / model / name) for model in "ab")
        assert np.allclose(before, after, atol=1e-3)
        assert np.abs(before).max() > 0.1


def test_a_vocabulary_decides_the_words_and_raw_text_takes_a_tokenizer(run: Runner) -> None:
    run.write("v", "<pad>\t0\n<unk>\t0\nthe\t9\nking\t5\nsat\t3\n")
    text = "The king sat. The queen sat. The king!\n" * 30
    arguments = ["-t", "word", "--lower", "--vocab", "v", *SMALL]
    run.ok("word2vec", "train", "-o", "m", *arguments, input=text)
    vocab = (run.folder / "m" / "vocab.tsv").read_text()
    assert [line.split("\t")[0] for line in vocab.splitlines()] == ["the", "king", "sat"]


@pytest.mark.parametrize("arch", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["hs", "softmax"])
def test_every_loss_trains(run: Runner, arch: str, loss: str, corpus: bytes) -> None:
    err = run(
        "word2vec",
        "train",
        "-o",
        "m",
        "--arch",
        arch,
        "--loss",
        loss,
        *SMALL,
        input=corpus[:40_000],
    ).err
    curve = modeldir.read_metrics(run.folder / "m")
    assert curve[-1]["loss"] < curve[0]["loss"], err


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        ([], "", "nothing to train on"),
        ([], "a b c\n", "min-count"),
        (["--resume"], "", "no checkpoint"),
        (["--init", "nowhere"], "a b\n" * 9, "nowhere"),
        (["--vocab", "nowhere"], "a b\n" * 9, "nowhere"),
        (["--lr", "0.00001"], "a b\n" * 9, "lr"),
        (["--device", "abacus"], "a b\n" * 9, "abacus"),
    ],
)
def test_what_cannot_be_trained_is_one_line(
    run: Runner, arguments: list[str], text: str, said: str
) -> None:
    assert said in run.fails("word2vec", "train", "-o", "m", "-q", *arguments, input=text)


def test_an_existing_model_is_refused_without_force(run: Runner) -> None:
    text = "a b c d e\n" * 20
    run.ok("word2vec", "train", "-o", "m", *SMALL, input=text)
    assert "--force" in run.fails("word2vec", "train", "-o", "m", "-q", *SMALL, input=text)
    run.ok("word2vec", "train", "-o", "m", "--force", *SMALL, input=text)


def test_examples_are_those_of_the_lecture(run: Runner) -> None:
    fox = "The quick brown fox jumps over the lazy dog\n"
    pairs = run.ok("word2vec", "examples", "--window", "2", input=fox).splitlines()
    assert pairs[:5] == ["The\tquick", "The\tbrown", "quick\tThe", "quick\tbrown", "quick\tfox"]
    assert len(pairs) == 30
    cbow = run.ok("word2vec", "examples", "--arch", "cbow", "--window", "1", input=fox)
    assert cbow.splitlines()[1] == "The brown\tquick"


def test_settings_come_from_a_file_and_flags_win(run: Runner) -> None:
    run.write("s.toml", "dim = 8\nepochs = 1\nmin-count = 1\n")
    run.ok("word2vec", "train", "-o", "m", "--config", "s.toml", "--dim", "12", input="a b c\n" * 9)
    settings = modeldir.load_config(run.folder / "m").settings
    assert (settings["dim"], settings["epochs"]) == (12, 1)
    run.ok("word2vec", "train", "-o", "n", "--config", "m/config.json", input="a b c\n" * 9)
    assert modeldir.load_config(run.folder / "n").settings["dim"] == 12


def test_a_loss_that_is_no_number_is_one_line(run: Runner, warm: Warm) -> None:
    run.write("few.txt", "a b c d e a\n" * 250)
    small = ["--dim", "8", "--min-count", "1", "--threads", "1"]
    fault = Fault(patch="chaos.careless:lose_count")
    result = warm.run(run.folder, "word2vec", "train", "few.txt", "-o", "m", *small, fault=fault)
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith("error: the loss became nan in epoch ")
    assert "Traceback" not in result.err
    assert not (run.folder / "m").exists()
