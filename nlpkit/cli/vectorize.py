"""``nlpkit vectorize``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import check_output, open_output
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.records import Reading, read_tokens, token_keys
from nlpkit.text.vectorize_settings import VectorizeSettings
from nlpkit.text.vocab import Vocab

app = new_app()
MOST_CELLS = 1 << 31  # a dense array beyond this is a mistake more often than a wish
MOST_COLUMNS = 1 << 20  # ... and so is a line of more numbers


@app.command()
def vectorize(
    reading: Reading,
    settings: VectorizeSettings,
    inputs: options.Inputs = None,
    tokenizer: options.TokenizerName = "whitespace",
    pattern: options.Pattern = None,
    lower: options.Lower = False,
    output: options.ArrayOutput = "-",
) -> None:
    """Turn lines of tokens into one-hot, hashed or counted rows.

    hash gives each token a bucket from 1 to --buckets, the same on every machine, 0 being left for
    padding. Rows of the other modes are as wide as the vocabulary or the number of buckets.
    One-hot arrays have the shape (lines, tokens, columns), padded at the end with --maxlen; sparse
    ones are a CSR matrix with a row for each token, as scipy.sparse.load_npz reads it.

    Examples:
      $ echo "cold food" | nlpkit vectorize --mode hash --buckets 50
      $ nlpkit vocab build sample_corpora/world.txt -o world.vocab
      $ nlpkit vectorize --mode tfidf -V world.vocab --sparse sample_corpora/world.txt | head -3
      $ nlpkit vectorize --mode one-hot -V world.vocab --sparse sample_corpora/world.txt -o w.npz
      $ echo "the king" | nlpkit vectorize --mode one-hot -V world.vocab --maxlen 4 -o king.npy
      $ printf 'a b\\nb c b\\n' | nlpkit vectorize --mode binary --buckets 8
    """
    from nlpkit.text.arrays import bag_of_words

    if output.endswith(".npy") and settings.sparse:
        raise UsageError("sparse rows go to an .npz file, a .npy file holds one dense array")
    check_output(output)
    cut = TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower)
    blocks = options.read_records(inputs, reading, token_keys(cut))
    rows = (row for rows in read_tokens(blocks, cut, reading.errors) for row in rows)
    ids, columns = _ids((tokens for _, tokens in rows), settings)
    if settings.mode == "hash":
        _write_ids(output, ids)
        return
    as_text = not output.endswith((".npy", ".npz"))
    if as_text and not settings.sparse and columns > MOST_COLUMNS:
        raise NlpkitError(f"lines of {columns:,} numbers each", hint="`sparse`, or fewer columns")
    from_zero = ([index - settings.columns_from for index in row] for row in ids)
    if settings.mode == "one-hot":
        _write_one_hot(output, from_zero, columns, settings.maxlen, settings.sparse)
    else:
        _write_bags(output, bag_of_words(from_zero, columns, settings.mode), settings.sparse)


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


def _write_ids(output: str, rows: Iterable[list[int]]) -> None:
    if output.endswith((".npy", ".npz")):
        raise NlpkitError(
            "lines of different length make no array",
            hint="nlpkit vectorize --mode hash ... | nlpkit pad --maxlen auto -o FILE.npy",
        )
    with open_output(output) as out:
        for row in rows:
            out.write(" ".join(map(str, row)) + "\n")


def _write_one_hot(
    output: str, rows: Iterable[list[int]], columns: int, maxlen: int | None, sparse: bool
) -> None:
    import numpy as np

    from nlpkit.text.arrays import SparseRows, one_hot, pad_sequences

    if not output.endswith((".npy", ".npz")):
        with open_output(output) as out:
            for row in rows:
                for index in row[:maxlen]:
                    cells = (str(int(column == index)) for column in range(columns))
                    out.write(f"{index}:1\n" if sparse else " ".join(cells) + "\n")
                out.write("\n")
        return
    kept = list(rows)
    if sparse:
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
    ids = pad_sequences(kept, maxlen, padding="post", truncating="post")  # (N, T)
    _check_size(ids.size * columns)
    textio.write_array(output, one_hot=one_hot(ids, columns))


def _write_bags(output: str, bags: Any, sparse: bool) -> None:
    if output.endswith((".npy", ".npz")):
        if sparse:
            textio.write_array(output, **bags.arrays())
        else:
            _check_size(bags.shape[0] * bags.shape[1])
            textio.write_array(output, rows=bags.to_dense())
        return
    with open_output(output) as out:
        for pairs in _sparse_rows(bags):
            if sparse:
                cells = [f"{index}:{value:g}" for index, value in pairs.items()]
            else:
                cells = [f"{pairs.get(index, 0):g}" for index in range(bags.shape[1])]
            out.write(" ".join(cells) + "\n")


def _sparse_rows(bags: Any) -> Iterator[dict[int, float]]:
    indices, data, edges = bags.indices.tolist(), bags.data.tolist(), bags.indptr.tolist()
    for start, end in itertools.pairwise(edges):
        yield dict(zip(indices[start:end], data[start:end], strict=True))


def _check_size(cells: int) -> None:
    if cells > MOST_CELLS:
        raise NlpkitError(f"a dense array of {cells:,} cells is too large", hint="--sparse")
