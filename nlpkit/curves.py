"""Pictures of training runs: losses, and how far gradients reach, by distance and by layer."""

from __future__ import annotations

import math
import os
from typing import Any

from nlpkit.plots import hover_points, plot_losses, save_figure

DISTANCES, LAYERS = "gradient_by_distance", "gradient_by_layer"
_LEAST = 1e-12  # below this a logarithmic axis shows nothing

Curves = dict[str, list[dict[str, Any]]]  # the records of a training by the name of its model


def draw_curves(curves: Curves, path: str) -> None:
    """Losses by step and, where gradient norms were recorded, how far they reach in the end."""
    from matplotlib.figure import Figure

    flows = {name: [one for one in records if _is_flow(one)] for name, records in curves.items()}
    flows = {name: records for name, records in flows.items() if records}
    panels = 3 if flows else 1
    width = 5.0 * panels if flows else 7.0
    drawn = Figure(figsize=(width, 4 if flows else 5), layout="constrained")
    axes = drawn.subplots(1, panels, squeeze=False)[0]
    plot_losses(axes[0], curves)
    if len(curves) == 1:
        axes[0].set_title(os.path.basename(os.path.normpath(next(iter(curves)))), parse_math=False)
    for name, records in flows.items():
        values = [max(_LEAST, value) for value in records[-1][DISTANCES]]
        axes[1].semilogy(range(len(values)), values, label=name)
        notes = [f"{name}, {back} back: {value:.3g}" for back, value in enumerate(values)]
        hover_points(axes[1], list(enumerate(values)), notes)
        for layer in records[-1][LAYERS]:
            points = [
                (one["step"], max(_LEAST, one[LAYERS][layer]))
                for one in records
                if layer in one[LAYERS]
            ]
            label = f"{name}, {layer}" if len(flows) > 1 else str(layer)
            axes[2].semilogy(*zip(*points, strict=True), label=label)
            hover_points(axes[2], points, [f"{label}, step {x}: {y:.3g}" for x, y in points])
    if flows:
        axes[1].set_xlabel("tokens back from the one that is predicted")
        axes[2].set_xlabel("step")
        axes[2].xaxis.get_major_locator().set_params(integer=True)
        for panel in axes[1:]:
            panel.set_ylabel("gradient norm")
            panel.grid(alpha=0.3)
            panel.legend(fontsize=7)
    save_figure(drawn, path)


def _is_flow(record: dict[str, Any]) -> bool:
    """Whether a record, which comes from a file, has gradient norms.

    >>> _is_flow({"step": 1, "gradient_by_distance": [1.0], "gradient_by_layer": {"head": 2.0}})
    True
    """
    distances, layers = record.get(DISTANCES), record.get(LAYERS)
    return (
        isinstance(distances, list)
        and all(map(_is_number, distances))
        and isinstance(layers, dict)
        and all(map(_is_number, layers.values()))
        and _is_number(record.get("step"))
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
