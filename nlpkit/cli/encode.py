"""``nlpkit encode``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, is_array, open_output
from nlpkit.errors import NlpkitError
from nlpkit.text.records import Reading, Row, extend, read_tokens, token_keys
from nlpkit.text.vocab import UNK, Vocab

app = new_app()
BOS, EOS = "<bos>", "<eos>"


@app.command()
def encode(
    *,
    reading: Reading,
    vocab: options.VocabFile,
    inputs: options.Inputs = None,
    tokenizing: options.Tokenizing,
    unk: Literal["keep", "skip", "error"] = flag(
        "keep", "Unknown tokens: keep them as <unk>, skip them, or stop with an error."
    ),
    bos: bool = flag(False, f"Put {BOS} before each line."),
    eos: bool = flag(False, f"Put {EOS} after each line."),
    format: options.TextFormat = None,
    output: options.ArrayOutput = "-",
) -> None:
    """Turn tokens into the ids of a vocabulary.

    A line of ids for a line of tokens; jsonl has the key ids. Tokens are what stands between
    spaces; name a --tokenizer for raw text. How many tokens were unknown is said on stderr.

    Examples:
      $ nlpkit vocab build sample_corpora/world.txt --special "<bos>" -o world.vocab
      $ echo "the king sat" | nlpkit encode --vocab world.vocab
      $ echo "The king sat" | nlpkit encode --vocab world.vocab --bos -t word --lower --json
    """
    chosen = format or "text"
    array = is_array(output, format)
    loaded = Vocab.load(vocab)
    before = [_special_id(loaded, BOS)] if bos else []
    after = [_special_id(loaded, EOS)] if eos else []
    if unk == "keep" and UNK not in loaded:
        raise NlpkitError(f"{vocab} has no {UNK}", hint="--unk skip or --unk error")
    counts = {"tokens": 0, "unknown": 0}
    settings = tokenizing.settings
    blocks = options.read_records(inputs, reading, token_keys(settings))

    def rows() -> Iterator[list[tuple[Row, list[int]]]]:
        for lines in read_tokens(blocks, settings, reading.errors):
            yield [
                (row, [*before, *_encode(loaded, tokens, unk, counts), *after])
                for row, tokens in lines
            ]

    if array:
        _write_array(output, [ids for block in rows() for _, ids in block])
    else:
        with open_output(output) as out:
            for block in rows():
                for row, ids in block:
                    if chosen == "jsonl":
                        out.write_json(extend(row.record, ids=ids))
                    else:
                        out.write(" ".join(map(str, ids)) + "\n")
                out.flush()
    if counts["unknown"]:
        share = 100 * counts["unknown"] / counts["tokens"]
        Notes().say(f"{share:.2f}% unknown: {counts['unknown']:,} of {counts['tokens']:,} tokens")


def _special_id(vocab: Vocab, token: str) -> int:
    if token not in vocab:
        raise NlpkitError(
            f"the vocabulary has no {token}", hint=f'nlpkit vocab build --special "{token}"'
        )
    return vocab.ids[token]


def _encode(vocab: Vocab, tokens: list[str], unk: str, counts: dict[str, int]) -> list[int]:
    known = [token for token in tokens if token in vocab.ids]
    missing = len(tokens) - len(known)
    counts["tokens"] += len(tokens)
    counts["unknown"] += missing
    if missing and unk == "error":
        first = next(token for token in tokens if token not in vocab.ids)
        raise NlpkitError(f"unknown token: {first!r}", hint="--unk keep or --unk skip")
    return vocab.encode(known if unk == "skip" else tokens)


def _write_array(path: str, rows: list[list[int]]) -> None:
    import numpy

    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise NlpkitError(
            f"rows of {min(lengths)} to {max(lengths)} ids make no matrix",
            hint="nlpkit encode ... | nlpkit pad --maxlen auto -o FILE.npy",
        )
    textio.write_array(path, ids=numpy.array(rows, dtype=numpy.int32))
