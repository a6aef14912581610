"""``nlpkit lm novelty``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.output import Notes, open_output, rows_format
from nlpkit.cli.reports import Section, percent, write_report
from nlpkit.errors import NlpkitError
from nlpkit.text.vocab import on_one_line

_SIZES = (4, 8, 12, 16, 24, 32, 48, 64)
_LEAST = 64  # bytes, below which there is nothing to tell


def novelty(
    model: options.Model,
    train: Annotated[
        list[str],
        typer.Option("--train", metavar="FILE", help="The training text; may be repeated."),
    ],
    heldout: Annotated[
        list[str] | None,
        typer.Option("--heldout", metavar="FILE", help="Text to compare with, as a yardstick."),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option("--sample", metavar="FILE", help="Judge this text instead of a new sample."),
    ] = None,
    max_tokens: Annotated[
        int,
        typer.Option("--max-tokens", "-n", min=1, max=limits.MANY, help="Tokens to write."),
    ] = 2000,
    passages: Annotated[
        int, typer.Option("--passages", min=0, max=1000, help="Longest shared passages to show.")
    ] = 5,
    temperature: options.Temperature = 0.8,
    seed: options.Seed = 1,
    threads: options.Threads = 0,
    format: options.RowsFormat = None,
) -> None:
    """Say how much of what a model writes is copied from its training text.

    The model writes --max-tokens; for n from 4 to 64 bytes, the share of its n-grams that the
    training text does not have is shown, beside that of --heldout text, which nobody copied. Then
    the longest passages that it shares with the training text. Keys of --json: new (share by n),
    heldout (the same), passages (text, length in bytes, at, source: where it stands).

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm novelty 3gram.model --train sample_corpora/tales.txt -n 300
    """
    from nlpkit.tasks.lm.novelty import novelty as measure

    options.use_threads(threads)
    known = _bytes(train)
    if len(known) < _LEAST:
        raise NlpkitError(f"{len(known)} bytes of training text are too few", hint="the whole text")
    text = _bytes([sample]) if sample is not None else _write(model, max_tokens, temperature, seed)
    Notes().say(f"{len(text):,} bytes against {len(known):,} of the training text")
    sizes = [size for size in _SIZES if size <= len(text)]
    shares, found = measure(known, text, sizes, passages)
    yardstick = None
    if heldout is not None:
        other = _bytes(heldout)[: max(len(text), _LEAST)]
        yardstick, _ = measure(known, other, sizes, 0)
    with open_output("-") as out:
        sections, record = _report(shares, yardstick, [vars(one) for one in found])
        write_report(out, sections, record, rows_format(format))


def _bytes(paths: list[str]) -> bytes:
    return b"".join(block.data for block in textio.read_blocks(options.resolve_inputs(paths)))


def _write(path: str, tokens: int, temperature: float, seed: int) -> bytes:
    from nlpkit.generate.settings import SamplingSettings
    from nlpkit.tasks.lm.model import TextModel

    model = TextModel.load(path)
    model.speed_up(tokens)
    sampling = SamplingSettings(temperature=temperature)
    texts: list[str] = []
    done = 0
    while done < tokens:  # a model of lines ends each of them
        before = done
        row = None
        for step in model.continue_prompts([""], tokens - done, sampling, seed + len(texts)):
            row = step[0][0]
        done += len(row.ids) if row is not None else 0
        texts.append(row.text if row is not None else "")
        if done == before:
            break
    return "\n".join(texts).encode("utf-8", "replace")


def _report(
    shares: dict[int, float], yardstick: dict[int, float] | None, passages: list[dict[str, Any]]
) -> tuple[list[Section], dict[str, Any]]:
    record: dict[str, Any] = {"new": {str(n): round(v, 4) for n, v in shares.items()}}
    columns = ["n", "new"]
    rows = [[size, percent(share, 1)] for size, share in shares.items()]
    if yardstick is not None:
        record["heldout"] = {str(n): round(v, 4) for n, v in yardstick.items()}
        columns.append("new in held-out text")
        rows = [[*row, percent(yardstick[size], 1)] for row, size in zip(rows, shares, strict=True)]
    sections = [Section(columns, rows)]
    if passages:
        texts = [[one["length"], on_one_line(one["text"])] for one in passages]
        sections.append(Section(["bytes", "passage"], texts))
    return sections, {**record, "passages": passages}
