"""``nlpkit vectorize``."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import is_array, open_output
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.text.records import Reading, extend, read_tokens, token_keys
from nlpkit.text.vectorize_settings import VectorizeSettings
from nlpkit.text.vocab import Vocab

app = new_app()
MOST_CELLS = 1 << 31  # a dense array beyond this is a mistake more often than a wish
MOST_COLUMNS = 1 << 20  # ... and so is a line of more numbers


@app.command()
def vectorize(
    *,
    reading: Reading,
    settings: VectorizeSettings,
    inputs: options.Inputs = None,
    tokenizing: options.Tokenizing,
    format: options.TextFormat = None,
    output: options.ArrayOutput = "-",
) -> None:
    """Turn lines of tokens into one-hot, hashed or counted rows.

    hash gives each token a bucket from 1 to --buckets, the same on every machine, 0 being left for
    padding. Rows of the other modes are as wide as the vocabulary or the number of buckets.
    One-hot arrays have the shape (lines, tokens, columns), padded at the end with --maxlen; sparse
    ones are a CSR matrix with a row for each token, as scipy.sparse.load_npz reads it. jsonl has
    the key ids (hash), vectors (one-hot: one for each token) or vector; --sparse makes them objects
    of columns and their numbers.

    Examples:
      $ echo "cold food" | nlpkit vectorize --mode hash --buckets 50
      $ nlpkit vocab build sample_corpora/world.txt -o world.vocab
      $ nlpkit vectorize --mode tfidf -V world.vocab --sparse sample_corpora/world.txt | head -3
      $ nlpkit vectorize --mode one-hot -V world.vocab --sparse sample_corpora/world.txt -o w.npz
      $ echo "the king" | nlpkit vectorize --mode one-hot -V world.vocab --maxlen 4 -o king.npy
      $ printf 'a b\\nb c b\\n' | nlpkit vectorize --mode binary --buckets 8
    """
    if output.endswith(".npy") and settings.sparse:
        raise UsageError("sparse rows go to an .npz file, a .npy file holds one dense array")
    array = is_array(output, format)
    cut = tokenizing.settings
    blocks = options.read_records(inputs, reading, token_keys(cut))
    waiting: deque[dict[str, Any]] = deque()  # records whose numbers are not known yet

    def lines() -> Iterator[list[str]]:
        for rows in read_tokens(blocks, cut, reading.errors):
            for row, tokens in rows:
                if format == "jsonl":
                    waiting.append(row.record)
                yield tokens

    ids, columns = _ids(lines(), settings)
    if array:
        _write_array(output, ids, columns, settings)
        return
    if settings.mode != "hash" and not settings.sparse and columns > MOST_COLUMNS:
        raise NlpkitError(f"lines of {columns:,} numbers each", hint="`sparse`, or fewer columns")
    with open_output(output) as out:
        for found in _numbers(ids, columns, settings):
            if format == "jsonl":
                out.write_json(extend(waiting.popleft(), **_keys(found, columns, settings)))
            else:
                out.write(_lines(found, columns, settings))


def _ids(
    lines: Iterable[list[str]], settings: VectorizeSettings
) -> tuple[Iterable[list[int]], int]:
    """The ids of each line, as they are read, and how many columns there are."""
    from nlpkit.text.arrays import hashing

    if settings.vocab is not None:
        vocab = Vocab.load(settings.vocab)
        return (vocab.encode(tokens) for tokens in lines), len(vocab)
    assert settings.buckets is not None
    buckets = settings.buckets
    return (hashing(tokens, buckets) for tokens in lines), buckets


Cells = dict[int, float]  # the columns of a row that are not zero


def _numbers(ids: Iterable[list[int]], columns: int, settings: VectorizeSettings) -> Iterator[Any]:
    """What each line becomes: ids, the cells of each token's row, or those of its own."""
    from nlpkit.text.arrays import bag_of_words

    if settings.mode == "hash":
        yield from ids
    elif settings.mode == "one-hot":
        for row in _from_zero(ids, settings):
            yield [{index: 1} for index in row[: settings.maxlen]]
    else:
        yield from _sparse_rows(bag_of_words(_from_zero(ids, settings), columns, settings.mode))


