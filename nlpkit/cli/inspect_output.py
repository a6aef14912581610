"""What ``inspect`` commands show: coloured text, small heat maps, pictures, JSON lines."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nlpkit import settings as limits
from nlpkit.cli import everywhere
from nlpkit.cli.flags import flag_field
from nlpkit.cli.output import STDOUT, Writer, write_rows

if TYPE_CHECKING:
    from nlpkit.tasks.lm.model import TextModel

_SHADES = " ░▒▓█"
_WIDTH = 76
MAP = "map"  # drawn with characters and colours
Format = Annotated[
    Literal["table", "tsv", "csv", "jsonl", "markdown"] | None,
    typer.Option(
        "--format",
        "-f",
        help="How to show rows.",
        show_default="drawn on a terminal, else jsonl",
    ),
]
MapFormat = Annotated[
    Literal["map", "table", "tsv", "csv", "jsonl", "markdown"] | None,
    typer.Option(
        "--format",
        "-f",
        help="map: shades by row; jsonl: one object per layer and head; else a row per weight.",
        show_default="map on a terminal, else jsonl",
    ),
]


@dataclass(frozen=True)
class AttentionFlags:
    """Which weights are to be shown, and how."""

    layer: int | None = flag_field(None, "Only this layer, from 1.", low=1, high=limits.DEEPEST)
    head: int | None = flag_field(None, "Only this head, from 1.", low=1, high=limits.DEEPEST)
    plot: str | None = flag_field(None, "Draw it: .png, .svg, .pdf or .html.", metavar="FILE")
    format: MapFormat = None


def shown_as(format: str | None) -> str:
    """What was asked for; else ``map`` on a terminal, and JSON lines for a program."""
    to_file = everywhere.current.get().output != STDOUT
    on_terminal = not to_file and sys.stdout is not None and sys.stdout.isatty()
    return format or (MAP if on_terminal else "jsonl")


def write_records(out: Writer, rows: Sequence[dict[str, Any]], format: str) -> None:
    """Records that have the same keys, as rows; a person sees a table."""
    if not rows:
        return
    columns = list(rows[0])
    cells = [[row[name] for name in columns] for row in rows]
    write_rows(out, columns, cells, "table" if format == MAP else format)


def write_steps(out: Writer, records: Sequence[dict[str, Any]], format: str) -> None:
    """The text coloured by its probabilities, and under each token what was expected."""
    if format == MAP:
        _draw_steps(out, records)
    elif format == "jsonl":
        write_records(out, records, format)
    else:
        rows = [
            {
                "token": _plain(record["token"]),
                "probability": record["probability"],
                "expected": ", ".join(
                    f"{_plain(name)} {share:.3f}" for name, share in record["expected"]
                ),
            }
            for record in records
        ]
        write_records(out, rows, format)


def _draw_steps(out: Writer, records: Sequence[dict[str, Any]]) -> None:
    cells = [
        [_plain(record["token"]), *(_plain(name) for name, _ in record["expected"])]
        for record in records
    ]
    widths = [max(map(len, cell)) + 1 for cell in cells]
    start = 0
    while start < len(records):
        stop, used = start, 0
        while stop < len(records) and (stop == start or used + widths[stop] <= _WIDTH):
            used += widths[stop]
            stop += 1
        for row in range(max(len(cell) for cell in cells[start:stop])):
            line = ""
            for place in range(start, stop):
                name = cells[place][row] if row < len(cells[place]) else ""
                share = records[place]["probability"]
                if row:
                    share = records[place]["expected"][row - 1][1] if name else 1.0
                line += shade(out.safe(name.ljust(widths[place])), -math.log(max(share, 1e-9)))
            out.write_styled(line + "\n")
        out.write_styled("\n")
        start = stop


def _plain(token: str) -> str:
    shown = token.replace("\n", "↵").replace("\t", "→").replace(" ", "␣")
    return shown or "∅"


def write_cell(out: Writer, tokens: Sequence[str], values: dict[str, Any], format: str) -> None:
    """One unit over a text: coloured text for each gate, or a row for each token."""
    if format != MAP:
        rows = []
        for place, token in enumerate(tokens):
            record = {name: round(float(array[place]), 4) for name, array in values.items()}
            rows.append({"token": token if format == "jsonl" else _plain(token), **record})
        write_records(out, rows, format)
        return
    for name, array in values.items():
        low, high = float(array.min()), float(array.max())
        out.write_styled(f"{name} ({low:.2f} to {high:.2f})\n")
        scale = 12.0 / ((high - low) or 1.0)
        pieces = zip(tokens, array.tolist(), strict=True)
        out.write_styled(
            "".join(shade(out.safe(t), (v - low) * scale * math.log(2)) for t, v in pieces)
        )
        out.write_styled("\n")


def write_attention(
    out: Writer, records: Sequence[dict[str, Any]], plot: str | None, format: str
) -> None:
    """Heat maps by head: in the terminal, as a picture or page, as rows or JSON lines."""
    if plot is not None:
        from nlpkit.tasks.lm.attention import draw_attention

        draw_attention(list(records), plot)
    if format == "jsonl":
        for record in records:
            out.write_json(record)
        return
    if format != MAP:
        write_records(out, list(_weights(records)), format)
        return
    out.write(f"a row is a token, its columns are what it looks at:\n{legend()}\n")
    for record in records:
        out.write(f"{_caption(record)}\n")
        names = [_plain(token)[:10].rjust(10) for token in record["tokens"]]
        for name, row in zip(names, record["weights"], strict=True):
            cells = "".join(_block(value) * 2 for value in row)
            out.write(f"{out.safe(name)} {cells}\n")


def _weights(records: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A row for each weight: which head, of which token, on which token."""
    for record in records:
        tokens = [_plain(token) for token in record["tokens"]]
        for token, row in zip(tokens, record["weights"], strict=True):
            for seen, weight in zip(tokens, row, strict=False):
                yield {
                    "layer": record["layer"],
                    "head": record["head"],
                    "token": token,
                    "looks_at": seen,
                    "weight": weight,
                }


