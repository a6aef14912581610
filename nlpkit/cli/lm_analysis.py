"""``nlpkit lm compare``, ``novelty`` and ``inspect``, and what ``nlpkit names inspect`` shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import inspect_output, options
from nlpkit.cli.flags import argument, flag, flag_field, flag_of
from nlpkit.cli.output import (
    Notes,
    Section,
    Writer,
    open_output,
    percent,
    rows_format,
    write_report,
    write_rows,
)
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.generate.settings import SamplingSettings
from nlpkit.plots import check_picture
from nlpkit.text.records import Reading, pair_of
from nlpkit.text.vocab import on_one_line

if TYPE_CHECKING:
    from nlpkit.compare import Compared
    from nlpkit.models.base import LanguageModel


def compare(
    *,
    model: options.Model,
    first: str | None = argument(None, "A text that ends with a blank, _.", metavar="FIRST"),
    second: str | None = argument(None, "Another one, to compare it with.", metavar="SECOND"),
    pairs: str | None = flag(
        None,
        "Pairs of texts: FIRST<TAB>SECOND per line, or records with first and second.",
        metavar="FILE",
    ),
    count: int = flag(
        30, "Candidates to show; 0 is all.", "--count", "-n", "-k", min=0, max=10_000_000
    ),
    targets: str | None = flag(None, "Compare these, between commas, only.", metavar="WORDS"),
    plot: str | None = flag(
        None, "Draw both likelihoods: .png, .svg, .pdf or .html.", metavar="FILE"
    ),
    view: bool = flag(False, "Draw them here, with characters."),
    format: options.RowsFormat = None,
    use: options.Use,
    reading: Reading,
) -> None:
    """Compare what a model expects in two sentences: a table of likelihoods and a scatter plot.

    Each text ends with a blank. Shown are the tokens that are likeliest in either, those first
    that the first text favours most. Columns and keys: token, first, second (probabilities),
    difference (of their natural logarithms); with --pairs also pair, its number. Pairs that are
    records keep their other keys with --json.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm compare 3gram.model "the old _" "the young _" -k 10
      $ nlpkit lm compare 3gram.model "the old _" "the young _" --plot old-young.html
      $ nlpkit lm compare 3gram.model "the _" "a _" --targets king,queen,fox --json
    """
    from nlpkit.compare import compare as rank
    from nlpkit.compare import draw_scatter, scatter_text
    from nlpkit.tasks.lm.ask import blank_logs
    from nlpkit.tasks.lm.model import TextModel

    if (first is None) != (second is None) or (first is None) == (pairs is None):
        raise UsageError("give FIRST and SECOND, or --pairs")
    check_picture(plot)
    if plot is not None and pairs is not None:
        raise UsageError("--plot draws one pair, not --pairs")
    chosen = rows_format(format)
    check_view(view, chosen)
    wanted = None if targets is None else [word.strip() for word in targets.split(",")]
    found = TextModel.load(model)
    options.place(found.model, use, found.work(2))
    with open_output("-") as out:
        for number, (left, right) in enumerate(_pairs(first, second, pairs, reading), 1):
            record = getattr(left, "record", {})
            tokens, logs = blank_logs(found, left, wanted)
            _, others = blank_logs(found, right, wanted)
            rows = rank(tokens, logs, others, count or None)
            write_compared(out, rows, chosen, number if pairs is not None else None, record)
            if view:
                out.write(scatter_text(rows, (left, right)) + "\n")
            if plot is not None:
                draw_scatter(rows, (left, right), plot)


def check_view(view: bool, rows: str) -> None:
    """A drawing between JSON objects would make both unreadable."""
    if view and rows == "jsonl":
        raise UsageError("--view draws between the rows: not with --json; --plot writes a file")


def _pairs(
    first: str | None, second: str | None, pairs: str | None, reading: Reading
) -> Iterator[tuple[str, str]]:
    if pairs is None:
        assert first is not None
        assert second is not None
        yield first, second
        return
    name = textio.source_name(pairs)
    lines = options.read_lines([pairs], reading, ("first",), tables=False)
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield pair_of(line, f"{name}: line {number}")


def _shown(log: float, format: str) -> float | str:
    """A probability; four decimals would make most of them 0."""
    return float(f"{math.exp(log):.6g}") if format == "jsonl" else f"{math.exp(log):.3g}"


def write_compared(
    out: Writer,
    rows: list[Compared],
    format: str,
    number: int | None = None,
    record: dict[str, Any] | None = None,
) -> None:
    """Rows with probabilities; ``number`` is that of the pair, if there are several."""
    columns = ("token", "first", "second", "difference")
    listed = [
        (
            row.token if format == "jsonl" else on_one_line(row.token),
            _shown(row.first, format),
            _shown(row.second, format),
            round(row.difference, 4),
        )
        for row in rows
    ]
    if number is None:
        write_rows(out, columns, listed, format)
    elif record and format == "jsonl":
        others = {key: value for key, value in record.items() if key not in columns}
        for row in listed:
            out.write_json({**others, "pair": number, **dict(zip(columns, row, strict=True))})
    else:
        write_rows(out, ("pair", *columns), [(number, *row) for row in listed], format)


_SIZES = (4, 8, 12, 16, 24, 32, 48, 64)
_LEAST = 64  # bytes, below which there is nothing to tell


def novelty(
    model: options.Model,
    train: list[str] = flag(..., "The training text; may be repeated.", metavar="FILE"),
    heldout: list[str] | None = flag(None, "Text to compare with, as a yardstick.", metavar="FILE"),
    sample: str | None = flag(None, "Judge this text instead of a new sample.", metavar="FILE"),
    max_tokens: int = flag(2000, "Tokens to write.", "--max-tokens", "-n", min=1, max=limits.MANY),
    passages: int = flag(5, "Longest shared passages to show.", min=0, max=1000),
    temperature: flag_of(SamplingSettings, "temperature") = 0.8,  # type: ignore[valid-type]
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


Show = Literal["steps", "gates", "attention", "positions", "neurons"]


@dataclass(frozen=True)
class View:
    """Which part is to be shown, and how."""

    layer: int | None = flag_field(None, "Only this layer, from 1.", low=1, high=limits.DEEPEST)
    head: int | None = flag_field(
        None, "Only this attention head, from 1.", low=1, high=limits.DEEPEST
    )
    cell: int | None = flag_field(
        None, "Follow this unit, from 1, over the text.", low=1, high=limits.WIDEST
    )
    count: int = flag_field(
        5, "Expected tokens, or units, to show.", "--count", "-n", "-k", low=1, high=1000
    )
    plot: str | None = flag_field(None, "Draw it: .png, .svg, .pdf or .html.", metavar="FILE")
    format: inspect_output.Format = None

    @property
    def shown(self) -> str:
        """How to show it."""
        return inspect_output.shown_as(self.format)


@dataclass(frozen=True)
class Wanted(View):
    """What is to be shown."""

    show: Show = flag_field(
        "steps", "What to look at; gates and neurons of recurrent models, the rest of GPTs."
    )


def inspect(
    *,
    model: options.Model,
    text: str | None = argument(None, "What to read; - reads standard input.", metavar="TEXT"),
    find_neurons: bool = flag(False, "Short for --show neurons."),
    wanted: Wanted,
) -> None:
    """Look inside a model: what it expects, its gates, its attention, its positions, its neurons.

    steps: each token coloured by how likely it was, the likeliest ones under it. gates: how open
    they are, or one unit over the text (--cell). neurons: the units that follow a simple feature of
    the text best, with their correlation on held-out text. attention: by layer and head, heads
    sorted by what they look at. positions: the positional encoding and the products of all pairs.
    Drawn on a terminal, else JSON lines; --format table and the like
    give rows, those of attention being layer, head, token, looks_at and weight.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o lstm.model --model lstm --max-time 30s
      $ nlpkit lm inspect lstm.model "Once upon a time"
      $ nlpkit lm inspect lstm.model "Once upon a time" --show gates
      $ head -c 3000 sample_corpora/tales.txt | nlpkit lm inspect lstm.model - --find-neurons
    """
    from nlpkit.tasks.lm.ask import shown_tokens
    from nlpkit.tasks.lm.model import TextModel

    wanted = replace(wanted, show="neurons") if find_neurons else wanted
    check_plot(wanted.plot, wanted.show)
    if text is None and wanted.show != "positions":
        raise UsageError("give a TEXT to read")
    found = TextModel.load(model)
    ids = found.codec.encode(read_text(text or ""))
    first = found.encode_prompt("")[:1]
    run_inspect(
        found.model,
        ids,
        first,
        lambda indices: shown_tokens(found, indices),
        lambda index: found.codec.decode([index]),
        wanted,
    )


def read_text(text: str) -> str:
    """A text, or with - that of standard input."""
    if text != textio.STDIN:
        return text
    inputs = options.resolve_inputs([textio.STDIN])
    return "".join(block.text() for block in textio.read_blocks(inputs))


def check_plot(plot: str | None, show: str) -> None:
    """Refuse a picture that will not be drawn."""
    if plot is not None and show in ("steps", "neurons"):
        raise UsageError(f"--plot draws gates, attention and positions, not {show}")
    check_picture(plot)


def run_inspect(
    model: LanguageModel,
    ids: Sequence[int],
    first: Sequence[int],
    tokens_of: Callable[[Sequence[int]], list[str]],
    name_of: Callable[[int], str],
    wanted: Wanted,
) -> None:
    """Look, and show it."""
    from nlpkit.tasks.lm import inspect as engine
    from nlpkit.tasks.lm.neurons import token_features

    if wanted.show != "positions" and not ids:
        raise NlpkitError("there is nothing to read", hint="a text that is not empty")
    with open_output("-") as out:
        if wanted.show == "steps":
            records = engine.step_records(model, [*first, *ids], name_of, wanted.count)
            inspect_output.write_steps(out, records, wanted.shown)
        elif wanted.show == "attention":
            records = _attention(model, ids, tokens_of(ids), wanted)
            inspect_output.write_attention(out, records, wanted.plot, wanted.shown)
        elif wanted.show == "positions":
            kind, table = engine.position_table(model)
            inspect_output.write_positions(out, kind, table, wanted.plot, wanted.shown)
        else:
            tokens = tokens_of(ids)
            gates = engine.gate_arrays(model, ids)
            if wanted.show == "neurons":
                show_neurons(out, gates, token_features(tokens), wanted)
            else:
                show_gates(out, gates, tokens, wanted)


def show_neurons(
    out: Writer, gates: dict[str, Any], features: dict[str, Any], wanted: View
) -> None:
    """The units that follow features of the text."""
    from nlpkit.tasks.lm.neurons import find_neurons

    inside = gates.get("cell", gates["state"])
    rows = find_neurons(inside, features, max(wanted.count, 10))
    inspect_output.write_records(out, rows, wanted.shown)


def _attention(
    model: LanguageModel, ids: Sequence[int], tokens: list[str], wanted: Wanted
) -> list[dict[str, Any]]:
    from nlpkit.tasks.lm.attention import records_of_ids
    from nlpkit.tasks.lm.inspect import sort_heads

    return sort_heads(records_of_ids(model, ids, tokens, wanted.layer, wanted.head))


def show_gates(out: Writer, gates: dict[str, Any], tokens: list[str], wanted: View) -> None:
    """How open gates are, or one unit over the text."""
    from nlpkit.tasks.lm.inspect import gate_summary

    layers, _, units = next(iter(gates.values())).shape
    for name, asked, there in (("layer", wanted.layer, layers), ("cell", wanted.cell, units)):
        if asked is not None and asked > there:
            raise NlpkitError(f"`{name}` {asked}: the model has {there}")
    layer = (wanted.layer or layers) - 1
    if wanted.plot is not None:
        inspect_output.draw_gates(gates, layer, tokens, wanted.plot)
    if wanted.cell is None:
        inspect_output.write_records(out, gate_summary(gates), wanted.shown)
    else:
        chosen = {name: values[layer, :, wanted.cell - 1] for name, values in gates.items()}
        inspect_output.write_cell(out, tokens, chosen, wanted.shown)
