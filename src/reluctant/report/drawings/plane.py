"""A plane through input space: the target's values as a heat map, the recovered creases over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.report.drawings.drawing import Drawing
from reluctant.report.figures import COLOURS, HALF, new_figure

__all__ = ["draw_plane"]

VALUES, MANY_LABELS = "viridis", "tab20"
SHAPE = (HALF[0], 3.6)
FIRST, DEEPER = "white", "#ff9f5a"  # colours of creases by their layer
FINER = 6  # how many steps are drawn between two values that were asked


def draw_plane(part: Mapping[str, Any] | None, labels: bool = False) -> Drawing | None:
    """Values or labels (n, n), rows from low to high, between two corners, and creases as polylines."""
    if part is None:
        return None
    values = np.array((part.get("classes") if labels else None) or part["values"], dtype=float)
    (left, bottom), (right, top) = part["low"], part["high"]
    figure = new_figure(SHAPE)
    axes = figure.add_subplot()
    shown, colours = (values, _label_colours(values)) if labels else (_finer(values), {"cmap": VALUES})
    extent = (left, right, bottom, top)
    seen = axes.imshow(shown, origin="lower", extent=extent, interpolation="none", aspect="equal", **colours)
    _draw_creases(axes, part)
    axes.set(xlim=(left, right), ylim=(bottom, top), xlabel="first direction", ylabel="second direction")
    name = "label" if labels else "largest answer" if part.get("classes") else "answer"
    bar = figure.colorbar(seen, ax=axes, shrink=0.85, label=name)
    bar.outline.set_visible(False)
    if labels:
        bar.locator.set_params(integer=True)
    bar.solids.set_rasterized(True)  # one picture instead of a path for every shade
    creases = len(part["creases"])
    marks = f", crossed by {creases} creases of the copy" if creases else ""
    return Drawing.of(figure, f"Heat map of the target's {name} on a plane through input space{marks}.")


def _draw_creases(axes: Any, part: Mapping[str, Any]) -> None:
    from matplotlib.collections import LineCollection

    lines = [np.array(each, dtype=float) for each in part["creases"]]
    colours = [FIRST if layer == 1 else DEEPER for layer in part.get("layers") or [1] * len(lines)]
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=0.9, alpha=0.8))


def _label_colours(labels: FloatArray) -> dict[str, Any]:
    """A colour for each label, those between the smallest and the largest included."""
    from matplotlib.colors import ListedColormap

    low, high = labels.min() - 0.5, labels.max() + 0.5
    kinds = round(high - low)
    few = kinds <= len(COLOURS)
    return {"cmap": ListedColormap(COLOURS[:kinds]) if few else MANY_LABELS, "vmin": low, "vmax": high}


def _finer(values: FloatArray) -> FloatArray:
    """Values between those that were asked, straight from one to the next."""
    for _ in range(2):
        at = np.linspace(0, len(values) - 1, FINER * (len(values) - 1) + 1)
        values = np.array([np.interp(at, np.arange(len(values)), column) for column in values.T])
    return values
