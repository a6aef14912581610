"""GloVe (Pennington, Socher and Manning 2014): vectors whose products are logarithms of counts.

For each pair of words that occur together x times, a step of AdaGrad on

    f(x) (w . c + b + b' - log x)^2 / 2,    f(x) = min(1, (x / x_max)^alpha)

with a vector w for a word as the one that is looked at and c for it as a neighbour; the result is
their sum. Pairs are trained in a random order: they are dealt out to shards as they come, and each
shard, small enough for the cache, is shuffled anew in each epoch. Shards go to a temporary file
beyond a limit of memory.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.kernels.compiling import kernel
from nlpkit.memory import check_memory
from nlpkit.vectors.cooccurrence import MEMORY_LIMIT, PairCounter
from nlpkit.vectors.settings import CountSettings

Floats = NDArray[np.float32]

_SHARD = 1 << 18  # pairs
_RECORD = np.dtype([("word", "i4"), ("near", "i4"), ("log", "f4"), ("weight", "f4")])
_LANES = 16  # rows are as wide as the processor's registers like them
_LARGEST = np.float32(100.0)  # that a single step may be, as in the original


@dataclass(frozen=True)
class GloveProgress:
    """Where training stands after an epoch."""

    epoch: int
    epochs: int
    loss: float  # mean over pairs
    pairs_per_second: float


class Shards:
    """Pairs in both directions, dealt out at random to shards that fit into a cache."""

    def __init__(
        self, counter: PairCounter, settings: CountSettings, memory_limit: int = MEMORY_LIMIT
    ) -> None:
        self._limit = memory_limit
        self._count = max(1, -(-2 * counter.most_pairs // _SHARD))
        self._parts: list[list[Any]] = [[] for _ in range(self._count)]
        self._file: IO[bytes] | None = None
        self._bytes = 0
        self.pairs = 0
        random = np.random.default_rng((settings.seed, 1))
        for some in counter.pairs():
            both = some.first != some.second
            records = np.empty(len(some.first) + int(both.sum()), _RECORD)
            # of equal words the counter has seen each pair once, and it stands for both orders
            count = np.where(both, some.counts, 2 * some.counts)
            records["word"] = np.concatenate([some.first, some.second[both]])
            records["near"] = np.concatenate([some.second, some.first[both]])
            counts = np.concatenate([count, count[both]])
            records["log"] = np.log(counts)
            records["weight"] = np.minimum(1, (counts / settings.x_max) ** settings.alpha)
            random.shuffle(records)
            for shard, part in enumerate(np.array_split(records, self._count)):
                self._keep(shard, part)
            self.pairs += len(records)

    def __len__(self) -> int:
        return self._count

    def _keep(self, shard: int, part: NDArray[Any]) -> None:
        self._bytes += part.nbytes
        if self._bytes <= self._limit:
            self._parts[shard].append(part.copy())
            return
        with textio.temporary_files():
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - has no name, ends with us
            place = self._file.seek(0, 2)
            self._file.write(part.tobytes())
        self._parts[shard].append((place, part.nbytes))

    def read(self, shard: int) -> NDArray[Any]:
        """The pairs of a shard."""
        found = [np.empty(0, _RECORD)]
        for part in self._parts[shard]:
            if isinstance(part, tuple):
                assert self._file is not None
                with textio.temporary_files():
                    self._file.seek(part[0])
                    part = np.frombuffer(self._file.read(part[1]), _RECORD)
            found.append(part)
        return np.concatenate(found)


class GloveTrainer:
    """Trains from counted pairs; ``train()`` yields a record for each epoch.

    >>> counts = CountSettings(dim=4, window=2, epochs=2, threads=1, method="glove")
    >>> counter = PairCounter(3, counts)
    >>> counter.add(np.array([0, 1, ~2, 0, ~2], np.int32))
    >>> trainer = GloveTrainer(Shards(counter, counts), 3, counts)
    >>> [record.epoch for record in trainer.train()], trainer.vectors().shape
    ([1, 2], (3, 4))
    """

    def __init__(
        self,
        shards: Shards,
        size: int,
        settings: CountSettings,
    ) -> None:
        from nlpkit.parallel import available_cores

        self._shards, self._size, self.settings = shards, size, settings
        self._workers = settings.threads or available_cores()
        # the last two columns but for padding: biases and ones
        self._width = -(-(settings.dim + 2) // _LANES) * _LANES
        check_memory(4 * 4 * size * self._width, f"{size:,} vectors of {settings.dim} dimensions")
        if not shards.pairs:
            raise NlpkitError("no two known words stand near each other", hint="more text")
        self.epochs_done = 0
        self.pairs = shards.pairs
        self._rows = [self._start(side) for side in range(2)]
        self._squares = [np.ones((size, self._width), np.float32) for _ in range(2)]

    def _start(self, side: int) -> Floats:
        dim = self.settings.dim
        random = np.random.default_rng((self.settings.seed, 2, side))
        rows = np.zeros((self._size, self._width), np.float32)
        rows[:, : dim + 1] = (random.random((self._size, dim + 1), np.float32) - 0.5) / (dim + 1)
        rows[:, dim + 1] = 1.0  # what the other side's bias is multiplied with
        if side:
            rows[:, [dim, dim + 1]] = rows[:, [dim + 1, dim]]
        return rows

    def state(self) -> dict[str, Any]:
        """All that is needed to go on: rows and sums of squares of both sides, and the epoch."""
        arrays = {"words": self._rows[0], "nears": self._rows[1]}
        squares = {"word_squares": self._squares[0], "near_squares": self._squares[1]}
        return {**arrays, **squares, "epochs_done": self.epochs_done}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what ``state`` gave; what does not fit is refused."""
        names = ("words", "nears", "word_squares", "near_squares")
        arrays = [np.array(state[name], np.float32) for name in names]
        done = state["epochs_done"]
        for array in arrays:
            if array.shape != (self._size, self._width) or not np.isfinite(array).all():
                raise NlpkitError("the checkpoint is not one of these words and settings")
        if type(done) is not int or not 0 <= done <= self.settings.epochs:
            raise NlpkitError(f"the checkpoint has epochs_done {done!r}")
        if any((array <= 0).any() for array in arrays[2:]):
            raise NlpkitError("the checkpoint has sums of squares that are not above 0")
        self._rows, self._squares, self.epochs_done = arrays[:2], arrays[2:], done

    def vectors(self) -> Floats:
        """The sum of both matrices, (V, dim)."""
        dim = self.settings.dim
        return self._rows[0][:, :dim] + self._rows[1][:, :dim]

    def train(self) -> Iterator[GloveProgress]:
        """Train to the end of the last epoch; between two records it may be left."""
        settings = self.settings
        with ThreadPoolExecutor(self._workers) as pool:
            while self.epochs_done < settings.epochs:
                begun = time.perf_counter()
                random = np.random.default_rng((settings.seed, 3, self.epochs_done))
                order = random.permutation(len(self._shards))
                tasks = [(int(shard), int(random.integers(2**32))) for shard in order]
                losses = list(pool.map(lambda task: self._train_shard(*task), tasks))
                loss = sum(losses) / self._shards.pairs
                if not np.isfinite(loss):
                    raise NlpkitError(f"the loss became {loss}", hint="a lower `lr`")
                self.epochs_done += 1
                speed = self._shards.pairs / (time.perf_counter() - begun)
                yield GloveProgress(self.epochs_done, settings.epochs, loss, speed)

    def _train_shard(self, shard: int, seed: int) -> float:
        pairs = self._shards.read(shard)
        order = np.random.default_rng(seed).permutation(len(pairs)).astype(np.int32)
        lr, dim = np.float32(self.settings.lr), self.settings.dim
        columns = [np.ascontiguousarray(pairs[name]) for name in ("word", "near", "log", "weight")]
        loss: float = _train(*columns, order, *self._rows, *self._squares, lr, dim)
        return loss


