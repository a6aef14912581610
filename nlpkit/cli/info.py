"""``nlpkit info``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nlpkit.cli import tables
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Section, Writer, open_output, write_report
from nlpkit.errors import UsageError
from nlpkit.plots import check_picture

if TYPE_CHECKING:
    from nlpkit.describe import Description, Layer

app = new_app()
PLAIN = ("tsv", "csv")  # what programs read: numbers, and nothing where there is none
LAYER = ("layer", "shape", "type", "parameters")
MOST_LAYERS = 40  # shown of a model, unless all are asked for


@app.command()
def info(
    models: list[str] = argument(
        ...,
        "A model folder or checkpoint, vectors, a vocabulary or a tokenizer.json; several "
        "are shown side by side.",
        metavar="MODEL",
    ),
    layers: bool = flag(False, "Show all layers, not only the first ones."),
    plot: str | None = flag(
        None, "Draw the training curve: .png, .svg, .pdf or .html.", metavar="FILE"
    ),
    verify: bool = flag(False, "Check the SHA-256 of every file and look for NaN instead."),
    format: Literal["table", "tsv", "csv", "jsonl", "markdown"] | None = flag(
        None, "Show it as rows.", "--format", "-f", show_default="a page to read"
    ),
) -> None:
    """Show what a model is: kind, size, settings, layers, training curve.

    The keys of --json are those of config.json, and parameters, layers (name, shape, dtype,
    parameters), files (bytes by name), bytes (in all) and curve (the records of metrics.jsonl). A
    file that is no model folder has path, kind and its own facts. Those of --verify --json are
    verified, files and bytes (how many), unlisted (names of files that are not in the manifest),
    and file and reason (of the first damage, or null).

    Examples:
      $ nlpkit info world.model
      $ nlpkit info world.model --json
      $ nlpkit info world.model counts.model
      $ nlpkit info world.vocab
      $ nlpkit info world.model --verify
    """
    shown = format or "page"
    if verify:
        if format not in (None, "jsonl"):
            raise UsageError(f"--verify has no --format {format}")
        if len(models) > 1 or plot is not None:
            raise UsageError("--verify takes one model and no --plot")
        _verify(models[0], shown == "jsonl")
        return
    check_picture(plot)
    from nlpkit.describe import describe

    found = [describe(model) for model in models]
    if plot is not None:
        from nlpkit.curves import draw_curves

        draw_curves({one.path: one.curve for one in found}, plot)
    with open_output("-") as out:
        if shown == "jsonl":
            for one in found:
                out.write_json(one.record())
        elif len(found) > 1:
            _show_beside(out, found, shown)
        elif shown == "page":
            _show(out, found[0], all_layers=layers)
        else:
            write_report(out, _tables(found[0], plain=shown in PLAIN), {}, shown)


def _verify(model: str, json: bool) -> None:
    from nlpkit.verify import verify

    verdict = verify(model)
    damage = verdict.damage
    with open_output("-") as out:
        if json:
            record = {"verified": damage is None, **asdict(verdict)}
            del record["damage"]
            reason = None if damage is None else damage.reason or "it is missing"
            record |= {"file": damage and damage.file, "reason": reason}
            out.write_json(record)
        elif damage is None:
            out.write(f"{verdict.files} files, {_bytes(verdict.bytes)}: all as they were written\n")
            if verdict.unlisted:
                out.write(f"not in the manifest: {', '.join(verdict.unlisted)}\n")
    if damage is not None:
        raise damage.error(Path(model))


def _show(out: Writer, found: Description, *, all_layers: bool) -> None:
    config = found.config
    what = found.kind if config is None else f"{found.kind} model"
    out.write(f"{what}, {_bytes(found.bytes)}\n")
    if config is not None:
        out.write(f"made by nlpkit {config.nlpkit_version} on {config.created}\n")
        if config.command:
            out.write(f"  {_printable(' '.join(config.command))}\n")
    for title, pairs in _sections(found).items():
        if shown := _flat(pairs):
            out.write(f"\n{title}\n")
            width = max(map(len, shown))
            for name, value in shown.items():
                out.write(f"  {name:<{width}}  {_value(value)}\n")
    if found.layers:
        shown_layers = found.layers if all_layers else found.layers[:MOST_LAYERS]
        rows = _layer_rows(shown_layers)
        rows = [[out.safe(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
        out.write_styled("\n" + tables.table(LAYER, rows))
        left = len(found.layers) - len(shown_layers)
        more = f" ({left} more layers: --layers)" if left else ""
        out.write(f"{found.parameters:,} parameters{more}\n")
    drawn = draw_curve(found.curve)
    if drawn:
        out.write(f"\n{drawn}\n")


def _sections(found: Description) -> dict[str, dict[str, Any]]:
    """What there is to say, by name, under a title each."""
    config = found.config
    return {
        "facts": found.facts,
        "settings": config.settings if config else {},
        "final metrics": config.metrics if config else {},
        "files": {name: _bytes(length) for name, length in found.files.items()},
    }


def _tables(found: Description, *, plain: bool) -> list[Section]:
    """The same as tables, and one of all layers; with ``plain`` sizes are numbers of bytes."""
    config = found.config
    size = found.bytes if plain else _bytes(found.bytes)
    first = {"path": _printable(found.path), "kind": found.kind, "size": size}
    if config is not None:
        first |= {"version": config.nlpkit_version, "created": config.created}
    if found.layers:
        first["parameters"] = str(found.parameters)
    named = {"model": first, **_sections(found)}
    if plain:
        named["files"] = dict(found.files)
    tables = [
        Section((title, "value"), [(name, _value(value)) for name, value in _flat(pairs).items()])
        for title, pairs in named.items()
    ]
    tables.append(Section(LAYER, _layer_rows(found.layers)))
    return [table for table in tables if table.rows]


def _layer_rows(layers: Sequence[Layer]) -> list[list[Any]]:
    return [
        [layer.name, " x ".join(map(str, layer.shape)) or "1", layer.dtype, layer.parameters]
        for layer in layers
    ]


def _flat(pairs: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings without those that were left to be decided, and tables in them by dotted names.

    What a table only says again is left out.

    >>> _flat({"dim": 8, "init": None, "architecture": {"dim": 8, "norm": "pre"}})
    {'dim': 8, 'architecture.norm': 'pre'}
    """
    flat: dict[str, Any] = {}
    for name, value in pairs.items():
        if isinstance(value, dict):
            new = {key: one for key, one in value.items() if key not in pairs or pairs[key] != one}
            flat |= _flat(new, f"{prefix}{name}.")
        elif value is not None:
            flat[prefix + name] = value
    return flat


