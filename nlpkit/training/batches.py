"""The batcher: sequences of many lengths as padded arrays with masks, the same for the same seed.

Sequences of like length go into one batch, of at most so many tokens, padding counted. Which ones
depends on the seed and the number of the batch only, never on what was asked for before: a run that
is resumed at step n sees the batches it would have seen.

    batches = Batches(texts, tokens=4096, seed=1)          # sequences of ids
    batches = Batches(texts, tags, tokens=4096, seed=1)    # and a label for each of their tokens
    batches = Batches(sources, targets, tokens=4096, seed=1, fill=pad_id)  # pairs of sequences
    for number in range(epochs * batches.per_epoch):
        batch = batches[number]
        idx, mask = batch.columns[0].tensors(device)       # (B, T) each
        labels[batch.rows]                                 # what belongs to whole sequences

``plan`` alone says which rows go together: in order, to predict, and it needs no sequences.

Other data comes by number in the same way: ``PackedBatches`` put several short sequences into a
row, ``RandomWindows`` and ``Lanes`` cut rows out of one long text.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nlpkit.errors import NlpkitError

if TYPE_CHECKING:
    import torch

Ids = NDArray[np.int64]
BUCKET = 0.1  # lengths that differ by less are mixed: this share of a batch is padding at most


class Padded(NamedTuple):
    """Sequences of several lengths as one array, padded at their ends."""

    ids: Ids  # (B, T)
    mask: NDArray[np.bool_]  # (B, T), true for tokens

    @property
    def lengths(self) -> Ids:
        """How many tokens each sequence has, (B,)."""
        return self.mask.sum(axis=1)

    def tensors(self, device: torch.device | str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
        """Ids and mask for torch, (B, T) each."""
        import torch

        return torch.from_numpy(self.ids).to(device), torch.from_numpy(self.mask).to(device)


class Batch(NamedTuple):
    """Some sequences of each column: which ones, and their ids."""

    rows: Ids  # (B,)
    columns: tuple[Padded, ...]


class Ragged:
    """Sequences one after the other in one array, which is a tenth of what as many arrays take.

    >>> ragged = Ragged([[7, 8, 9], [], [5]])
    >>> padded = ragged.pad([2, 0])
    >>> padded.ids.tolist(), padded.lengths.tolist()
    ([[5, 0, 0], [7, 8, 9]], [1, 3])
    """

    def __init__(self, sequences: Sequence[Sequence[int] | Ids]) -> None:
        self.lengths: Ids = np.fromiter(map(len, sequences), np.int64, len(sequences))
        self.starts: Ids = np.cumsum(self.lengths) - self.lengths
        together = itertools.chain.from_iterable(sequences)
        self.ids: Ids = np.fromiter(together, np.int64, int(self.lengths.sum()))

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[Ids]:
        return iter(np.split(self.ids, self.starts[1:]) if len(self) else [])

    def pad(self, rows: ArrayLike, fill: int = 0) -> Padded:
        """Some of the sequences, padded with ``fill`` to the length of the longest."""
        chosen = np.asarray(rows, np.int64)
        lengths = self.lengths[chosen]
        places = np.arange(lengths.max(initial=0))  # (T,)
        mask = places < lengths[:, None]
        ids = np.full(mask.shape, fill, np.int64)
        ids[mask] = self.ids[(self.starts[chosen, None] + places)[mask]]
        return Padded(ids, mask)

    def pad_joined(self, groups: Sequence[Sequence[int]], fill: int = 0) -> Padded:
        """Rows of several sequences, one after the other, padded.

        >>> Ragged([[7, 8, 9], [4], [5]]).pad_joined([[1, 0], [2]]).ids.tolist()
        [[4, 7, 8, 9], [5, 0, 0, 0]]
        """
        chosen = np.fromiter(itertools.chain.from_iterable(groups), np.int64)
        sizes = np.fromiter(map(len, groups), np.int64, len(groups))
        lengths = self.lengths[chosen]
        ends = np.cumsum(lengths)
        shifts = np.repeat(self.starts[chosen] - (ends - lengths), lengths)
        row_of = np.repeat(np.arange(len(groups)), sizes)
        wide = np.bincount(row_of, lengths, len(groups)).astype(np.int64)
        mask = np.arange(wide.max(initial=0)) < wide[:, None]
        ids = np.full(mask.shape, fill, np.int64)
        ids[mask] = self.ids[np.arange(len(shifts)) + shifts]
        return Padded(ids, mask)


def plan(
    lengths: ArrayLike,
    tokens: int,
    *,
    most_rows: int | None = None,
    generator: np.random.Generator | None = None,
) -> list[Ids]:
    """Rows that go into batches together, the longest sequences first; each row once.

    No batch is wider or longer than ``tokens`` allow, (rows) x (longest length), unless a single
    sequence is; pairs have ``lengths`` (N, 2), and the longer side counts. With a ``generator``
    sequences of almost one length are mixed, and batches come in random order: their number and
    sizes stay the same.

    >>> [rows.tolist() for rows in plan([3, 9, 2, 3, 1], tokens=9)]
    [[1], [0, 3, 2], [4]]
    """
    sizes = np.asarray(lengths, np.int64)
    sizes = sizes[:, None] if sizes.ndim == 1 else sizes  # (N, columns)
    if generator is None:
        order = np.lexsort(-sizes.T[::-1])
    else:
        sizes = _bucket_sizes(sizes)
        order = generator.permutation(len(sizes))
        order = order[np.lexsort(-sizes[order].T[::-1])]
    longest = sizes.max(axis=1, initial=1)[order].tolist()
    limit = len(order) if most_rows is None else most_rows
    batches: list[Ids] = []
    start, widest = 0, 0
    for place, length in enumerate(longest):
        widest = max(widest, length)
        count = place - start
        if count and (count >= limit or (count + 1) * widest > tokens):
            batches.append(order[start:place])
            start, widest = place, length
    if len(order):
        batches.append(order[start:])
    if generator is None:
        return batches
    return [batches[index] for index in generator.permutation(len(batches))]


def _bucket_sizes(lengths: Ids) -> Ids:
    """The longest length of each one's bucket, so that what fits by it always fits.

    >>> _bucket_sizes(np.array([1, 2, 10, 20, 21, 22])).tolist()
    [1, 2, 10, 20, 22, 22]
    """
    edges = [0]
    while edges[-1] < lengths.max(initial=0):
        edges.append(max(edges[-1] + 1, int(edges[-1] * (1 + BUCKET))))
    edges[-1] = lengths.max(initial=0)
    return np.array(edges)[np.searchsorted(edges, lengths)]


class Batches:
    """Batches by number, over one or more columns of sequences that belong together.

    >>> words, tags = [[7, 8], [5], [6, 9]], [[1, 2], [1], [3, 1]]
    >>> batches = Batches(words, tags, tokens=4, seed=1, fill=(0, -100))
    >>> batches.per_epoch
    2
    >>> first, second = batches[8], batches[9]  # of the fifth time through the data
    >>> sorted([*first.rows.tolist(), *second.rows.tolist()])
    [0, 1, 2]
    >>> int(Batches(words, tags, tokens=6, seed=1, fill=(0, -100))[0].columns[1].ids.min())
    -100
    """

    def __init__(
        self,
        *columns: Sequence[Sequence[int] | Ids] | Ragged,
        tokens: int,
        seed: int,
        most_rows: int | None = None,
        fill: int | Sequence[int] = 0,
    ) -> None:
        """``fill`` is the id of padding, one for all columns or one for each."""
        self.columns = [
            column if isinstance(column, Ragged) else Ragged(column) for column in columns
        ]
        fills = [fill] * len(self.columns) if isinstance(fill, int) else list(fill)
        self.fills = [int(one) for one, _ in zip(fills, self.columns, strict=True)]
        self.lengths = np.stack([column.lengths for column in self.columns], axis=1)
        self.tokens, self.seed, self.most_rows = tokens, seed, most_rows
        self._epoch, self._plan = 0, self._make(0)
        self.per_epoch = len(self._plan)

    def __getitem__(self, number: int) -> Batch:
        """A batch, counted over all epochs from 0."""
        rows = self.rows(number)
        columns = zip(self.columns, self.fills, strict=True)
        return Batch(rows, tuple(column.pad(rows, fill) for column, fill in columns))

    def rows(self, number: int) -> Ids:
        """Which sequences a batch has."""
        epoch, index = divmod(number, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._plan = epoch, self._make(epoch)
        return self._plan[index]

    def _make(self, epoch: int) -> list[Ids]:
        generator = np.random.default_rng([self.seed, epoch])
        return plan(self.lengths, self.tokens, most_rows=self.most_rows, generator=generator)


class PackedBatches:
    """Batches by number whose rows hold several sequences each, up to ``width`` tokens, so that
    hardly anything is padding; a column for what is read and one for what each token should say.

    Without ``width`` a row is one sequence, and sequences of like length stand in a batch.

    >>> sentences, ends = [[1, 2], [3], [4]], [[2, 0], [0], [0]]
    >>> batches = PackedBatches(sentences, ends, width=2, batch_size=1, seed=1)
    >>> batches.per_epoch, sorted(idx.tolist() for idx, _ in (batches[0], batches[1]))
    (2, [[[1, 2]], [[3, 4]]])
    """

    def __init__(
        self,
        inputs: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        width: int | None,
        batch_size: int,
        seed: int,
        fill: int = -1,  # a target that does not count
    ) -> None:
        self._inputs, self._targets = Ragged(inputs), Ragged(targets)
        self._width, self._seed, self._fill = width, seed, fill
        self.lengths = self._inputs.lengths
        count = len(inputs) if width is None else -(-int(self.lengths.sum()) // width)
        self.per_epoch = max(1, round(count / batch_size))
        self._epoch = functools.lru_cache(maxsize=2)(self._make)

    def __getitem__(self, number: int) -> tuple[Ids, Ids]:
        """What is read and what should be said, (B, T) each."""
        epoch, place = divmod(number, self.per_epoch)
        rows = self._epoch(epoch)[place]
        return self._inputs.pad_joined(rows).ids, self._targets.pad_joined(rows, self._fill).ids

    def _make(self, epoch: int) -> list[list[list[int]]]:
        """Batches of an epoch, each a list of rows, each a list of sequences."""
        random = np.random.default_rng([self._seed, epoch])
        order = random.permutation(len(self.lengths))
        if self._width is None:
            order = order[np.argsort(self.lengths[order], kind="stable")]
            rows = [[int(i)] for i in order]
        else:
            rows = pack(self.lengths[order].tolist(), self._width)
            rows = [[int(order[i]) for i in row] for row in rows]
            random.shuffle(rows)
        cuts = [round(i * len(rows) / self.per_epoch) for i in range(self.per_epoch + 1)]
        batches = [rows[a:b] for a, b in itertools.pairwise(cuts)]
        random.shuffle(batches)
        return batches


def pack(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Put items into rows of a width, each into the fullest row that still has room for it.

    >>> pack([3, 5, 2, 4], 7)
    [[0, 3], [1, 2]]
    """
    rows: list[list[int]] = []
    with_room: list[list[int]] = [[] for _ in range(width + 1)]  # rows by the room left in them
    for item, length in enumerate(lengths):
        room = next((room for room in range(length, width + 1) if with_room[room]), width)
        if with_room[room]:
            row = with_room[room].pop()
        else:
            row = len(rows)
            rows.append([])
        rows[row].append(item)
        with_room[room - length].append(row)
    return rows


