"""Whether an SVG from a file is a drawing and nothing else: what a page may hold as it is."""

from __future__ import annotations

import re
from xml.etree import ElementTree

__all__ = ["is_only_drawn"]

SVG = "{http://www.w3.org/2000/svg}"
# What our pictures are made of; neither scripts nor foreign documents are among it.
TAGS = {"svg", "g", "path", "text", "tspan", "defs", "use", "clipPath", "rect", "image", "style", "title", "metadata"}
INSIDE = ("#", "data:image/png;base64,")
LOADS = re.compile(r"@import|url\(\s*['\"]?(?!#)", re.IGNORECASE)


def is_only_drawn(svg: str) -> bool:
    """True if it has nothing that could run or load."""
    if "<!" in svg:  # a document type, whose entities stand for anything
        return False
    try:
        elements = list(ElementTree.fromstring(svg).iter())
    except ElementTree.ParseError:
        return False
    return all(_is_drawing(element) for element in elements)


def _is_drawing(element: ElementTree.Element) -> bool:
    attributes = {name.rpartition("}")[2].lower(): value for name, value in element.attrib.items()}
    return (
        element.tag.removeprefix(SVG) in TAGS
        and not any(name.startswith("on") for name in attributes)
        and attributes.get("href", "#").startswith(INSIDE)
        and not any(LOADS.search(text) for text in (element.text or "", *attributes.values()))
    )
