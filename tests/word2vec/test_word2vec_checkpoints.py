"""A checkpoint belongs to one run, and what is wrong in one never reaches a kernel."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nlpkit.errors import NlpkitError
from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig
from nlpkit.word2vec.model import Word2VecRun
from nlpkit.word2vec.resume import load_checkpoint
from nlpkit.word2vec.store import LONGEST_SENTENCE, IdStore, build_store
from nlpkit.word2vec.train import Word2VecTrainer

CONFIG = Word2VecConfig(dim=4, window=2, min_count=1, epochs=2, threads=1)
HOW: dict[str, Any] = {"tokenizer": "whitespace", "pattern": None, "lower": False}
TEXT = b"the king sat\nthe queen sat down\n" * 50


def begin(text: bytes, config: Word2VecConfig = CONFIG, data_hash: str = "one") -> Word2VecRun:
    store = build_store([text], config)
    return Word2VecRun(store, config, Word2VecTrainer(store, config), data_hash, HOW, [])


def resume(path: Path, config: Word2VecConfig = CONFIG, **others: Any) -> Word2VecRun:
    how = HOW | others.pop("how", {})
    return load_checkpoint(path, config, how, others.pop("sources", {}), device="cpu", **others)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "m.checkpoint"
    begin(TEXT).save_checkpoint(path)
    return path


@pytest.fixture
def checkpoint(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "m.checkpoint"))


def test_a_new_run_takes_nothing_from_the_checkpoint_of_another(tmp_path: Path) -> None:
    path = tmp_path / "m.checkpoint"
    begin(b" ".join(b"w%d" % i for i in range(300)) + b"\n").save_checkpoint(path)
    run = begin(TEXT)
    for _ in range(2):  # the second links what the first has written
        run.save_checkpoint(path)
        assert np.load(path / "ids.npy").tolist() == run.store.ids.tolist()


def test_the_ids_are_written_once_and_then_linked(tmp_path: Path) -> None:
    path = tmp_path / "m.checkpoint"
    run = begin(TEXT)
    run.save_checkpoint(path)
    first = (path / "ids.npy").stat().st_ino
    run.save_checkpoint(path)
    assert (path / "ids.npy").stat().st_ino == first
    resumed = resume(path)
    resumed.save_checkpoint(path)
    assert (path / "ids.npy").stat().st_ino == first
    resume(path)


def test_a_file_that_was_edited_between_two_checkpoints_is_not_linked(tmp_path: Path) -> None:
    path = tmp_path / "m.checkpoint"
    run = begin(TEXT)
    run.save_checkpoint(path)
    np.save(path / "ids.npy", np.full(len(run.store), 10**6, np.int32))
    run.save_checkpoint(path)
    resume(path)


def test_a_disk_without_links_gets_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "m.checkpoint"
    run = begin(TEXT)
    run.save_checkpoint(path)
    monkeypatch.setattr(os, "link", refuse)
    run.save_checkpoint(path)
    resume(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arch", Arch.CBOW),
        ("loss", Loss.HS),
        ("dim", 5),
        ("window", 3),
        ("epochs", 3),
        ("seed", 2),
        ("min_count", 2),
        ("sample", 0.5),
        ("lr", 0.5),
        ("phrases", 1),
    ],
)
def test_other_settings_are_refused_by_name(saved: Path, name: str, value: Any) -> None:
    with pytest.raises(NlpkitError, match=f"was made with {name} "):
        resume(saved, replace(CONFIG, **{name: value}))


def test_other_text_tokens_and_files_are_refused_and_threads_are_not(saved: Path) -> None:
    with pytest.raises(NlpkitError, match="made from other text"):
        resume(saved, data_hash="two")
    with pytest.raises(NlpkitError, match="was made with tokenizer whitespace, not word"):
        resume(saved, how={"tokenizer": "word"})
    with pytest.raises(NlpkitError, match=r"was made with vocab None, not v\.tsv"):
        resume(saved, sources={"vocab": "v.tsv", "init": None})
    assert resume(saved, replace(CONFIG, threads=2), data_hash="one").config.threads == 2


def change_ids(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        np.save(folder / "ids.npy", change(np.load(folder / "ids.npy")))

    return damage


def put(place: int, number: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(ids: np.ndarray) -> np.ndarray:
        ids[place] = number
        return ids

    return change


def change_position(name: str, value: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        config["settings"]["position"][name] = value
        (folder / "config.json").write_text(json.dumps(config))

    return damage


def cut(name: str, size: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, size)


def change_vectors(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        np.save(folder / "context.npy", change(np.load(folder / "context.npy")))

    return damage


DAMAGES = {
    "an id beyond the vocabulary": change_ids(put(0, 5)),
    "an end of a sentence beyond it": change_ids(put(2, -6)),
    "another id": change_ids(put(0, 0)),
    "no end": change_ids(put(-1, 0)),
    "a sentence without end": change_ids(
        lambda ids: np.append(np.zeros(LONGEST_SENTENCE, np.int32), ids)
    ),
    "ids of 64 bits": change_ids(lambda ids: ids.astype(np.int64)),
    "ids in two rows": change_ids(lambda ids: ids.reshape(2, -1)),
    "no ids": change_ids(lambda ids: ids[:0]),
    "one number": change_ids(lambda ids: ids[0]),
    "half the ids": cut("ids.npy", 300),
    "half a header": cut("ids.npy", 50),
    "an empty file": cut("vectors.npy", 0),
    "a word less": cut("vocab.tsv", 20),
    "pieces below 0": change_position("pieces_done", -1),
    "too many pieces": change_position("pieces_done", 10**9),
    "pieces in words": change_position("pieces_done", "three"),
    "half a piece": change_position("pieces_done", 0.5),
    "no loss": change_position("loss_sum", None),
    "losses below 0": change_position("loss_count", -3),
    "text of no length": change_position("text_words", None),
    "vectors of 64 bits": change_vectors(lambda rows: rows.astype(np.float64)),
    "a row less": change_vectors(lambda rows: rows[1:]),
    "no numbers": change_vectors(lambda rows: rows * np.nan),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_checkpoint_is_refused_in_one_line(checkpoint: Path, what: str) -> None:
    DAMAGES[what](checkpoint)
    with pytest.raises(NlpkitError, match=r"m\.checkpoint(/\S+)? is damaged: ") as caught:
        resume(checkpoint)
    assert "\n" not in str(caught.value)


def test_one_flipped_byte_of_a_header_is_one_line(checkpoint: Path) -> None:
    whole = (checkpoint / "ids.npy").read_bytes()
    header = whole.index(b"}")
    for place in range(header):
        flipped = bytearray(whole)
        flipped[place] ^= 0x15
        (checkpoint / "ids.npy").write_bytes(flipped)
        with pytest.raises(NlpkitError) as caught:
            resume(checkpoint)
        assert "\n" not in str(caught.value), place


def test_a_checkpoint_without_a_hash_of_its_ids_is_refused(checkpoint: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    del config["settings"]["position"]["ids_hash"]
    (checkpoint / "config.json").write_text(json.dumps(config))
    with pytest.raises(NlpkitError, match="another version"):
        resume(checkpoint)


@pytest.mark.parametrize(
    ("ids", "counts"),
    [([0, 2, -1], [5, 5]), ([0, -4], [5, 5]), ([0, 1], [5, 5]), ([], [5, 5]), ([-1], [5, -5])],
)
def test_a_trainer_refuses_what_its_kernels_must_not_see(ids: list[int], counts: list[int]) -> None:
    store = IdStore(np.array(ids, np.int32), ["a", "b"], np.array(counts, np.int64), 9)
    with pytest.raises(NlpkitError):
        Word2VecTrainer(store, CONFIG)


def test_counts_that_overflow_are_refused() -> None:
    store = IdStore(np.array([0, -2], np.int32), ["a", "b"], np.array([1 << 62] * 2), 9)
    with pytest.raises(NlpkitError, match="add up"):
        Word2VecTrainer(store, CONFIG)
