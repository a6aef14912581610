"""``word2vec train --resume`` goes on with its own run only; and what a full disk does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_runner import Runner
from model_files import without_manifest

from nlpkit import modeldir
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.model import Word2VecRun
from nlpkit.word2vec.store import build_store
from nlpkit.word2vec.train import Word2VecTrainer

TEXT = b"the king sat in the house\nthe queen sat in the garden\n" * 400
OTHER = b"a dog ran after a cat\n" * 500
FLAGS = ["--dim", "8", "--epochs", "40", "--threads", "1", "-q"]


def save_checkpoint(folder: Path) -> None:
    """What an interrupted ``word2vec train -o m`` on ``TEXT`` with ``FLAGS`` leaves behind."""
    config = Word2VecConfig(dim=8, epochs=40, threads=1)
    store = build_store([TEXT], config)
    how = {"tokenizer": "whitespace", "pattern": None, "lower": False}
    run = Word2VecRun(
        store, config, Word2VecTrainer(store, config), modeldir.data_hash([TEXT]), how, []
    )
    for _ in run.steps():
        run.save_checkpoint(folder / "m.checkpoint")
        break
    position = modeldir.load_config(folder / "m.checkpoint").settings["position"]
    assert position["pieces_done"] > 0


def test_a_resumed_run_needs_no_text_and_takes_its_own_only(run: Runner) -> None:
    save_checkpoint(run.folder)
    again = ["word2vec", "train", "-o", "m", *FLAGS, "--resume"]
    run.write("text.txt", TEXT)
    assert "made from other text" in run.fails(*again, input=OTHER)
    assert "was made with window 5, not 3" in run.fails(*again, "--window", "3")
    run.ok("word2vec", "train", "text.txt", "-o", "whole", *FLAGS)
    whole = (run.folder / "whole" / "vectors.npy").read_bytes()
    run.ok(*again)
    assert (run.folder / "m" / "vectors.npy").read_bytes() == whole
    assert not (run.folder / "m.checkpoint").exists()
    save_checkpoint(run.folder)
    run.ok(*again, "--force", "text.txt")
    assert (run.folder / "m" / "vectors.npy").read_bytes() == whole


def test_ids_edited_by_hand_never_reach_a_kernel(run: Runner) -> None:
    save_checkpoint(run.folder)
    file = run.folder / "m.checkpoint" / "ids.npy"
    ids = np.load(file)
    ids[::2] = 10**9
    np.save(file, ids)
    assert "SHA-256" in run.fails("word2vec", "train", "-o", "m", *FLAGS, "--resume")
    without_manifest(file.parent)
    said = run.fails("word2vec", "train", "-o", "m", *FLAGS, "--resume")
    assert "m.checkpoint is damaged: id 1000000000" in said


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no right to mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_model_on_a_full_disk_is_one_line_and_leaves_nothing(
    run: Runner, small_disk: Path
) -> None:
    words = " ".join(f"w{i}" for i in range(600))  # two matrices of 230 kB
    arguments = ["--dim", "96", "--epochs", "1", "--min-count", "1", "-q"]
    said = run.fails("word2vec", "train", "-o", "small/m", *arguments, input=words + "\n")
    assert "No space left on device" in said
    assert os.listdir(small_disk) == []


LIMITED = """
import resource, sys
from nlpkit.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
sys.argv = ["nlpkit", *sys.argv[1:]]
main()
"""


def test_a_file_that_may_not_grow_is_one_line(run: Runner) -> None:
    words = " ".join(f"w{i}" for i in range(600))
    arguments = ["--dim", "96", "--epochs", "1", "--min-count", "1", "-q", "--threads", "1"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "word2vec", "train", "-o", "m", *arguments],
        input=words.encode() + b"\n",
        capture_output=True,
        cwd=run.folder,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: cannot write m: File too large;")
    assert done.stderr.count(b"\n") == 1
    assert run.files() == {}
