"""One long text as data: tokenised once into a file of ids that is mapped into memory.

A batch is a number of windows at random places; which ones depends on the seed and the number of
the batch only.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nlpkit.errors import NlpkitError
from nlpkit.tasks.lm.words import WordCounter
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Bytes, Codec
from nlpkit.text.subwords import Subwords
from nlpkit.text.word_codec import KINDS as WORD_KINDS
from nlpkit.text.word_codec import Words
from nlpkit.textio import TextBlock
from nlpkit.training.batches import Batches, cut_windows

_CHUNK = 1 << 22  # ids worked on at a time


class TokenFile(NamedTuple):
    """Ids in a file that has no name any more: it is gone when nobody maps it."""

    codec: Codec
    ids: np.ndarray


def tokenize_stream(
    blocks: Iterable[TextBlock],
    tokenizer: str,
    folder: str,
    errors: str = "strict",
    codec: Codec | None = None,
    *,
    vocab_size: int | None = None,
    min_count: int = 1,
) -> TokenFile:
    """Write the ids of all blocks to a temporary file in ``folder`` and map it.

    ``tokenizer`` is ``char``, ``byte``, ``word``, ``whitespace`` or the path of a
    ``tokenizer.json``; a ``codec`` that is there already is used instead. Between files of subwords
    stands an end-of-text mark. ``vocab_size`` and ``min_count`` limit the words.

    >>> tokenize_stream([TextBlock(b"to be", "-", 1)], "char", ".").ids.tolist()
    [4, 3, 0, 1, 2]
    """
    if isinstance(codec, Bytes) or (codec is None and tokenizer == "byte"):
        return TokenFile(Bytes(), _write(_byte_ids(blocks), np.dtype(np.uint8), folder))
    if isinstance(codec, Characters):
        known = (np.array(codec.encode(block.text(errors)), dtype=np.uint32) for block in blocks)
        return TokenFile(codec, _write(known, np.dtype(np.uint32), folder))
    if tokenizer == "char" and codec is None:
        points = _write(_code_points(blocks, errors), np.dtype("<u4"), folder)
        return _number_characters(points)
    if isinstance(codec, Words) or (codec is None and tokenizer in WORD_KINDS):
        counter = WordCounter(codec.kind if isinstance(codec, Words) else tokenizer)
        ids = _write((counter.encode(block, errors) for block in blocks), np.dtype("<i4"), folder)
        given = codec if isinstance(codec, Words) else None
        return TokenFile(counter.finish(ids, vocab_size, min_count, given), ids)
    codec = codec if isinstance(codec, Subwords) else Subwords.load(tokenizer)
    dtype = np.dtype(np.uint16 if len(codec) <= 1 << 16 else np.uint32)
    return TokenFile(codec, _write(_subword_ids(blocks, codec, dtype, errors), dtype, folder))


def _byte_ids(blocks: Iterable[TextBlock]) -> Iterator[np.ndarray]:
    for block in blocks:
        yield np.frombuffer(block.data, dtype=np.uint8)


def _code_points(blocks: Iterable[TextBlock], errors: str) -> Iterator[np.ndarray]:
    for block in blocks:
        yield np.frombuffer(block.text(errors).encode("utf-32-le"), dtype="<u4")


def _subword_ids(
    blocks: Iterable[TextBlock], codec: Subwords, dtype: np.dtype, errors: str
) -> Iterator[np.ndarray]:
    source, mark = None, codec.first_id
    for block in blocks:
        if source not in (None, block.source) and mark is not None:
            yield np.array([mark], dtype=dtype)
        source = block.source
        yield np.array(codec.encode(block.text(errors)), dtype=dtype)


def _write(arrays: Iterable[np.ndarray], dtype: np.dtype, folder: str) -> np.ndarray:
    try:
        # a file without a name: nothing is left behind however the program ends
        with tempfile.TemporaryFile(dir=folder) as out:
            for array in arrays:
                out.write(array.tobytes())
            out.flush()
            if out.tell() == 0:
                raise NlpkitError("no text to train on", hint="a file that is not empty")
            return np.memmap(out, dtype=dtype, mode="r+")
    except OSError as error:
        raise NlpkitError(
            f"cannot write the ids of the text in {os.path.abspath(folder)}: {error.strerror}",
            hint="a place with room for 1 to 4 bytes a token",
        ) from None


def _number_characters(points: np.ndarray) -> TokenFile:
    """Code points become ids in place, chunk by chunk."""
    found: np.ndarray = np.zeros(0, dtype=points.dtype)
    chunks = [slice(start, start + _CHUNK) for start in range(0, len(points), _CHUNK)]
    for chunk in chunks:
        found = np.union1d(found, points[chunk])
    for chunk in chunks:
        points[chunk] = np.searchsorted(found, points[chunk])
    return TokenFile(Characters(map(chr, found.tolist())), points)


def split_stream(
    ids: np.ndarray, window: int, fraction: float, setting: str = "block_size"
) -> tuple[np.ndarray, np.ndarray]:
    """The first part to train on, the last to validate; both hold more tokens than a window.

    A fraction of 0 leaves nothing to validate on. ``setting`` is what the window's size is called.

    >>> [part.tolist() for part in split_stream(np.arange(6), 1, 0.4)]
    [[0, 1, 2, 3], [4, 5]]
    """
    cut = len(ids) - round(fraction * len(ids))
    train, validation = ids[:cut], ids[cut:]
    if min(len(train), len(validation) if fraction else len(ids)) <= window:
        raise NlpkitError(
            f"{len(ids):,} {'token is' if len(ids) == 1 else 'tokens are'} too few for "
            f"`{setting}` {window} and a validation part of {fraction:g}",
            hint=f"more text or a smaller `{setting}`",
        )
    return train, validation


class TargetBatches:
    """Batches of sequences of like length with their targets, padded; -1 is no target."""

    def __init__(
        self,
        inputs: Sequence[Any],
        targets: Sequence[Any],
        *,
        batch_size: int,
        block_size: int,
        seed: int,
    ) -> None:
        self._batches = Batches(
            inputs,
            targets,
            tokens=batch_size * block_size,
            most_rows=4 * batch_size,
            seed=seed,
            fill=(0, -1),
        )
        self.per_epoch = self._batches.per_epoch

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        idx, targets = self._batches[number].columns
        return torch.from_numpy(idx.ids), torch.from_numpy(targets.ids)


class LineBatches(TargetBatches):
    """Batches of independent texts: each from a mark to the next, padded; long ones in pieces.

    >>> lines = LineBatches(np.array([1, 2, 0, 3, 0]), 0, batch_size=2, block_size=4, seed=1)
    >>> idx, targets = lines[0]
    >>> sorted(idx.tolist()), sorted(targets.tolist())
    ([[0, 1, 2], [0, 3, 0]], [[1, 2, 0], [3, 0, -1]])
    """

    def __init__(
        self, ids: np.ndarray, mark: int, *, batch_size: int, block_size: int, seed: int
    ) -> None:
        ends = np.flatnonzero(ids == mark) + 1
        edges = [0, *ends.tolist(), *([len(ids)] if not len(ends) or ends[-1] < len(ids) else [])]
        inputs, targets = [], []
        for start, stop in itertools.pairwise(edges):
            line = np.concatenate([[mark], ids[start:stop]]).astype(np.int64)
            for at in range(0, len(line) - 1, block_size):
                piece = line[at : at + block_size + 1]
                inputs.append(piece[:-1])
                targets.append(piece[1:])
        sizes = {"batch_size": batch_size, "block_size": block_size}
        super().__init__(inputs, targets, seed=seed, **sizes)


def windows(
    ids: np.ndarray, block_size: int, batch_size: int, at_most: int | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """The text cut into windows that do not overlap, or ``at_most`` so many spread over it.

    The last one may be shorter; it is a batch of its own.

    >>> [idx.tolist() for idx, _ in windows(np.arange(6), 2, 2)]
    [[[0, 1], [2, 3]], [[4]]]
    """
    places = np.arange(0, len(ids) - 1, block_size)
    if at_most is not None and len(places) > at_most:
        places = places[np.linspace(0, len(places) - 2, at_most).astype(int)]
    whole = places[places + block_size < len(ids)]
    for start in range(0, len(whole), batch_size):
        yield cut_windows(ids, whole[start : start + batch_size], block_size)
    if len(whole) < len(places):
        yield cut_windows(ids, places[-1:], len(ids) - 1 - int(places[-1]))