def legend() -> str:
    """What the shades stand for.

    >>> legend()
    "' ' 0-20%  '░' 20-40%  '▒' 40-60%  '▓' 60-80%  '█' 80-100%"
    """
    step = 100 // len(_SHADES)
    bands = (f"{n * step}-{(n + 1) * step}%" for n in range(len(_SHADES)))
    return "  ".join(f"'{shade}' {band}" for shade, band in zip(_SHADES, bands, strict=True))


def _caption(record: dict[str, Any]) -> str:
    share = record.get(record.get("looks_at", ""), 0)
    looks = f": {record['looks_at']} token {share:.0%}" if "looks_at" in record else ""
    return f"layer {record['layer']}, head {record['head']}{looks}"


def _block(value: float, low: float = 0.0, high: float = 1.0) -> str:
    share = (value - low) / ((high - low) or 1.0)
    return _SHADES[min(len(_SHADES) - 1, max(0, int(share * len(_SHADES))))]


def write_positions(out: Writer, kind: str, table: Any, plot: str | None, format: str) -> None:
    """The encoding by position and dimension, and the products of all pairs of positions."""
    products = table @ table.T
    if plot is not None:
        from matplotlib.figure import Figure

        from nlpkit.plots import save_figure

        drawn = Figure(figsize=(11, 5), layout="constrained")
        left, right = drawn.subplots(1, 2)
        left.imshow(table, aspect="auto", cmap="RdBu")
        left.set(title=f"{kind} positions", xlabel="dimension", ylabel="position")
        right.imshow(products, cmap="viridis")
        right.set(title="products of all pairs", xlabel="position", ylabel="position")
        save_figure(drawn, plot)
    if format not in (MAP, "jsonl"):
        rows = [
            {"position": place, "dimension": dimension, "value": value}
            for place, row in enumerate(table.tolist())
            for dimension, value in enumerate(row, 1)
        ]
        write_records(out, rows, format)
        return
    if format == "jsonl":
        for place, row in enumerate(table.tolist()):
            values = [round(value, 5) for value in row]
            inner = [round(value, 4) for value in products[place].tolist()]
            out.write_json({"kind": kind, "position": place, "values": values, "products": inner})
        return
    for title, values in ((f"{kind} positions", table), ("products of all pairs", products)):
        out.write(f"{title}\n")
        low, high = float(values.min()), float(values.max())
        for row in values[:40].tolist():
            out.write("".join(_block(value, low, high) for value in row[:_WIDTH]) + "\n")


def draw_gates(gates: dict[str, Any], layer: int, tokens: Sequence[str], path: str) -> None:
    """Heat maps of one layer: units by time, one panel for each gate."""
    from matplotlib.figure import Figure

    from nlpkit.plots import label, save_figure

    drawn = Figure(figsize=(max(6.0, 0.12 * len(tokens)), 3 * len(gates)), layout="constrained")
    panels = drawn.subplots(len(gates), 1, squeeze=False)[:, 0]
    for axes, (name, values) in zip(panels, gates.items(), strict=True):
        axes.imshow(values[layer].T, aspect="auto", cmap="RdBu", interpolation="nearest")
        axes.set_title(f"{name}, layer {layer + 1}")
        axes.set_ylabel("unit")
        labels = [label(_plain(token)) for token in tokens]
        axes.set_xticks(range(len(tokens)), labels, fontsize=6)
    save_figure(drawn, path)


# backgrounds of 256 colours, from what was expected to what nobody could have guessed
_COLOURS = (194, 193, 192, 229, 223, 216, 209, 203, 197)
_BITS = 1.5  # of surprise from one shade to the next


def write_tokens(
    out: Writer, model: TextModel, texts: Iterable[str], stride: int | None, json: bool
) -> None:
    """Every token of a text with its log-probability, as they are scored."""
    from nlpkit.tasks.lm.ask import shown_tokens

    colours = not json and sys.stdout is not None and sys.stdout.isatty()
    parts = (model.codec.encode(text) for text in texts)
    for ids, losses in model.losses(parts, stride):
        for token, loss in zip(shown_tokens(model, ids.tolist()), losses.tolist(), strict=True):
            if colours:
                out.write_styled(shade(out.safe(token), loss))
            else:
                out.write_json({"token": token, "logprob": round(-loss, 5)})
    if colours:
        out.write_styled("\n")


def shade(text: str, nats: float) -> str:
    """Text on a background that says how surprising it was."""
    colour = _COLOURS[min(len(_COLOURS) - 1, int(nats / math.log(2) / _BITS))]
    lines = text.split("\n")
    painted = [f"\x1b[30;48;5;{colour}m{line}\x1b[0m" if line else "" for line in lines]
    return "\n".join(painted)
