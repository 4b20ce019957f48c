"""What a schema cannot say of a record: lists that belong together are of the same length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["inconsistencies"]

Data = Mapping[str, Any]


def inconsistencies(record: Data) -> Iterator[str]:
    """Each place of a record whose numbers do not fit together, in words."""
    pictures = record["pictures"]
    for name, check in (("line", _line), ("slice", _slice), ("first layer", _layer), ("search", _search)):
        if pictures[name] is not None:
            yield from (f"pictures/{name}: {what}" for what in check(pictures[name]))
    for number, group in enumerate(pictures["errors"] or ()):
        if len(group["edges"]) != len(group["counts"]) + 1:
            yield f"pictures/errors/{number}: one edge more than counts is wanted"
    if record["linearity"] is not None:
        yield from (f"linearity: {what}" for what in _linearity(record["linearity"]))
    if record["flip"] is not None and not _same_length(record["flip"]["start"], record["flip"]["x"]):
        yield "flip: start and x differ in length"


def _line(line: Data) -> Iterator[str]:
    if not _same_length(line["positions"], line["answers"]):
        yield "positions and answers differ in length"
    if not _same_length(*line["answers"]):
        yield "answers differ in length"


def _slice(part: Data) -> Iterator[str]:
    if not _same_length(*part["values"]):
        yield "rows of values differ in length"
    if not _same_length(part["creases"], part["layers"]):
        yield "creases and layers differ in length"
    if not all(low < high for low, high in zip(part["low"], part["high"], strict=True)):
        yield "low is not below high"


def _layer(layer: Data) -> Iterator[str]:
    if any(len(image) != layer["height"] * layer["width"] for image in layer["images"]):
        yield "an image is not of height times width numbers"


def _search(search: Data) -> Iterator[str]:
    if not _same_length(search["t"], search["answers"], search["round"], [None, *search["known"]]):
        yield "t, answers, round and known are not of one length (known: one less)"
    if not _same_length(*search["answers"]):
        yield "answers differ in length"
    for name in ("t", "creases"):
        if any(one > other for one, other in zip(search[name], search[name][1:], strict=False)):
            yield f"{name} is not in order"
    if not search["t"][0] < search["t"][-1]:
        yield "t has no length"


def _linearity(linearity: Data) -> Iterator[str]:
    curves = (linearity[name] for name in ("random", "along", "random networks"))
    if not _same_length(linearity["radii"], *curves):
        yield "the curves and radii differ in length"


def _same_length(*lists: Any) -> bool:
    """Whether all that are there are of one length."""
    return len({len(each) for each in lists if each is not None}) <= 1