class RandomWindows:
    """Batches by number: windows (B, T) at random places of a text and, one further on, their
    targets."""

    def __init__(self, ids: np.ndarray, *, batch_size: int, block_size: int, seed: int) -> None:
        self._ids, self._seed = ids, seed
        self._batch, self._block = batch_size, block_size

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        random = np.random.default_rng([self._seed, number])
        places = random.integers(0, len(self._ids) - self._block, self._batch)
        return cut_windows(self._ids, places, self._block)


class Lanes:
    """Batches by number: the next block (B, T) of every lane, and its targets, one further on.

    A text is cut into as many lanes as a batch has rows, each read from its beginning to its end.

    >>> lanes = Lanes(np.arange(20), batch_size=2, block_size=4, seed=1)
    >>> [lanes[n][0][0].tolist() for n in range(2)]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """

    def __init__(self, ids: np.ndarray, *, batch_size: int, block_size: int, seed: int) -> None:
        self._ids, self._block = ids, block_size
        self.lane = (len(ids) - 1) // batch_size
        if self.lane < block_size:
            raise NlpkitError(
                f"{len(ids):,} tokens are too few for {batch_size} lanes of {block_size}",
                hint="more text, a smaller `batch_size` or a smaller `block_size`",
            )
        self._begins = np.arange(batch_size) * self.lane
        self.per_epoch = self.lane // block_size

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        start = number % self.per_epoch * self._block
        return cut_windows(self._ids, self._begins + start, self._block)

    def is_fresh(self, number: int) -> bool:
        """Whether a batch begins its lanes: there is no state to go on from."""
        return number % self.per_epoch == 0


def cut_windows(
    ids: np.ndarray, places: ArrayLike, length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Windows (B, T) of a text that begin at ``places``, and the tokens that follow each of theirs.

    >>> [part.tolist() for part in cut_windows(np.arange(9), [0, 4], 3)]
    [[[0, 1, 2], [4, 5, 6]], [[1, 2, 3], [5, 6, 7]]]
    """
    import torch

    rows = ids[np.asarray(places)[:, None] + np.arange(length + 1)].astype(np.int64)
    batch = torch.from_numpy(rows)  # (B, T + 1)
    return batch[:, :-1], batch[:, 1:]
