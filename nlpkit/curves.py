"""Pictures of a training run: its loss, and how far gradients reach, by layer and by distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nlpkit.errors import NlpkitError

DISTANCES, LAYERS = "gradient_by_distance", "gradient_by_layer"
_SHOWN = 4  # evaluations of which the gradients are drawn
_LEAST = 1e-12  # below this a logarithmic axis shows nothing


def numbers(records: Sequence[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    """The steps at which a number was recorded, and the number.

    >>> numbers([{"step": 1, "loss": 2.5}, {"step": 2}], "loss")
    [(1.0, 2.5)]
    """
    return [
        (float(record["step"]), float(record[name]))
        for record in records
        if _is_number(record.get("step")) and _is_number(record.get(name))
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def draw_curves(records: Sequence[dict[str, Any]], path: str) -> None:
    """Loss over steps and, where they were recorded, gradient norms by distance and by layer."""
    from matplotlib.figure import Figure

    from nlpkit.plots import save_figure

    losses = {name: numbers(records, name) for name in ("loss", "heldout_loss")}
    if not any(losses.values()):
        raise NlpkitError("this model has no training curve to draw", hint="a trained model")
    flows = [record for record in records if _is_flow(record)]
    panels = 3 if flows else 1
    drawn = Figure(figsize=(5 * panels, 4), layout="constrained")
    axes = drawn.subplots(1, panels, squeeze=False)[0]
    for name, points in losses.items():
        if points:
            axes[0].plot(*zip(*points, strict=True), label=name.replace("_", " "))
    axes[0].set_xlabel("step")
    axes[0].legend()
    if flows:
        _draw_distances(axes[1], flows)
        _draw_layers(axes[2], flows)
    save_figure(drawn, path)


def _is_flow(record: dict[str, Any]) -> bool:
    distances, layers = record.get(DISTANCES), record.get(LAYERS)
    return (
        isinstance(distances, list)
        and all(map(_is_number, distances))
        and isinstance(layers, dict)
        and all(map(_is_number, layers.values()))
        and _is_number(record.get("step"))
    )


def _draw_distances(axes: Any, flows: list[dict[str, Any]]) -> None:
    count = min(_SHOWN, len(flows))
    for place in range(count):
        record = flows[(place + 1) * len(flows) // count - 1]
        values = [max(_LEAST, value) for value in record[DISTANCES]]
        axes.semilogy(range(len(values)), values, label=f"step {record['step']}")
    axes.set_xlabel("tokens back from the one that is predicted")
    axes.set_ylabel("gradient norm")
    axes.legend()


def _draw_layers(axes: Any, flows: list[dict[str, Any]]) -> None:
    for name in flows[-1][LAYERS]:
        points = [(r["step"], max(_LEAST, r[LAYERS][name])) for r in flows if name in r[LAYERS]]
        axes.semilogy(*zip(*points, strict=True), label=str(name))
    axes.set_xlabel("step")
    axes.set_ylabel("gradient norm")
    axes.legend()