def _from_zero(ids: Iterable[list[int]], settings: VectorizeSettings) -> Iterator[list[int]]:
    return ([index - settings.columns_from for index in row] for row in ids)


def _keys(found: Any, columns: int, settings: VectorizeSettings) -> dict[str, Any]:
    """The numbers of a line as JSON has them."""

    def shown(cells: Cells) -> Any:
        exact = {index: float(f"{value:g}") for index, value in cells.items()}
        return exact if settings.sparse else [exact.get(index, 0.0) for index in range(columns)]

    if settings.mode == "hash":
        return {"ids": found}
    if settings.mode == "one-hot":
        return {"vectors": [shown(cells) for cells in found]}
    return {"vector": shown(found)}


def _lines(found: Any, columns: int, settings: VectorizeSettings) -> str:
    """The numbers of a line as text; rows of tokens end with an empty line."""

    def line(cells: Cells) -> str:
        if settings.sparse:
            return " ".join(f"{index}:{value:g}" for index, value in cells.items()) + "\n"
        return " ".join(f"{cells.get(index, 0):g}" for index in range(columns)) + "\n"

    if settings.mode == "hash":
        return " ".join(map(str, found)) + "\n"
    if settings.mode == "one-hot":
        return "".join(map(line, found)) + "\n"
    return line(found)


def _write_array(
    output: str, ids: Iterable[list[int]], columns: int, settings: VectorizeSettings
) -> None:
    from nlpkit.text.arrays import bag_of_words

    if settings.mode == "hash":
        raise NlpkitError(
            "lines of different length make no array",
            hint="nlpkit vectorize --mode hash ... | nlpkit pad --maxlen auto -o FILE.npy",
        )
    if settings.mode == "one-hot":
        _write_one_hot(output, list(_from_zero(ids, settings)), columns, settings)
        return
    bags = bag_of_words(_from_zero(ids, settings), columns, settings.mode)
    if settings.sparse:
        textio.write_array(output, **bags.arrays())
    else:
        _check_size(bags.shape[0] * bags.shape[1])
        textio.write_array(output, rows=bags.to_dense())


def _write_one_hot(
    output: str, kept: list[list[int]], columns: int, settings: VectorizeSettings
) -> None:
    import numpy as np

    from nlpkit.text.arrays import SparseRows, one_hot, pad_sequences

    maxlen = settings.maxlen
    if settings.sparse:
        flat = np.array([index for row in kept for index in row[:maxlen]], dtype=np.int32)
        matrix = SparseRows(
            np.ones(len(flat), dtype=np.uint8), flat, np.arange(len(flat) + 1), (len(flat), columns)
        )
        lengths = [len(row[:maxlen]) for row in kept]
        textio.write_array(output, **matrix.arrays(), lengths=np.array(lengths, dtype=np.int64))
        return
    widths = {len(row) for row in kept}
    if maxlen is None and len(widths) > 1:
        raise NlpkitError(
            f"lines of {min(widths)} to {max(widths)} tokens make no array",
            hint="--maxlen N to pad and cut, or --sparse with an .npz file",
        )
    padded = pad_sequences(kept, maxlen, padding="post", truncating="post")  # (N, T)
    _check_size(padded.size * columns)
    textio.write_array(output, one_hot=one_hot(padded, columns))


def _sparse_rows(bags: Any) -> Iterator[Cells]:
    indices, data, edges = bags.indices.tolist(), bags.data.tolist(), bags.indptr.tolist()
    for start, end in itertools.pairwise(edges):
        yield dict(zip(indices[start:end], data[start:end], strict=True))


def _check_size(cells: int) -> None:
    if cells > MOST_CELLS:
        raise NlpkitError(f"a dense array of {cells:,} cells is too large", hint="--sparse")
