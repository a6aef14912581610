"""A figure as an offline HTML page to hover over. One file, no script, no network.

The marks of a figure are SVG elements; those that ``plots.hover`` gave notes get a ``title``, which
every browser shows under the pointer.
"""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence

_SVG = "http://www.w3.org/2000/svg"
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # not even as an escape
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
  body {{ margin: 1rem; background: #fff; }}
  svg {{ max-width: 100%; height: auto; }}
  .noted {{ pointer-events: all; }}
  .noted:hover {{ stroke: #c4541c !important; stroke-width: 2 !important; }}
</style>
</head>
<body>
{drawing}
</body>
</html>
"""


def figure_page(title: str, svg: str, notes: Mapping[str, Sequence[str]]) -> str:
    """A page with a drawing; ``notes`` are those on the marks of a group, by the group's id.

    >>> svg = '<svg xmlns="http://www.w3.org/2000/svg"><g id="dots"><path d="M 0 0"/></g></svg>'
    >>> page = figure_page("t", svg, {"dots": ["a: 1"]})
    >>> '<path d="M 0 0" class="noted"><title>a: 1</title>' in page
    True
    """
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(_NOT_XML.sub("\ufffd", svg))
    for group in root.iter(f"{{{_SVG}}}g"):
        # marks that a figure leaves out, such as those beyond its axes, are the last ones
        for mark, note in zip(_marks(group), notes.get(group.get("id", ""), ()), strict=False):
            mark.set("class", "noted")
            ET.SubElement(mark, f"{{{_SVG}}}title").text = _shown(note)
    drawing = ET.tostring(root, encoding="unicode")
    return _PAGE.format(title=html.escape(_shown(title)), drawing=drawing)


def _marks(group: ET.Element) -> Iterator[ET.Element]:
    """The shapes that a group draws, in their order: not those that it only defines."""
    for child in group:
        if child.tag in (f"{{{_SVG}}}use", f"{{{_SVG}}}path"):
            yield child
        elif child.tag == f"{{{_SVG}}}g":
            yield from _marks(child)


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
