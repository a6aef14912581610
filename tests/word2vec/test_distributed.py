"""word2vec over processes: parts of a text, one vocabulary, one model, and ranks that disagree."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from warm import Warm

from nlpkit.errors import NlpkitError
from nlpkit.text.records import Reading
from nlpkit.vectors.formats import load
from nlpkit.word2vec.exchange import (
    Peers,
    add_changes,
    apply_changes,
    merge_vocabularies,
    pack_changes,
)
from nlpkit.word2vec.shards import plan_parts, read_parts
from nlpkit.word2vec.store import by_frequency

GROUPS = [[f"sea{i}" for i in range(12)], [f"hill{i}" for i in range(12)]]
LINES = st.lists(st.text("ab é", max_size=9), max_size=12)


@given(st.lists(LINES, min_size=1, max_size=3), st.integers(1, 4), st.booleans())
def test_every_line_is_read_by_one_process(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]], count: int, ended: bool
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    paths = [str(folder / f"{number}.txt") for number in range(len(texts))]
    expected = []
    for path, lines in zip(paths, texts, strict=True):
        text = "\n".join(lines) + ("\n" if ended else "")
        Path(path).write_bytes(text.encode())
        expected += text.removesuffix("\n").split("\n") if text else []
    found = []
    for rank in range(count):
        try:
            parts = plan_parts(paths, rank, count, Reading(input="text"))
        except NlpkitError:  # fewer bytes than processes
            continue
        for block in read_parts(parts, Reading(input="text")):
            found += block.lines()
    assert sorted(found) == sorted(expected)


def test_what_cannot_be_cut_goes_to_processes_in_turn(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text('{"text": "x"}\n')
    paths = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    assert [plan_parts(paths, rank, 2, Reading())[0].path for rank in (0, 1)] == paths
    with pytest.raises(NlpkitError, match="process 2 of 3 has nothing to read"):
        plan_parts(paths, 2, 3, Reading())
    with pytest.raises(NlpkitError, match="cannot share standard input"):
        plan_parts(["-"], 0, 2, Reading())


def test_changes_travel_as_bfloat16_and_are_added_up_by_their_weights() -> None:
    random = np.random.default_rng(1)
    before = random.normal(size=(7, 16)).astype(np.float32)
    steps = random.normal(size=(3, 7, 16)).astype(np.float32)
    weights = np.linspace(0.3, 1, 7).astype(np.float32)
    changes = np.zeros((3, 8, 13), np.uint16)  # a row to spare, and without the padding of rows
    for process, step in enumerate(steps):
        pack_changes(before + step, before, changes[process])
    total = np.zeros((8, 13), np.uint16)
    add_changes(changes, weights, total)
    base, now = before.copy(), before + steps[0]
    apply_changes(total, base, now)
    expected = before + weights[:, None] * steps.sum(axis=0)
    assert np.abs(base - expected)[:, :13].max() < 4 * 2**-8  # the sum of three, and of theirs
    assert np.array_equal(now[:, :13], base[:, :13])
    assert np.array_equal(base[:, 13:], before[:, 13:])
    torch_says = torch.from_numpy(steps[0]).to(torch.bfloat16).view(torch.int16).numpy()
    pack_changes(steps[0], np.zeros_like(before), changes[0])
    assert np.array_equal(changes[0, :7].view(np.int16), torch_says[:, :13])


def start(
    warm: Warm, folder: Path, arguments: list[list[str]], script: Path | None = None
) -> list[tuple[int, str]]:
    """Run a process for each list of arguments; their exits and messages."""
    return [(done.code, done.err) for done in warm.ranks(folder, arguments, script)]


def test_two_processes_make_one_model(warm: Warm, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    lines = [" ".join(random.choice(GROUPS[i % 2], 8)) for i in range(3000)]
    (tmp_path / "a.txt").write_text("\n".join(lines[:500]) + "\n")
    (tmp_path / "b.txt").write_text("\n".join(lines[500:]) + "\nonce\n")
    flags = ["--threads", "1", "--dim", "12", "--min-count", "2", "--epochs", "5", "--quiet"]
    command = ["word2vec", "train", "a.txt", "b.txt", "-o", "m", *flags]
    assert start(warm, tmp_path, [command, command]) == [(0, ""), (0, "")]
    model = load(str(tmp_path / "m"))
    words = " ".join(lines).split()
    assert dict(zip(model.words, model.words.counts.tolist(), strict=True)) == {  # type: ignore[union-attr]
        word: words.count(word) for word in set(words)
    }
    unit = model.matrix / np.linalg.norm(model.matrix, axis=1, keepdims=True)
    nearest = (unit @ unit.T - 2 * np.eye(24)).argmax(axis=1)
    names = list(model.words)
    assert all(names[i][:3] == names[j][:3] for i, j in enumerate(nearest))
    # half-way through, one process dies: the other says so, and its checkpoint goes on exactly
    (tmp_path / "stopped.py").write_text(STOPPED)
    exits = start(warm, tmp_path, [[], []], tmp_path / "stopped.py")
    assert [code for code, _ in exits] == [1, 3]
    assert exits[0][1].startswith("another process of this run has ended")
    assert exits[0][1].count("\n") == 1
    resumed = ["word2vec", "train", "a.txt", "b.txt", "-o", "n", "--resume", *flags]
    assert start(warm, tmp_path, [resumed, resumed]) == [(0, ""), (0, "")]
    for file in ("vectors.npy", "context.npy"):
        assert (tmp_path / "n" / file).read_bytes() == (tmp_path / "m" / file).read_bytes()


STOPPED = """
import os, sys
from pathlib import Path
from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.records import Reading
from nlpkit.training.distributed import Processes
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.distributed import begin_shared
config = Word2VecConfig(dim=12, min_count=2, epochs=5, threads=1)
processes = Processes.from_environment()
tokens = TokenSettings(tokenizer="whitespace")
run = begin_shared(["a.txt", "b.txt"], config, tokens, Reading(), processes)
steps = run.steps()
for _ in range(6):
    next(steps)
if processes.rank == 1:
    os._exit(3)
run.save_checkpoint(Path("n.checkpoint"))
try:
    for _ in steps:
        pass
except NlpkitError as error:
    print(error.message, file=sys.stderr)
    os._exit(1)
"""


class Told(Peers):
    """Peers of which another has said something else."""

    def __init__(self, said: bytes) -> None:
        self.rank, self.count, self.said = 0, 2, said

    def gather(self, data: bytes) -> list[bytes]:
        return [data, self.said]


def test_processes_that_disagree_are_named() -> None:
    with pytest.raises(NlpkitError, match="process 1 has other settings than process 0"):
        Told(b"x").check_same("settings", "{}")


def test_a_vocabulary_is_merged_by_counts() -> None:
    peers = Told(b"")
    heard = [[b"b\na", b"c\nb"], [np.array([2, 1]).tobytes(), np.array([5, 4]).tobytes()]]
    peers.gather = lambda data: heard.pop(0)  # type: ignore[method-assign]
    found = merge_vocabularies(
        peers, ["b", "a"], np.array([2, 1]), lambda words, sums: by_frequency(words, sums, 2, None)
    )
    assert found == (["b", "c"], [6, 5])
