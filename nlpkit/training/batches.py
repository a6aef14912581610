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
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
