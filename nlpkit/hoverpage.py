"""Offline HTML pages to hover over: a scatter plot, heat maps. One file, no script, no network.

Dots and cells are SVG elements with a ``title``, which every browser shows under the pointer.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
  body {{ font: 14px/1.45 system-ui, sans-serif; margin: 1rem; color: #1f2430; }}
  h1 {{ font-size: 1.05rem; }} figure {{ display: inline-block; margin: .5rem; }}
  figcaption {{ font-size: .85rem; color: #5d6675; }}
  svg {{ background: #fff; border: 1px solid #d9dce2; }}
  text {{ font-size: 10px; fill: #1f2430; }}
  circle {{ fill: #2a78c2; fill-opacity: .7; }}
  circle:hover, rect:hover {{ stroke: #c4541c; stroke-width: 2; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def scatter_page(
    title: str,
    points: Sequence[tuple[float, float]],
    labels: Sequence[str],
    notes: Sequence[str],
    axes: tuple[str, str],
    size: int = 640,
) -> str:
    """Dots with a label each, and a note that is shown under the pointer.

    >>> "<title>a: 1</title>" in scatter_page("t", [(0, 0)], ["a"], ["a: 1"], ("x", "y"))
    True
    """
    margin = 50
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = min([*xs, *ys], default=0.0), max([*xs, *ys], default=1.0)
    scale = (size - 2 * margin) / ((high - low) or 1.0)

    def place(x: float, y: float) -> tuple[float, float]:
        return margin + (x - low) * scale, size - margin - (y - low) * scale

    parts = [f'<svg width="{size}" height="{size}" role="img" aria-label="{_safe(title)}">']
    (x1, y1), (x2, y2) = place(low, low), place(high, high)
    parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#d9dce2"/>')
    for (x, y), label, note in zip(points, labels, notes, strict=True):
        across, down = place(x, y)
        parts.append(
            f'<circle cx="{across:.1f}" cy="{down:.1f}" r="4"><title>{_safe(note)}</title></circle>'
            f'<text x="{across + 6:.1f}" y="{down + 3:.1f}">{_safe(label)}</text>'
        )
    parts.append(f'<text x="{margin}" y="{size - 12}">{_safe(axes[0])} →</text>')
    parts.append(f'<text x="12" y="{margin - 20}">↑ {_safe(axes[1])}</text></svg>')
    return _PAGE.format(title=_safe(title), body="\n".join(parts))


def heatmap_page(
    title: str, maps: Sequence[tuple[str, Sequence[str], Sequence[Sequence[float]]]], cell: int = 16
) -> str:
    """Heat maps, each with a caption, the tokens of its rows and columns, and its values."""
    body = "\n".join(_heatmap(caption, tokens, rows, cell) for caption, tokens, rows in maps)
    return _PAGE.format(title=_safe(title), body=body)


def _heatmap(
    caption: str, tokens: Sequence[str], rows: Sequence[Sequence[float]], cell: int
) -> str:
    margin = 10 + 6 * min(12, max(map(len, tokens), default=1))
    side = margin + cell * len(tokens) + 10
    highest = max((value for row in rows for value in row), default=1.0) or 1.0
    parts = [
        f'<figure><figcaption>{_safe(caption)}</figcaption><svg width="{side}" height="{side}">'
    ]
    for place, token in enumerate(tokens):
        at, shown = margin + place * cell, _safe(token[:12])
        parts.append(f'<text x="2" y="{at + cell * 0.7:.0f}">{shown}</text>')
        turned = f"rotate(-90 {at + cell * 0.7:.0f} {margin - 4})"
        parts.append(
            f'<text x="{at + cell * 0.7:.0f}" y="{margin - 4}" transform="{turned}">{shown}</text>'
        )
    for row, values in enumerate(rows):
        for column, value in enumerate(values):
            note = f"{tokens[row]} → {tokens[column]}: {value:.3f}"
            parts.append(
                f'<rect x="{margin + column * cell}" y="{margin + row * cell}" width="{cell}" '
                f'height="{cell}" fill="#2a78c2" fill-opacity="{max(0.0, value) / highest:.3f}">'
                f"<title>{_safe(note)}</title></rect>"
            )
    return "".join([*parts, "</svg></figure>"])


def _safe(text: str) -> str:
    shown = text.replace("\n", "\\n").replace(" ", "\u00a0") if text.isspace() else text
    return html.escape("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown))
