"""What processes that train one set of vectors tell each other, through torch.distributed.

Each process trains on its own part of the text. After a number of words the changes of all are
added up, row by row, with the weights of ``replicas``: local SGD over processes as over threads.

Changes travel as bfloat16, the upper half of a float32: of a change it keeps 8 bits, which is far
more than its chance leaves. Each process adds up some of the rows and gives all of them the sum, so
that each sends every row twice at most, however many they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.kernels.compiling import kernel
from nlpkit.training.distributed import Processes
from nlpkit.word2vec.replicas import merge_weights

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

Halves = NDArray[np.uint16]  # bfloat16, of which numpy knows nothing

WORDS_PER_ROW = 20  # that a process trains on between two exchanges, for each row to be sent
ROUNDS_PER_EPOCH = 2  # at least; with one, quality falls
_ROWS_AT_ONCE = 1 << 16


@contextmanager
def _with_others() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo and nccl have no type of their own for it
        raise NlpkitError(
            f"another process of this run has ended: {str(error).splitlines()[0][:80]}",
            hint="what that one said; then the same with `resume`",
        ) from None


class Peers:
    """The processes of a run, which all call the same methods in the same order."""

    def __init__(self, processes: Processes) -> None:
        self.processes, self.count, self.rank = processes, processes.count, processes.rank
        with _with_others():
            processes.join(torch.device("cpu"))

    def gather(self, data: bytes) -> list[bytes]:
        """What each process has, in their order."""
        own = torch.frombuffer(bytearray(data or b"\0"), dtype=torch.uint8)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.count)]
        with _with_others():
            dist.all_gather(sizes, torch.tensor([len(data)]))
            longest = max(int(size) for size in sizes)
            padded = torch.zeros(max(longest, 1), dtype=torch.uint8)
            padded[: len(own)] = own[: len(padded)]
            found = [torch.zeros_like(padded) for _ in range(self.count)]
            dist.all_gather(found, padded)
        return [
            each[: int(size)].numpy().tobytes() for each, size in zip(found, sizes, strict=True)
        ]

    def gather_numbers(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        """The numbers of all processes: (processes, numbers)."""
        data = np.array(numbers, np.int64).tobytes()
        return np.stack([np.frombuffer(each, np.int64) for each in self.gather(data)])

    def hand_out(self, array: NDArray[Any], found: NDArray[Any]) -> None:
        """The n-th part of an array goes to process n; ``found`` has what all had for this one."""
        with _with_others():
            dist.all_to_all_single(_as_bytes(found), _as_bytes(array))

    def take_first(self, array: NDArray[Any]) -> None:
        """Replace an array by that of the first process."""
        with _with_others():
            dist.broadcast(torch.from_numpy(array), 0)

    def check_same(self, what: str, value: str) -> None:
        """Refuse to go on when a process has another value than the first."""
        mine = hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=16).digest()
        for rank, other in enumerate(self.gather(mine)):
            if other != mine:
                raise NlpkitError(
                    f"process {rank} has other {what} than process {self.rank}",
                    hint="the same command on every machine, and the same files",
                )


def merge_vocabularies(
    peers: Peers,
    words: Sequence[str],
    counts: NDArray[np.int64],
    choose: Callable[[list[str], NDArray[np.int64]], NDArray[np.int64]],
) -> tuple[list[str], list[int]]:
    """One vocabulary from what all processes have counted; ``choose`` gives the order of those
    that stay."""
    lists = peers.gather("\n".join(words).encode())
    numbers = peers.gather(counts.astype(np.int64).tobytes())
    totals: dict[str, int] = {}
    for data, amounts in zip(lists, numbers, strict=True):
        names = data.decode().split("\n") if amounts else []
        for word, count in zip(names, np.frombuffer(amounts, np.int64).tolist(), strict=True):
            totals[word] = totals.get(word, 0) + count
    merged, sums = list(totals), np.array(list(totals.values()), np.int64)
    order = choose(merged, sums)
    return [merged[i] for i in order], sums[order].tolist()


class Exchange:
    """Adds up what all processes have learned, some times an epoch."""

    def __init__(
        self, peers: Peers, engine: Any, counts: NDArray[np.int64], words: int, chunks: int
    ) -> None:
        self.peers, self._engine = peers, engine
        self._now = (engine.input[: engine.inputs], engine.output[: engine.vocabulary])
        rows = sum(len(matrix) for matrix in self._now)
        all_words, all_pieces = peers.gather_numbers([words, chunks]).T
        wanted = int(all_words.max()) // max(rows * WORDS_PER_ROW, 1)
        self.rounds = int(min(all_pieces.min(), max(wanted, ROUNDS_PER_EPOCH)))  # to an epoch
        part = 1 / (self.rounds * peers.count)
        self._weights = [
            merge_weights(updates[: len(matrix)] * part, peers.count)
            for updates, matrix in zip(engine.updates_per_row(counts), self._now, strict=True)
        ]
        self._before: list[Floats] = []
        most = min(_ROWS_AT_ONCE, max(map(len, self._now))) + peers.count
        self._room = np.zeros((2, most, engine.config.dim), np.uint16)  # what is sent, and found

    def start(self) -> None:
        """All begin with the vectors of the first process."""
        for matrix in self._now:
            self.peers.take_first(matrix)
        self._before = [matrix.copy() for matrix in self._now]
        self.merge()  # of nothing: compiles or loads what it takes

    def stop_after(self, done: int, chunks: int) -> int:
        """Of so many chunks of an epoch, how many are done when the next exchange is due."""
        return next(
            stop
            for stop in (chunks * part // self.rounds for part in range(1, self.rounds + 1))
            if stop > done
        )

    def merge(self) -> None:
        """Go on from the sum of all changes, each row by its weight."""
        count, rank, dim = self.peers.count, self.peers.rank, self._engine.config.dim
        for now, before, weights in zip(self._now, self._before, self._weights, strict=True):
            for first in range(0, len(now), _ROWS_AT_ONCE):
                here = slice(first, first + _ROWS_AT_ONCE)
                some, base = now[here], before[here]
                share = -(-len(some) // count)  # of the rows, for each process; the last has fewer
                ours, theirs = self._room[:, : count * share]
                pack_changes(some, base, ours)
                self.peers.hand_out(ours, theirs)
                parts, mine = theirs.reshape(count, share, dim), ours.reshape(count, share, dim)
                add_changes(parts, weights[here][rank * share :][:share], mine[0])
                mine[1:] = mine[0]
                self.peers.hand_out(ours, theirs)
                apply_changes(theirs, base, some)


def _as_bytes(array: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(array.view(np.uint8)).view(-1)


@kernel()
def _shorten(bits: NDArray[np.uint32], halves: Halves) -> None:
    """The bits of float32s to the nearest bfloat16s, ties to even."""
    for d in range(len(halves)):
        odd = (bits[d] >> np.uint32(16)) & np.uint32(1)
        halves[d] = np.uint16((bits[d] + np.uint32(0x7FFF) + odd) >> np.uint32(16))


@kernel()
def pack_changes(now: Floats, before: Floats, changes: Halves) -> None:
    """``changes[:rows] = now - before``, of as many columns as ``changes`` has."""
    change = np.zeros(changes.shape[1], np.float32)
    for row in range(len(now)):
        for d in range(len(change)):
            change[d] = now[row, d] - before[row, d]
        _shorten(change.view(np.uint32), changes[row])


@kernel()
def add_changes(changes: NDArray[np.uint16], weights: Floats, result: Halves) -> None:
    """``result[row] = weights[row] * (sum of changes[:, row])``, each row by its weight."""
    total = np.zeros(result.shape[1], np.float32)
    bits = np.zeros(result.shape[1], np.uint32)
    for row in range(len(weights)):
        total[:] = 0
        for process in range(len(changes)):
            for d in range(len(bits)):
                bits[d] = np.uint32(changes[process, row, d]) << np.uint32(16)
            change = bits.view(np.float32)
            for d in range(len(bits)):
                total[d] += change[d]
        for d in range(len(bits)):
            total[d] *= weights[row]
        _shorten(total.view(np.uint32), result[row])


@kernel()
def apply_changes(changes: Halves, before: Floats, now: Floats) -> None:
    """``now = before = before + changes``, of as many columns as ``changes`` has."""
    bits = np.zeros(changes.shape[1], np.uint32)
    for row in range(len(now)):
        for d in range(len(bits)):
            bits[d] = np.uint32(changes[row, d]) << np.uint32(16)
        change = bits.view(np.float32)
        for d in range(len(bits)):
            before[row, d] += change[d]
            now[row, d] = before[row, d]
