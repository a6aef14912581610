"""``nlpkit info``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from nlpkit import modeldir
from nlpkit.cli import options
from nlpkit.cli.frame import Command, new_app
from nlpkit.cli.output import Writer, open_output

app = new_app()


@app.command(cls=Command)
def info(
    model: options.Model,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check the SHA-256 of every file and look for NaN instead."),
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw loss and gradient norms to .png, .svg or .pdf."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show what a model is: kind, size, settings, training curve.

    The keys of --json are those of config.json, and files (bytes by name), bytes (in all) and
    curve (the records of metrics.jsonl). Those of --verify --json are verified, files and bytes
    (how many), unlisted (names of files that are not in the manifest), and file and reason (of
    the first damage, or null).

    Examples:
      $ nlpkit info world.model
      $ nlpkit info world.model --json
      $ nlpkit info world.model --verify
      $ nlpkit info lstm.model --plot lstm.png
    """
    if verify:
        _verify(model, json)
        return
    if plot is not None:
        from nlpkit.plots import check_picture

        check_picture(plot)
    config = modeldir.load_config(model)
    files = modeldir.describe_files(model)
    curve = modeldir.read_metrics(model)
    size = sum(size for _, size in files)
    if plot is not None:
        from nlpkit.curves import draw_curves

        draw_curves(curve, plot)
    with open_output("-") as out:
        if json:
            out.write_json({**asdict(config), "files": dict(files), "bytes": size, "curve": curve})
        else:
            _show(out, config, files, size, curve)


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


def _show(
    out: Writer,
    config: modeldir.ModelConfig,
    files: list[tuple[str, int]],
    size: int,
    curve: list[dict[str, Any]],
) -> None:
    out.write(f"{config.kind} model, {_bytes(size)}\n")
    out.write(f"made by nlpkit {config.nlpkit_version} on {config.created}\n")
    if config.command:
        out.write(f"  {_printable(' '.join(config.command))}\n")
    for title, pairs in (
        ("settings", config.settings),
        ("final metrics", config.metrics),
        ("files", {name: _bytes(length) for name, length in files}),
    ):
        if pairs:
            out.write(f"\n{title}\n")
            width = max(map(len, pairs))
            for name, value in pairs.items():
                out.write(f"  {name:<{width}}  {_value(value)}\n")
    drawn = draw_curve(curve)
    if drawn:
        out.write(f"\n{drawn}\n")


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
