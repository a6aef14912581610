"""``nlpkit pad``."""

from __future__ import annotations

from typing import Literal

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Writer, is_array, open_output
from nlpkit.cli.rows import read_rows
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.text.records import ID_KEYS, Reading, Row, extend

app = new_app()


@app.command()
def pad(
    reading: Reading,
    inputs: options.Inputs = None,
    maxlen: str = flag("auto", "Length of every row; auto is the longest one's.", metavar="N|auto"),
    padding: Literal["pre", "post"] = flag("pre", "Fill up at the front or at the end."),
    truncating: Literal["pre", "post"] = flag("pre", "Cut at the front or at the end."),
    value: int = flag(0, "What to fill up with.", min=-(2**63), max=2**63 - 1),
    format: options.TextFormat = None,
    output: options.ArrayOutput = "-",
) -> None:
    """Pad or cut rows of ids to one length.

    Defaults are those of Keras' pad_sequences: both happen at the front. jsonl has the keys ids and
    length (before padding); an .npz file has ids, lengths and mask. With a number for --maxlen,
    text streams; auto keeps all rows in memory.

    Examples:
      $ printf '1\\n2 3\\n4 5 6\\n' | nlpkit pad --maxlen 2
      $ printf '1\\n2 3\\n4 5 6\\n' | nlpkit pad --padding post --json
      $ printf '1\\n2 3\\n4 5 6\\n' | nlpkit pad --padding post -o ids.npz
    """
    from nlpkit.text.arrays import pad_sequences, sequence_mask

    array = is_array(output, format)
    length = _length(maxlen)
    chosen = format or "text"
    blocks = options.read_records(inputs, reading, ID_KEYS)
    if array:
        rows = [ids for block in read_rows(blocks, reading.errors) for _, ids in block]
        matrix = pad_sequences(rows, length, padding=padding, truncating=truncating, value=value)
        lengths = [min(len(row), matrix.shape[1]) for row in rows]
        mask = sequence_mask(lengths, matrix.shape[1], padding=padding)
        textio.write_array(output, ids=matrix, lengths=lengths, mask=mask)
        return
    with open_output(output) as out:
        groups = read_rows(blocks, reading.errors)
        if length is None:
            groups = iter([[row for group in groups for row in group]])
        for group in groups:
            matrix = pad_sequences(
                [ids for _, ids in group],
                length,
                padding=padding,
                truncating=truncating,
                value=value,
                dtype="int64",
            )
            for padded, (row, ids) in zip(matrix.tolist(), group, strict=True):
                _write(out, row, padded, len(ids), chosen)
            out.flush()


def _length(maxlen: str) -> int | None:
    if maxlen == "auto":
        return None
    if not (maxlen.isascii() and maxlen.isdigit()) or int(maxlen) < 1:
        raise UsageError(f"--maxlen takes a number from 1 on or auto, not {maxlen!r}")
    if int(maxlen) > 1 << 24:
        raise NlpkitError(f"rows of {maxlen} ids would not fit in memory", hint="--maxlen auto")
    return int(maxlen)


def _write(out: Writer, row: Row, ids: list[int], length: int, format: str) -> None:
    if format == "jsonl":
        out.write_json(extend(row.record, ids=ids, length=min(length, len(ids))))
    else:
        out.write(" ".join(map(str, ids)) + "\n")
