"""``nlpkit bpe``: byte-level subwords."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, open_output
from nlpkit.cli.rows import read_rows
from nlpkit.errors import NlpkitError
from nlpkit.text.records import ID_KEYS, Reading, extend, lines_of, rows_of, text_of

if TYPE_CHECKING:
    from nlpkit.text.subwords import Subwords

app = new_app("Byte-level subwords: train, encode, decode.")

SubwordModel = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="PATH",
        help="A tokenizer.json, or a folder with one or with GPT-2's vocab.json + merges.txt.",
    ),
]


@app.command()
def train(
    reading: Reading,
    inputs: options.Inputs = None,
    output: str = flag(
        "tokenizer.json", "The tokenizer.json to write.", "--output", "-o", metavar="FILE"
    ),
    vocab_size: int = flag(
        8000, "Size in all: bytes, merges and special tokens.", min=1, max=1_000_000
    ),
    min_frequency: int = flag(2, "Merge only pairs seen this often.", min=1, max=limits.MANY),
    special: options.Special = None,
) -> None:
    """Learn byte-level BPE merges from text.

    <|endoftext|> is always the first special token, --special adds to it. The file is the one that
    the Hugging Face tokenizers library reads and writes. What has more than 256 letters, digits or
    marks in a row is no word: it is cut into parts of that length, which is said on stderr.

    Examples:
      $ nlpkit bpe train sample_corpora/tales.txt -o tales.json --vocab-size 1000
      $ cat sample_corpora/tales.txt | nlpkit bpe train --special "<|user|>" -o chat.json
    """
    from nlpkit.text.subwords import END_OF_TEXT, LONGEST_PIECE, Subwords, cut_long_pieces

    notes = Notes()
    textio.check_writable(output)
    blocks = options.read_plain(inputs, reading)
    size = cuts = 0

    def texts() -> Iterator[str]:
        nonlocal size, cuts
        for block in blocks:
            size += len(block.data)
            # whole blocks keep the line ends, which are worth merges too
            parts = cut_long_pieces(block.text(reading.errors))
            cuts += len(parts) - 1
            yield from parts

    model = Subwords.train(
        texts(),
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        specials=[END_OF_TEXT, *(special or [])],
    )
    if not size:
        raise NlpkitError("no text to learn from", hint="a file with text in it")
    if cuts:
        notes.warn(f"cut {cuts:,} times within what is longer than {LONGEST_PIECE} characters")
    model.save(output)
    if len(model) < vocab_size:
        notes.warn(
            f"the text has pairs for {len(model)} subwords only, {vocab_size} were asked for"
        )
    notes.say(f"{output}: {len(model)} subwords from {size / 1e6:.1f} MB")


@app.command()
def encode(
    reading: Reading,
    inputs: options.Inputs = None,
    model: SubwordModel = "tokenizer.json",
    format: options.TextFormat = None,
    output: options.Output = "-",
    jobs: options.Jobs = 1,
) -> None:
    """Turn text into subword ids, a line of ids for a line of text.

    The ids are those of the Hugging Face tokenizers library. jsonl has the keys ids and tokens.

    Examples:
      $ nlpkit bpe train sample_corpora/tales.txt -o tales.json --vocab-size 1000
      $ echo "Once upon a time" | nlpkit bpe encode -m tales.json
      $ echo "Once upon a time" | nlpkit bpe encode -m tales.json --json
    """
    from nlpkit.parallel import ordered_map
    from nlpkit.text.subwords import Subwords

    subwords = Subwords.load(model)  # once: it may come through a pipe
    chosen = format or "text"
    blocks = options.read_records(inputs, reading)
    make = partial(_make_encoder, subwords, chosen, reading.errors)
    with open_output(output) as out:
        for data in ordered_map(make, blocks, options.resolve_jobs(jobs)):
            out.write_bytes(data)
            out.flush()


def _make_encoder(model: Subwords, format: str, errors: str) -> Callable[[textio.TextBlock], bytes]:
    def encode_block(block: textio.TextBlock) -> bytes:
        if format == "text":
            rows = model.encode_many(lines_of(block, errors))
            return "".join(" ".join(map(str, ids)) + "\n" for ids in rows).encode()
        records = list(rows_of(block, errors))
        rows = model.encode_many([text_of(row, block.source) for row in records])
        dump = jsonlib.JSONEncoder(ensure_ascii=False).encode
        lines = [
            dump(extend(row.record, ids=ids, tokens=model.symbols(ids)))
            for row, ids in zip(records, rows, strict=True)
        ]
        return "".join(line + "\n" for line in lines).encode("utf-8", "backslashreplace")

    return encode_block


@app.command()
def decode(
    reading: Reading,
    inputs: options.Inputs = None,
    model: SubwordModel = "tokenizer.json",
    format: options.TextFormat = None,
    output: options.Output = "-",
) -> None:
    """Turn subword ids back into text.

    Ids stand between spaces or in jsonl, as 'nlpkit bpe encode' writes them.

    Examples:
      $ nlpkit bpe train sample_corpora/tales.txt -o tales.json --vocab-size 1000
      $ echo "Once upon a time" | nlpkit bpe encode -m tales.json | nlpkit bpe decode -m tales.json
    """
    from nlpkit.text.subwords import Subwords

    subwords = Subwords.load(model)
    chosen = format or "text"
    blocks = options.read_records(inputs, reading, ID_KEYS)
    with open_output(output) as out:
        for rows in read_rows(blocks, reading.errors):
            for row, ids in rows:
                text = subwords.decode(ids)
                if chosen == "jsonl":
                    out.write_json({**row.record, "text": text})
                else:
                    out.write(text + "\n")
            out.flush()