@kernel(fastmath=True, error_model="numpy")
def _train(
    word: NDArray[np.int32],
    near: NDArray[np.int32],
    log: Floats,
    weight: Floats,
    order: NDArray[np.int32],
    words: Floats,
    nears: Floats,
    word_squares: Floats,
    near_squares: Floats,
    lr: np.float32,
    dim: int,
) -> float:
    """A step for each pair; returns the sum of the losses.

    Column ``dim`` of a word is its bias and 1 for a neighbour, column ``dim + 1`` the other way
    round: so one product gives the score with both biases. The ones are put back after each step.
    Biases learn at a rate of 1, as in the original: at that of the vectors those of rare words stay
    behind, and how frequent a word is goes into its vector.
    """
    width = words.shape[1]
    total = 0.0
    one = np.float32(1.0)
    for k in range(len(order)):
        pair = order[k]
        a, b = words[word[pair]], nears[near[pair]]
        a2, b2 = word_squares[word[pair]], near_squares[near[pair]]
        score = np.float32(0.0)
        for d in range(width):
            score += a[d] * b[d]
        error = score - log[pair]
        scaled = weight[pair] * error
        total += 0.5 * scaled * error
        step = lr * scaled
        bias, bias_square = a[dim], a2[dim]
        near_bias, near_bias_square = b[dim + 1], b2[dim + 1]
        for d in range(width):
            x, y = a[d], b[d]
            for_a = min(max(step * y, -_LARGEST), _LARGEST)
            for_b = min(max(step * x, -_LARGEST), _LARGEST)
            a[d] = x - for_a / np.sqrt(a2[d])
            b[d] = y - for_b / np.sqrt(b2[d])
            a2[d] += for_a * for_a
            b2[d] += for_b * for_b
        a[dim], b[dim] = bias - scaled / np.sqrt(bias_square), one
        a[dim + 1], b[dim + 1] = one, near_bias - scaled / np.sqrt(near_bias_square)
        a2[dim] = bias_square + scaled * scaled
        b2[dim + 1] = near_bias_square + scaled * scaled
    return total
