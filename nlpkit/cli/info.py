"""``nlpkit info``."""

from __future__ import annotations

import math
from typing import Any

from nlpkit import modeldir
from nlpkit.cli import options
from nlpkit.cli.frame import Command, new_app
from nlpkit.cli.output import Writer, open_output

app = new_app()


@app.command(cls=Command)
def info(model: options.Model, json: options.Json = False) -> None:
    """Show what a model is: kind, size, settings, training curve.

    The keys of --json are those of config.json, and files (bytes by name), bytes (in all) and
    curve (the records of metrics.jsonl).

    Examples:
      $ nlpkit info world.model
      $ nlpkit info world.model --json
    """
    config = modeldir.load_config(model)
    files = modeldir.describe_files(model)
    curve = modeldir.read_metrics(model)
    size = sum(size for _, size in files)
    with open_output("-") as out:
        if json:
            out.write_json({**vars(config), "files": dict(files), "bytes": size, "curve": curve})
        else:
            _show(out, config, files, size, curve)


def _show(
    out: Writer,
    config: modeldir.ModelConfig,
    files: list[tuple[str, int]],
    size: int,
    curve: list[dict[str, Any]],
) -> None:
    out.write(f"{config.kind} model, {_bytes(size)}\n")
    out.write(f"made by nlpkit {config.nlpkit_version} on {config.created}\n")
    out.write(f"  {' '.join(config.command)}\n")
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
    losses = [loss for loss in losses if math.isfinite(loss)]
    if len(losses) < 2:
        return ""
    share = [100 * index / (len(losses) - 1) for index in range(len(losses))]
    return plot(share, losses, width=50, height=8, label="loss over training (%)")


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