def _show_beside(out: Writer, found: list[Description], format: str) -> None:
    """A column for each model, a row for each thing in which they may differ."""
    columns, plain = [], format in PLAIN
    for one in found:
        facts: dict[str, Any] = {"kind": one.kind}
        facts["on disk"] = one.bytes if plain else _bytes(one.bytes)
        if one.layers:
            facts["parameters"] = one.parameters if plain else f"{one.parameters:,}"
        facts |= _flat(one.facts)
        if one.config is not None:
            facts |= {"seed": one.config.seed, **_flat(one.config.settings)}
            facts |= {f"final {name}": value for name, value in _flat(one.config.metrics).items()}
        columns.append({name: value for name, value in facts.items() if value is not None})
    names = list(dict.fromkeys(name for facts in columns for name in facts))
    none = "" if plain else "-"
    rows = [
        [name, *(out.safe(_value(facts[name])) if name in facts else none for facts in columns)]
        for name in names
    ]
    header = ["", *(out.safe(_printable(one.path)) for one in found)]
    if format == "page":
        out.write_styled(tables.table(header, rows))
    else:
        write_report(out, [Section(["setting", *header[1:]], rows)], {}, format)


def draw_curve(curve: list[dict[str, Any]]) -> str:
    """The loss over training as a small plot, or nothing if none was recorded."""
    from nlpkit.textplot import plot

    losses = [record["loss"] for record in curve if isinstance(record.get("loss"), int | float)]
    losses = [loss for loss in losses if abs(loss) <= sys.float_info.max]
    if len(losses) < 2:
        return ""
    share = [100 * index / (len(losses) - 1) for index in range(len(losses))]
    return plot(share, losses, width=50, height=8, label="loss over training (%)")


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else _printable(str(value))


def _printable(text: str) -> str:
    """Bytes of a path that are not UTF-8, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
